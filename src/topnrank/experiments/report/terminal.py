"""A comparison as tables for the terminal."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report.formatting import format_number, format_p, format_signed
from topnrank.experiments.report.summary import Summary
from topnrank.experiments.statistics import STAR_RULE

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def to_terminal(comparison: Comparison | Summary, reference: str | None = None) -> "list[RenderableType]":
    """Means, failures, the tests against the reference, conventions: tables and texts for a `rich` console."""
    from rich.text import Text

    summary = Summary.of(comparison, reference)
    shape = summary.comparison
    title = "Mean over users" + (
        f" and {shape.repeats} repeats, ± standard deviation over repeats" * (shape.repeats > 1)
    )
    means = _table(title, [*shape.metrics, f"95 % {summary.headline}", "fit s"], justify="right")
    differences = _table(f"Against {summary.reference}", shape.metrics, justify="left")
    notes: dict[str, None] = {}
    for protocol in shape.protocols:
        if len(shape.protocols) > 1:
            for table in (means, differences):
                table.add_section()
                table.add_row(Text(f"protocol {protocol}", "italic"))
        for row in summary.rows[protocol]:
            cells: list[RenderableType] = []
            for score in (row.scores[metric] for metric in shape.metrics if row.scores):
                text = Text(format_number(score.mean), "bold" if score.best else "")
                cells.append(text.append("" if math.isnan(score.std) else f"\n±{score.std:.4f}", "dim not bold"))
            interval = row.scores[summary.headline].interval if row.scores else ()
            shown = "\n".join(map(format_number, interval)) or "failed"
            means.add_row(row.model, *(cells or ["-"] * len(shape.metrics)), shown, format_number(row.fit_seconds, 1))
        tests = summary.tests(protocol)
        for model in dict.fromkeys(test.second for test in tests):
            mine = {test.metric: test for test in tests if test.second == model}
            found = [mine[metric] for metric in shape.metrics]
            differences.add_row(model, *(f"{format_signed(t.difference)} {t.stars}\np {format_p(t.p)}" for t in found))
        notes |= dict.fromkeys(f"{test.second}: {test.note}" for test in tests if test.note)
    failures = [f"{row.model} {row.note}" for row in summary.rows[shape.protocols[0]] if row.note]
    parts: list[RenderableType] = [means, *failures, _legend(summary)]
    if differences.rows:
        parts += ["", differences, _TEST_LEGEND.format(reference=summary.reference), *notes]
    for protocol in shape.protocols:
        parts += ["", summary.verdict(protocol)]
        if convention := summary.convention(protocol):
            parts += ["", convention]
    return parts


_TEST_LEGEND = (
    "Difference to {reference}: reference minus row, mean over users after averaging the repeats. Tests: Student's t and "
    "Wilcoxon's signed rank, paired over users, each Holm-corrected over all rows and metrics of a protocol; p is the "
    f"larger of the two; {STAR_RULE}."
)


def _table(title: str, metrics: Sequence[str], *, justify: "str") -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model", overflow="fold", max_width=24)
    for name in metrics:
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    return table


def _legend(summary: Summary) -> str:
    last = summary.comparison.metrics[-1]
    text = f"95 %: bootstrap interval over users for {summary.headline}. fit s: mean seconds of training."
    reached = summary.comparison.facts.get("effective_n", {}).get("rated", {}).get(last)
    if reached is not None and (cut := last.partition("@")[2]) and reached < int(cut):
        text += f" Some users' rated lists are shorter than {cut}: {last} sees {reached:.1f} items on average."
    return text
