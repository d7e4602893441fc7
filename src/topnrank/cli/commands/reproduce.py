"""`topnrank reproduce`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from topnrank._checks import one_of
from topnrank.cli.files import require_writable
from topnrank.cli.options import ExecutionOptions, ReadOptions, argument, option, with_options
from topnrank.cli.output import Output, list_table

if TYPE_CHECKING:
    from topnrank import Interactions
    from topnrank.experiments.paper.reproduce import Reproduction

TABLES = ("table2", "table4")


@dataclass(frozen=True)
class ReproduceOptions:
    """Which table, on which data, and what is written to files."""

    table: str = argument("The table of the paper.", "table2|table4")
    data: str = option(
        "ml-100k", "ml-20m or amazon-video-games (the paper's), ml-1m, ml-100k, ..., or a file of ratings."
    )
    repeats: int = option(5, "Random halves.")
    fair: bool = option(
        False,
        "table2 only: rate and lambda tuned for each arm, and an arm whose N is larger than any list.",
        "--fair",
    )
    report: str | None = option(None, "Also write a page with figures, such as table2.html.", metavar="FILE")
    markdown: str | None = option(None, "Also write the tables as Markdown.", metavar="FILE")

    def read(self, reading: ReadOptions, output: Output) -> "Interactions":
        """The file, or the data set of that name."""
        import topnrank as tnr
        from topnrank.io.paths import parse_path

        if parse_path(self.data).exists():
            return reading.read(self.data, output)
        return tnr.load_dataset(self.data)


@with_options
def reproduce(experiment: ReproduceOptions, execution: ExecutionOptions, reading: ReadOptions, output: Output) -> None:
    """Run a table of the paper again, beside its published numbers.

    The settings are the paper's; the learning rate, which it does not give, is picked on validation data in each repeat.
    The tables add what the paper leaves out: random, popularity and item-mean rankings, this library's default
    Top-N-Rank, seconds, users left out, how many items the cut at N really leaves.

    \b
    Examples:
      topnrank reproduce table2 --data ml-100k
      topnrank reproduce table2 --data ml-1m --fair --folder run1 --jobs 4 --report table2.html
      topnrank reproduce table4 --data ml-20m --folder run2 --markdown table4.md
    """
    from topnrank.experiments.paper.page import to_markdown
    from topnrank.experiments.paper.reproduce import reproduce as run
    from topnrank.experiments.report.html import write_report
    from topnrank.io.atomic import write_text

    one_of("the table", experiment.table, TABLES)
    for path in (experiment.report, experiment.markdown):
        if path is not None:
            require_writable(path)
    data = experiment.read(reading, output)
    made = run(
        experiment.table,
        data,
        name=experiment.data,
        fair=experiment.fair,
        repeats=experiment.repeats,
        folder=execution.folder,
        jobs=execution.jobs,
        progress=not output.quiet,
    )
    _show(made, output)
    if experiment.markdown is not None:
        write_text(experiment.markdown, to_markdown(made))
    if experiment.report is not None:
        write_report(made.summary, experiment.report)
    files = {"report": experiment.report, "markdown": experiment.markdown}
    output.result({**made.to_dict(), "files": files})


def _show(made: "Reproduction", output: Output) -> None:
    """Means, effective N, seconds, users left out and tests."""
    from topnrank.experiments.paper.page import PAIR_HEADER, TESTS, pair_cells, score_cells

    heads, rows = score_cells(made)
    for cells in rows:
        detail = made.detail(cells[0])
        cells += ["" if detail.effective_n is None else f"{detail.effective_n:.1f}", f"{detail.seconds:.2f}"]
    heads += ["effective N", "seconds"]
    output.show(list_table(heads, rows, title=f"{made.plan.title}, on {made.plan.name}"))
    for name in made.rows:
        if (error := made.comparison.error(name)) is not None:
            output.note(f"{name}: {error}")
    out = ", ".join(map(str, made.users_left_out())) or "-"
    output.show(f"Users left out because no test item of theirs is relevant, by repeat: {out}")
    output.show("", list_table(PAIR_HEADER, pair_cells(made), title="Differences per user, NDCG@10"), TESTS)
