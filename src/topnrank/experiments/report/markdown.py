"""A comparison as Markdown: for each protocol the means and the paired tests, then how the numbers were made."""

import re
from collections.abc import Sequence

from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report.formatting import TEST_HEADER, format_mean, format_seconds, format_test, metric_label
from topnrank.experiments.report.summary import Score, Summary


def to_markdown(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """The tables as Markdown; `reference` names the row that the others are tested against (default: the first)."""
    summary = Summary.of(comparison, reference)
    parts: list[str] = []
    for protocol in summary.comparison.protocols:
        rows = []
        for row in summary.rows[protocol]:
            name = escape(row.model) + (f" ({escape(row.note)})" if row.note else "")
            scores = [_score(row.scores[metric]) if row.scores else "-" for metric in summary.table_metrics]
            rows.append([name, *scores, format_seconds(row.fit_seconds)])
        header = ["Model", *map(metric_label, summary.table_metrics), "Time to fit"]
        parts += [f"### {summary.ranking_title(protocol)}", escape(summary.verdict(protocol)), table(header, rows)]
        if tests := summary.table_tests(protocol):
            title = f"#### {escape(summary.tests_title(protocol))}"
            parts += [title, table(TEST_HEADER, [list(map(escape, format_test(test))) for test in tests])]
    hidden = [metric for metric in summary.comparison.metrics if metric not in summary.table_metrics]
    notes = [f"- {escape(name)}: {escape(text)}" for name, text in [*summary.conventions(), *summary.data_facts()]]
    parts.append(f"Also measured: {', '.join(map(metric_label, hidden))}." if hidden else "")
    parts += ["### How this was made", "\n".join(notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _score(score: Score) -> str:
    text = format_mean(score)
    return f"**{text}**" if score.best else text


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table; the cells must be escaped."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, ["---"] * len(header), *rows])


def escape(text: str) -> str:
    """Escapes Markdown in names and messages; underscores within words and "<" of numbers do no harm."""
    return re.sub(r"([\\`*|\[\]]|<(?=[A-Za-z/!?])|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", text)
