"""Reading: a file of ratings to `Interactions`, against pyarrow, pandas and polars reading it alone."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

import topnrank as tnr
from suite_data import ML_20M, QUICK, Bench
from suite_measure import Bar, Measure, Side, in_turn, per, timed
from suite_processes import peak_memory

PART = "reading"
SHARE = 4
"""A run that is not full reads a quarter of MovieLens 20M."""
BAR, MEMORY_BAR = Bar(2.0, 1.5), Bar(3.0)
COUNTED = (
    "Milliseconds for the file, from the page cache, with the threads each takes by itself. Ours: `topnrank.read`, up to "
    "the sorted and checked matrix; the peers: only the table or frame."
)
MEMORY = (
    "MB in a fresh process: the peak of `topnrank.read` beyond what the process held before, against the arrays of the "
    "result."
)
BEFORE = """
import topnrank as tnr
from topnrank.data import many_rows
usual, many_rows.MANY = many_rows.MANY, 1
tnr.read({small!r})
many_rows.MANY = usual
"""
KEPT = """
arrays = [data.indptr, data.indices, data.ratings, data.timestamps, data.users.ids, data.items.ids]
kept = sum(array.nbytes for array in arrays if array is not None)
"""


def files(bench: Bench) -> dict[str, Path]:
    """The same rows as CSV in MovieLens' own form and as Parquet."""
    users, items, ratings = ML_20M
    share = 1 if bench.full else SHARE
    path = bench.synthetic((users // share, items, ratings // share), QUICK)
    table = path.with_suffix(".csv")
    if not table.exists():
        bench.tell(f"writing {table.name}")
        rows = pq.read_table(path).rename_columns(["userId", "movieId", "rating", "timestamp"])
        csv.write_csv(rows.set_column(2, "rating", rows["rating"].cast(pa.float64())), table)
    return {"CSV": table, "Parquet": path}


def run(bench: Bench) -> Iterator[Measure]:
    """Time and memory of both formats."""
    for form, path in files(bench).items():
        rows = pq.read_metadata(path.with_suffix(".parquet")).num_rows
        words = f"{form}, {rows / 1e6:.1f} M rows"
        bench.tell(f"reading {words}")
        yield from times(bench, form, path, words)
        yield from memory(bench, form, path, words)


def times(bench: Bench, form: str, path: Path, words: str) -> Iterator[Measure]:
    """Ours and the three others in turn."""
    sides: dict[str, Side] = {"ours": timed(lambda: tnr.read(path))}
    sides["pyarrow"] = timed(lambda: csv.read_csv(path) if form == "CSV" else pq.read_table(path))
    for name in ("pandas", "polars"):
        library = bench.peers.use(name, name)
        if library is not None:
            reader = library.read_csv if form == "CSV" else library.read_parquet
            sides[name] = timed(lambda reader=reader: reader(path))
    taken = in_turn(sides, bench.rounds)
    ours = taken.pop("ours")
    for peer, others in taken.items():
        for clock in ("wall", "cpu"):
            values = [per(side, 1, clock=clock, scale=1e3) for side in (ours, others)]
            bar = BAR if (peer, clock) == ("pyarrow", "wall") else None
            name = f"{form} to Interactions, {clock}"
            yield Measure(PART, name, words, "ms", values[0], f"{peer} alone", values[1], bar, counted=COUNTED)


def memory(bench: Bench, form: str, path: Path, words: str) -> Iterator[Measure]:
    """Peak memory against the arrays kept; a small file is read first as if it were large, so that code does not count."""
    small = path.with_name("small").with_suffix(path.suffix)
    if not small.exists():
        rows = pq.read_table(path.with_suffix(".parquet")).slice(0, 1000)
        pq.write_table(rows, small) if form == "Parquet" else csv.write_csv(rows, small)
    before = BEFORE.format(small=str(small))
    work = f"data = tnr.read({str(path)!r}){KEPT}"
    found = [peak_memory(before, work) for _ in range(min(bench.rounds, 3))]
    peaks, kept = ([one[place] / 1e6 for one in found] for place in (0, 1))
    name = f"{form} to Interactions, peak memory"
    yield Measure(PART, name, words, "MB", peaks, "the arrays kept", kept, MEMORY_BAR, counted=MEMORY)
