"""Interactions: the immutable users x items matrix that the whole library works on."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from topnrank._checks import one_of, require_integer
from topnrank._csr import indptr_from_counts, row_owner
from topnrank._html import html_table, text_table
from topnrank._typing import BoolArray, Float32Array, IdArray, Int32Array, Int64Array, IntArray
from topnrank.data.columns import Column, Locate, numbers, rows_of
from topnrank.data.duplicates import DUPLICATE_RULES, CodedColumns, unique_rows
from topnrank.data.frames import ArrowStream, Columns, as_table, resolve_columns, rows_of_table
from topnrank.data.ids import IdMap
from topnrank.data.scale import RatingCounts
from topnrank.errors import DataError, ParameterError
from topnrank.rng import stream

if TYPE_CHECKING:
    from topnrank.experiments.report.plots import Picture

_DTYPES: Mapping[str, type[np.generic]] = {
    "indptr": np.int64,
    "indices": np.int32,
    "ratings": np.float32,
    "types": np.int32,
    "weights": np.float32,
    "timestamps": np.int64,
    "places": np.int64,
}


class Ties(NamedTuple):
    """Items of one user at one moment: how a split took them, and how many there are."""

    rule: str
    """As `topnrank.split_last` has it; "together" where the split does not part them"""
    share: float
    """Of the items of all users, those that share their moment with another one of the same user"""

    def __str__(self) -> str:
        told = f"{self.share:.0%} of the rows share their moment with another item of the same user"
        return f"{told}, and were taken {TAKEN[self.rule]}" if self.share else told


TAKEN = {
    "random": "in random order",
    "file": "in the order of the file, which may be an artefact",
    "item": "in the order of item ids, which a model can learn",
    "error": "as they are",
    "together": "together",
}
"""The rules for ties in words."""


@final
@dataclass(frozen=True, eq=False)
class Interactions:
    """Immutable users x items CSR.

    The rows of user u are indptr[u] to indptr[u + 1], ascending by item, and by type where an item occurs with
    several. Build it with `from_frame`, `from_arrays` or `from_scipy`; the constructor trusts that order.
    """

    users: IdMap
    """Row number <-> original user id."""
    items: IdMap
    """Column number <-> original item id."""
    indptr: Int64Array
    """(n_users + 1,) where the rows of each user start."""
    indices: Int32Array
    """(n_rows,) item number of each row."""
    ratings: Float32Array | None = None
    """(n_rows,)"""
    types: Int32Array | None = None
    """(n_rows,) feedback type such as view, cart, buy, as a code into `type_names`."""
    type_names: tuple[str, ...] = ()
    weights: Float32Array | None = None
    """(n_rows,)"""
    timestamps: Int64Array | None = None
    """(n_rows,) seconds, or whatever integer clock the data has."""
    places: Int64Array | None = None
    """(n_rows,) where each row stood in the file or frame; only where that was asked for, with keep_order=True. Items of one
    moment are then taken in this order, by models and by splits with ties="file"."""
    merged_rows: int = 0
    """How many rows the rule for duplicates merged away when the data was read."""
    split: str | None = None
    """How these rows were split from others: "per-user" at random, "last" of each user, or by "time"; None for whole data.
    Models that choose settings on held-out rows hold them out the same way."""
    ties: "Ties | None" = None
    """How the split by time that made these rows took items of one moment, and how many there were."""
    n_users: int = field(init=False)
    """Number of users, those without rows included."""
    n_items: int = field(init=False)
    """Number of items, those without rows included."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_users", len(self.users.ids))
        object.__setattr__(self, "n_items", len(self.items.ids))
        for name, dtype in _DTYPES.items():
            if (values := getattr(self, name)) is not None:
                frozen = np.ascontiguousarray(values, dtype=dtype).view()
                frozen.flags.writeable = False
                object.__setattr__(self, name, frozen)

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        columns = [name for name in ("ratings", "types", "weights", "timestamps") if getattr(self, name) is not None]
        return f"Interactions({len(self)} rows, {self.n_users} users, {self.n_items} items{', '.join(['', *columns])})"

    @cached_property
    def user_index(self) -> Int32Array:
        """User number of each row, (n_rows,)."""
        index = row_owner(self.indptr, np.int32)
        index.flags.writeable = False
        return index

    @cached_property
    def rating_counts(self) -> RatingCounts | None:
        """How often each rating occurs; None where there are none."""
        return None if self.ratings is None or not len(self) else RatingCounts.of(self.ratings)

    @property
    def pair_starts(self) -> BoolArray:
        """Marks the first row of each (user, item) pair, (n_rows,); all rows unless there are types."""
        first = np.ones(len(self), dtype=np.bool_)
        first[1:] = (self.indices[1:] != self.indices[:-1]) | (self.user_index[1:] != self.user_index[:-1])
        return first

    def __str__(self) -> str:
        shown = self.head().to_arrow()
        rows = [[str(value) for value in row.values()] for row in shown.to_pylist()]
        return "\n".join(
            [repr(self), text_table(shown.column_names, rows), *(["..."] if len(self) > len(shown) else [])]
        )

    def _repr_html_(self) -> str:
        shown = self.head().to_arrow()
        more = f"... and {len(self) - len(shown):,} more rows" if len(self) > len(shown) else ""
        rows = [[str(value) for value in row.values()] for row in shown.to_pylist()]
        return html_table(shown.column_names, rows, title=repr(self), notes=[more])

    def plot(self) -> "Picture":
        """How long the users' lists are, and how popular the items."""
        from topnrank.experiments.report.quick_plots import activity

        return activity(self)

    def head(self, n: int = 5) -> Self:
        """The first n rows, in the order of users and items."""
        return self.take(np.arange(min(require_integer("head: n", n), len(self))))

    def sample(self, n: int | None = None, *, users: int | None = None, seed: int = 0) -> Self:
        """n rows at random, or all rows of so many `users` at random; the id maps stay."""
        if (n is None) == (users is None):
            raise ParameterError("sample: give a number of rows, or users=..., a number of users")
        random = stream(require_integer("seed", seed), "sample")
        if n is not None:
            size = min(require_integer("sample: n", n, 1), len(self))
            return self.take(np.sort(random.choice(len(self), size, replace=False)))
        busy = np.flatnonzero(np.diff(self.indptr))
        drawn = random.choice(busy, min(require_integer("sample: users", users, 1), len(busy)), replace=False)
        return self.take(np.isin(self.user_index, drawn))

    def take(self, rows: IntArray | BoolArray) -> Self:
        """The rows of a mask or of ascending positions, with the same id maps."""
        chosen: NDArray[Any] = np.asarray(rows)
        if chosen.dtype == np.bool_:
            if chosen.shape != (len(self),):
                raise ParameterError(f"a mask of rows must have shape ({len(self)},), got {chosen.shape}")
            positions = np.flatnonzero(chosen)
        else:
            positions = chosen.astype(np.int64)
            ascends = np.all(positions[1:] > positions[:-1])
            if len(chosen) and (chosen[0] < 0 or chosen[-1] >= len(self) or not ascends):
                raise ParameterError(
                    f"row positions must be ascending, unique and from 0 to {len(self) - 1}; sort them"
                )
        columns = {name: getattr(self, name) for name in _DTYPES if name != "indptr"}
        taken = {name: values[positions] for name, values in columns.items() if values is not None}
        return replace(self, indptr=np.searchsorted(positions, self.indptr), **taken)

    def compact(self) -> Self:
        """Without the users and items that have no rows."""
        counts = np.diff(self.indptr)
        has_rows = np.bincount(self.indices, minlength=self.n_items) > 0
        number = np.cumsum(has_rows, dtype=np.int32) - np.int32(1)
        return replace(
            self,
            users=IdMap(self.users.ids[counts > 0]),
            items=IdMap(self.items.ids[has_rows]),
            indptr=indptr_from_counts(counts[counts > 0]),
            indices=number[self.indices],
        )

    def with_users(self, ids: IdArray) -> Self:
        """The same rows beside more users, who have none."""
        users = IdMap.encode(np.concatenate([self.users.ids, ids]))[0]
        counts = np.zeros(len(users), np.int64)
        counts[users.index(self.users.ids)] = np.diff(self.indptr)
        return replace(self, users=users, indptr=indptr_from_counts(counts))

    def with_weights(self, weights: Float32Array) -> Self:
        """The same rows with other weights, (n_rows,), which must be finite."""
        weights = np.array(weights, dtype=np.float32)  # a copy: the caller's may change
        if weights.shape != (len(self),):
            raise DataError(f"weights must have shape ({len(self)},), one for each row, got {weights.shape}")
        if not np.isfinite(weights).all():
            row = int(np.argmin(np.isfinite(weights)))
            raise DataError(f"weights must be finite numbers, got {weights[row]} at position {row}; fix that weight")
        return replace(self, weights=weights)

    def filter(self, *, min_user_items: int = 0, min_item_users: int = 0, users: Any = None, items: Any = None) -> Self:
        """Only these `users` and `items` (ids), then without rare items, then without the users left with few items.

        Each once, not repeated until stable. Users and items without rows leave the id maps. Items of several types count
        once for a user.
        """
        for name, least in (("min_user_items", min_user_items), ("min_item_users", min_item_users)):
            require_integer(name, least)
        kept = self.take(_chosen(self.users, users)[self.user_index] & _chosen(self.items, items)[self.indices])
        common = np.bincount(kept.indices[kept.pair_starts], minlength=self.n_items) >= min_item_users
        kept = kept.take(common[kept.indices])
        busy = np.bincount(kept.user_index[kept.pair_starts], minlength=self.n_users) >= min_user_items
        kept = kept.take(busy[kept.user_index])
        if not len(kept):
            raise DataError(
                f"no rows are left of {len(self)} after the filter min_item_users={min_item_users},"
                f" min_user_items={min_user_items}{'' if users is items is None else ' and of the users and items given'};"
                " lower them"
            )
        return kept.compact()

    def fingerprint(self) -> str:
        """Hex digest of all content and ids: the same data has the same digest, in whatever order it was read."""
        digest = hashlib.blake2b(digest_size=16)
        for ids in (self.users.ids, self.items.ids, np.array(self.type_names, dtype=object)):
            if ids.dtype.kind == "i":
                digest.update(f"integers {len(ids)}".encode())
                digest.update(ids.data)
            else:
                encoded = [text.encode() for text in ids.tolist()]
                digest.update(f"texts {[len(text) for text in encoded]}".encode())
                digest.update(b"".join(encoded))
        for name in _DTYPES:
            values = getattr(self, name)
            if name == "places" and values is None:
                continue
            digest.update(f"{name} {None if values is None else len(values)}".encode())
            digest.update(b"" if values is None else values.data)
        return digest.hexdigest()

    def to_arrow(self) -> pa.Table:
        """Original ids: columns user, item and, where the data has them, rating, type, weight and timestamp."""
        columns = {
            "user": pa.array(self.users.ids).take(pa.array(self.user_index)),
            "item": pa.array(self.items.ids).take(pa.array(self.indices)),
            "rating": self.ratings,
            "type": None if self.types is None else pa.array(self.type_names).take(pa.array(self.types)),
            "weight": self.weights,
            "timestamp": self.timestamps,
        }
        return pa.table({name: values for name, values in columns.items() if values is not None})

    def to_pandas(self) -> Any:
        """`to_arrow` as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """`to_arrow` as a polars DataFrame."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def to_scipy(self) -> Any:
        """A SciPy CSR matrix, (n_users, n_items), of ratings, else weights, else ones, in memory of its own.

        Several types of one user and item add up. Row k is user `users.ids[k]`, column k item `items.ids[k]`.
        """
        from scipy.sparse import csr_matrix

        values = self.ratings if self.ratings is not None else self.weights
        values = np.ones(len(self), np.float32) if values is None else values
        shape = (self.n_users, self.n_items)
        matrix = csr_matrix((values, self.indices, self.indptr), shape=shape, copy=True)
        matrix.sum_duplicates()
        return matrix

    @classmethod
    def from_arrays(
        cls,
        users: Any,
        items: Any,
        *,
        ratings: Any = None,
        types: Any = None,
        weights: Any = None,
        timestamps: Any = None,
        duplicates: str = "error",
        keep_order: bool = False,
    ) -> Self:
        """From arrays or lists of one length: ids are integers or text, see `from_table` for the last two arguments."""
        arrays = {
            "user": users,
            "item": items,
            "rating": ratings,
            "type": types,
            "weight": weights,
            "timestamp": timestamps,
        }
        present = {name: values for name, values in arrays.items() if values is not None}
        columns = Columns(**{name: name for name in present})
        return cls.from_frame(present, columns=columns, duplicates=duplicates, keep_order=keep_order)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        columns: Columns | None = None,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        type: str | None = None,
        weight: str | None = None,
        timestamp: str | None = None,
        duplicates: str = "error",
        keep_order: bool = False,
    ) -> Self:
        """From a pandas, polars, Arrow or DuckDB frame or a dict of arrays.

        Columns that are not named are found by their usual names; `columns` names all there are to use, and then
        nothing is guessed. See `from_table` for the last two arguments.
        """
        given = {"user": user, "item": item, "rating": rating, "type": type, "weight": weight, "timestamp": timestamp}
        table = as_table(frame)
        if columns is None:
            columns = resolve_columns(table.column_names, given)
        elif named := [role for role, name in given.items() if name is not None]:
            raise ParameterError(f"columns names all columns, but {named[0]} is given too; leave one of them out")
        return cls.from_table(table, columns, duplicates=duplicates, keep_order=keep_order)

    @classmethod
    def from_table(
        cls,
        table: pa.Table,
        columns: Columns,
        *,
        source: str = "frame",
        duplicates: str = "error",
        locate: Locate | None = None,
        keep_order: bool = False,
    ) -> Self:
        """From an Arrow table.

        Parameters
        ----------
        table, columns
            The data, and the names of the columns to use.
        source
            What error messages call the table.
        duplicates
            Rows of one user and item (and type): "error", which without ratings and weights means "last"; "last", by
            timestamp, else by row; "sum" of ratings and weights with the latest timestamp; "max", the row of the largest
            rating, else weight; "count": how many there are becomes the weight. In ties the latest row stays.
            `merged_rows` counts what was merged.
        locate
            Describes a 0-based row in error messages; "<source>, row <number from 1>" when None.
        keep_order
            Whether the order of the rows says which of a user's items of one moment came first (`places`, 8 bytes a row).
        """
        one_of("duplicates", duplicates, DUPLICATE_RULES)
        where = locate or rows_of(source)
        given = [table]
        del table  # the columns are freed one by one
        rows = rows_of_table(given.pop(), columns, source=source, locate=where)
        if keep_order:
            rows = replace(rows, places=np.arange(len(rows.user_codes)))
        return cls._of_rows(rows, duplicates, where)

    @classmethod
    def from_scipy(
        cls,
        matrix: Any,
        *,
        user_ids: Any = None,
        item_ids: Any = None,
        values: Literal["rating", "weight"] = "rating",
    ) -> Self:
        """From a SciPy sparse users x items matrix; every stored entry is a row, and repeated entries add up as in SciPy.

        Users and items without entries stay in the id maps; the ids are 0, 1, ... when not given.
        """
        one_of("values", values, ("rating", "weight"))
        from scipy.sparse import issparse

        if not issparse(matrix):
            raise DataError(f"matrix must be a SciPy sparse matrix or array, got {type(matrix).__name__}; convert it")
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
            raise DataError(
                f"matrix must hold real numbers in two dimensions, got {matrix.dtype} of shape {matrix.shape}; convert it"
            )
        coo = matrix.tocoo()
        entries = Column(values, pa.chunked_array([coo.data]), lambda k: f"matrix entry ({coo.row[k]}, {coo.col[k]})")
        users, user_numbers = _ids_of_axis(user_ids, matrix.shape[0], "user_ids")
        items, item_numbers = _ids_of_axis(item_ids, matrix.shape[1], "item_ids")
        if len(coo.data) == 0:
            raise DataError("matrix: no entries; at least one interaction is needed")
        column: dict[str, Any] = {f"{values}s": numbers(entries)}
        rows = CodedColumns(users, items, user_numbers[coo.row], item_numbers[coo.col], **column)
        return cls._of_rows(rows, "sum", entries.locate)

    @classmethod
    def _of_rows(cls, rows: CodedColumns, duplicates: str, locate: Locate) -> Self:
        rows, merged = unique_rows(rows, duplicates, locate)
        indptr = np.searchsorted(rows.user_codes, np.arange(len(rows.users) + 1, dtype=np.int32))  # they are sorted
        columns = {
            name: getattr(rows, name) for name in ("ratings", "types", "type_names", "weights", "timestamps", "places")
        }
        return cls(rows.users, rows.items, indptr, rows.item_codes, merged_rows=merged, **columns)


