"""The tables of a comparison as text: Markdown and LaTeX for reading, CSV and JSON for machines.

    print(to_markdown(comparison, reference="TopNRank"))

Each protocol gives two tables, the means and the paired tests against the reference; below stands how they were made.
To write several formats, make one `Summary.of(comparison, reference)` and give it to each: intervals and tests take time.
"""

import csv
import dataclasses
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report.formatting import (
    duration,
    metric_label,
    number,
    probability,
    protocol_label,
    signed,
    stars,
)
from topnrank.experiments.report.summary import Row, Score, Summary, larger_p
from topnrank.experiments.statistics import PairedTest

TEST_HEADER = (
    "Metric",
    "Against",
    "Difference",
    "95 % interval",
    "p, Student's t",
    "p, Wilcoxon",
    "Effect size",
    "Users",
)
"""Columns of the table of paired tests; the p values are Holm-corrected."""
CSV_HEADER = (
    "model",
    "protocol",
    "metric",
    "mean",
    "spread",
    "low",
    "high",
    "users",
    "fit_seconds",
    "difference",
    "difference_low",
    "difference_high",
    "t_holm",
    "wilcoxon_holm",
    "effect",
    "note",
)


def score_text(score: Score) -> str:
    """A mean and its spread: "0.8339 ± 0.0047"."""
    return number(score.mean) + (f" ± {number(score.spread)}" if math.isfinite(score.spread) else "")


def cells_of_test(test: PairedTest) -> list[str]:
    """A paired test as the cells of `TEST_HEADER`."""
    low, high = test.interval
    difference = f"{signed(test.difference)} {stars(larger_p(test))}".strip()
    interval = f"{signed(low)} to {signed(high)}" if math.isfinite(low + high) else "-"
    p_values = [probability(test.t_holm), probability(test.wilcoxon_holm)]
    users = f"{test.users:,}" + (f" ({test.note})" if test.note else "")
    return [metric_label(test.metric), test.second, difference, interval, *p_values, signed(test.effect, 2), users]


def shown_tests(summary: Summary, protocol: str) -> list[PairedTest]:
    """The tests of the metrics shown, metric by metric; the headline first."""
    order = sorted(summary.shown, key=lambda metric: metric != summary.headline)
    tests = summary.tests(protocol)
    return [test for metric in order for test in tests if test.metric == metric]


def title_of_tests(summary: Summary, protocol: str, metric: str = "") -> str:
    """The heading of a table of tests."""
    at = f" at {metric_label(metric)}" if metric else ""
    return f"{summary.reference} against the others{at}, {protocol_label(protocol)}"


def not_shown(summary: Summary) -> str:
    """Which metrics the tables leave out; "" if none."""
    hidden = [metric_label(metric) for metric in summary.comparison.metrics if metric not in summary.shown]
    return f"Also measured: {', '.join(hidden)}." if hidden else ""


# -- Markdown -----------------------------------------------------------------------------------------------------------


