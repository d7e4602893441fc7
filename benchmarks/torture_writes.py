"""Every write of every command meets every fault, and a kill before it, in the middle of it and after it.

`torture_disk.c` stands before the system's calls, so that writes of Arrow, SQLite and safetensors count like ours. Each
command runs once without a fault: its calls are counted, and what it leaves is what must be there in the end. A case is one
call of one command and one fault; it runs in a fork of the process that has everything loaded.
"""

import ctypes
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torture_models import data
from torture_server import SERVER, acknowledged, serve, stored

FAULTS = {"F": "owstm", "Q": "owstm", "I": "owstrlmc", "R": "ormlcu", "P": "ormlcu"}
"""Which calls each fault meets, by the letters of torture_disk.c; a file that cannot be unlinked stays, whatever we do."""
KILLS = {"B": "owstrlmcu", "M": "w", "A": "owstrlmcu"}
SECONDS = 600
"""A command that takes longer hangs."""


@dataclass(frozen=True)
class Command:
    """A command that writes; `{}` in its arguments is the folder."""

    arguments: Sequence[str]
    first: Sequence[Sequence[str]] = ()
    """Commands that are run before, without faults: they make the files that are written over, or gone on with"""
    forget: int = 0
    """So many cells of a comparison that are then removed, to be computed again"""


_TRAIN = ["train", "{}/ratings.csv", "-q", "--set", "task=rated", "--set", "factors=3", "--set", "epochs=3"]
_SAVE = ["-o", "{}/new.safetensors"]
_LISTS = ["recommend", "{}/model.safetensors", "--all", "-q", "-o"]
_COMPARE = ["compare", "{}/ratings.csv", "--models", "popularity", "--repeats", "1", "-q", "--folder", "{}/cells"]
_TUNE = ["tune", "{}/ratings.csv", "-m", "ease", "-q", "--study", "{}/study.db", "--save-params", "{}/best.json"]
_TABLE = ["reproduce", "table4", "--data", "{}/ratings.csv", "--repeats", "1", "-q", "--folder", "{}/cells"]
_EVENTS = [SERVER, "{}/model.safetensors", "{}/events.db"]
_REFRESH = ["refresh", "{}/new.safetensors", "--events", "{}/events.db"]
COMMANDS = {
    "train": Command([*_TRAIN, *_SAVE, "--holdout", "0.3"]),
    "train over a file": Command(
        [*_TRAIN, *_SAVE], first=[["train", "{}/ratings.csv", "-q", "--set", "seed=9", "-m", "random", *_SAVE]]
    ),
    "train with a checkpoint": Command([*_TRAIN, *_SAVE, "--checkpoint", "{}/run"]),
    "recommend --all to Parquet": Command([*_LISTS, "{}/lists.parquet"]),
    "recommend --all to CSV": Command([*_LISTS, "{}/lists.csv"]),
    "recommend --all over a file": Command([*_LISTS, "{}/lists.jsonl"], first=[[*_LISTS, "{}/lists.jsonl", "-n", "1"]]),
    "evaluate": Command(["evaluate", "{}/model.safetensors", "{}/ratings.csv", "-q", "--per-user", "{}/users.csv"]),
    "data fetch": Command(["data", "fetch", "ml-latest-small", "-q"]),
    "data describe": Command(["data", "describe", "ml-latest-small", "-q", "--plot", "{}/plot.svg"]),
    "compare": Command([*_COMPARE, "--markdown", "{}/r.md", "--csv", "{}/r.csv", "--latex", "{}/r.tex"]),
    "compare, the page": Command([*_COMPARE, "--report", "{}/r.html"], first=[_COMPARE]),
    "reproduce": Command([*_TABLE, "--markdown", "{}/table.md"], first=[_TABLE], forget=2),
    "tune, going on": Command([*_TUNE, "--trials", "2"], first=[[*_TUNE, "--trials", "1"]]),
    "tune, a new study": Command([*_TUNE, "--trials", "1"]),
    "similar": Command(["similar", "{}/new.safetensors", "3", "-q", "-o", "{}/similar.csv"], first=[[*_TRAIN, *_SAVE]]),
    "update": Command(
        ["update", "{}/new.safetensors", "{}/more.csv", "-q", "-o", "{}/updated.safetensors"], first=[[*_TRAIN, *_SAVE]]
    ),
    "serve, requests that write": Command(_EVENTS),
    "events export": Command(["events", "export", "{}/events.db", "-q", "-o", "{}/events.parquet"], first=[_EVENTS]),
    "refresh": Command([*_REFRESH, "-q"], first=[[*_TRAIN, *_SAVE], _EVENTS]),
    "refresh, trained anew": Command(
        [*_REFRESH, "-q", "--data", "{}/ratings.csv", "-o", "{}/anew.safetensors"], first=[[*_TRAIN, *_SAVE], _EVENTS]
    ),
}


