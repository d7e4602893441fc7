"""The cases of `torture.py`. A process of this file runs a batch: `torture_cases.py NAME SEED FIRST END`.

It prints number and outcome of each case: one word for what is allowed ("right", "refused"), "FAILED: ..." for the rest.
"""

import contextlib
import csv
import errno
import gzip
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Campaign:
    """A kind of case."""

    title: str
    cases: int
    """At scale 1"""
    run: Callable[[np.random.Generator, Path], str]
    seconds: float = 3600.0
    """A batch that takes longer hangs"""


def run_batch(name: str, seed: int, first: int, end: int) -> None:
    """Runs the cases and prints their outcomes one by one."""
    for case in range(first, end):
        draw = np.random.default_rng([seed, list(CAMPAIGNS).index(name), case])
        with tempfile.TemporaryDirectory(prefix="torture-") as folder:
            try:
                outcome = CAMPAIGNS[name].run(draw, Path(folder))
            except Exception as error:
                outcome = f"FAILED: {type(error).__name__}: {error}"
        print(case, " ".join(outcome.splitlines())[:300], flush=True)


# ----------------------------------------------------------------------------------------------------
# Models: made once in each process.


@cache
def data() -> Any:
    """Training rows that all models share."""
    import topnrank as tnr

    return tnr.synthetic(30, 20, 250, seed=3)


@cache
def models() -> dict[str, Any]:
    """Fitted models of every form of file."""
    import topnrank as tnr

    made = {
        "popularity": tnr.Popularity(),
        "history": tnr.TopNRank(factors=3, epochs=1),
        "factors": tnr.BiasedMF(factors=3, epochs=1),
        "catalog": tnr.TopNRank(factors=3, epochs=1, task="catalog", neighbors=4),
        "ridge": tnr.NeighborRidge(neighbors=4),
        "ease": tnr.EASE(dislikes=True),
    }
    return {name: model.fit(data()) for name, model in made.items()}


