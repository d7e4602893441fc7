"""`compare`: several models on the same splits of the data."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from topnrank._checks import one_of, require_integer
from topnrank._progress import progress_bar
from topnrank.data.feedback.liked import Relevant, rule_for
from topnrank.data.interactions import Interactions, as_interactions
from topnrank.data.order import TIES, order_facts
from topnrank.errors import DataError, ParameterError, TopNRankWarning
from topnrank.evaluation.labels import relevance
from topnrank.evaluation.metrics import DEFAULT_METRICS, Metrics, parse_metrics
from topnrank.evaluation.protocols import PROTOCOLS
from topnrank.evaluation.splits import Split
from topnrank.experiments.compare.cells import DEFAULT_TEST, SPLITS, Plan, Runner, Task
from topnrank.experiments.compare.environment import hardware, versions
from topnrank.experiments.compare.folder import Folder, digest
from topnrank.experiments.compare.result import Cell, Comparison
from topnrank.experiments.compare.rows import Models, Row, check_rows, common_task, make_rows
from topnrank.experiments.compare.splits import all_rows, given_splits, name_of_split, varies

METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg@20")


_BY_ITEM = " Items of one moment were taken in the order of their ids, which a model can learn."


_BY_FILE = " Items of one moment were taken in the order of the file, which may be an artefact of how it was made."


class CompareOptions(TypedDict, total=False):
    """Options of `compare`, explained there."""

    split: str | Callable[..., Split]
    splits: Sequence[Split]
    test: float
    ties: str
    seed: int
    relevant: Relevant
    controls: bool


def compare(
    models: Models,
    data: Interactions | Split | None = None,
    *,
    repeats: int = 5,
    protocol: str = "auto",
    metrics: Metrics = DEFAULT_METRICS,
    folder: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: bool = False,
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Fits and measures every model on the same splits of `data`, some times over.

    A model that fails does not end the comparison: its row says why. The same call gives the same bits for any `jobs`.

    Parameters
    ----------
    models
        Models of this library and competitors (`topnrank.Competitor`): a list, named by themselves and the
        parameters in which they differ, or a dict of names and models. A model of your own needs two methods, fit(train) and
        score(users, items).
    data
        All rows; each repeat splits them into train and test. Or a fixed split (train, test), of Interactions or frames.
    repeats
        Splits, with the seeds `seed`, `seed` + 1, ... A split without chance ("last", "time") is the same in all repeats;
        there the models' own seeds differ by 0, 1, ...
    protocol
        "rated" (each user's own test items are ranked), "catalog" (all items) or "both". "auto": what the models are trained
        for, "rated" where all of them ask for that and else "catalog". A TopNRank whose task is open follows the protocol.
    metrics
        Names such as "ndcg@10" and functions of your own, as `topnrank.evaluate` has them; all but coverage, which is not a
        mean over users.
    folder
        Folder for finished cells. After a kill the same call computes only what is missing; more models and more
        repeats may be added. A cell that failed is tried again. The folder of other data or settings is refused.
    jobs
        How many cells run at a time, each in its own process on one thread.
    progress
        Show a bar with the time left on standard error.
    split, test
        "per-user" (a fraction of each user's items at random, default 0.5), "last" (each user's last items, default 1),
        "last-session" (each user's last session; `test` is the pause in seconds that ends one, default 1800) or "time" (the
        latest fraction of all rows, default 0.2). Or a function: split(data), or split(data, seed=...) where it has that
        parameter, returns (train, test).
    splits
        In place of data: fixed splits [(train, test), ...], a repeat for each.
    ties
        With split="last": "random" (default), "file", "item" or "error", see `topnrank.split_last`. How many rows are tied
        in time, and whether item ids give their order away, stands among the facts of every comparison by time.
    seed
        Seed of the first split.
    relevant
        Lowest rating of a relevant row, the same for all models; "auto": the upper fifth of the scale of all ratings.
    controls
        Whether Random, Popularity, ItemMean and, where the data have times, RecentPopularity are added where they are
        missing (default); and by split "last" or "last-session" ItemIdOrder where ids tell something of the order.
    """
    jobs, repeats = require_integer("jobs", jobs, 1), require_integer("repeats", repeats, 1)
    chosen = one_of("protocol", protocol, ("auto", *PROTOCOLS, "both"))
    check_rows(models)
    if "splits" in options or isinstance(data, tuple | list):
        data, repeats = _fix_splits(data, repeats, options)
    if chosen == "auto":
        chosen = common_task(models)
    plan = _make_plan(data, chosen, metrics, options, one_thread=jobs > 1)
    data = plan.data
    controls, times = options.get("controls", True), data.timestamps is not None
    by_order = plan.split in ("last", "last-session") and times and order_facts(data).ids_tell_order
    task: Literal["rated", "catalog"] = "rated" if chosen == "rated" else "catalog"
    rows = make_rows(models, controls=controls, times=times, ids=by_order, task=task)
    if by_order:
        warnings.warn(
            "compare: item ids tell something of the order of these data, so that a model may be right for the wrong "
            "reason; see the facts on order, and how ItemIdOrder does, which knows nothing else",
            TopNRankWarning,
            stacklevel=2,
        )
    identity = plan.identity()
    tasks = [Task(row, n, digest([identity, n, *row.identity()])) for n in range(repeats) for row in rows]
    kept = None if folder is None else Folder.open(folder, identity)
    runner = Runner(plan, kept)
    measured = relevance(runner.parts(0)[1], plan.relevant)  # data without relevant rows end here, not in every row
    for each in plan.protocols:
        if complaint := measured.complaint(each):
            if measured.says_nothing and each == "rated":
                raise DataError(f"compare: {complaint}")
            warnings.warn(f"compare: {complaint}", TopNRankWarning, stacklevel=2)
    comparison = Comparison(
        models=tuple(row.name for row in rows),
        protocols=plan.protocols,
        metrics=plan.metrics,
        repeats=repeats,
        users=data.users.ids,
        settings=_settings(plan, rows, repeats) | {"identity": identity, "relevance": measured.rule},
        facts=_facts(plan, []),
        cells={},
    )
    keys = {row.name: [task.key for task in tasks if task.row is row] for row in rows}
    if kept is not None:
        kept.write_head(comparison, keys)
    found = _run_cells(runner, tasks, jobs, progress=progress)
    cells = {(task.row.name, task.repeat): found[task.row.name, task.repeat] for task in tasks}
    comparison = replace(comparison, facts=_facts(plan, list(cells.values())), cells=cells)
    if kept is not None:
        kept.write_head(comparison, keys)
    return comparison


