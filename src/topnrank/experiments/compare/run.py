"""`compare`: some models, the same splits, all numbers kept."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from numbers import Integral
from typing import Any, TypedDict, Unpack

import numpy as np

from topnrank._checks import one_of
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError
from topnrank.evaluation.labels import LIKED_FROM
from topnrank.evaluation.metrics import DEFAULT_METRICS, parse_metrics
from topnrank.evaluation.protocols import PROTOCOLS
from topnrank.experiments.compare.cells import SPLITS, TEST, Plan, Runner, Task, check_relevance
from topnrank.experiments.compare.environment import hardware, versions
from topnrank.experiments.compare.folder import Folder
from topnrank.experiments.compare.progress import Bar
from topnrank.experiments.compare.result import Cell, Comparison
from topnrank.experiments.compare.rows import Models, Row, rows_of

TIES = "expected value under random order"


class CompareOptions(TypedDict, total=False):
    """Options of `compare`, explained there."""

    split: str
    test: float
    seed: int
    relevant: float | None
    controls: bool


def compare(
    models: Models,
    data: Interactions,
    *,
    repeats: int = 5,
    protocol: str = "rated",
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    folder: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: bool = False,
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Fits and measures every model on the same splits of `data`, some times over.

    A model that fails does not end the comparison: its row says why. The same call gives the same bits, whatever `jobs` is.

    Parameters
    ----------
    models
        Models of this library and competitors (`topnrank.comparison.Competitor`): a list, named by themselves and the
        parameters in which they differ, or a dict of names and models.
    data
        All rows; each repeat splits them into train and test.
    repeats
        Splits, with the seeds `seed`, `seed` + 1, ... A split without chance ("last", "time") is the same in all repeats;
        there the models' own seeds differ by 0, 1, ...
    protocol
        "rated" (each user's own test items are ranked), "catalog" (all items) or "both".
    metrics
        Names such as "ndcg@10", as `topnrank.evaluate` has them; all but coverage, which is not a mean over users.
    folder
        Where finished cells are kept. After a kill the same call computes only what is missing; more models and more
        repeats may be added. A cell that failed is tried again. The folder of other data or settings is refused.
    jobs
        Cells at a time, each in a process of its own on one thread.
    progress
        Show a bar with the time left on standard error.
    split, test
        "per-user" (a share of each user's items at random, default 0.5), "last" (each user's last items, default 1) or
        "time" (the latest share of all rows, default 0.2).
    seed
        Seed of the first split.
    relevant
        Lowest rating of a relevant row, as in `topnrank.evaluate`.
    controls
        Whether Random, Popularity and ItemMean are added where they are missing (default).
    """
    jobs, repeats = _count("jobs", jobs), _count("repeats", repeats)
    plan = _plan(data, protocol, metrics, options, one_thread=jobs > 1)
    rows = rows_of(models, controls=options.get("controls", True))
    tasks = [Task(row, repeat, plan.key(row, repeat)) for repeat in range(repeats) for row in rows]
    place = None if folder is None else Folder.of(folder, plan.identity())
    runner = Runner(plan, place)
    rule = check_relevance(runner.parts(0)[1], plan.relevant)  # bad data ends here, not in every row
    settings = _settings(plan, rows, repeats) | {"relevance": rule}
    names = tuple(row.name for row in rows)
    shared = (names, plan.protocols, plan.metrics, repeats, data.users.ids, settings)
    keys = {row.name: [plan.key(row, repeat) for repeat in range(repeats)] for row in rows}
    if place is not None:
        place.write_head(Comparison(*shared, _facts(plan, []), {}), keys)
    cells = _cells(runner, tasks, jobs, progress=progress)
    ordered = {(task.row.name, task.repeat): cells[task.row.name, task.repeat] for task in tasks}
    comparison = Comparison(*shared, _facts(plan, list(ordered.values())), ordered)
    if place is not None:
        place.write_head(comparison, keys)
    return comparison


def _cells(runner: Runner, tasks: Sequence[Task], jobs: int, *, progress: bool) -> dict[tuple[str, int], Cell]:
    """All cells: those kept from an earlier run, and the others computed now."""
    cells: dict[tuple[str, int], Cell] = {}
    left = []
    for task in tasks:
        kept = None if runner.folder is None else runner.folder.find(task.key)
        if kept is None:
            left.append(task)
        else:
            cells[task.row.name, task.repeat] = _renamed(kept, task)
    with Bar(left, done=len(cells), jobs=jobs, shown=progress) as bar:
        for cell in _computed(runner, left, jobs, bar):
            cells[cell.model, cell.repeat] = cell
            bar.finished(cell)
    return cells


def _computed(runner: Runner, tasks: Sequence[Task], jobs: int, bar: Bar) -> Iterator[Cell]:
    if jobs > 1 and tasks:
        from topnrank.experiments.compare.parallel import run_in_processes

        yield from run_in_processes(runner.plan, runner.folder, tasks, jobs)
        return
    for task in tasks:
        bar.started(task)
        yield runner.run(task)


def _renamed(cell: Cell, task: Task) -> Cell:
    """A kept cell under the name its row has now: names depend on the other rows, keys do not."""
    return replace(cell, model=task.row.name)


