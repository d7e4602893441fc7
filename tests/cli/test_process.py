"""The real program: exit codes, pipes, signals, full disks."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.cli_runner import Run, command_line
from topnrank.cli import main
from topnrank.errors import DivergenceError

BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""As users have it: the last lines are written when the program ends."""

posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits are those of POSIX")


def test_exit_codes(ratings: Path, tmp_path: Path, run_process: Run) -> None:
    fine = run_process("models", "--json")
    assert (fine.code, fine.err) == (0, "")
    assert "top-n-rank" in fine.json["models"]
    run_process("info", tmp_path / "none.csv").assert_refused("none.csv", "no such file")
    diverged = run_process(
        *("train", ratings, "-o", tmp_path / "m.safetensors", "--set", "learning_rate=1e30", "--set", "factors=2", "-q")
    )
    assert (diverged.code, diverged.out) == (1, "")
    assert diverged.err.startswith("topnrank: TopNRank: training diverged in iteration 1")
    assert "learning_rate=1e+30" in diverged.err
    assert not list(tmp_path.iterdir())


def test_installed_program_has_the_same_entry() -> None:
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="console_scripts", name="topnrank")
    assert entry.load() is main


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from topnrank.cli import main; main(['--help']);"
        "commands = [name for name in sys.modules if name.startswith('topnrank.cli.commands')];"
        "main(['train', '--help']);"
        "heavy = {'numpy', 'numba', 'pyarrow', 'safetensors'} & set(sys.modules);"
        "sys.exit(' '.join([*commands, *heavy]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


def test_unexpected_errors_ask_for_a_report(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ratings: Path
) -> None:
    from topnrank.data.readers import read

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("a bolt\nis loose")

    monkeypatch.setattr(read, "read_rows", fails)
    monkeypatch.delenv("TOPNRANK_DEBUG", raising=False)
    outcome = run("info", ratings)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == (
        "topnrank: unexpected error: RuntimeError: a bolt is loose; "
        "please report it (TOPNRANK_DEBUG=1 shows the traceback)\n"
    )
    monkeypatch.setenv("TOPNRANK_DEBUG", "1")
    assert "Traceback" in run("info", ratings).err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory"),
        (DivergenceError("it diverged"), 1, "it diverged"),
        (PermissionError(13, "Permission denied", "a.csv"), 1, "a.csv"),
    ],
)
def test_other_ends(error: BaseException, code: int, words: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from topnrank.data.readers import read

    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(read, "read_rows", fails)
    outcome = run("info", "a.csv")
    assert (outcome.code, outcome.out) == (code, "")
    line = outcome.err.strip()  # some versions of Click end the line of the ^C first
    assert line.startswith("topnrank: ")
    assert words in line
    assert "\n" not in line


@posix
def test_ctrl_c_leaves_no_broken_file(ratings: Path, tmp_path: Path) -> None:
    command = ("train", ratings, "-o", tmp_path / "m.safetensors", "--checkpoint", tmp_path / "run")
    endless = ("--set", "epochs=100000000", "--set", "factors=2", "--threads", "1")
    process = subprocess.Popen(
        command_line([*command, *endless]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )
    checkpoint = tmp_path / "run" / "checkpoint.safetensors"
    try:
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    assert err.endswith("\ntopnrank: interrupted\n")
    assert "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert [path.name for path in checkpoint.parent.iterdir()] == [checkpoint.name]


@posix
def test_a_full_disk_leaves_the_old_file(ratings: Path, tmp_path: Path) -> None:
    (tmp_path / "m.safetensors").write_bytes(b"old")
    # A limit on the size of files fails in the same place as a full disk, and needs no rights to set.
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512));"
        "from topnrank.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["train", str(ratings), "-o", str(tmp_path / "m.safetensors"), "--model", "popularity"]
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, *arguments], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("topnrank: ")
    assert "m.safetensors: cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("m.safetensors", b"old")]


def run_into(stdout: Any, arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    command, errors = command_line(arguments), subprocess.PIPE
    return subprocess.run(command, stdout=stdout, stderr=errors, text=True, env=BUFFERED, timeout=600, check=False)


@posix
@pytest.mark.parametrize("arguments", [("models",), ("models", "--json"), ("--help",)])
def test_a_reader_that_goes_away(arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run_into(writing, arguments)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_standard_output() -> None:
    with Path("/dev/full").open("w") as full:
        done = run_into(full, ["models", "--json"])
    assert done.returncode == 1
    assert done.stderr.startswith("topnrank: the operating system refused")
    assert done.stderr.count("\n") == 1


def test_titles_that_the_terminal_cannot_show(tmp_path: Path, model_file: Path, run_process: Run) -> None:
    (tmp_path / "titles.csv").write_text("item,title\n" + "".join(f"i{k},Amélie {k}\n" for k in range(10)), "utf-8")
    command = ("recommend", model_file, "--user", "u1", "--titles", tmp_path / "titles.csv")
    shown = run_process(*command, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (shown.code, shown.err) == (0, "")
    assert "Am\\xe9lie" in shown.out
