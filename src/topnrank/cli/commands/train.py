"""`topnrank train`."""

import inspect
import time
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, final

from topnrank._checks import one_of
from topnrank.cli.files import require_writable
from topnrank.cli.options import Filters, ReadOptions, argument, fraction, option, with_options
from topnrank.cli.output import Output, describe, facts_table, format_value, training_facts
from topnrank.cli.values import ALL_ROWS, RELEVANT, make_model, parse_feedback, parse_settings, relevant_of
from topnrank.errors import ParameterError
from topnrank.io.tables import table_format, write_table

if TYPE_CHECKING:
    from topnrank import Interactions, Model
    from topnrank._typing import Int64Array

DEFAULT = "top-n-rank"
"""The model when none is named."""
TASKS = {"rated": "the items a user has rated", "catalog": "all items"}


@dataclass(frozen=True)
class ModelOptions:
    """Which model, with which hyper-parameters."""

    model: str | None = option(
        None, "Name of the model; 'topnrank models' lists them.", "--model", "-m", show_default=DEFAULT
    )
    task: str | None = option(
        None,
        "What Top-N-Rank learns to rank: rated (the items a user has rated) or catalog (all items).",
        show_default="catalog",
    )
    params: str | None = option(
        None, "Model and hyper-parameters from 'topnrank tune --save-params FILE'; --set overrides.", metavar="FILE"
    )
    settings: list[str] | None = option(
        None,
        "A hyper-parameter, such as factors=20; may be repeated. 'topnrank models NAME' lists them.",
        "--set",
        metavar="NAME=VALUE",
    )
    paper: str | None = option(
        None, "Top-N-Rank with the paper's settings and this smoothing; --set overrides.", metavar="relu|sigmoid"
    )
    no_truncate: bool = option(False, "With --paper: the variant without the cut at N.", "--no-truncate")
    feedback: str | None = option(
        None,
        "How a row becomes a weight: centered (rating minus the user's mean), threshold=4 (+1 from there, -1 "
        "below), weights (the weight column), events:buy=1,view=.1, conversion=buy, item-count or unary; recency=30: "
        "before one of them halves its weights every 30 days.",
        show_default="centered with ratings, else weights",
    )
    seed: int | None = option(None, "Random numbers of start values, batches and --holdout.", show_default="0")
    threads: int | None = option(None, "Threads; the result does not depend on it.", show_default="all cores")
    engine: str | None = option(None, "cpu, spark, or reference (plain NumPy).", show_default="cpu")
    master: str | None = option(
        None,
        "With --engine spark: the cluster, such as spark://host:7077, yarn or local[*].",
        metavar="URL",
        show_default="what spark-submit or spark-defaults.conf say, else local[*]",
    )

    def build(self, *, seed_has_other_use: bool) -> "Model":
        """The model with these hyper-parameters, not fitted; a seed is dropped if the model has none and others use it."""
        import topnrank as tnr

        name, params = (self.model or DEFAULT, {}) if self.params is None else self._from_file(self.params)
        kind = tnr.MODELS[one_of("--model", name, tuple(tnr.MODELS))]
        known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        settings = parse_settings(self.settings or ())
        options = {
            "task": self.task,
            "feedback": None if self.feedback is None else parse_feedback(self.feedback),
            "seed": self.seed,
            "num_threads": self.threads,
            "engine": self.engine,
        }
        given = {name: value for name, value in options.items() if value is not None}
        if twice := sorted(settings.keys() & given.keys()):
            raise ParameterError(f"{twice[0]} is given by --set and by its own option; give it once")
        settings |= given
        if self.no_truncate and self.paper is None:
            raise ParameterError("--no-truncate goes with --paper; without it, use --set truncate=false")
        if self.paper is not None and kind is not tnr.TopNRank:
            raise ParameterError(f"--paper goes with --model top-n-rank, got --model {name}; leave one out")
        if self.task is not None and "task" not in known:
            raise ParameterError(f"--task goes with --model top-n-rank, {name} has one task only; leave it out")
        if self.master is not None and settings.get("engine") != "spark":
            raise ParameterError("--master goes with --engine spark; give both or leave it out")
        if seed_has_other_use and "seed" not in known:
            settings.pop("seed", None)
        if self.paper is not None:
            return tnr.TopNRank.paper(smoothing=self.paper, truncate=not self.no_truncate).set_params(**settings)
        return make_model(kind, params | settings)

    def _from_file(self, path: str) -> tuple[str, dict[str, Any]]:
        """The name of the model and the hyper-parameters in the file of --params."""
        from topnrank.models.persistence import read_params

        if self.paper is not None:
            raise ParameterError("--params and --paper both give all hyper-parameters; leave one out")
        name, params = read_params(path)
        if None not in (name, self.model) and name != self.model:
            raise ParameterError(f"{path}: holds parameters of {name}, not of --model {self.model}; leave one out")
        return self.model or name or DEFAULT, params


