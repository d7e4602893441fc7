"""Ranked lists as Arrow tables."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from topnrank._typing import Float32Array, IdArray, Int64Array


class IdColumn(NamedTuple):
    """A column of ids: its name, and the ids its rows are taken from."""

    name: str
    ids: IdArray


def id_column(ids: IdArray) -> pa.Array:
    """Ids as an Arrow array whose type does not depend on whether there are any."""
    return pa.array(ids, pa.string()) if ids.dtype.kind == "O" else pa.array(ids)


def ranked_table(
    best: Int64Array,
    scores: Float32Array,
    things: IdColumn,
    owners: IdColumn | None = None,
    min_score: float | None = None,
) -> pa.Table:
    """The things that `best` names in each row of `scores`, best first, as a table thing, score, rank; -1 is nothing.

    `owners` names the rows in a first column; scores below `min_score` are left out. Only the ids that are listed are
    converted, because there may be millions of others.
    """
    row, rank = np.nonzero(best >= 0)
    chosen = best[row, rank]
    values = scores[row, chosen]
    if min_score is not None:
        high = values >= np.float32(min_score)
        row, rank, chosen, values = row[high], rank[high], chosen[high], values[high]
    names = [things.name, "score", "rank"]
    columns = [id_column(things.ids[chosen]), pa.array(values), pa.array((rank + 1).astype(np.int32))]
    if owners is not None:
        names.insert(0, owners.name)
        columns.insert(0, id_column(owners.ids[row]))
    return pa.Table.from_arrays(columns, names)
