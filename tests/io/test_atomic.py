"""Files are written whole or not at all; nothing else is harmed, and nothing is left."""

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from topnrank.errors import OutputError
from topnrank.io import atomic
from topnrank.io.atomic import write_atomically, write_text


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        OutputError, match=r"pipe: is a device, a pipe or a socket, not a file; give the name of a file"
    ):
        write_text(tmp_path / "pipe", "text")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_device_stays_a_device():
    with pytest.raises(OutputError, match="is a device"):
        write_text("/dev/null", "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_link_is_followed(tmp_path):
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("old")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "old").read_text() == "new"
    (tmp_path / "dangling").symlink_to(tmp_path / "made")
    write_text(tmp_path / "dangling", "made")
    assert (tmp_path / "made").read_text() == "made"


@pytest.mark.parametrize("private", [0o600, 0o640, 0o664])
def test_a_file_written_again_keeps_its_permissions(tmp_path, private):
    write_text(tmp_path / "file", "old")
    (tmp_path / "file").chmod(private)
    write_text(tmp_path / "file", "new")
    assert mode(tmp_path / "file") == private


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root can give a file away")
def test_a_file_written_again_keeps_its_owner(tmp_path):
    write_text(tmp_path / "file", "old")
    os.chown(tmp_path / "file", 65534, 65534)
    write_text(tmp_path / "file", "new")
    assert (tmp_path / "file").stat().st_uid == 65534


def test_the_file_is_private_while_it_is_written(tmp_path):
    seen = []

    def write(temporary):
        temporary.write_text("secret")
        seen.append((mode(temporary), temporary.name))

    write_atomically(tmp_path / "file", write)
    write_atomically(tmp_path / "file", write)
    assert [found for found, _ in seen] == [0o600, 0o600]
    assert seen[0][1] != seen[1][1]


def test_the_umask_is_never_touched(tmp_path, monkeypatch):
    """While it is 0 for a moment, another thread's file is open to all; two threads can leave it 0 for good."""
    before = os.umask(0o027)
    monkeypatch.setattr(os, "umask", None)
    threads = [threading.Thread(target=lambda n=n: write_text(tmp_path / str(n), "x")) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monkeypatch.undo()
    assert os.umask(before) == 0o027
    assert {mode(file) for file in tmp_path.iterdir()} == {0o640}


def test_too_long_a_name_is_one_sentence(tmp_path):
    write_text(tmp_path / ("n" * 255), "x")
    with pytest.raises(OutputError, match="cannot be written"):
        write_text(tmp_path / ("n" * 256), "x")
    with pytest.raises(OutputError, match="no name can hold a NUL character"):
        write_text(tmp_path / "no\0name", "x")


KILLED = """
import os, signal, sys
from topnrank.io.atomic import write_atomically
def write(temporary):
    temporary.write_text("half of it")
    os.kill(os.getpid(), signal.SIGKILL)
write_atomically(sys.argv[1], write)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    write_text(tmp_path / "file", "old")
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "file")], check=False)
        assert len(os.listdir(tmp_path)) == 2
    (tmp_path / ".file.mine.part").write_text("of the user")
    write_text(tmp_path / "file", "new")
    assert sorted(os.listdir(tmp_path)) == [".file.mine.part", "file"]
    assert (tmp_path / "file").read_text() == "new"


def test_two_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    def outer(temporary):
        temporary.write_text("outer")
        write_text(tmp_path / "file", "inner")

    write_atomically(tmp_path / "file", outer)
    assert (tmp_path / "file").read_text() == "outer"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("call", ["open", "fsync", "replace", "chmod", "write"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES, errno.EROFS])
def test_every_call_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call, code):
    write_text(tmp_path / "file", "old")

    def failing(*_, **__):
        raise OSError(code, os.strerror(code))

    def write(temporary):
        temporary.write_text("half")
        if call == "write":
            failing()

    if call != "write":
        monkeypatch.setattr(atomic.os, call, failing)
    with pytest.raises(OutputError) as error:
        write_atomically(tmp_path / "file", write)
    monkeypatch.undo()
    assert "\n" not in str(error.value)
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_an_interrupt_at_any_moment_leaves_nothing(tmp_path, monkeypatch):
    """Also one between the making of the temporary file and the next line."""
    opened = os.open

    def interrupted(*arguments, **options):
        os.close(opened(*arguments, **options))
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic.os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(Path(tmp_path, "file"), "x")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []
