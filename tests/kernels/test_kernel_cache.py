"""The cache of compiled kernels: damage is noticed, and folders that others can write are not read."""

import os
import stat
import subprocess
import sys

import pytest

from support.two_kernels import TWO_KERNELS

SCRIPT = f"""
{TWO_KERNELS}
print(outer(np.float64(2)), *outer._cache_hits.values())
"""


@pytest.fixture
def script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)

    def run(*, umask=0o022):
        done = subprocess.run(
            [sys.executable, str(tmp_path / "script.py")],
            env=os.environ | {"TOPNRANK_CACHE": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            umask=umask,
        )
        assert done.returncode == 0, done.stderr
        answer, *hits = done.stdout.split()
        assert answer == "9.0"
        return bool(hits), done.stderr

    return run


def files(tmp_path, ending):
    return sorted((tmp_path / "cache").rglob(f"script.outer-*{ending}"))


def test_the_second_process_reads_what_the_first_compiled(script):
    assert script() == (False, "")
    assert script() == (True, "")


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:40],
        lambda content: content[:-1],
        lambda content: content[:100] + bytes([content[100] ^ 4]) + content[101:],
        lambda content: bytes(len(content)),
    ],
    ids=["empty", "head", "cut", "bit", "zeros"],
)
def test_a_damaged_file_is_named_and_made_again(script, tmp_path, ending, damage):
    script()
    (file,) = files(tmp_path, ending)
    file.write_bytes(damage(file.read_bytes()))
    hit, said = script()
    assert not hit
    assert said == f"topnrank: {file} is damaged; it is removed, and the kernel is compiled anew\n"
    assert script() == (True, "")


def test_what_a_killed_process_left_is_removed(script, tmp_path):
    script()
    (index,) = files(tmp_path, ".nbi")
    left = index.with_name(f"{index.name}.tmp.0123456789abcdef")
    left.write_bytes(b"half")
    index.unlink()
    script()
    assert not left.exists()


def test_the_folder_is_private_whatever_the_umask(script, tmp_path):
    script(umask=0o000)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "cache" / "kernels").stat().st_mode) == 0o700
    assert script() == (True, "")


@pytest.mark.parametrize("inside", ["", "kernels"])
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(script, tmp_path, inside, mode):
    """What lies there was perhaps put there by somebody else, and would be run."""
    script()
    folder = tmp_path / "cache" / inside
    folder.chmod(mode)
    hit, said = script()
    assert not hit
    assert said.startswith(f"topnrank: {folder} can be written by others, so compiled kernels are not kept there")
    assert "TOPNRANK_CACHE" in said


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(script, tmp_path):
    script()
    os.chown(tmp_path / "cache" / "kernels", 65534, 65534)
    hit, said = script()
    assert not hit
    assert "belongs to another user" in said


def test_a_disk_that_is_full_costs_time_only(script, tmp_path):
    """As root, permissions do not stop anybody: a file stands where a folder should be made."""
    script()
    folder = files(tmp_path, ".nbi")[0].parent
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    assert script() == (False, "")
