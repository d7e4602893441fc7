"""Fuzzed input: rows in a random layout, damaged or not, read by the library and by readers of Python's own."""

import contextlib
import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Row = tuple[str, str, str]
Rows = set[tuple[Any, Any, float]]

_ALPHABET = [*"abcXYZ019 -_.äß漢\u00a0\u2028", "0x1F", "007", "1e3", "+7", "NULL", "nan", "'"]


def _id(draw: np.random.Generator, kind: int) -> str:
    if kind == 0:
        return str(int(draw.integers(-5, 40)))
    if kind == 1:
        return str(int(draw.integers(-(2**63), 2**63 - 1)))
    return "".join(draw.choice(_ALPHABET, int(draw.integers(1, 6)))).strip() or "x"


def _table(draw: np.random.Generator) -> list[Row]:
    kinds = draw.integers(0, 3, 2)
    rows = {(_id(draw, kinds[0]), _id(draw, kinds[1])) for _ in range(int(draw.integers(1, 30)))}
    return [(user, item, f"{draw.integers(1, 11) / 2:g}") for user, item in sorted(rows)]


def _as_read(rows: list[Row]) -> Rows:
    """The rows with ids as the library promises them: integers where all of a column are written as they print."""
    columns: list[list[Any]] = [[row[0] for row in rows], [row[1] for row in rows]]
    for number, column in enumerate(columns):
        with contextlib.suppress(ValueError):
            integers = [int(value) for value in column]
            written = [str(value) for value in integers] == column
            if written and all(-(2**63) <= value < 2**63 for value in integers):
                columns[number] = integers
    return set(zip(*columns, (float(np.float32(row[2])) for row in rows), strict=True))


