"""A comparison as data for other programs: JSON with everything but the values of single users, and tidy CSV."""

import csv
import dataclasses
import io
import json
from typing import Any

from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report.formatting import jsonable
from topnrank.experiments.report.summary import Score, Summary


def to_dict(comparison: Comparison | Summary, reference: str | None = None) -> dict[str, Any]:
    """Settings, facts, scores, tests, times, errors and training curves; numbers that are not defined are None."""
    summary = Summary.of(comparison, reference)
    shape = summary.comparison
    results = []
    for protocol in shape.protocols:
        for row in summary.rows[protocol]:
            values = {}
            for metric in shape.metrics:
                by_repeat = shape.repeat_means(row.model, protocol, metric)
                score = row.scores[metric]._asdict() if row.scores else dict.fromkeys(Score._fields)
                values[metric] = {**score, "by_repeat": by_repeat}
            times = {"fit_seconds": row.fit_seconds, "error": shape.error(row.model)}
            results.append({"model": row.model, "protocol": protocol, "values": values, **times})
    content = {
        **{name: getattr(shape, name) for name in ("models", "protocols", "metrics", "repeats")},
        "reference": summary.reference,
        "headline": summary.headline,
        "verdict": {protocol: summary.verdict(protocol) for protocol in shape.protocols},
        "results": results,
        "tests": paired_records(summary),
        "cells": [
            dataclasses.asdict(dataclasses.replace(cell, values={}))
            for model in shape.models
            for cell in shape.cells_of(model)
        ],
        "conventions": dict(summary.conventions()),
        "settings": shape.settings,
        "facts": shape.facts,
    }
    plain: dict[str, Any] = jsonable(content)
    return plain


def to_json(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """`to_dict` as text."""
    content = to_dict(comparison, reference)
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def to_csv(comparison: Comparison | Summary, reference: str | None = None) -> str:
    """One row per model, protocol and metric; what is not defined is empty."""
    records = score_records(comparison, reference)
    text = io.StringIO()
    writer = csv.DictWriter(text, records[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def score_records(comparison: Comparison | Summary, reference: str | None = None) -> list[dict[str, Any]]:
    """A record for each model, protocol and metric: the mean, its interval, and the test against the reference."""
    summary = Summary.of(comparison, reference)
    records: list[dict[str, Any]] = []
    for protocol in summary.comparison.protocols:
        tests = {(test.second, test.metric): test for test in summary.tests(protocol)}
        for row in summary.rows[protocol]:
            for metric in summary.comparison.metrics:
                score, test = row.scores.get(metric), tests.get((row.model, metric))
                low, high = score.interval if score else (None, None)
                record: dict[str, Any] = {"model": row.model, "protocol": protocol, "metric": metric}
                record |= {name: getattr(score, name, None) for name in ("mean", "std")}
                record |= {"low": low, "high": high, "users": score and score.users, "fit_seconds": row.fit_seconds}
                low, high = test.interval if test else (None, None)
                record |= {"difference": test and test.difference, "difference_low": low, "difference_high": high}
                record |= {name: getattr(test, name, None) for name in ("t_holm", "wilcoxon_holm", "stars", "effect")}
                record["note"] = row.note
                records.append(jsonable(record))
    return records


def paired_records(comparison: Comparison | Summary, reference: str | None = None) -> list[dict[str, Any]]:
    """A record for each paired test, with its stars."""
    summary = Summary.of(comparison, reference)
    tests = [test for protocol in summary.comparison.protocols for test in summary.tests(protocol)]
    plain: list[dict[str, Any]] = jsonable([dataclasses.asdict(test) | {"stars": test.stars} for test in tests])
    return plain
