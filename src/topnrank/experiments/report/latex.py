"""A comparison as LaTeX tables; they need the packages booktabs and graphicx."""

import re
from collections.abc import Sequence

from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report.formatting import (
    TEST_HEADER,
    format_number,
    format_seconds,
    format_test,
    metric_label,
    protocol_label,
)
from topnrank.experiments.report.summary import Score, Summary, SummaryRow

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def to_latex(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """The tables as LaTeX; `reference` names the row that the others are tested against (default: the first)."""
    summary = Summary.of(comparison, reference)
    conventions = dict(summary.conventions())
    below_tables = [*map(summary.ranking_title, summary.comparison.protocols), "Tests"]
    others = [(name, text) for name, text in conventions.items() if name not in below_tables] + summary.data_facts()
    comments = [f"% {name}: {' '.join(text.split())}" for name, text in others]
    parts = [r"% needs \usepackage{booktabs,graphicx}"]
    for protocol in summary.comparison.protocols:
        label = re.sub(r"\W+", "-", protocol)
        header = ["Model", *map(metric_label, summary.table_metrics), "Fit"]
        rows = [_row(row, summary.table_metrics) for row in summary.rows[protocol]]
        partly = [(f"\\dag~{escape(row.model)}", row.note) for row in summary.measured(protocol) if row.note]
        ranking = (escape(summary.ranking_title(protocol)), conventions[summary.ranking_title(protocol)])
        below = " ".join(f"\\emph{{{name}}}: {escape(text.rstrip('.'))}." for name, text in [*partly, ranking])
        caption = f"Mean of each metric, ranking {protocol_label(protocol)}."
        parts.append(_table(header, rows, caption=caption, label=f"tab:{label}", below=below))
        if tests := summary.table_tests(protocol):
            rows = [" & ".join(map(escape, format_test(test))) for test in tests]
            title, name = escape(summary.tests_title(protocol)), escape(summary.reference)
            caption = f"{title}: difference of {name} and the other row."
            below = f"{escape(conventions['Tests'])}."
            parts.append(_table(TEST_HEADER, rows, caption=caption, label=f"tab:{label}-tests", below=below, lefts=2))
    return "\n\n".join([*parts, "\n".join(comments)]) + "\n"


def _row(row: SummaryRow, metrics: Sequence[str]) -> str:
    if not row.scores:
        note = f"\\multicolumn{{{len(metrics) + 1}}}{{p{{0.6\\linewidth}}}}{{\\emph{{{escape(row.note)}}}}}"
        return f"{escape(row.model)} & {note}"
    name = escape(row.model) + (r"\textsuperscript{\dag}" if row.note else "")
    return " & ".join([name, *(_score(row.scores[metric]) for metric in metrics), format_seconds(row.fit_seconds)])


def _score(score: Score) -> str:
    """The mean, and small beside it the standard deviation: five of them must fit a page."""
    mean, std = format_number(score.mean), format_number(score.std)
    return (f"\\textbf{{{mean}}}" if score.best else mean) + (f" {{\\scriptsize$\\pm$\\,{std}}}" if std != "-" else "")


def _table(
    header: Sequence[str], rows: Sequence[str], *, caption: str, label: str, below: str = "", lefts: int = 1
) -> str:
    """A floating table; one that is wider than the line is scaled down to it."""
    columns = "l" * lefts + "r" * (len(header) - lefts)
    notes = f"\\par\\smallskip\\begin{{minipage}}{{\\linewidth}}\\footnotesize {below}\\end{{minipage}}"
    lines = [
        r"\begin{table}",
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        f"\\caption{{{caption}}}",
        f"\\label{{{label}}}",
        f"\\sbox0{{\\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(map(escape, header)) + r" \\",
        r"\midrule",
        *(row + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}}%",
        r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
        *([notes] if below else []),
        r"\end{table}",
    ]
    return "\n".join(lines)


def escape(text: str) -> str:
    """Escapes LaTeX in names and messages."""
    safe = "".join(_ESCAPES.get(letter, letter) for letter in text)
    return re.sub(r"(?<![\w.])([+-])(?=\d)", r"$\1$", safe)