@cache
def model_files() -> dict[str, bytes]:
    """The models' files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models().items():
            model.save(Path(folder, name))
        return {name: Path(folder, name).read_bytes() for name in models()}


@cache
def answers(name: str) -> Any:
    """The lists of all users."""
    return models()[name].recommend(n=5)


def used(path: Path) -> Any:
    """Loads a file and does what a server does with it: the lists of all users, a pair, a new user, similar items."""
    import topnrank as tnr

    model = tnr.load(path)
    lists = model.recommend(n=5)
    users, items = model.user_ids_.tolist(), model.item_ids_.tolist()
    requests: list[Callable[[], Any]] = [
        lambda: model.score(users[:3], items[:3]),
        lambda: model.recommend(history=items[:3], n=3),
        lambda: model.recommend(history=[(item, 4.0) for item in items[:3]], n=3),
        lambda: model.similar_items(items[0], n=3),
    ]
    for request in requests:
        with contextlib.suppress(tnr.errors.TopNRankError):
            request()
    return lists


# ----------------------------------------------------------------------------------------------------
# Input.


_ALPHABET = [*"abcXYZ019 -_.äß漢\u00a0\u2028", "0x1F", "007", "1e3", "+7", "NULL", "nan", "'"]


def _id(draw: np.random.Generator, kind: int) -> str:
    if kind == 0:
        return str(int(draw.integers(-5, 40)))
    if kind == 1:
        return str(int(draw.integers(-(2**63), 2**63 - 1)))
    return "".join(draw.choice(_ALPHABET, int(draw.integers(1, 6)))).strip() or "x"


def _table(draw: np.random.Generator) -> list[tuple[str, str, str]]:
    kinds = draw.integers(0, 3, 2)
    rows = {(_id(draw, kinds[0]), _id(draw, kinds[1])) for _ in range(int(draw.integers(1, 30)))}
    return [(user, item, f"{draw.integers(1, 11) / 2:g}") for user, item in sorted(rows)]


def _as_read(rows: list[tuple[str, str, str]]) -> set[tuple[Any, Any, float]]:
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
    """Rows in a random layout, in two of three cases damaged behind the header, read and compared with the csv module."""
    import topnrank as tnr

    rows, layout = _table(draw), str(draw.choice(["csv", "tsv", ";", "|", "jsonl", "parquet"]))
    wanted: set[tuple[Any, Any, float]] | None = _as_read(rows)
    options: dict[str, Any] = {"user": "user", "item": "item", "rating": "rating"}
    damaged = bool(draw.integers(3))
    if layout in ("jsonl", "parquet"):
        wanted = {(user, item, float(rating)) for user, item, rating in rows}
        path = folder / f"rows.{layout}"
        _write_typed(path, rows)
        if damaged:
            path.write_bytes(_mutated(draw, path.read_bytes()))
            wanted = None
    else:
        separator = {"csv": ",", "tsv": "\t"}.get(layout, layout)
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=separator, lineterminator=str(draw.choice(["\n", "\r\n"])))
        writer.writerows(rows)
        body = _mutated(draw, text.getvalue().encode()) if damaged else text.getvalue().encode()
        content = f"user{separator}item{separator}rating\n".encode() + body
        content = (b"\xef\xbb\xbf" if draw.integers(4) == 0 else b"") + content
        packed = draw.integers(4) == 0
        path = folder / ("rows.csv.gz" if packed else "rows.csv")
        path.write_bytes(gzip.compress(content) if packed else content)
        options |= {"separator": separator, "header": True, "format": "csv"}
        wanted = _by_csv_module(body, separator) if damaged else wanted
    try:
        found = tnr.read(path, **options)
    except tnr.errors.TopNRankError as error:
        return "refused" if damaged or _unreadable(rows) else f"FAILED: refused though right: {error}"
    if wanted is None:
        return "read"
    table = found.to_arrow()
    triples = zip(*(table[name].to_pylist() for name in ("user", "item", "rating")), strict=True)
    return "right" if set(triples) == wanted else f"FAILED: other rows, {layout}, {rows[:3]}"


def _unreadable(rows: list[tuple[str, str, str]]) -> bool:
    """Whether an id is written like a missing value, or like nothing once blanks are gone."""
    from topnrank.data.readers.text import NULLS

    return any(value in NULLS or not value.strip() for row in rows for value in row)


def _by_csv_module(body: bytes, separator: str) -> set[tuple[Any, Any, float]] | None:
    """The rows by Python's reader; None where two readers may differ: quotes, and values it does not know as numbers."""
    if b'"' in body or b"\0" in body:
        return None
    try:
        rows = [tuple(row) for row in csv.reader(io.StringIO(body.decode(), newline=""), delimiter=separator) if row]
        return _as_read([row for row in rows if len(row) == 3 or 1 / 0])  # type: ignore[misc]
    except (ValueError, csv.Error, ZeroDivisionError):
        return None


