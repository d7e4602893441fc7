"""Tables written batch by batch, in the format that the name of the file gives."""

import json
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from topnrank.errors import OutputError
from topnrank.io.atomic import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = (".parquet", ".csv", ".jsonl")
"""Endings of the names of tables that can be written."""


def table_format(path: str | os.PathLike[str]) -> str:
    """The ending that gives the format of a table to write; an error when the name has another one."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise OutputError(f"{path}: the name must end in {', '.join(FORMATS)}, which gives the format; rename it")
    return suffix


def write_table(path: str | os.PathLike[str], table: "pa.Table") -> None:
    """Writes a table in the format given by the name of the file."""
    write_batches(path, table.schema, table.to_batches())


def write_tables(path: str | os.PathLike[str], tables: "Iterator[pa.Table]") -> int:
    """Writes tables of one schema, at least one, one after the other; returns the number of rows."""
    first, rows = next(tables), 0

    def batches() -> "Iterator[pa.RecordBatch]":
        nonlocal rows
        for table in chain([first], tables):
            rows += table.num_rows
            yield from table.to_batches()

    write_batches(path, first.schema, batches())
    return rows


def write_batches(path: str | os.PathLike[str], schema: "pa.Schema", batches: "Iterable[pa.RecordBatch]") -> None:
    """Writes a table batch by batch in the format given by the name of the file."""
    suffix = table_format(path)

    def write(temporary: Path) -> None:
        if suffix == ".jsonl":
            with temporary.open("w", encoding="utf-8") as file:
                for batch in batches:
                    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
            return
        import pyarrow.csv as pc
        import pyarrow.parquet as pq

        parquet = suffix == ".parquet"
        made = pq.ParquetWriter(temporary, schema, compression="zstd") if parquet else pc.CSVWriter(temporary, schema)
        with made as writer:
            for batch in batches:
                writer.write_batch(batch)

    write_atomically(path, write)