@dataclass(frozen=True)
class TrainOptions:
    """From which file to which model file, and which rows to keep for testing."""

    data: str = argument(
        "A file, folder or glob: CSV, TSV, '::' files, JSON lines, Parquet; or a data set such as ml-1m.", "DATA"
    )
    model_file: str = option(
        ..., "Where to save the model, such as movies.safetensors.", "--output", "-o", metavar="MODEL"
    )
    holdout: float | None = fraction(
        None, "Keep this fraction of each user's items out of training and write them to a file for 'evaluate'."
    )
    holdout_file: str | None = option(
        None, "Where to write them (.parquet, .csv or .jsonl).", show_default="MODEL's name + .test.parquet"
    )

    def test_file(self) -> str | None:
        """The file for the rows kept for testing; None when there are none."""
        if self.holdout is None:
            if self.holdout_file is not None:
                raise ParameterError("--holdout-file needs --holdout FRACTION, such as --holdout 0.5; add it")
            return None
        from topnrank.io.paths import parse_path

        path = self.holdout_file or str(parse_path(self.model_file).with_suffix(".test.parquet"))
        table_format(path)
        return path


@dataclass(frozen=True)
class StopOptions:
    """When to stop, and where to keep checkpoints; the names are those of the arguments of `fit`."""

    validation: float | None = fraction(
        None, "Hold out this fraction of each user's training items, keep the best round by them, and stop early."
    )
    metric: str | None = option(None, "What --validation measures.", show_default="ndcg@10")
    relevant: str | None = option(
        None,
        f"{RELEVANT}: for training on likes, --validation and 'evaluate'; '{ALL_ROWS}': every rating.",
        show_default="auto: by the scale of the ratings",
    )
    patience: int | None = option(None, "Rounds without a better value before stopping.", show_default="10")
    checkpoint: str | None = option(
        None, "Save the state there; after a kill the same command goes on from it.", metavar="FOLDER"
    )

    def arguments(self, model: "Model") -> dict[str, Any]:
        """The arguments of `fit`; an error for a model that is not trained in rounds."""
        given = {name: value for name, value in asdict(self).items() if value not in (None, "auto")}
        if self.relevant is not None and "relevant" in given:
            given["relevant"] = relevant_of(self.relevant)
        known = inspect.signature(model.fit).parameters
        if "relevant" in given and "relevant" not in known and "feedback" in model.get_params():
            if model.get_params()["feedback"] is not None:
                raise ParameterError("--relevant and --feedback both say what is liked; leave one out")
            from topnrank.data.feedback.policies import Threshold

            at = given.pop("relevant")
            model.set_params(feedback="unary" if at is None else Threshold(at))
        if unknown := [name for name in given if name not in known]:
            raise ParameterError(f"{model.name} is not trained in rounds and takes no --{unknown[0]}; leave it out")
        if self.validation is None and (alone := [name for name in ("metric", "patience") if name in given]):
            raise ParameterError(f"--{alone[0]} needs --validation FRACTION, such as --validation 0.1; add it")
        return given


@with_options
def train(
    options: TrainOptions,
    choice: ModelOptions,
    stopping: StopOptions,
    filters: Filters,
    reading: ReadOptions,
    output: Output,
) -> None:
    """Train a model on a file and save it.

    The file holds ratings, events or weights. Columns are found by their usual names (userId, movieId, rating, ...) or
    named by options. With --holdout, part of the rows is kept out of training and written to a file, so that
    'topnrank evaluate' can tell how good the model is: two commands from one file of ratings to a trained and measured
    model, as in the first example. The first training on a machine compiles the kernels, which takes about half a
    minute.

    \b
    Examples:
      topnrank train ratings.csv -o movies.safetensors --holdout 0.5
      topnrank evaluate movies.safetensors movies.test.parquet

    \b
      topnrank train ratings.csv -o movies.safetensors --params best.json
      topnrank train ratings.csv -o movies.safetensors --task rated --relevant 3.5
      topnrank train ratings.csv -o movies.safetensors --set factors=100 --validation 0.1 --checkpoint run1
      topnrank train events.csv -o shop.safetensors --type action --feedback events:buy=1,cart=.5,view=.1
      topnrank train ml-1m/ratings.dat -o paper.safetensors --paper relu --min-user-items 10
      topnrank train hdfs://host:9000/ratings -o hdfs://host:9000/m.safetensors --engine spark --master spark://host:7077
    """
    import topnrank as tnr

    model = choice.build(seed_has_other_use=options.holdout is not None)
    arguments = stopping.arguments(model)
    test_file = options.test_file()
    for path in (options.model_file, test_file):
        if path is not None:
            require_writable(path)
    if getattr(model, "engine", None) == "spark":
        from topnrank.cli.commands import train_spark

        _start_spark(choice.master, output)
        needs_rows = {
            "--holdout": options.holdout,
            "--validation": stopping.validation,
            "--relevant": stopping.relevant,
            "--min-user-items": filters.min_user_items,
            "--min-item-users": filters.min_item_users,
        }
        reason = next((name for name, value in needs_rows.items() if value), None)
        blocks = train_spark.rows_in_cluster(options.data, reading, reason, output)
        if blocks is not None:
            model, seconds = train_spark.fit_in_cluster(model, blocks, stopping.checkpoint, output)
            model.save(options.model_file)
            sizes = {"rows": blocks.n_rows, "users": blocks.n_users, "items": blocks.n_items}
            _report(options, model, {"seconds": seconds, "data": sizes}, output)
            return
    rows = reading.read_rows(options.data, output)
    if rows.unused:
        output.note(f"{options.data}: columns not used: {', '.join(rows.unused)}")
    data = filters.apply(rows.data, output)
    test = None
    if options.holdout is not None:
        data, test = tnr.split_per_user(data, test=options.holdout, seed=choice.seed or 0)
    seconds = fit(model, data, arguments, output)
    sizes = {"rows": len(data), "users": data.n_users, "items": data.n_items}
    facts: dict[str, Any] = {"seconds": seconds, "data": describe(data) if output.as_json else sizes}
    if test is not None and test_file is not None:
        write_table(test_file, test.to_arrow())
        facts["holdout"] = {"file": test_file, "rows": len(test), "fraction": options.holdout}
    model.save(options.model_file)
    _report(options, model, facts, output)