def _write_typed(path: Path, rows: list[tuple[str, str, str]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {"user": [r[0] for r in rows], "item": [r[1] for r in rows], "rating": [float(r[2]) for r in rows]}
    )
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


# ----------------------------------------------------------------------------------------------------
# Model files.


def damaged_model(draw: np.random.Generator, folder: Path) -> str:
    """A file with changed bits, a zeroed part, a part of another place, or an end cut off: refused, or the same answers."""
    import topnrank as tnr

    name = str(draw.choice(list(model_files())))
    content = bytearray(model_files()[name])
    place, size = int(draw.integers(len(content))), int(draw.integers(1, 600))
    kind = draw.integers(5)
    if kind <= 1:
        for at in draw.integers(0, len(content), int(draw.integers(1, 4))):
            content[at] ^= 1 << int(draw.integers(8))
    elif kind == 2:
        content[place : place + size] = bytes(len(content[place : place + size]))
    elif kind == 3:
        other = int(draw.integers(len(content)))
        content[place : place + size] = content[other : other + size]
    else:
        content = content[:place]
    (folder / "model").write_bytes(content)
    try:
        lists = used(folder / "model")
    except tnr.ModelFileError:
        return "refused"
    return "same answers" if lists.equals(answers(name)) else "FAILED: other answers"


def _odd(draw: np.random.Generator, array: Any) -> Any:
    """A change of an array: a value, its type, its shape, its length."""
    kind = draw.integers(6)
    if kind <= 2 and array.size:
        odd = [
            0,
            1,
            -1,
            2**31 - 1,
            -(2**31),
            2**62,
            -(2**62),
            np.nan,
            np.inf,
            -np.inf,
            1e30,
            array.size,
            array.size + 1,
        ]
        changed = array.copy()
        with np.errstate(all="ignore"):
            changed.reshape(-1)[int(draw.integers(array.size))] = np.array(odd[int(draw.integers(len(odd)))]).astype(
                array.dtype
            )
        return changed
    if kind == 3:
        with np.errstate(all="ignore"):
            return array.astype(draw.choice(["<f4", "<f8", "<i4", "<i8", "<u1", "?"]))
    if kind == 4:
        return array[: int(draw.integers(len(array) + 1))] if array.ndim else array
    shapes = [(-1,), (1, -1), (-1, 1), array.shape[::-1]]
    return np.ascontiguousarray(array).reshape(shapes[int(draw.integers(4))])


def crafted_model(draw: np.random.Generator, folder: Path) -> str:
    """A file with right checksums and odd content: refused, or usable without a crash and with finite scores."""
    import topnrank as tnr
    from topnrank.io.tensors import read_file, write_file

    name = str(draw.choice(list(model_files())))
    (folder / "model").write_bytes(model_files()[name])
    facts, arrays = read_file(folder / "model", "model")
    facts = {key: value for key, value in facts.items() if key not in ("kind", "format")}
    for _ in range(int(draw.integers(1, 3))):
        if draw.integers(4):
            chosen = str(draw.choice(list(arrays)))
            if draw.integers(12) == 0:
                del arrays[chosen]
            else:
                arrays[chosen] = _odd(draw, arrays[chosen])
        else:
            place = facts[str(draw.choice(["info", "parameters"]))]
            odd = [None, -1, 0, 1e300, "x", [], {}, True, 10**40, [1, "a"], {"object": "x"}, {"feedback": {"kind": 3}}]
            place[str(draw.choice([*place, "more"]))] = odd[int(draw.integers(len(odd)))]
    write_file(folder / "model", "model", arrays, facts)
    try:
        with np.errstate(all="ignore"):
            used(folder / "model")
    except tnr.errors.TopNRankError:
        return "refused"
    return "usable"


# ----------------------------------------------------------------------------------------------------
# Writes.


def _commands(folder: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Arguments of each command that writes, and the files that must be old or new afterwards."""
    ratings, model = str(folder / "ratings.csv"), str(folder / "model.safetensors")
    quick = ["--set", "factors=3", "--set", "epochs=3"]
    train = ["train", ratings, "-q", *quick]
    return {
        "train": ([*train, "-o", str(folder / "new.safetensors")], ["new.safetensors"]),
        "checkpoint": (
            [*train, "-o", str(folder / "new.safetensors"), "--checkpoint", str(folder / "run")],
            ["new.safetensors"],
        ),
        "recommend": (["recommend", model, "--all", "-q", "-o", str(folder / "lists.parquet")], ["lists.parquet"]),
        "recommend csv": (["recommend", model, "--all", "-q", "-o", str(folder / "lists.csv")], ["lists.csv"]),
        "compare": (
            [
                "compare",
                ratings,
                "--models",
                "popularity,item-mean",
                "--repeats",
                "1",
                "-q",
                "--folder",
                str(folder / "cells"),
            ],
            [],
        ),
        "tune": (
            ["tune", ratings, "-m", "ease", "--trials", "2", "-q", "--save-params", str(folder / "best.json")],
            ["best.json"],
        ),
    }


_COUNTED = ("open", "fsync", "replace", "chmod", "fchmod")


def _counting(at: int, act: Callable[[], None]) -> tuple[SimpleNamespace, list[int]]:
    """The module os with calls that write counted; the one of number `at` first does `act`."""
    calls = [0]

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            calls[0] += 1
            if calls[0] == at:
                act()
            return function(*arguments, **options)

        return call

    return SimpleNamespace(**{**vars(os), **{name: counted(getattr(os, name)) for name in _COUNTED}}), calls


@contextlib.contextmanager
def _storage(system: Any) -> Iterator[None]:
    from topnrank.io import atomic

    before, atomic.os = atomic.os, system
    try:
        yield
    finally:
        atomic.os = before


def _run(arguments: list[str]) -> tuple[int, str]:
    """Exit code and standard error of a command, in this process."""
    from topnrank.cli.exit_codes import guarded

    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        return guarded(arguments), said.getvalue()


def _prepared(draw: np.random.Generator, folder: Path) -> tuple[list[str], list[str]]:
    rows = zip(data().user_index.tolist(), data().indices.tolist(), data().ratings.tolist(), strict=True)
    (folder / "ratings.csv").write_text("user,item,rating\n" + "".join(f"{u},{i},{r:g}\n" for u, i, r in rows))
    (folder / "model.safetensors").write_bytes(model_files()["popularity"])
    commands = _commands(folder)
    return commands[str(draw.choice(list(commands)))]


def _states(folder: Path, files: list[str]) -> list[bytes | None]:
    return [(folder / name).read_bytes() if (folder / name).exists() else None for name in files]


def _outcome_of_clean_run(arguments: list[str], folder: Path, files: list[str]) -> list[bytes | None]:
    """What the files are after the command, run in a copy of the folder."""
    with tempfile.TemporaryDirectory(prefix="torture-clean-") as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        code, said = _run([argument.replace(str(folder), copy) for argument in arguments])
        if code:
            raise AssertionError(said)
        return _states(Path(copy), files)


def failing_write(draw: np.random.Generator, folder: Path) -> str:
    """A call of the storage layer fails, or files may not grow: one sentence, files old or new, nothing left, then right."""
    arguments, files = _prepared(draw, folder)
    wanted = _outcome_of_clean_run(arguments, folder, files)
    old = bool(draw.integers(2))
    for name in files if old else ():
        (folder / name).write_bytes(b"old")
    before = _states(folder, files)
    if draw.integers(3):
        code = int(draw.choice([errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES, errno.EROFS]))
        at = int(draw.integers(1, 13))

        def fail() -> None:
            raise OSError(code, os.strerror(code))

        system, calls = _counting(at, fail)
        with _storage(system):
            code, said = _run(arguments)
        reached = calls[0] >= at
    else:
        code, said = _with_small_files(arguments, int(draw.integers(0, 3000)))
        reached = code != 0
    after = _states(folder, files)
    left = [file.name for file in folder.rglob(".*") if file.name.endswith(".part")]
    if left:
        return f"FAILED: {left} stayed"
    if any(now not in (was, new) for now, was, new in zip(after, before, wanted, strict=True)):
        return f"FAILED: {arguments[0]}: a torn file ({said})"
    if code and (code not in (1, 2) or said.strip().count("\n") or "unexpected" in said):
        return f"FAILED: {arguments[0]}: exit code {code}: {said}"
    again, said = _run(arguments)
    if again or _states(folder, files) != wanted:
        return f"FAILED: {arguments[0]}: not right afterwards: {said}"
    return ("one sentence" if code else "went on") if reached else "not reached"


def _with_small_files(arguments: list[str], size: int) -> tuple[int, str]:
    """The command while no file may grow beyond `size` bytes, as on a full disk; in a child, for limits last."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        code, said = _run(arguments)
        os.write(write, json.dumps([code, said]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    code, text = json.loads(said) if said else (-1, "the child died")
    return code, text


def killed_write(draw: np.random.Generator, folder: Path) -> str:
    """The process is killed at a call of the storage layer; the same command then ends as if nothing had been."""
    arguments, files = _prepared(draw, folder)
    wanted = _outcome_of_clean_run(arguments, folder, files)
    system, _ = _counting(int(draw.integers(1, 16)), lambda: os.kill(os.getpid(), signal.SIGKILL))
    child = os.fork()
    if child == 0:
        with _storage(system):
            _run(arguments)
        os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    if any(now not in (None, new) for now, new in zip(_states(folder, files), wanted, strict=True)):
        return f"FAILED: {arguments[0]}: a torn file"
    code, said = _run(arguments)
    if code or _states(folder, files) != wanted:
        return f"FAILED: {arguments[0]}: not the same afterwards: {said}"
    left = [file.name for name in files for file in folder.glob(f".{name}.*.part")]
    if left:
        return f"FAILED: {left} stayed"
    return "same bits" if killed else "not reached"


# ----------------------------------------------------------------------------------------------------
# Threads and forks.


REQUESTS = 1000
"""Requests of one case."""


def served(draw: np.random.Generator, folder: Path) -> str:
    """A thousand requests from eight threads while the file is replaced and children are forked: each answer is right."""
    import topnrank as tnr

    names, path = list(model_files()), folder / "served"
    path.write_bytes(model_files()[names[0]])
    done, wrong, users = threading.Event(), [], data().users.ids.tolist()
    tables = {name: answers(name).to_pylist() for name in names}
    known = {name: {user: [r for r in rows if r["user"] == user] for user in users} for name, rows in tables.items()}

    def swap() -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            (folder / "next").write_bytes(model_files()[names[turn % len(names)]])
            os.replace(folder / "next", path)

    def ask(number: int) -> None:
        model = tnr.load(path) if number % 10 == 0 else models()[names[number % len(names)]]
        kind = next(
            name for name, one in models().items() if one.name == model.name and one.get_params() == model.get_params()
        )
        user = users[number % len(users)]
        rows = model.recommend(n=5).to_pylist() if number % 25 == 0 else model.recommend([user], n=5).to_pylist()
        if rows != (tables[kind] if number % 25 == 0 else known[kind][user]):
            wrong.append((kind, number))

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            pending = [pool.submit(ask, int(number)) for number in draw.integers(0, 10**6, REQUESTS)]
            for _ in range(3):
                _check_child(tables)
            for one in pending:
                one.result()
    finally:
        done.set()
        swapping.join()
    return f"FAILED: wrong answers {wrong[:3]}" if wrong else "right"


def _check_child(tables: dict[str, list[dict[str, Any]]]) -> None:
    child = os.fork()
    if child == 0:
        try:
            right = all(models()[name].recommend(n=5).to_pylist() == rows for name, rows in tables.items())
        except BaseException:
            right = False
        os._exit(0 if right else 3)
    status = os.waitpid(child, 0)[1]
    if status:
        raise AssertionError(f"a forked child ended with {status}")


CAMPAIGNS = {
    "input": Campaign("fuzzed input (CSV, TSV, other separators, JSON lines, Parquet; gzip)", 12000, fuzzed_input),
    "damage": Campaign("damaged model files", 12000, damaged_model),
    "crafted": Campaign("crafted model files, with right checksums", 4000, crafted_model),
    "writes": Campaign("faults at writes: train, checkpoint, recommend, compare, tune", 100, failing_write),
    "kills": Campaign("kills at writes, then the same command again", 100, killed_write),
    "serving": Campaign(f"{REQUESTS:,} requests each from 8 threads, over swaps and forks", 30, served),
}

if __name__ == "__main__":
    run_batch(sys.argv[1], *map(int, sys.argv[2:5]))