def _chosen(known: IdMap, ids: Any) -> BoolArray:
    """(n,) which of the `known` ids are asked for: all where None."""
    if ids is None:
        return np.ones(len(known), np.bool_)
    numbers = known.index(ids)
    chosen = np.zeros(len(known), np.bool_)
    chosen[numbers[numbers >= 0]] = True
    return chosen


def _ids_of_axis(ids: Any, length: int, name: str) -> tuple[IdMap, Int32Array]:
    id_map, numbers = IdMap.encode(np.arange(length) if ids is None else ids)
    if len(numbers) != length or len(id_map) != length:
        raise DataError(f"{name} must be {length} different ids, got {len(numbers)} with {len(id_map)} different ones")
    return id_map, numbers


Rows = Interactions | ArrowStream
"""What `fit`, `partial_fit`, `evaluate` and `compare` take: Interactions, or a frame of any library."""


def as_interactions(data: Any, what: str = "fit") -> Interactions:
    """Interactions as they are, and a frame as `Interactions.from_frame` takes it; ParameterError for anything else."""
    if isinstance(data, Interactions):
        return data
    if isinstance(data, ArrowStream):
        return Interactions.from_frame(data)
    raise ParameterError(
        f"{what} needs Interactions, got {type(data).__name__}; make them with topnrank.read(path) or "
        "Interactions.from_frame(frame)"
    )