def _start_spark(master: str | None, output: Output) -> None:
    """Starts the session before anything is read, so that a cluster that cannot be reached is reported at once."""
    from topnrank.spark.session.session import get_session

    context = get_session(master, "topnrank train").sparkContext
    page = f"; its stages can be watched at {context.uiWebUrl}" if context.uiWebUrl else ""
    output.note(f"Spark {context.version} at {context.master}{page}")


def fit(model: "Model", rows: "Interactions", arguments: dict[str, Any], output: Output) -> float:
    """Trains with a progress bar and logs notes; returns the seconds it took."""
    traffic = TrafficWatch() if getattr(model, "engine", None) == "spark" else None
    if "progress" in inspect.signature(model.fit).parameters:
        watches = [] if traffic is None else [traffic]
        arguments = {**arguments, "progress": not output.quiet, "callbacks": watches}
    if arguments.get("checkpoint") is not None:
        output.note(f"after an interruption the same command goes on from {arguments['checkpoint']}")
    started = time.perf_counter()
    with output.compiling_told():
        model.fit(rows, **arguments)
    seconds = time.perf_counter() - started
    log_training_notes(model, rows.indptr, output)
    if traffic is not None:
        traffic.log(output)
    return seconds


def log_training_notes(model: "Model", indptr: "Int64Array", output: Output) -> None:
    """Notes task and rule of a model that was told neither, and how many users, by the rows' `indptr`, have one row only."""
    import numpy as np

    from topnrank.models.factor.model import FactorModel
    from topnrank.models.topnrank.model import TopNRank

    if isinstance(model, TopNRank) and model.task is None:
        rule = "" if model.liked_rule_ is None else f", liked are those with {model.liked_rule_}"
        output.note(
            f"the model learned to rank {TASKS[model.task_]}{rule}; --task rated|catalog and --relevant change it"
        )
    if model.fitted.info.chosen:
        values = ", ".join(f"{name} {format_value(value)}" for name, value in model.fitted.info.chosen.items())
        output.note(f"chosen on rows held out: {values}; --set changes any of them")
    single = int((np.diff(indptr) == 1).sum())
    if single and isinstance(model, FactorModel) and not model.recipe_.selection.relevant_only:
        output.note(f"users with one row only, from whom no order was learned: {single}")


@final
@dataclass
class TrafficWatch:
    """A callback that records how many bytes an iteration moves in a cluster."""

    traffic: Any = None

    def after_round(self, engine: Any, round_: object) -> bool:
        """Records the traffic of the latest step, where the engine measures it."""
        self.traffic = getattr(getattr(engine, "driven", engine), "traffic", None)
        return False

    def log(self, output: Output) -> None:
        """Notes the traffic, if there was any."""
        from rich.filesize import decimal

        if self.traffic is not None:
            whom = "in all to the executors that need them" if self.traffic.routed else "to each executor"
            down, up = decimal(self.traffic.down), decimal(self.traffic.up)
            output.note(f"an iteration moved {down} of item parameters {whom} and {up} of sums back")


def _report(options: TrainOptions, model: "Model", facts: dict[str, Any], output: Output) -> None:
    """Prints the facts of the training, and what to type next."""
    sizes = {name: facts["data"][name] for name in ("rows", "users", "items")}
    facts = {"model": model.name, "file": options.model_file, **facts, "seconds": round(facts["seconds"], 3)}
    facts |= training_facts(model)
    next_steps = f"recommend: topnrank recommend {options.model_file} --user {model.user_ids_[0]}"
    if "holdout" in facts:
        next_steps += f"\nevaluate:  topnrank evaluate {options.model_file} {facts['holdout']['file']}"
    output.report(facts_table({**facts, "data": sizes}), "", next_steps)
    output.result(facts)
