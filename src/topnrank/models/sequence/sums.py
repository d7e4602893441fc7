"""What the models of order learn from, as sums over rows: made of parts of the users, and added up."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from topnrank._csr import indptr_from_counts
from topnrank._typing import Float32Array, Int32Array, Int64Array
from topnrank.models.sequence._sequence_kernel import Links, PairBlocks, PairSums
from topnrank.models.sequence.timeline import Totals


class ItemRows(NamedTuple):
    """Rows of a sparse matrix whose values are arrays, CSR; columns ascend within a row."""

    indptr: Int64Array
    columns: Int32Array
    values: Float32Array
    """(n, ...)"""

    def rows(self, first: int, end: int) -> Self:
        """Some of them."""
        own = slice(int(self.indptr[first]), int(self.indptr[end]))
        return type(self)(self.indptr[first : end + 1] - self.indptr[first], self.columns[own], self.values[own])


def added(parts: Sequence[ItemRows]) -> ItemRows:
    """The sum of matrices of one shape, in their order."""
    n_rows = len(parts[0].indptr) - 1
    rows = np.concatenate([np.repeat(np.arange(n_rows), np.diff(part.indptr)) for part in parts])
    columns = np.concatenate([part.columns for part in parts])
    values = np.concatenate([part.values for part in parts])
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = (np.diff(rows) != 0) | (np.diff(columns) != 0)
    starts = np.flatnonzero(first)
    sums = np.add.reduceat(values.astype(np.float64), starts, axis=0) if len(starts) else values
    return ItemRows(
        indptr_from_counts(np.bincount(rows[starts], minlength=n_rows)), columns[starts], sums.astype(np.float32)
    )


def below_each_other(parts: Sequence[ItemRows]) -> ItemRows:
    """Matrices of consecutive rows as one."""
    sizes = np.concatenate([np.diff(part.indptr) for part in parts])
    columns, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("columns", "values"))
    return ItemRows(indptr_from_counts(sizes), columns, values)


class OrderSums(NamedTuple):
    """The sums of all rows."""

    totals: Totals
    counted: Links | None
    """The directed counts, where they are needed"""
    pairs: PairSums | None
    """Those of the regressions, where they are needed"""

    @classmethod
    def of(cls, totals: Totals, matrices: dict[str, ItemRows]) -> Self:
        """From the matrices "counts", "gram", "diagonal" and "pasts", as far as they are there."""
        counted = Links(*matrices["counts"]) if "counts" in matrices else None
        if "gram" not in matrices:
            return cls(totals, counted, None)
        blocks = PairBlocks(*matrices["gram"], matrices["diagonal"].values)
        return cls(totals, counted, PairSums(blocks, *matrices["pasts"]))
