"""The result of a comparison: one value for each model, repeat, protocol, metric and user."""

import io
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import pyarrow as pa

from topnrank._checks import one_of
from topnrank._typing import Float64Array, IdArray
from topnrank.io.atomic import write_text

if TYPE_CHECKING:
    from topnrank.experiments.report.plots import Picture
    from topnrank.experiments.report.summary import Summary


@final
@dataclass(frozen=True, eq=False)
class Cell:
    """One model on one repeat."""

    model: str
    """Name of its row"""
    repeat: int
    """From 0"""
    fit_seconds: float
    evaluate_seconds: float
    values: dict[tuple[str, str], Float64Array]
    """(protocol, metric) -> (n_users,) values over `Comparison.users`, NaN where not defined for the user"""
    curve: list[dict[str, float]]
    """One record per round of training where there are rounds"""
    error: str | None
    """Why the cell failed; `values` is empty then"""
    facts: dict[str, Any] = field(default_factory=dict)
    """The key of the cell's file and the sizes of the split of its repeat, as JSON"""


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    """Several models on the same splits, with their statistics: printed it is the table with the tests.

    The methods that have a `reference` test the other rows against the row of that name, by default the first.
    """

    models: tuple[str, ...]
    """Names of the rows, in order"""
    protocols: tuple[str, ...]
    metrics: tuple[str, ...]
    repeats: int
    users: IdArray
    """Original ids of all users of the data"""
    settings: dict[str, Any]
    """Split, seeds, relevance and tie rules, parameters by row, versions, hardware; as JSON"""
    facts: dict[str, Any]
    """Sizes of the data and the splits, users left out, effective N; as JSON"""
    cells: dict[tuple[str, int], Cell]
    """By row name and repeat"""

    def values(self, model: str, protocol: str, metric: str) -> Float64Array:
        """(repeats, n_users) values; NaN where not defined for the user, and in the rows of failed cells."""
        one_of("model", model, self.models)
        key = one_of("protocol", protocol, self.protocols), one_of("metric", metric, self.metrics)
        values = np.full((self.repeats, len(self.users)), np.nan)
        for repeat in range(self.repeats):
            cell = self.cells.get((model, repeat))
            if cell is not None and key in cell.values:
                values[repeat] = cell.values[key]
        return values

    def repeat_means(self, model: str, protocol: str, metric: str) -> Float64Array:
        """(repeats,) means over users; NaN for failed cells."""
        values = self.values(model, protocol, metric)
        return np.array([_mean(row) for row in values])

    def mean(self, model: str, protocol: str, metric: str) -> float:
        """Mean over repeats of the mean over users; NaN if every repeat failed."""
        return _mean(self.repeat_means(model, protocol, metric))

    def std(self, model: str, protocol: str, metric: str) -> float:
        """Standard deviation (n - 1) over repeats of the mean over users; NaN for fewer than two repeats."""
        means = self.repeat_means(model, protocol, metric)
        means = means[~np.isnan(means)]
        return float(means.std(ddof=1)) if len(means) > 1 else float("nan")

    def cells_of(self, model: str) -> list[Cell]:
        """The cells of a row in the order of the repeats."""
        one_of("model", model, self.models)
        cells = [self.cells.get((model, repeat)) for repeat in range(self.repeats)]
        return [cell for cell in cells if cell is not None]

    def error(self, model: str) -> str | None:
        """Why the model failed, and in how many repeats if not in all; None if it did not."""
        errors = [" ".join(cell.error.split()) for cell in self.cells_of(model) if cell.error is not None]
        if not errors:
            return None
        return errors[0] if len(errors) == self.repeats else f"in {len(errors)} of {self.repeats} repeats: {errors[0]}"

    def fit_seconds(self, model: str) -> float:
        """Mean seconds of a fit over the repeats that did not fail; NaN if all did."""
        seconds = [cell.fit_seconds for cell in self.cells_of(model) if cell.error is None]
        return float(np.mean(seconds)) if seconds else float("nan")

    # -- to look at -------------------------------------------------------------------------------------------------------

    @cached_property
    def _first_summary(self) -> "Summary":
        from topnrank.experiments.report.summary import Summary

        return Summary.of(self)

    def summary(self, reference: str | None = None) -> "Summary":
        """All statistics, each computed once."""
        return self._first_summary.of(self._first_summary, reference)

    def __repr__(self) -> str:
        first = self._first_summary
        means = (f"{row.model} {row.scores[first.headline].mean:.4f}" for row in first.measured(self.protocols[0]))
        return (
            f"Comparison({first.headline}, {self.protocols[0]}: {', '.join(means)}; print() shows intervals and tests)"
        )

    def __str__(self) -> str:
        from rich.console import Console

        from topnrank.experiments.report.terminal import to_terminal

        console = Console(file=io.StringIO(), width=160, markup=False, emoji=False, highlight=False)
        for part in to_terminal(self._first_summary):
            console.print(part, soft_wrap=isinstance(part, str))
        return str(console.file.getvalue()).rstrip()  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        from topnrank.experiments.report.html import to_notebook

        return to_notebook(self._first_summary)

    def table(self, reference: str | None = None) -> pa.Table:
        """A row for each model, protocol and metric: mean, its 95 % interval, the difference to the reference."""
        from topnrank.experiments.report.data import score_records

        return pa.Table.from_pylist(score_records(self.summary(reference)))

    def tests(self, reference: str | None = None) -> pa.Table:
        """A row for each paired test: difference, interval, p values with and without correction, stars."""
        from topnrank.experiments.report.data import paired_records

        return pa.Table.from_pylist(paired_records(self.summary(reference)))

    def plot(self, what: str = "", reference: str | None = None) -> "Picture":
        """A figure: "curves", "differences", "runtime", "users", "objective", "validation" or "lengths"; else the first."""
        from topnrank.experiments.report.quick_plots import of_comparison

        return of_comparison(self.summary(reference), what)

    def report(self, path: str | os.PathLike[str], reference: str | None = None) -> None:
        """Writes one HTML page with tables and figures."""
        from topnrank.experiments.report.html import write_report

        write_report(self.summary(reference), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None, reference: str | None = None) -> str:
        """The tables as Markdown; with a `path` also written there."""
        from topnrank.experiments.report.markdown import to_markdown

        return _written(to_markdown(self.summary(reference)), path)

    def to_latex(self, path: str | os.PathLike[str] | None = None, reference: str | None = None) -> str:
        """The tables as LaTeX; with a `path` also written there."""
        from topnrank.experiments.report.latex import to_latex

        return _written(to_latex(self.summary(reference)), path)

    def to_csv(self, path: str | os.PathLike[str] | None = None, reference: str | None = None) -> str:
        """`table()` as CSV; with a `path` also written there."""
        from topnrank.experiments.report.data import to_csv

        return _written(to_csv(self.summary(reference)), path)

    def to_json(self, path: str | os.PathLike[str] | None = None, reference: str | None = None) -> str:
        """Everything but the values of single users as JSON; with a `path` also written there."""
        from topnrank.experiments.report.data import to_json

        return _written(to_json(self.summary(reference)), path)

    # -- to keep ----------------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes safetensors files into `folder`, which is made if it is missing; refuses that of another comparison."""
        from topnrank.experiments.compare.folder import Folder

        Folder.open(folder, self.settings.get("identity", {})).write(self)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """The finished comparison in `folder`."""
        from topnrank.experiments.compare.folder import read_comparison

        return cls(**read_comparison(folder))


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        write_text(path, text)
    return text


def _mean(values: Float64Array) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
