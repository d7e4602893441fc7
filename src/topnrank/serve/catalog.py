"""What is known of items beside the model: titles, groups and other facts, and how they are searched.

Titles and facts are by the text of the item's id, so that one file serves models whose ids are numbers or text.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from topnrank._typing import Int32Array, Int64Array
from topnrank.data.frames import USUAL_NAMES, USUAL_TITLES, bare_name, usual_column
from topnrank.data.ids import IdMap
from topnrank.errors import DataError

PLAIN = (str, int, float, bool, type(None))
"""Types of facts that go over the wire as they are."""
GROUPS = ("group", "genre", "genres", "category", "categories")
"""Usual names of a column of groups."""


@dataclass(frozen=True)
class Facts:
    """The rows of a file of items, by the text of the item's id."""

    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | None) -> "Facts":
        """A CSV, TSV, JSON lines or Parquet file with columns of items, titles, groups, years or any other.

        The first three are found by their usual names. Of a file that has users, too, only what describes items is taken.
        """
        if path is None:
            return cls()
        table = _table(path)
        names = table.column_names
        title = usual_column(names, USUAL_TITLES)
        item = "item" if "item" in names else usual_column(names, USUAL_NAMES["item"], title)
        if item is None:
            raise DataError(f"{path}: needs a column item, got {', '.join(names) or 'nothing'}; name the columns")
        roles = {item: "item", title: "title", usual_column(names, GROUPS, item, title): "group"}
        if usual_column(names, USUAL_NAMES["user"], item, title) is not None:
            of_rows = [name for role, usual in USUAL_NAMES.items() if role != "item" for name in usual]
            table = table.select([name for name in names if name in roles or bare_name(name) not in of_rows])
        return cls.of(table.rename_columns([roles.get(name, name) for name in table.column_names]).to_pylist())

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> "Facts":
        """Facts from rows with the key item."""
        return cls({str(row["item"]): {k: _plain(v) for k, v in row.items() if k != "item"} for row in rows})


def _table(path: str) -> Any:
    import pyarrow as pa

    try:
        if Path(path).suffix in (".parquet", ".pq"):
            import pyarrow.parquet as pq

            return pq.read_table(path)
        if Path(path).suffix in (".jsonl", ".ndjson"):
            import pyarrow.json as pj

            return pj.read_json(path)
        import pyarrow.csv as pc

        separator = "\t" if Path(path).suffix in (".tsv", ".tab") else ","
        return pc.read_csv(path, parse_options=pc.ParseOptions(delimiter=separator))
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path}: cannot be read as a table of items ({reason}); check the file") from None


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if isinstance(value, PLAIN):
        return value
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def folded(text: str) -> str:
    """Text without case and accents, for searching."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


class Catalog:
    """The facts of a model's items, by the items' numbers."""

    def __init__(self, items: IdMap, facts: Facts, counts: Int64Array) -> None:
        self.items, self.facts, self.counts = items, facts.rows, counts
        self.by_popularity = np.argsort(-counts, kind="stable")
        self.groups, self.group_names = self._groups()
        self._texts: list[str] | None = None

    def __len__(self) -> int:
        return len(self.items)

    @property
    def has_groups(self) -> bool:
        """Whether any item has a group."""
        return bool(self.group_names)

    def fact(self, number: int, name: str) -> Any:
        """One fact of an item; None where it is not known."""
        return self.facts.get(str(self.items.ids[number]), {}).get(name)

    def of(self, number: int) -> Mapping[str, Any]:
        """All facts of an item."""
        return self.facts.get(str(self.items.ids[number]), {})

    def search(self, text: str) -> Int64Array:
        """Numbers of the items whose title or id holds all words of `text`, words begun before words held; best known
        first."""
        words = folded(text).split()
        if not words:
            return self.by_popularity
        if self._texts is None:
            self._texts = [
                f" {folded(str(self.of(k).get('title') or ''))} {self.items.ids[k]}" for k in range(len(self))
            ]
        texts = self._texts
        found = [k for k in self.by_popularity.tolist() if all(word in texts[k] for word in words)]
        begun = [k for k in found if all(f" {word}" in texts[k] for word in words)]
        rest = set(begun)
        return np.array(begun + [k for k in found if k not in rest], np.int64)

    def _groups(self) -> tuple[Int32Array, list[str]]:
        """(n_items,) the number of each item's group, -1 for none, and the names."""
        codes: dict[str, int] = {}
        groups = np.full(len(self.items), -1, np.int32)
        if self.facts:
            for number, item in enumerate(self.items.ids.tolist()):
                group = self.facts.get(str(item), {}).get("group")
                if group is not None:
                    groups[number] = codes.setdefault(str(group), len(codes))
        return groups, list(codes)
