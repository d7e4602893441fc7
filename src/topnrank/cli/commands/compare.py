"""`topnrank compare`."""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topnrank._checks import one_of
from topnrank.cli.commands.evaluate import ALL_ROWS
from topnrank.cli.files import require_writable
from topnrank.cli.options import (
    Printing,
    Reading,
    filtered,
    number,
    parse_feedback,
    parse_settings,
    split_list,
    with_options,
)
from topnrank.cli.output import Output
from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from topnrank.data import Interactions
    from topnrank.experiments.compare.result import Comparison
    from topnrank.models.base import Model


@dataclass(frozen=True)
class ModelOptions:
    """Which models on which rows."""

    data: Annotated[str, typer.Argument(metavar="DATA", help="A file, folder or glob, or a data set such as ml-1m.")]
    models: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Models, separated by commas ('topnrank models' lists them); LABEL=NAME for a row with another name.",
            show_default="those of --params",
        ),
    ] = ""
    params: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LABEL=]FILE",
            help="A row with the hyper-parameters that 'topnrank tune --save-params' found; repeatable.",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME.PARAM=VALUE",
            help="A hyper-parameter of one row, such as climf.epochs=5; repeatable.",
        ),
    ] = None
    feedback: Annotated[
        str | None,
        typer.Option(
            help="For events: weights of the rows, the same for all models, as in 'train': events:buy=1,view=.1.",
            show_default="none",
        ),
    ] = None
    min_user_items: Annotated[int, typer.Option(help="Leave out users with fewer items.")] = 0
    min_item_users: Annotated[int, typer.Option(help="Leave out items with fewer users; done before the users.")] = 0

    def rows(self) -> "dict[str, Model]":
        """Models by the names of their rows, not fitted yet."""
        import topnrank as tnr

        kinds: dict[str, str] = {}
        for part in split_list([self.models]):
            label, equals, kind = (text.strip() for text in part.partition("="))
            if label in kinds:
                raise ParameterError(f"--models names {label!r} twice; give one of them a label, such as other={label}")
            kinds[label] = one_of("--models: a model", kind if equals else label, tuple(tnr.MODELS))
        tuned = self._tuned(kinds)
        if not kinds:
            raise ParameterError(f"--models must name at least one of {', '.join(tnr.MODELS)}; or give --params")
        settings = self._settings(tuple(kinds))
        return {
            label: tnr.MODELS[kind]().set_params(**tuned.get(label, {}) | settings[label])
            for label, kind in kinds.items()
        }

    def _tuned(self, kinds: dict[str, str]) -> dict[str, dict[str, Any]]:
        """Hyper-parameters of files by row; rows that `kinds` does not have are added to it."""
        from topnrank.models.persistence import read_params

        tuned: dict[str, dict[str, Any]] = {}
        for part in self.params or ():
            label, equals, file = part.partition("=")
            kind, parameters = read_params(file if equals else part)
            if kind is None:
                raise ParameterError(
                    f"--params {part}: does not say which model it is for; give a file of 'topnrank tune'"
                )
            label = label if equals else kind
            if kinds.setdefault(label, kind) != kind:
                raise ParameterError(
                    f"--params {part}: is for {kind}, and the row {label!r} is {kinds[label]}; name it LABEL=FILE"
                )
            tuned[label] = parameters
        return tuned

    def _settings(self, labels: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        """Hyper-parameters by row."""
        settings: dict[str, dict[str, Any]] = {label: {} for label in labels}
        for name, value in parse_settings(self.settings or ()).items():
            label, dot, parameter = name.rpartition(".")
            if not dot:
                raise ParameterError(f"--set needs NAME.PARAM=VALUE, such as {labels[0]}.seed=1, got {name!r}")
            settings[one_of("--set: the row before the dot", label, labels)][parameter] = value
        return settings

    def rows_of_data(self, reading: Reading, output: Output) -> "Interactions":
        """The data, filtered and weighted."""
        from topnrank.data.feedback.by_name import feedback_from

        data = filtered(reading.read(self.data, output), self.min_user_items, self.min_item_users, output)
        return data if self.feedback is None else feedback_from(parse_feedback(self.feedback), data)(data)


@dataclass(frozen=True)
class ExperimentOptions:
    """How often, on which splits, and what is measured."""

    repeats: Annotated[int, typer.Option(help="How often the data are split, each time with the next seed.")] = 5
    protocol: Annotated[
        str,
        typer.Option(help="rated: rank each user's own test items (the paper). catalog: rank all items. Or both."),
    ] = "rated"
    metrics: Annotated[
        str, typer.Option("--metrics", "--metric", help="Separated by commas, as in 'topnrank evaluate'.")
    ] = "ndcg@1,ndcg@3,ndcg@5,ndcg@10,ndcg@20"
    relevant: Annotated[
        str,
        typer.Option(help=f"Lowest rating of a relevant item; '{ALL_ROWS}': every row, or weight > 0 with weights."),
    ] = "4"
    split: Annotated[
        str, typer.Option(help="per-user (at random), last (each user's last items) or time (the latest rows).")
    ] = "per-user"
    test: Annotated[
        float | None,
        typer.Option(
            help="Share of rows to test on; with --split last the number of items.",
            show_default="0.5 per-user, 1 last, 0.2 time",
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of the first split.")] = 0
    controls: Annotated[
        bool, typer.Option("--controls/--no-controls", help="Add item-mean, popularity and random where missing.")
    ] = True

    def options(self) -> dict[str, Any]:
        """What to hand to `compare`."""
        relevant = None if self.relevant == ALL_ROWS else number("--relevant", self.relevant)
        options = {"split": self.split, "seed": self.seed, "relevant": relevant, "controls": self.controls}
        if self.test is not None:
            options["test"] = int(self.test) if self.split == "last" and self.test.is_integer() else self.test
        return {"repeats": self.repeats, "protocol": self.protocol, "metrics": split_list([self.metrics]), **options}


@dataclass(frozen=True)
class ExecutionOptions:
    """Where finished parts are kept, and how many run at a time."""

    folder: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Keep finished parts there; after a kill the same command goes on.", show_default="none"
        ),
    ] = None
    jobs: Annotated[
        int, typer.Option(help="Parts at a time, each on one thread; the result does not depend on it.")
    ] = 1


@dataclass(frozen=True)
class ReportOptions:
    """Which row the others are tested against, and what is written to files."""

    reference: Annotated[
        str | None, typer.Option(metavar="NAME", help="The row to test the others against.", show_default="the first")
    ] = None
    report: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page with tables and figures (HTML).")] = (
        None
    )
    markdown: Annotated[str | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")] = None
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write the tables as CSV.")] = None
    latex: Annotated[str | None, typer.Option(metavar="FILE", help="Write the tables as LaTeX.")] = None

    def files(self) -> dict[str, str]:
        """The files that were asked for."""
        asked = {"report": self.report, "markdown": self.markdown, "csv": self.csv, "latex": self.latex}
        return {kind: path for kind, path in asked.items() if path is not None}

    def write(self, comparison: "Comparison") -> None:
        """Writes them."""
        from topnrank.experiments.report import tables
        from topnrank.experiments.report.html import write_report
        from topnrank.experiments.report.summary import Summary
        from topnrank.io.atomic import write_atomically

        if not self.files():
            return
        summary = Summary.of(comparison, self.reference)
        for kind, path in self.files().items():
            if kind == "report":
                write_report(summary, path)
            else:
                text: str = getattr(tables, f"to_{kind}")(summary)
                write_atomically(path, partial(_write_text, text=text))


def _write_text(path: Path, *, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@with_options
def compare(
    contest: ModelOptions,
    design: ExperimentOptions,
    running: ExecutionOptions,
    telling: ReportOptions,
    reading: Reading,
    printing: Printing,
) -> None:
    """Compare models on the same splits of a file, with tests.

    The data are split several times, every model is trained and measured on the same splits, and random, popularity and
    item-mean stand beside them. The tables show the mean over repeats with its standard deviation, a 95 % bootstrap
    interval over users, and paired tests per user against one row, corrected for the number of tests (Holm). A model that
    fails leaves a row that says why. With --folder, a comparison that was killed goes on where it was.

    \b
    Examples:
      topnrank compare ratings.csv --models top-n-rank,climf,biased-mf
      topnrank compare ratings.csv --models top-n-rank,climf --set climf.epochs=5 --folder run1 --jobs 2
      topnrank compare ratings.csv --models relu=top-n-rank,laplace=top-n-rank --set relu.smoothing=relu
      topnrank compare ratings.csv --params best.json --models list-pmf,ease
      topnrank compare ratings.csv --models top-n-rank,bpr --protocol both --metric ndcg@10,recall@20 --report page.html
      topnrank compare ratings.csv --models ease,bpr --protocol catalog --split last --metric ndcg@10,novelty@10
    """
    from topnrank.experiments.compare.run import compare as run_comparison
    from topnrank.experiments.report.terminal import as_json, show
    from topnrank.experiments.statistics import paired_tests

    output = printing.output()
    models = contest.rows()
    for path in telling.files().values():
        require_writable(path)
    options = design.options()
    _check_reference(telling.reference, models, controls=design.controls)
    data = contest.rows_of_data(reading, output)
    where: dict[str, Any] = asdict(running) | {"progress": not output.quiet}
    comparison = run_comparison(models, data, **options, **where)
    tests = paired_tests(comparison, telling.reference)
    telling.write(comparison)
    if not output.as_json:
        show(comparison, tests, output)
    for kind, path in telling.files().items():
        output.report(f"{kind} written to {path}")
    if output.as_json:  # intervals of all rows and metrics take a while
        output.result({"data": contest.data, **as_json(comparison, tests), "files": telling.files()})


def _check_reference(reference: str | None, models: "dict[str, Model]", *, controls: bool) -> None:
    """Refuses an unknown reference before the work, not after it."""
    from topnrank.experiments.compare.rows import rows_of

    if reference is not None:
        one_of("--reference", reference, tuple(row.name for row in rows_of(models, controls=controls)))
