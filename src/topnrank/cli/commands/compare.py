"""`topnrank compare`."""

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from topnrank._checks import one_of
from topnrank.cli.files import require_writable
from topnrank.cli.options import ExecutionOptions, Filters, MetricOptions, ReadOptions, argument, option, with_options
from topnrank.cli.output import Output
from topnrank.cli.values import make_model, number, parse_feedback, parse_settings, split_list
from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from topnrank.data import Interactions
    from topnrank.evaluation.splits import Split
    from topnrank.experiments.report.summary import Summary
    from topnrank.models.base import Model


@dataclass(frozen=True)
class ModelOptions:
    """Which models on which rows."""

    data: str | None = argument(
        "A file, folder or glob, or a data set such as ml-1m; or give --train and --test.", "[DATA]", default=None
    )
    train: str | None = option(
        None, "Training rows of a fixed split, in place of DATA; --test FILE has its test rows.", metavar="FILE"
    )
    models: str = option(
        "",
        "Models, separated by commas ('topnrank models' lists them); LABEL=NAME for a row with another name.",
        metavar="NAME,...",
        show_default="those of --params",
    )
    params: list[str] | None = option(
        None,
        "A row with the hyper-parameters that 'topnrank tune --save-params' found; repeatable.",
        metavar="[LABEL=]FILE",
    )
    settings: list[str] | None = option(
        None,
        "A hyper-parameter of one row, such as climf.epochs=5; repeatable.",
        "--set",
        metavar="NAME.PARAM=VALUE",
    )
    feedback: str | None = option(
        None,
        "For events: weights of the rows, the same for all models, as in 'train': events:buy=1,view=.1.",
        show_default="none",
    )

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
            label: make_model(tnr.MODELS[kind], tuned.get(label, {}) | settings[label]) for label, kind in kinds.items()
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
            if not equals and label in kinds:  # a row for the model at its own settings, and one for the tuned one
                label = next(name for n in range(1, 99) if (name := f"{kind}-tuned{n if n > 1 else ''}") not in kinds)
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

    def check(self, test: str | None) -> None:
        """An error unless there are data, or both parts of a fixed split."""
        if (self.data is None) == (self.train is None) or (self.train is not None and test is None):
            raise ParameterError("give DATA, or --train FILE and --test FILE")

    def read_data(
        self, reading: ReadOptions, filters: Filters, test_file: str | None, output: Output
    ) -> "Interactions | Split":
        """The data, or the two parts of a fixed split; filtered and weighted."""
        if self.data is not None:
            return self._weighted(filters.apply(reading.read(self.data, output), output))
        if filters != Filters():
            raise ParameterError("--min-user-items and --min-item-users do not go with a fixed split; leave them out")
        train, test = (self._weighted(reading.read(str(path), output)) for path in (self.train, test_file))
        return train, test

    def _weighted(self, data: "Interactions") -> "Interactions":
        from topnrank.data.feedback.by_name import feedback_from

        return data if self.feedback is None else feedback_from(parse_feedback(self.feedback), data)(data)


@dataclass(frozen=True)
class ExperimentOptions:
    """How often, on which splits, and which items are ranked."""

    repeats: int = option(5, "How often the data are split, each time with the next seed.")
    protocol: str = option(
        "auto",
        "rated: rank each user's own test items (the paper). catalog: rank all items. Or both. auto: rated if all "
        "models are trained for that, else catalog.",
    )
    split: str = option(
        "per-user",
        "per-user (at random), last (each user's last items), last-session (each user's last session) or time (the latest "
        "rows).",
    )
    test: str | None = option(
        None,
        "Fraction of rows to test on; with --split last the number of items, with last-session the pause in seconds that "
        "ends one; with --train the file of the test rows.",
        metavar="NUMBER|FILE",
        show_default="0.5 per-user, 1 last, 1800 last-session, 0.2 time",
    )
    ties: str = option(
        "random", "With --split last, items of one moment: random, file (as its rows), item (by id) or error."
    )
    seed: int = option(0, "Seed of the first split.")
    controls: bool = option(
        True,
        "Add item-mean, popularity, random and, with times, recent-popularity and item-id-order.",
        "--controls/--no-controls",
    )

    def arguments(self, *, fixed: bool) -> dict[str, Any]:
        """The arguments of `compare` except the metrics; `fixed`: the parts of the split are files."""
        given = asdict(self)
        del given["test"]
        if fixed:
            if self.split != "per-user":
                raise ParameterError("--split does not go with --train; leave one out")
            del given["split"]
        elif self.test is not None:
            test = number("--test", self.test)
            given["test"] = int(test) if self.split == "last" and test.is_integer() else test
        return given


