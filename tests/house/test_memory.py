"""Too little memory is one sentence: before the work where sizes are known, after it otherwise."""

import subprocess
import sys

import numpy as np
import pytest

import topnrank as tnr
from topnrank import _memory
from topnrank.cli.exit_codes import guarded


@pytest.fixture
def little(monkeypatch):
    """As if a GiB were left."""
    monkeypatch.setattr(_memory, "_limits", lambda: iter([2**30, 2**34]))


def many_items(n_items):
    users = np.arange(n_items) % 50_000
    return tnr.Interactions.from_arrays(users, np.arange(n_items))


def test_ease_says_so_before_it_counts(little):
    with pytest.raises(tnr.OutOfMemoryError, match=r"EASE takes 3\.4 GiB .* 1\.0 GiB more; use NeighborRidge"):
        tnr.EASE(max_items=50_000).fit(many_items(30_000))


def test_models_with_vectors_say_so_before_they_train(little):
    with pytest.raises(tnr.OutOfMemoryError, match=r"100,000 factors takes .*; give fewer factors"):
        tnr.TopNRank(task="rated", factors=100_000).fit(tnr.synthetic(60, 2000, 3000, seed=1))


def test_a_table_of_all_lists_says_so(monkeypatch):
    model = tnr.Popularity().fit(tnr.synthetic(40, 30, 300, seed=1))
    monkeypatch.setattr(_memory, "SMALL", 0)
    monkeypatch.setattr(_memory, "_limits", lambda: iter([9000]))
    with pytest.raises(tnr.OutOfMemoryError, match=r"of 400 recommendations takes .* by recommend_to"):
        model.recommend(n=10)
    assert len(model.recommend(n=5)) == 200


def test_the_command_line_says_so(little, tmp_path, capsys):
    (tmp_path / "r.csv").write_text("user,item\n" + "".join(f"{n % 300},{n}\n" for n in range(900)))
    command = ["train", str(tmp_path / "r.csv"), "-o", str(tmp_path / "m"), "--set", "factors=1000000", "-q"]
    assert guarded(command) == 1
    said = capsys.readouterr().err
    assert (said.count("\n"), "give fewer factors" in said) == (1, True)
    assert not (tmp_path / "m").exists()


def test_small_requests_look_at_nothing(monkeypatch):
    monkeypatch.setattr(_memory, "_limits", lambda: pytest.fail("it looked"))
    tnr.EASE().fit(tnr.synthetic(40, 30, 300, seed=1))


def test_what_the_system_says_is_read(tmp_path, monkeypatch):
    free = _memory.free_memory()
    if sys.platform == "linux":
        assert free is not None
        assert 2**20 < free < 2**50
        (tmp_path / "memory.max").write_text("1000000\n")
        (tmp_path / "memory.current").write_text("400000\n")
        (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 50000\n")
        monkeypatch.setattr(_memory, "GROUPS", tmp_path)
        monkeypatch.setattr(
            "pathlib.Path.read_text",
            lambda path, read=_memory.Path.read_text: "0::/\n" if str(path) == "/proc/self/cgroup" else read(path),
        )
        assert list(_memory._limits_of_container()) == [650_000]


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v does nothing elsewhere")
def test_a_limit_of_the_shell_is_known_beforehand(tmp_path):
    script = """
import resource
import numpy as np
import topnrank as tnr

tnr.EASE().fit(tnr.synthetic(40, 30, 300, seed=1))
numbers = np.arange(10_000)
data = tnr.Interactions.from_arrays(numbers, numbers)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28,) * 2)
try:
    tnr.EASE(max_items=20_000).fit(data)
except tnr.OutOfMemoryError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "the matrix of EASE takes 0.4 GiB of memory" in done.stdout, done.stderr
