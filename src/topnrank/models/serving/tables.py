"""Ranked lists as Arrow tables."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from topnrank._typing import Float32Array, IdArray, Int64Array


class Named(NamedTuple):
    """A column of ids: its name, and the ids its rows are taken from."""

    name: str
    ids: IdArray

    def take(self, rows: Int64Array) -> pa.Array:
        """The ids at `rows`; only those are converted, because there may be millions of others."""
        return id_column(self.ids[rows])


def id_column(ids: IdArray) -> pa.Array:
    """Ids as an Arrow array whose type does not depend on whether there are any."""
    return pa.array(ids, pa.string()) if ids.dtype.kind == "O" else pa.array(ids)


def ranked_table(
    best: Int64Array, scores: Float32Array, things: Named, owners: Named | None = None, min_score: float | None = None
) -> pa.Table:
    """The things that `best` names in each row of `scores`, best first, as a table thing, score, rank; -1 is nothing.

    `owners` names the rows in a first column; scores below `min_score` are left out.
    """
    row, place = np.nonzero(best >= 0)
    chosen = best[row, place]
    values = scores[row, chosen]
    if min_score is not None:
        high = values >= np.float32(min_score)
        row, place, chosen, values = row[high], place[high], chosen[high], values[high]
    columns = {things.name: things.take(chosen), "score": values, "rank": (place + 1).astype(np.int32)}
    if owners is None:
        return pa.table(columns)
    return pa.table({owners.name: owners.take(row), **columns})
