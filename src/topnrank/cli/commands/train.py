"""`topnrank train`."""

import inspect
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topnrank._checks import one_of
from topnrank.cli.facts import describe, training_facts, users_with_one_row
from topnrank.cli.files import require_writable, table_format, write_table
from topnrank.cli.options import Printing, Reading, filtered, parse_feedback, parse_settings, share, with_options
from topnrank.cli.output import Output, facts_table
from topnrank.cli.training_notes import TrafficWatch, log_training_notes
from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from topnrank import Interactions, Model

DEFAULT = "top-n-rank"
"""The model when none is named."""


@dataclass(frozen=True)
class Choice:
    """Which model, with which hyper-parameters."""

    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Name of the model; 'topnrank models' lists them.", show_default=DEFAULT),
    ] = None
    params: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Model and hyper-parameters from 'topnrank tune --save-params FILE'; --set overrides."
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A hyper-parameter, such as factors=20; may be repeated. 'topnrank models NAME' lists them.",
        ),
    ] = None
    paper: Annotated[
        str | None,
        typer.Option(
            metavar="relu|sigmoid", help="Top-N-Rank with the paper's settings and this smoothing; --set overrides."
        ),
    ] = None
    no_truncate: Annotated[
        bool, typer.Option("--no-truncate", help="With --paper: the variant without the cut at N.")
    ] = False
    feedback: Annotated[
        str | None,
        typer.Option(
            help="How a row becomes a weight: centered (rating minus the user's mean), threshold=4 (+1 from there, -1 "
            "below), weights (the weight column), events:buy=1,view=.1, conversion=buy, item-count or unary; recency=30: "
            "before one of them halves its weights every 30 days.",
            show_default="centered with ratings, else weights",
        ),
    ] = None
    seed: Annotated[
        int | None, typer.Option(help="Random numbers of start values, batches and --holdout.", show_default="0")
    ] = None
    threads: Annotated[
        int | None, typer.Option(help="Threads; the result does not depend on it.", show_default="all cores")
    ] = None
    engine: Annotated[str | None, typer.Option(help="cpu, spark, or reference (plain NumPy).", show_default="cpu")] = (
        None
    )
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="With --engine spark: the cluster, such as spark://host:7077, yarn or local[*].",
            show_default="what spark-submit or spark-defaults.conf say, else local[*]",
        ),
    ] = None

    def build(self, *, seed_has_other_use: bool) -> "Model":
        """The model that was asked for, not fitted yet."""
        import topnrank as tnr

        name, tuned = self._from_file()
        kind = tnr.MODELS[one_of("--model", name, tuple(tnr.MODELS))]
        if self.no_truncate and self.paper is None:
            raise ParameterError("--no-truncate goes with --paper; without it, use --set truncate=false")
        if self.paper is None:
            model = kind().set_params(**tuned)
        elif kind is tnr.TopNRank:
            model = tnr.TopNRank.paper(smoothing=self.paper, truncate=not self.no_truncate)
        else:
            raise ParameterError(f"--paper goes with --model top-n-rank, got --model {name}; leave one out")
        settings = self._settings()
        if self.master is not None and settings.get("engine") != "spark":
            raise ParameterError("--master goes with --engine spark; give both or leave it out")
        if seed_has_other_use and "seed" not in model.get_params():
            settings.pop("seed", None)
        return model.set_params(**settings)

    def _from_file(self) -> tuple[str, dict[str, Any]]:
        """The name of the model, and the hyper-parameters of --params."""
        from topnrank.models.persistence import read_params

        if self.params is None:
            return self.model or DEFAULT, {}
        if self.paper is not None:
            raise ParameterError("--params and --paper both give all hyper-parameters; leave one out")
        name, tuned = read_params(self.params)
        if None not in (name, self.model) and name != self.model:
            raise ParameterError(
                f"{self.params}: holds parameters of {name}, not of --model {self.model}; leave one out"
            )
        return self.model or name or DEFAULT, tuned

    def _settings(self) -> dict[str, Any]:
        """--set and the options that stand for hyper-parameters of their own."""
        settings = parse_settings(self.settings or ())
        feedback = None if self.feedback is None else parse_feedback(self.feedback)
        options = {"feedback": feedback, "seed": self.seed, "num_threads": self.threads, "engine": self.engine}
        given = {name: value for name, value in options.items() if value is not None}
        if twice := sorted(settings.keys() & given.keys()):
            raise ParameterError(f"{twice[0]} is given by --set and by its own option; give it once")
        return settings | given


