"""Faults around a command: nowhere to write, no one to read, damaged small files."""

import errno
import os
import stat
import subprocess
import sys

import pytest

from support.cli_runner import ratings_text
from topnrank.cli.exit_codes import guarded
from topnrank.cli.output import list_table


@pytest.fixture
def folder(tmp_path, run):
    (tmp_path / "ratings.csv").write_text(ratings_text())
    command = ("train", tmp_path / "ratings.csv", "-o", tmp_path / "m.safetensors", "--model", "popularity", "-q")
    assert run(*command).code == 0
    return tmp_path


def test_info_verifies_on_demand(folder, run, monkeypatch):
    monkeypatch.setattr("topnrank.io.tensors.VERIFIED_BYTES", 0)
    content = bytearray((folder / "m.safetensors").read_bytes())
    content[content.index(b"u1")] ^= 1  # an id: in a large file nothing else can tell
    (folder / "m.safetensors").write_bytes(content)
    run("info", folder / "m.safetensors", "--verify").assert_refused("m.safetensors", "by its checksum")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES])
def test_a_disk_that_fails_under_way_is_exit_code_1_and_a_wrong_path_2(folder, run, monkeypatch, code):
    def failing(*_):
        raise OSError(code, os.strerror(code))

    before, command = (folder / "m.safetensors").read_bytes(), ("train", folder / "ratings.csv", "-m", "random", "-q")
    monkeypatch.setattr("topnrank.io.atomic.os.fsync", failing)
    done = run(*command, "-o", folder / "m.safetensors")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert (folder / "m.safetensors").read_bytes() == before
    run(*command, "-o", folder / "nowhere" / "m.safetensors").assert_refused("create its folder")


def test_devices_are_not_replaced(folder, run):
    run("train", folder / "ratings.csv", "-m", "popularity", "-o", "/dev/null").assert_refused(
        "/dev/null", "is a device"
    )
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    os.mkfifo(folder / "pipe.csv")
    run("recommend", folder / "m.safetensors", "--all", "-o", folder / "pipe.csv").assert_refused("pipe.csv", "a pipe")


@pytest.mark.process
def test_output_that_is_closed_is_no_error(folder):
    command = [sys.executable, "-m", "topnrank", "train", "ratings.csv", "-m", "popularity", "-o", "again", "-q"]
    shell = " ".join(command) + " >&-"
    done = subprocess.run(shell, shell=True, cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "again").exists()


@pytest.mark.parametrize(
    "content",
    ["item,title\ri1,One\ri2,Two\r", "item,title\ni1," + "x" * 200_000 + "\n", 'item,title\ni1,"a\nb"\n'],
    ids=["returns", "long", "lines"],
)
def test_titles_with_long_fields_and_other_line_ends(folder, run, content):
    (folder / "titles.csv").write_bytes(content.encode())
    done = run("recommend", folder / "m.safetensors", "--user", "u1", "--titles", folder / "titles.csv", "--json")
    assert done.code == 0, done.err


def test_titles_that_are_not_utf8_in_parquet(folder, run):
    import pyarrow as pa
    import pyarrow.parquet as pq

    offsets = pa.array([0, 4], pa.int32()).buffers()[1]
    bad = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"caf\xe9")])
    pq.write_table(pa.table({"item": ["i1"], "title": bad}), folder / "titles.parquet")
    done = run("recommend", folder / "m.safetensors", "--user", "u1", "--titles", folder / "titles.parquet")
    done.assert_refused("titles.parquet", "not UTF-8")


@pytest.mark.parametrize("value", ["1" * 400, "[" * 100_000 + "]" * 100_000])
def test_settings_beyond_reason(folder, run, value):
    command = ("train", folder / "ratings.csv", "-o", folder / "x", "--set", f"factors={value}")
    assert run(*command).code == 2


def test_control_characters_of_a_title_do_not_reach_the_terminal():
    from rich.console import Console

    console = Console(width=80)
    with console.capture() as capture:
        console.print(list_table(["item", "title"], [["1", "\x1b[2J\x1b]0;pwned\x07é\u202e"]]))
    assert "\\x1b[2J" in capture.get()
    assert not set("\x1b\x07\u202e") & set(capture.get())


def test_the_end_of_a_file_somewhere_inside_is_no_interrupt(monkeypatch, capsys):
    import topnrank.cli.app

    def broken(*_, **__):
        raise EOFError("Ran out of input")

    monkeypatch.setattr("topnrank.models.persistence.read_file", broken)
    assert topnrank.cli.app is not None
    assert guarded(["info", "model.safetensors"]) == 1
    assert capsys.readouterr().err.strip().startswith("topnrank: unexpected error: EOFError: Ran out")
