"""A comparison as one self-contained HTML page: no network, light and dark, for wide screens and phones."""

import json
import os
from importlib.resources import files

import topnrank
from topnrank._html import html_table
from topnrank.errors import ParameterError
from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report import formatting
from topnrank.experiments.report.plots import pictures
from topnrank.experiments.report.summary import Summary
from topnrank.experiments.statistics import STAR_RULE
from topnrank.io.atomic import write_text


def write_report(comparison: Comparison | Summary, path: str | os.PathLike[str], reference: str | None = None) -> None:
    """Writes the page to `path`, atomically; the others are tested against the row `reference` (default: the first)."""
    write_text(path, to_html(comparison, reference))


def to_html(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """The page as text; the same comparison gives the same page."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ParameterError("the report needs Jinja; install it with: pip install 'topnrank[report]'") from error
    summary = Summary.of(comparison, reference)
    folder = files("topnrank.experiments.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "json": lambda value: json.dumps(value, ensure_ascii=False, default=str),
        "metric": formatting.metric_label,
        "names": formatting.join_names,
        "number": formatting.format_number,
        "protocol": formatting.protocol_label,
        "seconds": formatting.format_seconds,
        "test_cells": formatting.format_test,
        "value": formatting.format_value,
    }
    template = environment.from_string(folder.joinpath("report.html.jinja").read_text(encoding="utf-8"))
    page: str = template.render(
        summary=summary,
        comparison=summary.comparison,
        pictures=pictures(summary),
        test_header=formatting.TEST_HEADER,
        star_rule=STAR_RULE,
        css=folder.joinpath("report.css").read_text(encoding="utf-8"),
        version=topnrank.__version__,
    )
    return page.strip() + "\n"


def to_notebook(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """The verdict, the means and the tests as tables for a notebook; needs no Jinja and draws nothing."""
    summary = Summary.of(comparison, reference)
    metrics = summary.table_metrics
    header = [
        "",
        *map(formatting.metric_label, metrics),
        f"95 % {formatting.metric_label(summary.headline)}",
        "time to fit",
    ]
    parts = []
    for protocol in summary.comparison.protocols:
        rows = []
        for row in summary.rows[protocol]:
            values = [formatting.format_mean(row.scores[metric]) if row.scores else "-" for metric in metrics]
            interval = formatting.format_interval(*row.scores[summary.headline].interval) if row.scores else row.note
            rows.append([row.model, *values, interval, formatting.format_seconds(row.fit_seconds)])
        title, verdict = summary.ranking_title(protocol), summary.verdict(protocol)
        parts.append(html_table(header, rows, title=title, notes=[verdict, summary.convention(protocol)]))
        tests = [formatting.format_test(test) for test in summary.table_tests(protocol)]
        if tests:
            parts.append(
                html_table(formatting.TEST_HEADER, tests, title=summary.tests_title(protocol), notes=[STAR_RULE])
            )
    return "".join(parts)