@dataclass(frozen=True)
class Task:
    """From which rows of which file to which model file."""

    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A file, folder or glob: CSV, TSV, '::' files, JSON lines, Parquet; or a data set such as ml-1m.",
        ),
    ]
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="MODEL", help="Where to save the model, such as movies.safetensors."),
    ]
    min_user_items: Annotated[int, typer.Option(help="Leave out users with fewer items.")] = 0
    min_item_users: Annotated[int, typer.Option(help="Leave out items with fewer users; done before the users.")] = 0
    holdout: Annotated[
        float | None,
        typer.Option(
            callback=share,
            metavar="SHARE",
            help="Keep this share of each user's items out of training and write them to a file for 'evaluate'.",
        ),
    ] = None
    holdout_file: Annotated[
        str | None,
        typer.Option(
            help="Where to write them (.parquet, .csv or .jsonl).", show_default="MODEL's name + .test.parquet"
        ),
    ] = None

    def filtered(self, data: "Interactions", output: Output) -> "Interactions":
        """Without rare items and users; tells how many went."""
        return filtered(data, self.min_user_items, self.min_item_users, output)

    def split(self, data: "Interactions", seed: int | None) -> "tuple[Interactions, Interactions | None]":
        """Rows to train on, and those held out."""
        import topnrank as tnr

        return (data, None) if self.holdout is None else tnr.split_per_user(data, test=self.holdout, seed=seed or 0)

    def test_path(self) -> str | None:
        """Where held-out rows go; None when there are none."""
        if self.holdout is None:
            if self.holdout_file is not None:
                raise ParameterError("--holdout-file needs --holdout SHARE, such as --holdout 0.5; add it")
            return None
        from topnrank.io.paths import parse_path

        path = self.holdout_file or str(parse_path(self.output).with_suffix(".test.parquet"))
        table_format(path)
        return path


@dataclass(frozen=True)
class Stopping:
    """When to stop, and how to go on after a kill; the names are those of `fit`."""

    validation: Annotated[
        float | None,
        typer.Option(
            callback=share,
            metavar="SHARE",
            help="Hold out this share of each user's training items, keep the best round by them, and stop early.",
        ),
    ] = None
    metric: Annotated[str | None, typer.Option(help="What --validation measures.", show_default="ndcg@10")] = None
    patience: Annotated[
        int | None, typer.Option(help="Rounds without a better value before stopping.", show_default="10")
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Save the state there; after a kill the same command goes on from it."),
    ] = None

    def arguments(self, model: "Model") -> dict[str, Any]:
        """What to hand to `fit`; an error where the model knows no rounds."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        known = inspect.signature(model.fit).parameters
        if unknown := [name for name in given if name not in known]:
            raise ParameterError(f"{model.name} is not trained in rounds and takes no --{unknown[0]}; leave it out")
        if self.validation is None and (alone := [name for name in ("metric", "patience") if name in given]):
            raise ParameterError(f"--{alone[0]} needs --validation SHARE, such as --validation 0.1; add it")
        return given


@with_options
def train(task: Task, choice: Choice, stopping: Stopping, reading: Reading, printing: Printing) -> None:
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
      topnrank train ratings.csv -o movies.safetensors --set factors=100 --validation 0.1 --checkpoint run1
      topnrank train events.csv -o shop.safetensors --type action --feedback events:buy=1,cart=.5,view=.1
      topnrank train ml-1m/ratings.dat -o paper.safetensors --paper relu --min-user-items 10
      topnrank train hdfs://host:9000/ratings -o hdfs://host:9000/m.safetensors --engine spark --master spark://host:7077
    """
    output = printing.output()
    model = choice.build(seed_has_other_use=task.holdout is not None)
    arguments = stopping.arguments(model)
    test_path = task.test_path()
    for path in (task.output, test_path):
        if path is not None:
            require_writable(path)
    if getattr(model, "engine", None) == "spark":
        _start_spark(choice.master, output)
        if _train_in_cluster(model, (task, stopping, reading), output):
            return
    cold = _must_compile()  # asked before anything is read, which takes kernels of its own
    data = task.filtered(reading.read(task.data, output), output)
    rows, test = task.split(data, choice.seed)
    if cold and hasattr(model, "engine"):
        output.progress("compiling the kernels: about half a minute, once on a machine")
    seconds = fit(model, rows, arguments, output)
    if test is not None and test_path is not None:
        write_table(test_path, test.to_arrow())
    model.save(task.output)
    _report(task, model, (describe(rows), test), seconds, output)


