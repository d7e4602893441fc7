"""A comparison as one self-contained HTML page: no network, light and dark, for wide screens and phones."""

import json
import os
from importlib.resources import files

import topnrank
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