@dataclass(frozen=True)
class Case:
    """One fault, or one kill, at one call of a command."""

    command: str
    at: int
    how: str

    def __str__(self) -> str:
        return f"{self.command}, call {self.at} ({log_of(self.command)[self.at - 1]}), {self.how}"


def faults() -> list[Case]:
    """All of them: each call of each command with each of the faults that it can meet."""
    return [case for name in COMMANDS for case in _of(name, FAULTS)]


def kills() -> list[Case]:
    """The same for kills."""
    return [case for name in COMMANDS for case in _of(name, KILLS)]


def _of(name: str, meets: dict[str, str]) -> list[Case]:
    calls = enumerate(log_of(name), start=1)
    return [Case(name, at, how) for at, kind in calls for how in meets if kind in meets[how]]


# ----------------------------------------------------------------------------------------------------
# The disk.


@cache
def disk() -> Any:
    """The library of torture_disk.c, which this process was started with."""
    library = ctypes.CDLL(os.environ["LD_PRELOAD"])
    library.disk_log.restype = ctypes.c_char_p
    library.disk_begin.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_char]
    return library


def build(folder: Path) -> Path:
    """Compiles it; a RuntimeError where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform != "linux":
        raise RuntimeError("faults at writes need Linux and a C compiler (cc), which is not here")
    source, target = Path(__file__).with_name("torture_disk.c"), folder / "torture_disk.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", target, source, "-ldl"], check=True)
    return target


# ----------------------------------------------------------------------------------------------------
# Running a command.


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    """Negative: by this signal"""
    said: str
    log: str
    """The calls that were counted"""


def _run(command: Sequence[str], folder: Path, at: int = 0, how: str = "-") -> Ended:
    """The command in this process."""
    from topnrank.cli.exit_codes import guarded

    os.environ["TOPNRANK_CACHE"] = str(folder / "cache")  # kernels were loaded before, from the usual one
    said, arguments = io.StringIO(), [part.replace("{}", str(folder)) for part in command]
    disk().disk_begin(str(folder).encode(), at, how.encode())
    try:
        with redirect_stderr(said), redirect_stdout(io.StringIO()):
            code = serve(*arguments[1:]) if arguments[0] == SERVER else guarded(arguments)
    finally:
        log = disk().disk_log().decode()
        disk().disk_end()
    return Ended(code, said.getvalue(), log)


def _run_forked(command: Sequence[str], folder: Path, at: int = 0, how: str = "-") -> Ended:
    """The command in a child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        ended = _run(command, folder, at, how)
        os.write(write, json.dumps(vars(ended)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    status = os.waitpid(child, 0)[1]
    return Ended(**json.loads(said)) if said else Ended(-os.WTERMSIG(status), "", "")


def prepare(name: str, folder: Path) -> None:
    """What the command reads, and the files that it writes over or goes on with."""
    for file, content in _prepared(name).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)


@cache
def _prepared(name: str) -> dict[str, bytes]:
    """These files, by their paths."""
    command = COMMANDS[name]
    with tempfile.TemporaryDirectory(prefix="torture-", dir=memory()) as made:
        folder = workplace(Path(made))
        for file, content in _inputs().items():
            (folder / file).write_bytes(content)
        for first in command.first:
            ended = _run_forked(first, folder)
            assert ended.code == 0, ended.said
        for file in sorted(folder.glob("cells/cell-*"))[: command.forget]:
            file.unlink()
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def workplace(folder: Path) -> Path:
    """A new folder for commands; what they have told others is written beside it."""
    (folder / "work").mkdir()
    return folder / "work"


def memory() -> str | None:
    """A folder in memory, where there is one: what is tried is not the disk itself."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@cache
def _inputs() -> dict[str, bytes]:
    import topnrank as tnr

    rows = zip(data().user_index.tolist(), data().indices.tolist(), data().ratings.tolist(), strict=True)
    text = "user,item,rating\n" + "".join(f"{user},{item},{rating:g}\n" for user, item, rating in rows)
    with tempfile.TemporaryDirectory() as folder:
        tnr.Popularity().fit(data()).save(Path(folder, "model"))
        more = "user,item,rating\n1,2,5\n1,3,4\n77,2,4\n77,5,3\n"
        model = Path(folder, "model").read_bytes()
        return {"ratings.csv": text.encode(), "more.csv": more.encode(), "model.safetensors": model}


@cache
def _mirror() -> str:
    """The address of a server with one data set in the form of its owners, and its checksum."""
    text = "userId,movieId,rating,timestamp\n" + "".join(f"{u},{i},4,{u + i}\n" for u in range(9) for i in range(u, 12))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ml-latest-small/ratings.csv", text)
        archive.writestr("ml-latest-small/movies.csv", "movieId,title,genres\n1,One,None\n")
    content = packed.getvalue()
    files = {".zip": content, ".md5": hashlib.md5(content).hexdigest().encode()}

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = files[self.path[-4:]]
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


@dataclass(frozen=True)
class Clean:
    """A command that met no fault."""

    log: str
    before: dict[str, Any]
    """What was there before it: by file, `content_of`"""
    after: dict[str, Any]


@cache
def clean(name: str) -> Clean:
    """The command without a fault, in this process, so that forks have loaded what it needs."""
    from topnrank.training.checkpoint import Checkpoint

    os.environ["TOPNRANK_MIRROR"] = _mirror()
    Checkpoint.__init__.__kwdefaults__["seconds"] = 0.0  # a checkpoint after each round
    for run in (
        _run,
        _run_forked,
    ):  # the first time in this process, where libraries write what they keep for themselves
        with tempfile.TemporaryDirectory(prefix="torture-", dir=memory()) as made:
            folder = workplace(Path(made))
            prepare(name, folder)
            before = contents(folder)
            ended = run(COMMANDS[name].arguments, folder)
            assert ended.code == 0, ended.said
            after = contents(folder)
    return Clean(ended.log, before, after)


def log_of(name: str) -> str:
    """The calls of the command, by the letters of torture_disk.c."""
    return clean(name).log


# ----------------------------------------------------------------------------------------------------
# What is in the folder.


_OF_SQLITE = ("-journal", "-wal", "-shm")
"""Files beside a database, which the next who opens it takes in or removes."""


class TornError(Exception):
    """A file is neither the old one nor a whole new one."""


def contents(folder: Path) -> dict[str, Any]:
    """What each file says, without seconds and dates; locks and inputs left out."""
    studies = {
        file.name: content_of(file, folder) for file in folder.glob("*.db")
    }  # SQLite first rolls back what was cut off
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.endswith(".lock")]
    rest = {str(file.relative_to(folder)): file for file in files if file.name not in {*_inputs(), *studies}}
    return studies | {name: content_of(file, folder) for name, file in rest.items()}


def content_of(file: Path, folder: Path) -> Any:
    """A value that is equal for files that say the same; TornError where a file is damaged."""
    from topnrank.errors import ModelFileError
    from topnrank.io.tensors import read_file

    try:
        if file.name == "comparison.safetensors":
            facts, arrays = read_file(file, "comparison")
            return facts["keys"], _digest(arrays)
        if file.name.startswith("cell-"):
            facts, arrays = read_file(file, "comparison cell")
            return facts["model"], facts["error"], _digest(arrays)
        if file.name == "events.db":
            return sorted(stored(file))
        if file.suffix == ".db":
            return _trials(file)
        if file.suffix in (".html", ".md", ".tex") or file.name == "r.csv":
            text = re.sub(r"[-+]?\d[\d.,e+-]*", "0", file.read_text().replace(str(folder), ""))  # seconds and dates
            return re.sub(r"[\s-]+", " ", text)
        return file.read_bytes()
    except (ModelFileError, sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise TornError(f"{file.name}: {error}") from error


def _digest(arrays: dict[str, Any]) -> str:
    digest = hashlib.blake2b()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _trials(file: Path) -> list[Any]:
    """The finished trials of a study: their values and settings."""
    database = sqlite3.connect(file)
    try:
        if database.execute("pragma integrity_check").fetchall() != [("ok",)]:
            raise TornError(f"{file.name}: SQLite finds it damaged")
        tables = {name for (name,) in database.execute("select name from sqlite_master")}
        if not {"trial_values", "trial_params"} <= tables:
            return []
        query = (
            "select value, param_name, param_value from trials join trial_values using (trial_id) "
            "join trial_params using (trial_id) where state = 'COMPLETE'"
        )
        return sorted(database.execute(query).fetchall())
    finally:
        database.close()


# ----------------------------------------------------------------------------------------------------
# Cases.


def failing_write(case: Case, folder: Path) -> str:
    """A fault: one sentence and exit code 1, files old or new, nothing else left; the same command is right afterwards."""
    command, folder = COMMANDS[case.command], workplace(folder)
    prepare(case.command, folder)
    ended = _run_forked(command.arguments, folder, case.at, case.how)
    if len(ended.log) < case.at:
        return "not reached"
    wrong = _why_wrong(case, ended) or _why_torn(case, folder) or _why_not_right_afterwards(case, folder)
    if wrong:
        return f"FAILED: {case}: {wrong}"
    return "one sentence" if ended.code else "went on"


def killed_write(case: Case, folder: Path) -> str:
    """A kill: files are old or new; the same command then ends as if nothing had been, and nothing is left."""
    command, folder = COMMANDS[case.command], workplace(folder)
    prepare(case.command, folder)
    ended = _run_forked(command.arguments, folder, case.at, case.how)
    if ended.code != -signal.SIGKILL:
        return "not reached"
    wrong = _why_torn(case, folder) or _why_not_right_afterwards(case, folder)
    return f"FAILED: {case}: {wrong}" if wrong else "same bits"


def _why_wrong(case: Case, ended: Ended) -> str | None:
    if ended.code == 0:
        return None
    is_sentence = ended.said.strip().count("\n") == 0 and ended.said.startswith("topnrank: ")
    allowed = (1, 2) if case.how in "RP" else (1,)  # without permission before the work begins: 2, as for a wrong path
    if ended.code not in allowed or not is_sentence or "unexpected" in ended.said:
        return f"exit code {ended.code}: {ended.said}"
    return None


def _why_torn(case: Case, folder: Path) -> str | None:
    """Files must be what they were or what they shall be; what is written step by step must be whole."""
    before, after = clean(case.command).before, clean(case.command).after
    try:
        found = contents(folder)
    except TornError as error:
        return f"torn: {error}"
    lost = acknowledged(folder) - stored(folder / "events.db") if acknowledged(folder) else set()
    if lost:
        return f"lost: acknowledged events {sorted(lost)}"
    for name, content in found.items():
        grows = name.endswith(".db") or Path(name).name == "checkpoint.safetensors"
        if name in after and not grows and content not in (before.get(name), after[name]):
            return f"torn: {name}"
        if name not in after and not name.endswith(_OF_SQLITE) and case.how in "FQI":
            return f"{name} stayed"
    return f"lost: {sorted(before.keys() - found.keys())}" if before.keys() - found.keys() else None


def _why_not_right_afterwards(case: Case, folder: Path) -> str | None:
    again = _run_forked(COMMANDS[case.command].arguments, folder)
    if again.code:
        return f"afterwards exit code {again.code}: {again.said}"
    found, wanted = contents(folder), clean(case.command).after
    differ = [name for name in sorted(found.keys() | wanted.keys()) if found.get(name) != wanted.get(name)]
    return f"afterwards other files: {differ}" if differ else None