def _run_cells(runner: Runner, tasks: Sequence[Task], jobs: int, *, progress: bool) -> dict[tuple[str, int], Cell]:
    """All cells by row and repeat: those kept from an earlier run, and the others computed now."""
    cells: dict[tuple[str, int], Cell] = {}
    left = []
    for task in tasks:
        kept = None if runner.folder is None else runner.folder.find(task.key)
        if kept is None:
            left.append(task)
        else:  # a row may have another name now: names depend on the other rows, keys do not
            cells[task.row.name, task.repeat] = replace(kept, model=task.row.name)
    computed: Iterator[Cell] = map(runner.run, left)
    if jobs > 1 and left:
        from topnrank.experiments.compare.parallel import run_in_processes

        computed = run_in_processes(runner.plan, runner.folder, left, jobs)
    finished: list[Cell] = []
    with progress_bar("Comparing", len(tasks), clock="elapsed", shown=progress) as bar:
        bar.update(len(cells))
        for cell in computed:
            cells[cell.model, cell.repeat] = cell
            finished.append(cell)
            left = [task for task in left if (task.row.name, task.repeat) not in cells]
            if progress:
                under_way = f"{left[0].row.name}, repeat {left[0].repeat + 1}" if jobs == 1 and left else None
                bar.update(len(cells), title=under_way, text=time_left(left, finished, jobs))
    return cells


def time_left(tasks: Sequence[Task], finished: Sequence[Cell], jobs: int) -> str:
    """How long `tasks` will take in words: each as long as the finished cells of its model took on average.

    Models differ a thousandfold in time. A model without a finished cell counts as the average model.
    """
    seconds: dict[str, list[float]] = {}
    for cell in finished:
        seconds.setdefault(cell.model, []).append(cell.fit_seconds + cell.evaluate_seconds)
    means = {name: sum(taken) / len(taken) for name, taken in seconds.items()}
    average = sum(means.values()) / max(len(means), 1)
    total = sum(means.get(task.row.name, average) for task in tasks) / jobs
    about = "about" if means.keys() >= {task.row.name for task in tasks} else "more than"
    return f"{about} {timedelta(seconds=round(total))} left"


def _fix_splits(data: Any, repeats: int, options: CompareOptions) -> tuple[Interactions, int]:
    """The rows and the number of repeats where the splits are given; they take the place of `split` in the options."""
    several = options.pop("splits", None)
    if (data is None) == (several is None) or "split" in options or "test" in options:
        raise ParameterError(
            "compare: give data, or (train, test), or splits=[...] alone; given parts are not split again"
        )
    splits = given_splits([data] if several is None else several)
    options["split"] = splits  # type: ignore[typeddict-item]
    return all_rows(splits), repeats if several is None else len(splits)


