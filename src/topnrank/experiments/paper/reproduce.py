"""`reproduce`: a table of the paper, run again, with what the paper leaves out beside it."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from topnrank._html import html_table, text_table
from topnrank.data.feedback.policies import LIKED_FROM
from topnrank.data.interactions import Interactions
from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.compare.run import compare
from topnrank.experiments.paper.plan import VARIANTS, Plan, make_plan
from topnrank.experiments.paper.published import METRICS, PLAIN_SIGMOID, RELU, SIGMOID, Values
from topnrank.experiments.report.summary import Summary
from topnrank.experiments.statistics import PairedTest
from topnrank.experiments.tuning.grid import GridSearch
from topnrank.io.atomic import write_text

PROTOCOL = "rated"
TESTED = "ndcg@10"
"""The metric of the paired tests."""


@dataclass(frozen=True)
class Detail:
    """Results of a row that the paper does not report."""

    chosen: list[dict[str, float]]
    """The point of the grid with the best validation value, for each repeat"""
    at_edge: list[str]
    """Parameters for which an end of the grid was chosen, so that a better value may lie beyond"""
    effective_n: float | None
    """Mean number of items of a training list with smooth rank below N at the end; None for other methods"""
    seconds: float
    """Mean seconds of one fit"""
    seconds_with_choice: float
    """Mean seconds of a fit with all fits that led to the choice"""


@dataclass(frozen=True, repr=False)
class Reproduction:
    """A table that was run; `comparison` is all of it as `topnrank.compare` gives it."""

    plan: Plan
    comparison: Comparison

    @property
    def rows(self) -> tuple[str, ...]:
        """Rows in order: the paper's, ours, the controls."""
        return self.comparison.models

    def mean(self, row: str) -> tuple[float, ...]:
        """Our values at the paper's cut-offs."""
        return tuple(self.comparison.mean(row, PROTOCOL, metric) for metric in METRICS)

    def std(self, row: str) -> tuple[float, ...]:
        """Standard deviations over repeats."""
        return tuple(self.comparison.std(row, PROTOCOL, metric) for metric in METRICS)

    def published(self, row: str) -> Values | None:
        """The paper's values, if it has the row and the data are its own."""
        return self.plan.published.get(row)

    def users_left_out(self) -> list[int]:
        """In each repeat, users without a relevant test item: their NDCG is not defined."""
        for row in self.rows:
            if self.comparison.error(row) is None:
                return [int(n) for n in np.isnan(self.comparison.values(row, PROTOCOL, TESTED)).sum(axis=1)]
        return []

    def detail(self, row: str) -> Detail:
        """Choices, effective N and seconds of a row."""
        cells = [cell for cell in self.comparison.cells_of(row) if cell.error is None]
        last = [cell.curve[-1] if cell.curve else {} for cell in cells]
        model = self.plan.rows.get(row)
        grid = model.grid if isinstance(model, GridSearch) else {}
        chosen = [{name: record[name] for name in grid if name in record} for record in last]
        at_edge = [
            name
            for name, tried in grid.items()
            if len(tried) > 1 and any(point.get(name) in (min(tried), max(tried)) for point in chosen)
        ]
        active = [record["effective_n"] for record in last if "effective_n" in record]
        truncates = any(row.startswith(variant) for variant in VARIANTS)
        whole = [cell.fit_seconds for cell in cells]
        alone = [record.get("fit_seconds", seconds) for record, seconds in zip(last, whole, strict=True)]
        return Detail(
            chosen=chosen,
            at_edge=at_edge,
            effective_n=float(np.mean(active)) if active and truncates else None,
            seconds=float(np.mean(alone)) if alone else float("nan"),
            seconds_with_choice=float(np.mean(whole)) if whole else float("nan"),
        )

    @cached_property
    def summary(self) -> Summary:
        """The statistics, with Top-N-Rank.ReLU as the reference: computed once, minutes for a hundred thousand users."""
        return Summary.of(self.comparison, RELU)

    def tests(self) -> list[PairedTest]:
        """Top-N-Rank.ReLU against every other row, and in Table 2 the sigmoid with against without truncation."""
        tests = self.summary.tests(PROTOCOL)
        if PLAIN_SIGMOID in self.rows:
            tests += [test for test in self.summary.tests(PROTOCOL, SIGMOID) if test.second == PLAIN_SIGMOID]
        return [test for test in tests if test.metric == TESTED]

    def __repr__(self) -> str:
        means = ", ".join(f"{row} {self.comparison.mean(row, PROTOCOL, TESTED):.4f}" for row in self.rows)
        return f"Reproduction({self.plan.title} on {self.plan.name}: {TESTED} {means})"

    def __str__(self) -> str:
        from topnrank.experiments.paper.page import PAIR_HEADER, TESTS, pair_cells, score_cells

        tests = [text_table(list(PAIR_HEADER), pair_cells(self)), TESTS]
        return "\n\n".join([f"{self.plan.title}, on {self.plan.name}", text_table(*score_cells(self)), *tests])

    def _repr_html_(self) -> str:
        from topnrank.experiments.paper.page import PAIR_HEADER, TESTS, pair_cells, score_cells

        scores = html_table(*score_cells(self), title=f"{self.plan.title}, on {self.plan.name}")
        return scores + html_table(PAIR_HEADER, pair_cells(self), title="Differences per user, NDCG@10", notes=[TESTS])

    def table(self) -> pa.Table:
        """A row for each method: its means, their standard deviations and, where the paper has them, its numbers."""
        records = []
        for row in self.rows:
            published = self.published(row) or (None,) * len(METRICS)
            values = zip(METRICS, self.mean(row), self.std(row), published, strict=True)
            numbers = {
                f"{m}{end}": v for m, *found in values for end, v in zip(("", " sd", " paper"), found, strict=True)
            }
            records.append({"method": row, **numbers})
        return pa.Table.from_pylist(records)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes one HTML page with tables and figures."""
        from topnrank.experiments.report.html import write_report

        write_report(self.summary, path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """The table beside what the paper leaves out, as Markdown; with a `path` also written there."""
        from topnrank.experiments.paper.page import to_markdown

        text = to_markdown(self)
        if path is not None:
            write_text(path, text)
        return text

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        rows = {}
        for row in self.rows:
            published = self.published(row)
            rows[row] = {
                "values": dict(zip(METRICS, self.mean(row), strict=True)),
                "std": dict(zip(METRICS, self.std(row), strict=True)),
                "published": dict(zip(METRICS, published, strict=True)) if published else None,
                "error": self.comparison.error(row),
                **vars(self.detail(row)),
            }
        return {
            "table": self.plan.table,
            "data": self.plan.name,
            "fair": self.plan.fair,
            "repeats": self.comparison.repeats,
            "rows": rows,
            "users_left_out": self.users_left_out(),
            "tests": [vars(test) | {"stars": test.stars} for test in self.tests()],
        }


def reproduce(
    table: str,
    data: Interactions,
    *,
    name: str = "data",
    fair: bool = False,
    repeats: int = 5,
    folder: str | os.PathLike[str] | None = None,
    **running: Any,
) -> Reproduction:
    """Runs "table2" or "table4" of the paper on some data.

    Each repeat halves every user's ratings at random, picks what the paper does not give (for its own variants the learning
    rate) on a quarter of the training half, and ranks the test half.

    Parameters
    ----------
    data : ratings; users with fewer than 10 are left out, as in the paper.
    name : of the data: with "ml-20m" and "amazon-video-games" the published numbers are shown beside ours.
    fair : for table2: rate and lambda picked for each arm, and one arm more, whose N is larger than any list.
    repeats : the paper's number is 5.
    folder : where finished cells are kept; the same call after a kill computes only what is missing.
    jobs, progress : as in `topnrank.compare`.
    """
    plan = make_plan(table, data, name=name, fair=fair)
    comparison = compare(
        plan.rows,
        plan.data,
        repeats=repeats,
        protocol=PROTOCOL,
        metrics=METRICS,
        folder=folder,
        relevant=LIKED_FROM,
        **running,
    )
    return Reproduction(plan, comparison)