def _train_in_cluster(model: "Model", options: tuple[Task, Stopping, Reading], output: Output) -> bool:
    """The whole of it by Spark, from the files to the model; False, with a note, where the driver must read the rows."""
    from topnrank.cli.commands import train_spark

    task, stopping, reading = options
    needs_rows = {
        "--holdout": task.holdout,
        "--validation": stopping.validation,
        "--min-user-items": task.min_user_items,
        "--min-item-users": task.min_item_users,
    }
    reason = next((name for name, value in needs_rows.items() if value), None)
    data = train_spark.rows_in_cluster(task.data, reading, reason, output)
    if data is None:
        return False
    model, seconds = train_spark.fit_in_cluster(model, data, stopping.checkpoint, output)
    model.save(task.output)
    sizes = {"rows": data.n_rows, "users": data.n_users, "items": data.n_items}
    _report(task, model, (sizes, None), seconds, output)
    return True


def _start_spark(master: str | None, output: Output) -> None:
    """A session before anything is read: a cluster that cannot be reached should be known at once."""
    from topnrank.spark.session.session import get_session

    context = get_session(master, "topnrank train").sparkContext
    page = f"; its stages can be watched at {context.uiWebUrl}" if context.uiWebUrl else ""
    output.note(f"Spark {context.version} at {context.master}{page}")


def _must_compile() -> bool:
    """Whether no process has left compiled kernels on this machine yet."""
    from topnrank.kernels.jit import kernel_folder

    folder = kernel_folder()
    return folder is None or next(folder.rglob("*.nbi"), None) is None


def fit(model: "Model", rows: "Interactions", arguments: dict[str, Any], output: Output) -> float:
    """Trains with a progress bar; returns the seconds it took."""
    watch = TrafficWatch()
    if "progress" in inspect.signature(model.fit).parameters:
        arguments = {**arguments, "progress": not output.quiet, "callbacks": [watch]}
    if arguments.get("checkpoint") is not None:
        output.note(f"after an interruption the same command goes on from {arguments['checkpoint']}")
    started = time.perf_counter()
    model.fit(rows, **arguments)
    seconds = time.perf_counter() - started
    log_training_notes(model, users_with_one_row(rows.indptr), output)
    watch.tell(output)
    return seconds


def _report(
    task: Task,
    model: "Model",
    parts: "tuple[dict[str, Any], Interactions | None]",
    seconds: float,
    output: Output,
) -> None:
    sizes, test = parts
    facts = {
        "model": model.name,
        "file": task.output,
        "seconds": round(seconds, 3),
        **training_facts(model),
        "data": sizes,
    }
    people = {**facts, "data": {name: facts["data"][name] for name in ("rows", "users", "items")}}
    next_steps = f"recommend: topnrank recommend {task.output} --user {model.user_ids_[0]}"
    if test is not None:
        facts["holdout"] = {"file": task.test_path(), "rows": len(test), "share": task.holdout}
        people["holdout"] = facts["holdout"]
        next_steps += f"\nevaluate:  topnrank evaluate {task.output} {task.test_path()}"
    output.report(facts_table(people), "", next_steps)
    output.result(facts)