def _mutated(draw: np.random.Generator, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(int(draw.integers(1, 4))):
        place = int(draw.integers(len(changed) + 1))
        kind = draw.integers(4)
        if kind == 0 and place < len(changed):
            changed[place] = int(draw.integers(256))
        elif kind == 1:
            changed[place:place] = bytes(draw.choice([b",", b"\n", b"\r", b'"', b"\0", b"\x1f", b"\xff", b"0x", b" "]))
        elif kind == 2:
            del changed[place : place + int(draw.integers(1, 5))]
        else:
            del changed[place:]
    return bytes(changed)


def fuzzed_input(draw: np.random.Generator, folder: Path) -> str:
    """Rows in a random layout, in two of three cases damaged behind the header, read and compared with another reader."""
    import topnrank as tnr

    rows, layout = _table(draw), str(draw.choice(list(_LAYOUTS)))
    given = _LAYOUTS[layout](draw, rows, folder, bool(draw.integers(3)))
    try:
        found = tnr.read(given.path, **given.options)
    except tnr.errors.TopNRankError as error:
        if "\n" in str(error):
            return f"FAILED: more than one sentence: {error}"
        return "refused" if given.is_damaged or _unreadable(rows) else f"FAILED: refused though right: {error}"
    if given.wanted is None:
        return "read"
    table = found.to_arrow()
    triples = zip(*(table[name].to_pylist() for name in ("user", "item", "rating")), strict=True)
    return "right" if set(triples) == given.wanted else f"FAILED: other rows, {layout}, {rows[:3]}"


@dataclass(frozen=True)
class Given:
    """A file, and what it says."""

    path: Path
    options: dict[str, Any]
    wanted: Rows | None
    """None where another reader refuses it, or may read it in another way"""
    is_damaged: bool


def _text(separator: str, draw: np.random.Generator, rows: list[Row], folder: Path, damaged: bool) -> Given:
    """CSV and the like, plain or packed, with or without a header and a byte order mark."""
    text = io.StringIO(newline="")
    if separator == "::":
        text.write("".join("::".join(row) + "\n" for row in rows if "::" not in "::".join(row).replace("::", "", 2)))
    else:
        end = str(draw.choice(["\n", "\r\n"]))
        csv.writer(text, delimiter=separator, lineterminator=end).writerows(rows)
    body = _mutated(draw, text.getvalue().encode()) if damaged else text.getvalue().encode()
    options: dict[str, Any] = {"separator": separator, "format": "csv", "header": separator != "::"}
    content = body
    if separator != "::":
        content = f"user{separator}item{separator}rating\n".encode() + body
        options |= {"user": "user", "item": "item", "rating": "rating"}
    content = (b"\xef\xbb\xbf" if draw.integers(4) == 0 and separator != "::" else b"") + content
    packing = ("", "", ".gz", ".zst")[int(draw.integers(4))]
    path = folder / f"rows.csv{packing}"
    with pa.output_stream(path, compression="detect") as file:
        file.write(content)
    wanted = _by_csv_module(body, separator) if damaged or separator == "::" else _as_read(rows)
    return Given(path, options, wanted, damaged or separator == "::")


def _json_lines(draw: np.random.Generator, rows: list[Row], folder: Path, damaged: bool) -> Given:
    records = [{"user": user, "item": item, "rating": float(rating)} for user, item, rating in rows]
    body = "".join(json.dumps(record, ensure_ascii=bool(draw.integers(2))) + "\n" for record in records).encode()
    body = _mutated(draw, body) if damaged else body
    (folder / "rows.jsonl").write_bytes(body)
    return Given(folder / "rows.jsonl", dict(_ROLES), _by_json_module(body), damaged)


def _parquet(draw: np.random.Generator, rows: list[Row], folder: Path, damaged: bool) -> Given:
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    if draw.integers(2):
        columns[:2] = [column.dictionary_encode() for column in columns[:2]]
    rating = pa.array([float(row[2]) for row in rows], (pa.float32(), pa.float64())[int(draw.integers(2))])
    compression = ("snappy", "zstd", "none")[int(draw.integers(3))]
    path = folder / "rows.parquet"
    pq.write_table(pa.table({"user": columns[0], "item": columns[1], "rating": rating}), path, compression=compression)
    if not damaged:
        return Given(path, dict(_ROLES), {(user, item, float(rating)) for user, item, rating in rows}, False)
    path.write_bytes(_mutated(draw, path.read_bytes()))
    return Given(path, dict(_ROLES), _by_pyarrow(path), True)


_ROLES = {"user": "user", "item": "item", "rating": "rating"}
_LAYOUTS: dict[str, Callable[..., Given]] = {
    **{name: partial(_text, name) for name in (",", "\t", ";", "|", "::")},
    "jsonl": _json_lines,
    "parquet": _parquet,
}


def _unreadable(rows: list[Row]) -> bool:
    """Whether an id is written like a missing value, or like nothing once blanks are gone."""
    from topnrank.data.readers.text import NULLS

    return any(value in NULLS or not value.strip() for row in rows for value in row)


def _by_csv_module(body: bytes, separator: str) -> Rows | None:
    """The rows by Python's reader; None where two readers may differ: quotes, and values it does not know as numbers."""
    if b'"' in body or b"\0" in body:
        return None
    try:
        if separator == "::":
            rows = [tuple(line.split("::")) for line in re.split("\r\n|\r|\n", body.decode()) if line]
        else:
            reader = csv.reader(io.StringIO(body.decode(), newline=""), delimiter=separator)
            rows = [tuple(row) for row in reader if row]
        return _as_read(rows) if all(len(row) == 3 for row in rows) else None  # type: ignore[arg-type]
    except (ValueError, csv.Error):
        return None


def _by_json_module(body: bytes) -> Rows | None:
    """The rows by Python's reader; None where a value is none that the rows were written with."""
    try:
        records = [json.loads(line) for line in body.decode().split("\n") if line.strip()]
        rows = {(one["user"], one["item"], float(np.float32(one["rating"]))) for one in records}
    except (ValueError, KeyError, TypeError):
        return None
    plain = all(isinstance(user, str) and isinstance(item, str) for user, item, _ in rows)
    return rows if plain and all(len(one) == 3 for one in records) else None


def _by_pyarrow(path: Path) -> Rows | None:
    """The rows by Arrow, which the library reads with as well: nothing is lost on the way."""
    try:
        table = pq.read_table(path)
        users, items, ratings = (table[name].to_pylist() for name in _ROLES)
        return set(zip(users, items, [float(np.float32(rating)) for rating in ratings], strict=True))
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError):
        return None
