"""`reproduce`: a table of the paper, run again, with what the paper leaves out beside it."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from topnrank.data.interactions import Interactions
from topnrank.experiments.compare.result import Cell, Comparison
from topnrank.experiments.compare.run import compare
from topnrank.experiments.paper.plan import LIKED, VARIANTS, Plan, make_plan
from topnrank.experiments.paper.published import METRICS, PLAIN_SIGMOID, RELU, SIGMOID, Values
from topnrank.experiments.statistics import PairedTest, paired_tests
from topnrank.experiments.tuning.grid import GridSearch

PROTOCOL = "rated"
TESTED = "ndcg@10"
"""The metric whose differences are told row by row."""


@dataclass(frozen=True)
class Detail:
    """What the paper does not tell of a row."""

    chosen: list[dict[str, float]]
    """What validation data chose in each repeat"""
    at_edge: list[str]
    """Parameters for which an end of the grid was chosen, so that a better value may lie beyond"""
    effective_n: float | None
    """Mean number of items of a training list with smooth rank below N at the end; None for other methods"""
    seconds: float
    """Mean seconds of one fit"""
    seconds_with_choice: float
    """Mean seconds of a fit with all fits that led to the choice"""


@dataclass(frozen=True)
class Reproduction:
    """A table that was run."""

    plan: Plan
    comparison: Comparison

    @property
    def rows(self) -> tuple[str, ...]:
        """Rows in order: the paper's, ours, the controls."""
        return self.comparison.models

    def mean(self, row: str) -> tuple[float, ...]:
        """Our values at the paper's cut-offs."""
        return tuple(self.comparison.mean(row, PROTOCOL, metric) for metric in METRICS)

    def spread(self, row: str) -> tuple[float, ...]:
        """Standard deviations over repeats."""
        return tuple(self.comparison.spread(row, PROTOCOL, metric) for metric in METRICS)

    def published(self, row: str) -> Values | None:
        """The paper's values, where it has the row and the data are its own."""
        return self.plan.published.get(row)

    def users_left_out(self) -> list[int]:
        """In each repeat, users without a relevant test item: their NDCG is not defined."""
        for row in self.rows:
            if self.comparison.error(row) is None:
                return [int(n) for n in np.isnan(self.comparison.values(row, PROTOCOL, TESTED)).sum(axis=1)]
        return []

    def detail(self, row: str) -> Detail:
        """Choices, effective N and seconds of a row."""
        cells = self._cells(row)
        last = [cell.curve[-1] if cell.curve else {} for cell in cells]
        model = self.plan.rows.get(row)
        grid = model.grid if isinstance(model, GridSearch) else {}
        chosen = [{name: record[name] for name in grid if name in record} for record in last]
        at_edge = [name for name, tried in grid.items() if len(tried) > 1 and _at_edge(tried, name, chosen)]
        active = [record["effective_n"] for record in last if "effective_n" in record]
        fits = [cell.fit_seconds for cell in cells]
        alone = [record.get("fit_seconds", whole) for record, whole in zip(last, fits, strict=True)]
        counted = float(np.mean(active)) if active and self._truncates(row) else None
        return Detail(chosen, at_edge, counted, _mean(alone), _mean(fits))

    def tests(self) -> list[PairedTest]:
        """Top-N-Rank.ReLU against every other row, and in Table 2 the sigmoid with against without truncation."""
        return self._tests

    @cached_property
    def _tests(self) -> list[PairedTest]:
        """Their intervals take minutes for a hundred thousand users: once is enough."""
        tests = paired_tests(self.comparison, RELU)
        if PLAIN_SIGMOID in self.rows:
            tests += [test for test in paired_tests(self.comparison, SIGMOID) if test.second == PLAIN_SIGMOID]
        return [test for test in tests if (test.protocol, test.metric) == (PROTOCOL, TESTED)]

    def to_dict(self) -> dict[str, Any]:
        """All of it for JSON."""
        rows = {}
        for row in self.rows:
            detail = self.detail(row)
            rows[row] = {
                "values": dict(zip(METRICS, self.mean(row), strict=True)),
                "spread": dict(zip(METRICS, self.spread(row), strict=True)),
                "published": dict(zip(METRICS, self.published(row) or (), strict=False)) or None,
                "error": self.comparison.error(row),
                **vars(detail),
            }
        facts = {"users_left_out": self.users_left_out(), "tests": [vars(test) for test in self.tests()]}
        told = {"table": self.plan.table, "data": self.plan.name, "fair": self.plan.fair}
        return {**told, "repeats": self.comparison.repeats, "rows": rows, **facts}

    def _cells(self, row: str) -> list[Cell]:
        cells = [self.comparison.cells.get((row, repeat)) for repeat in range(self.comparison.repeats)]
        return [cell for cell in cells if cell is not None and cell.error is None]

    def _truncates(self, row: str) -> bool:
        return any(row.startswith(variant) for variant in VARIANTS)


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
    name : of the data: with "ml-20m" and "amazon-video-games" the published numbers stand beside ours.
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
        relevant=LIKED,
        **running,
    )
    return Reproduction(plan, comparison)


def _at_edge(tried: tuple[float, ...], name: str, chosen: list[dict[str, float]]) -> bool:
    return any(point.get(name) in (min(tried), max(tried)) for point in chosen)


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