@dataclass(frozen=True)
class ReportOptions:
    """Which row the others are tested against, and what is written to files."""

    reference: str | None = option(
        None, "The row to test the others against.", metavar="NAME", show_default="the first"
    )
    report: str | None = option(None, "Write a page with tables and figures (HTML).", metavar="FILE")
    markdown: str | None = option(None, "Write the tables as Markdown.", metavar="FILE")
    csv: str | None = option(None, "Write the tables as CSV.", metavar="FILE")
    latex: str | None = option(None, "Write the tables as LaTeX.", metavar="FILE")

    def files(self) -> dict[str, str]:
        """The files that were asked for, by kind."""
        asked = {"report": self.report, "markdown": self.markdown, "csv": self.csv, "latex": self.latex}
        return {kind: path for kind, path in asked.items() if path is not None}

    def write(self, summary: "Summary") -> None:
        """Writes them."""
        from topnrank.experiments.report.data import to_csv
        from topnrank.experiments.report.html import to_html
        from topnrank.experiments.report.latex import to_latex
        from topnrank.experiments.report.markdown import to_markdown
        from topnrank.io.atomic import write_text

        formats = {"report": to_html, "markdown": to_markdown, "csv": to_csv, "latex": to_latex}
        for kind, path in self.files().items():
            write_text(path, formats[kind](summary))


@with_options
def compare(
    models: ModelOptions,
    experiment: ExperimentOptions,
    metrics: MetricOptions,
    execution: ExecutionOptions,
    report: ReportOptions,
    filters: Filters,
    reading: ReadOptions,
    output: Output,
) -> None:
    """Compare models on the same splits of a file, with tests.

    The data are split several times, every model is trained and measured on the same splits, and random, popularity,
    item-mean and, where there are times, recent-popularity are added as controls. The tables show the mean over repeats
    with its standard deviation, a 95 % bootstrap interval over users, and paired tests per user against one row, corrected
    for the number of tests (Holm), with stars where both tests, Student's t and Wilcoxon's, are significant. A model that
    fails leaves a row that says why. With --folder, a comparison that was killed goes on where it was.

    \b
    Examples:
      topnrank compare ratings.csv --models top-n-rank,climf,biased-mf
      topnrank compare ratings.csv --models top-n-rank,climf --set climf.epochs=5 --folder run1 --jobs 2
      topnrank compare ratings.csv --models relu=top-n-rank,laplace=top-n-rank --set relu.smoothing=relu
      topnrank compare ratings.csv --params best.json --models list-pmf,ease
      topnrank compare ratings.csv --models top-n-rank,bpr --protocol both --metric ndcg@10,recall@20 --report page.html
      topnrank compare ratings.csv --models ease,bpr --protocol catalog --split last --metric ndcg@10,novelty@10
      topnrank compare --train paper.train.tsv --test paper.test.tsv --models top-n-rank,ease --repeats 1
    """
    from topnrank.experiments.compare.rows import make_rows
    from topnrank.experiments.compare.run import compare as run_comparison
    from topnrank.experiments.report.data import to_dict
    from topnrank.experiments.report.summary import Summary
    from topnrank.experiments.report.terminal import to_terminal

    rows, fixed = models.rows(), models.train is not None
    models.check(experiment.test)
    for path in report.files().values():
        require_writable(path)
    arguments = experiment.arguments(fixed=fixed) | metrics.arguments() | asdict(execution)
    reading = replace(reading, keep_order=reading.keep_order or experiment.ties == "file")
    data = models.read_data(reading, filters, experiment.test, output)
    if report.reference is not None:  # refused before the work, not after it
        times = (data[0] if isinstance(data, tuple) else data).timestamps is not None
        made = make_rows(rows, controls=experiment.controls, times=times, task="catalog")
        one_of("--reference", report.reference, tuple(row.name for row in made))
    comparison = run_comparison(rows, data, **arguments, progress=not output.quiet)
    summary = Summary.of(comparison, report.reference)
    report.write(summary)
    if output.as_json:
        output.result(
            {"data": models.data or [models.train, experiment.test], **to_dict(summary), "files": report.files()}
        )
        return
    output.show(*to_terminal(summary))
    for kind, path in report.files().items():
        output.report(f"{kind} written to {path}")