def _plan(
    data: Interactions, protocol: str, metrics: str | Sequence[str], options: CompareOptions, *, one_thread: bool
) -> Plan:
    """Checks what all cells share."""
    if not isinstance(data, Interactions):
        raise ParameterError(
            f"compare needs Interactions, got {type(data).__name__}; make them with topnrank.read(path) or "
            "Interactions.from_frame(frame)"
        )
    for name in options:
        one_of("compare: an option", name, tuple(CompareOptions.__annotations__))
    split = one_of("split", options.get("split", "per-user"), SPLITS)
    relevant = options.get("relevant", LIKED_FROM)
    _check_types(data, relevant)
    return Plan(
        data=data,
        fingerprint=data.fingerprint(),
        split=split,
        test=_plain(options.get("test", TEST[split])),
        seed=_count("seed", options.get("seed", 0), least=0),
        relevant=None if relevant is None else _number("relevant", relevant),
        protocols=PROTOCOLS if one_of("protocol", protocol, (*PROTOCOLS, "both")) == "both" else (protocol,),
        metrics=_metrics(metrics),
        one_thread=one_thread,
    )


def _metrics(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names of metrics that have a value for each user."""
    metrics = parse_metrics(names)
    if whole := [metric.name for metric in metrics if metric.kind == "coverage"]:
        raise ParameterError(
            f"compare: {whole[0]} is one number for all users together, so that no interval or test can be made of it; "
            "use topnrank.evaluate for it"
        )
    return tuple(metric.name for metric in metrics)


def _check_types(data: Interactions, relevant: float | None) -> None:
    """Types need weights that are the same for all models, or the test would not be the same."""
    if data.types is not None and data.ratings is None and data.weights is None and relevant is not None:
        names = ", ".join(f"{name!r}: ..." for name in data.type_names)
        raise DataError(
            "compare: the data have feedback types but no weights, so that models might take different rows for relevant; "
            f"give EventWeights({{{names}}})(data), or relevant=None if every row is relevant"
        )


def _count(name: str, value: Any, *, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ParameterError(f"{name} must be a number or None, got {value!r}")
    return float(value)


def _plain(value: Any) -> Any:
    """A Python number instead of one of NumPy's, for JSON; what is wrong with it the split says."""
    return value.item() if isinstance(value, np.generic) else value


def _settings(plan: Plan, rows: Sequence[Row], repeats: int) -> dict[str, Any]:
    """How the numbers were made, ready for JSON."""
    return {
        "identity": plan.identity(),
        "split": plan.split,
        "test": plan.test,
        "seed": plan.seed,
        "seeds": [plan.seed + repeat for repeat in range(repeats)],
        "seeds_vary": "the split" if plan.split == "per-user" else "the models; the split is the same in all repeats",
        "relevant": plan.relevant,
        "ties": TIES,
        "kinds": {row.name: row.model.name for row in rows},
        "parameters": {row.name: row.parameters for row in rows},
        "versions": versions(),
        "hardware": hardware(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _facts(plan: Plan, cells: Sequence[Cell]) -> dict[str, Any]:
    """Sizes of the data and the splits; of each repeat one cell that did not fail tells them."""
    data = plan.data
    lengths = np.bincount(data.user_index[data.pair_starts], minlength=data.n_users)
    told = {cell.repeat: cell.facts for cell in reversed(cells) if cell.error is None}
    splits = [told[repeat] for repeat in sorted(told)]
    facts: dict[str, Any] = {
        "users": data.n_users,
        "items": data.n_items,
        "rows": len(data),
        "list_lengths": {"min": int(lengths.min()), "median": float(np.median(lengths)), "max": int(lengths.max())},
        "list_length_counts": {str(n): int(c) for n, c in zip(*np.unique(lengths, return_counts=True), strict=True)},
    }
    if not splits:
        return facts
    by_protocol = {protocol: [split[protocol] for split in splits] for protocol in plan.protocols}
    return facts | {
        "train_rows": [split["train_rows"] for split in splits],
        "test_rows": [split["test_rows"] for split in splits],
        "test_list_lengths": splits[0]["test_lengths"],
        "users_counted": {name: [one["users"] for one in all_] for name, all_ in by_protocol.items()},
        "users_excluded": {name: [data.n_users - one["users"] for one in all_] for name, all_ in by_protocol.items()},
        "users_without_relevant": {n: [one["without_relevant"] for one in all_] for n, all_ in by_protocol.items()},
        "users_without_test_rows": {n: [one["without_test_rows"] for one in all_] for n, all_ in by_protocol.items()},
        "effective_n": {name: _effective_n(all_) for name, all_ in by_protocol.items()},
        "conventions": {name: all_[0]["convention"] for name, all_ in by_protocol.items()},
    }


def _effective_n(splits: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Mean over users and repeats of min(k, length of the list), for each metric."""
    values = {metric: [split["effective_n"][metric] for split in splits] for metric in splits[0]["effective_n"]}
    known = {metric: [value for value in one if value is not None] for metric, one in values.items()}
    return {metric: sum(one) / len(one) for metric, one in known.items() if one}