def to_markdown(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """The tables as Markdown; `reference` names the row that the others are tested against (default: the first)."""
    summary = Summary.of(comparison, reference)
    parts: list[str] = []
    for protocol in summary.comparison.protocols:
        parts += [
            f"### Ranking {protocol_label(protocol)}",
            _md(summary.verdict(protocol)),
            _markdown_scores(summary, protocol),
        ]
        tests = [[_md(cell) for cell in cells_of_test(test)] for test in shown_tests(summary, protocol)]
        if tests:
            parts += [f"#### {_md(title_of_tests(summary, protocol))}", _markdown_table(TEST_HEADER, tests)]
    conventions = [f"- {_md(name)}: {_md(text)}" for name, text in [*summary.conventions(), *summary.data_facts()]]
    parts += [not_shown(summary), "### How this was made", "\n".join(conventions)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_scores(summary: Summary, protocol: str) -> str:
    header = ["Model", *map(metric_label, summary.shown), "Time to fit"]
    rows = []
    for row in summary.rows[protocol]:
        cells = [_bold(score_text(row.scores[m]), row.scores[m].best, "**{}**") for m in summary.shown if row.scores]
        name = _md(row.model) + (f" ({_md(row.note)})" if row.note else "")
        rows.append([name, *(cells or ["-"] * len(summary.shown)), duration(row.seconds)])
    return _markdown_table(header, rows)


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _md(text: str) -> str:
    """Text of others, without power over the Markdown around it; underscores within words and "<" of numbers do no harm."""
    return re.sub(r"([\\`*|\[\]]|<(?=[A-Za-z/!?])|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", text)


def _bold(text: str, wanted: bool, form: str) -> str:
    return form.format(text) if wanted else text


# -- LaTeX --------------------------------------------------------------------------------------------------------------


def to_latex(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """The tables as LaTeX; needs the packages booktabs and graphicx."""
    summary = Summary.of(comparison, reference)
    parts = [r"% needs \usepackage{booktabs,graphicx}"]
    for protocol in summary.comparison.protocols:
        label = re.sub(r"\W+", "-", protocol)
        header = ["Model", *map(metric_label, summary.shown), "Fit"]
        caption = f"Mean of each metric, ranking {protocol_label(protocol)}."
        body = [_latex_row(summary, row) for row in summary.rows[protocol]]
        below = _latex_notes(summary, protocol)
        parts.append(_latex_table(header, body, caption=caption, label=f"tab:{label}", below=below))
        tests = [" & ".join(map(_tex, cells_of_test(test))) for test in shown_tests(summary, protocol)]
        if tests:
            caption = (
                f"{_tex(title_of_tests(summary, protocol))}: difference of {_tex(summary.reference)} and the other row."
            )
            parts.append(_latex_table(TEST_HEADER, tests, caption=caption, label=f"tab:{label}-tests", lefts=2))
    return "\n\n".join(parts) + "\n"


def _latex_row(summary: Summary, row: Row) -> str:
    if not row.scores:
        width = len(summary.shown) + 1
        return f"{_tex(row.model)} & \\multicolumn{{{width}}}{{p{{0.6\\linewidth}}}}{{\\emph{{{_tex(row.note)}}}}}"
    name = _tex(row.model) + (r"\textsuperscript{\dag}" if row.note else "")
    return " & ".join([name, *(_latex_score(row.scores[metric]) for metric in summary.shown), duration(row.seconds)])


def _latex_score(score: Score) -> str:
    """The mean, and small beside it the spread: five of them must fit a page."""
    mean = _bold(number(score.mean), score.best, r"\textbf{{{}}}")
    return mean + (f" {{\\scriptsize$\\pm$\\,{number(score.spread)}}}" if math.isfinite(score.spread) else "")


def _latex_notes(summary: Summary, protocol: str) -> str:
    """What stands below a table: failures of some repeats, conventions, facts of the data."""
    partly = [(f"\\dag~{_tex(row.model)}", row.note) for row in summary.rows[protocol] if row.note and row.scores]
    notes = [(_tex(name), text) for name, text in [*summary.conventions(), *summary.data_facts()]]
    return " ".join(f"\\emph{{{name}}}: {_tex(text.rstrip('.'))}." for name, text in [*partly, *notes])


def _latex_table(
    header: Sequence[str], rows: Sequence[str], *, caption: str, label: str, below: str = "", lefts: int = 1
) -> str:
    """A floating table; one that is wider than the line is scaled down to it."""
    columns = "l" * lefts + "r" * (len(header) - lefts)
    lines = [
        r"\begin{table}",
        r"\centering\small\setlength{\tabcolsep}{4pt}",
        f"\\caption{{{caption}}}",
        f"\\label{{{label}}}",
        f"\\sbox0{{\\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(map(_tex, header)) + r" \\",
        r"\midrule",
        *(row + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}}%",
        r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
    ]
    if below:
        lines.append(f"\\par\\smallskip\\begin{{minipage}}{{\\linewidth}}\\footnotesize {below}\\end{{minipage}}")
    return "\n".join([*lines, r"\end{table}"])


_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def _tex(text: str) -> str:
    """Text of others, without power over the LaTeX around it."""
    safe = "".join(_TEX.get(letter, letter) for letter in text)
    return re.sub(r"(?<![\w.])([+-])(?=\d)", r"$\1$", safe)


# -- CSV and JSON -------------------------------------------------------------------------------------------------------


def to_csv(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """Tidy CSV: one row per model, protocol and metric; what is not defined is empty."""
    summary = Summary.of(comparison, reference)
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_HEADER, lineterminator="\n")
    writer.writeheader()
    for record in _records(summary):
        writer.writerow({key: "" if _missing(value) else value for key, value in record.items() if key in CSV_HEADER})
    return text.getvalue()


def to_json(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """Everything but the values of single users: settings, facts, scores, tests, times, errors, training curves."""
    summary = Summary.of(comparison, reference)
    shape = summary.comparison
    keys = [(model, repeat) for model in shape.models for repeat in range(shape.repeats)]
    cells = [shape.cells[key] for key in keys if key in shape.cells]
    content = {
        "models": shape.models,
        "protocols": shape.protocols,
        "metrics": shape.metrics,
        "repeats": shape.repeats,
        "reference": summary.reference,
        "headline": summary.headline,
        "verdict": {protocol: summary.verdict(protocol) for protocol in shape.protocols},
        "scores": _records(summary),
        "tests": [dataclasses.asdict(t) for protocol in shape.protocols for t in summary.tests(protocol)],
        "cells": [
            {f.name: getattr(cell, f.name) for f in dataclasses.fields(cell) if f.name != "values"} for cell in cells
        ],
        "conventions": dict(summary.conventions()),
        "settings": shape.settings,
        "facts": shape.facts,
    }
    return json.dumps(_jsonable(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _records(summary: Summary) -> list[dict[str, Any]]:
    """One record per model, protocol and metric."""
    shape = summary.comparison
    return [
        _record(summary, row, protocol, metric)
        for protocol in shape.protocols
        for row in summary.rows[protocol]
        for metric in shape.metrics
    ]


def _record(summary: Summary, row: Row, protocol: str, metric: str) -> dict[str, Any]:
    record: dict[str, Any] = {"model": row.model, "protocol": protocol, "metric": metric}
    if score := row.scores.get(metric):
        (low, high), values = score.interval, summary.comparison.values(row.model, protocol, metric)
        record |= {"mean": score.mean, "spread": score.spread, "low": low, "high": high, "users": score.users}
        record["best"] = score.best
        record["by_repeat"] = [
            float(line[~np.isnan(line)].mean()) if (~np.isnan(line)).any() else None for line in values
        ]
    for test in summary.tests(protocol):
        if (test.second, test.metric) == (row.model, metric):
            record |= {"difference": test.difference, "t_holm": test.t_holm, "wilcoxon_holm": test.wilcoxon_holm}
            record |= {"difference_low": test.interval[0], "difference_high": test.interval[1], "effect": test.effect}
    return record | {"fit_seconds": row.seconds, "note": row.note}


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def _jsonable(value: Any) -> Any:
    """`value` with plain numbers, and None for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, np.ndarray):
        return _jsonable(value.tolist())
    if isinstance(value, np.generic):
        return _jsonable(value.item())
    return None if _missing(value) else value