def _make_plan(data: Any, protocol: str, metrics: Metrics, options: CompareOptions, *, one_thread: bool) -> Plan:
    """Checks what all cells share."""
    data = data if isinstance(data, Interactions) else as_interactions(data, "compare")
    for name in options:
        one_of("compare: an option", name, tuple(CompareOptions.__annotations__))
    split: Any = options.get("split", "per-user")
    usual = not callable(split) and not isinstance(split, tuple)
    split = one_of("split", split, SPLITS) if usual else split
    test = options.get("test", DEFAULT_TEST.get(str(split), 0.0))
    relevant = options.get("relevant", "auto")
    if data.types is not None and data.ratings is None and data.weights is None and relevant is not None:
        names = ", ".join(f"{name!r}: ..." for name in data.type_names)
        raise DataError(
            "compare: the data have feedback types but no weights, so that models might take different rows for relevant; "
            f"give EventWeights({{{names}}})(data), or relevant=None if every row is relevant"
        )
    parsed = parse_metrics(metrics)
    if whole := [metric.name for metric in parsed if metric.kind == "coverage"]:
        raise ParameterError(
            f"compare: {whole[0]} is one number for all users together, so that no interval or test can be made of it; "
            "use topnrank.evaluate for it"
        )
    return Plan(
        data=data,
        split=split,
        test=test.item() if isinstance(test, np.generic) else test,  # a wrong value is refused by the split
        seed=require_integer("seed", options.get("seed", 0)),
        relevant=rule_for(relevant, None, data.rating_counts),
        protocols=PROTOCOLS if protocol == "both" else (protocol,),
        measured=parsed,
        metrics=tuple(metric.name for metric in parsed),
        split_name=split if usual else name_of_split(split),
        splits_vary=split == "per-user" if usual else varies(split),
        ties=one_of("ties", options.get("ties", "random"), TIES),
        one_thread=one_thread,
    )


def _settings(plan: Plan, rows: Sequence[Row], repeats: int) -> dict[str, Any]:
    """How the numbers were made, as JSON."""
    return {
        "split": plan.split_name,
        "test": plan.test,
        "seed": plan.seed,
        "seeds": [plan.seed + repeat for repeat in range(repeats)],
        "seeds_vary": "the split" if plan.splits_vary else "the models; the split is the same in all repeats",
        "relevant": None if plan.relevant is None else plan.relevant.at,
        "ties": "expected value under random order",
        "kinds": {row.name: row.kind for row in rows},
        "parameters": {row.name: row.parameters for row in rows},
        "versions": versions(),
        "hardware": hardware(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _facts(plan: Plan, cells: Sequence[Cell]) -> dict[str, Any]:
    """Sizes of the data and of the splits, as JSON; those of a split are in the facts of any cell that did not fail."""
    data = plan.data
    lengths = np.bincount(data.user_index[data.pair_starts], minlength=data.n_users)
    facts: dict[str, Any] = {
        "users": data.n_users,
        "items": data.n_items,
        "rows": len(data),
        "list_lengths": {"min": int(lengths.min()), "median": float(np.median(lengths)), "max": int(lengths.max())},
        "list_length_counts": {str(n): int(c) for n, c in zip(*np.unique(lengths, return_counts=True), strict=True)},
    }
    if plan.split != "per-user" and data.timestamps is not None:
        rule = {
            "random": f" Items of one moment were taken in random order (seed {plan.seed}).",
            "item": _BY_ITEM,
            "file": _BY_FILE,
        }
        facts["order"] = f"{order_facts(data)}{rule.get(plan.ties, '') if plan.split == 'last' else ''}"
    known = {cell.repeat: cell.facts for cell in reversed(cells) if cell.error is None}
    splits = [known[repeat] for repeat in sorted(known)]
    if not splits:
        return facts
    by_protocol = {protocol: [split[protocol] for split in splits] for protocol in plan.protocols}
    effective_n: dict[str, dict[str, float]] = {}
    for protocol, parts in by_protocol.items():
        values = {
            metric: [part["effective_n"][metric] for part in parts if part["effective_n"][metric] is not None]
            for metric in plan.metrics
        }
        effective_n[protocol] = {metric: sum(found) / len(found) for metric, found in values.items() if found}
    return facts | {
        "train_rows": [split["train_rows"] for split in splits],
        "test_rows": [split["test_rows"] for split in splits],
        "test_list_lengths": splits[0]["test_lengths"],
        "users_counted": {name: [part["users"] for part in parts] for name, parts in by_protocol.items()},
        "users_excluded": {
            name: [data.n_users - part["users"] for part in parts] for name, parts in by_protocol.items()
        },
        "users_without_relevant": {
            name: [part["without_relevant"] for part in parts] for name, parts in by_protocol.items()
        },
        "users_without_test_rows": {
            name: [part["without_test_rows"] for part in parts] for name, parts in by_protocol.items()
        },
        "effective_n": effective_n,
        "conventions": {name: parts[0]["convention"] for name, parts in by_protocol.items()},
    }
