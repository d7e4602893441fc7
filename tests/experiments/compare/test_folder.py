"""Comparisons on disk: save and load, what a kill leaves, what is computed again, processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from support import killed_comparison
from support.compared import DATA, same_values, small
from support.kill import FILES, watching
from support.killed_comparison import REPEATS, run
from support.rivals import Counted, Dies, Fails, ItemMeans
from topnrank import ModelFileError, OutputError, ParameterError, Random, read, synthetic
from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.compare.run import compare

posix = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL does not exist on Windows")
CELLS = 7 * REPEATS
"""Of `killed_comparison.run`: three models and four controls."""


def fits(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("cell-*.safetensors"))


def test_save_and_load(tmp_path):
    made = compare({"mf": small(), "fails": Fails()}, DATA, repeats=2, protocol="both", metrics=("mrr", "ndcg@5"))
    made.save(tmp_path / "new" / "folder")
    loaded = Comparison.load(tmp_path / "new" / "folder")
    same_values(made, loaded)
    for name in ("models", "protocols", "metrics", "repeats", "settings", "facts"):
        assert getattr(loaded, name) == getattr(made, name)
    np.testing.assert_array_equal(loaded.users, made.users)
    assert loaded.error("fails") == "ValueError: a bolt is loose"
    assert loaded.cells["mf", 1].fit_seconds == made.cells["mf", 1].fit_seconds


def test_save_and_load_keep_textual_ids(tmp_path):
    (tmp_path / "a.csv").write_text(
        "user,item,rating\n" + "".join(f"ü{u},i{i},{(u * i) % 5 + 1}\n" for u in range(9) for i in range(8))
    )
    made = compare([Random()], read(tmp_path / "a.csv"), repeats=1, metrics="mrr")
    made.save(tmp_path / "kept")
    assert Comparison.load(tmp_path / "kept").users.tolist() == [f"ü{u}" for u in range(9)]


def test_a_saved_comparison_goes_on_where_it_was(tmp_path):
    log = tmp_path / "log"
    compare([Counted(log)], DATA, repeats=2, metrics="mrr").save(tmp_path / "kept")
    compare([Counted(log)], DATA, repeats=3, metrics="mrr", folder=tmp_path / "kept")
    assert fits(log) == 3


def test_finished_cells_are_not_computed_again(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "run"
    first = compare([Counted(log)], DATA, repeats=2, metrics="mrr", folder=folder)
    assert fits(log) == 2
    same_values(first, compare([Counted(log)], DATA, repeats=2, metrics="mrr", folder=folder))
    assert fits(log) == 2
    same_values(first, Comparison.load(folder))


def test_models_and_repeats_can_be_added_and_parameters_changed(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "run"

    def go(*models, repeats=2):
        return compare(list(models), DATA, repeats=repeats, protocol="rated", metrics="mrr", folder=folder)

    alone = go(Counted(log))
    more = go(Counted(log), small(), repeats=3)
    assert fits(log) == 3
    np.testing.assert_array_equal(more.values("counted", "rated", "mrr")[:2], alone.values("counted", "rated", "mrr"))
    renamed = go(Counted(log), Counted(log, color="red"), repeats=2)  # rows are named by what differs now
    assert fits(log) == 5
    assert renamed.models[:2] == ("counted (color=null)", "counted (color=red)")
    assert all(cell.model == name for (name, _), cell in renamed.cells.items())
    assert Comparison.load(folder).models == renamed.models


def test_failed_cells_are_tried_again(tmp_path):
    fixed, folder = tmp_path / "fixed", tmp_path / "run"
    models = {"unlucky": Fails(unless=str(fixed))}
    assert compare(models, DATA, repeats=2, metrics="mrr", folder=folder).error("unlucky") is not None
    assert Comparison.load(folder).error("unlucky") == "ValueError: a bolt is loose"
    fixed.touch()
    assert compare(models, DATA, repeats=2, metrics="mrr", folder=folder).error("unlucky") is None


def test_a_damaged_cell_is_computed_again(tmp_path):
    log = tmp_path / "log"
    first = compare([Counted(log)], DATA, repeats=1, metrics="mrr", folder=tmp_path / "run")
    for file in files(tmp_path / "run"):
        file.write_bytes(file.read_bytes()[:100])
    same_values(first, compare([Counted(log)], DATA, repeats=1, metrics="mrr", folder=tmp_path / "run"))
    assert fits(log) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metrics": "ndcg@3"}, "metrics was"),
        ({"protocol": "catalog"}, "protocols was"),
        ({"seed": 5}, "seed was 0, now it is 5"),
        ({"relevant": 3.0}, "relevant was .rating >= 4, four fifths of the scale 1 to 5., now it is .rating >= 3."),
        ({"test": 0.3}, "test was 0.5, now it is 0.3"),
        ({"data": synthetic(20, 20, 200)}, "data was"),
    ],
)
def test_the_folder_of_another_comparison_is_refused(change, words, tmp_path):
    settings = {"data": DATA, "repeats": 1, "protocol": "rated", "metrics": "mrr", "folder": tmp_path}
    compare([Random()], **settings)
    before = [file.read_bytes() for file in sorted(tmp_path.iterdir())]
    with pytest.raises(ModelFileError, match=f"belongs to another comparison .*{words}.*give another folder"):
        compare([Random()], **(settings | change))
    with pytest.raises(ModelFileError, match="belongs to another comparison"):
        compare([Random()], **(settings | change | {"folder": None})).save(tmp_path)
    assert [file.read_bytes() for file in sorted(tmp_path.iterdir())] == before


def test_folders_that_hold_no_finished_comparison(tmp_path):
    with pytest.raises(ModelFileError, match="holds no comparison"):
        Comparison.load(tmp_path)
    with pytest.raises(ModelFileError, match="no such comparison file"):
        Comparison.load(tmp_path / "nothing")
    compare([Random()], DATA, repeats=2, metrics="mrr", folder=tmp_path)
    files(tmp_path)[0].unlink()
    with pytest.raises(ModelFileError, match="not finished, 1 of 8 cells are missing; start the same"):
        Comparison.load(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be made"):
        compare([Random()], DATA, folder=tmp_path / "file" / "run")


@posix
@pytest.mark.process
def test_a_killed_comparison_ends_with_the_table_of_an_undisturbed_one(tmp_path):
    events: list[int] = []
    with watching(lambda: events.append(1), *FILES):
        whole = run(tmp_path / "whole", tmp_path / "whole.log")
    assert len(files(tmp_path / "whole")) == CELLS
    log, folder = tmp_path / "log", tmp_path / "run"
    for event in (len(events) // 2, len(events) // 4, 12):
        before = {file: file.stat().st_mtime_ns for file in files(folder)}
        command = [sys.executable, killed_comparison.__file__, str(folder), str(log), str(event)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == -signal.SIGKILL, done.stderr
        kept = {file: file.stat().st_mtime_ns for file in files(folder)}
        assert len(before) < len(kept) < CELLS
        assert before.items() <= kept.items()  # what was finished was not written again
    kept = {file: file.stat().st_mtime_ns for file in files(folder)}
    same_values(whole, run(folder, log))
    assert kept.items() <= {file: file.stat().st_mtime_ns for file in files(folder)}.items()
    same_values(whole, Comparison.load(folder))
    assert fits(log) <= REPEATS + 3  # a fit under way at a kill is lost, and no other


@posix
@pytest.mark.process
def test_processes_die_with_a_killed_comparison_and_their_cells_are_kept(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "run"
    command = [sys.executable, killed_comparison.__file__, str(folder), str(log), "slow"]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        # One worker sleeps in the third fit of `counted`, the other finishes all other cells.
        until(lambda: len(files(folder)) == CELLS - 1 or process.poll() is not None)
        process.kill()
        process.wait(timeout=600)
        until(lambda: not group_lives(process.pid))
    finally:
        if group_lives(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.stderr.close()
    assert fits(log) == REPEATS
    resumed = run(folder, log)
    assert fits(log) == REPEATS + 1
    same_values(resumed, run(tmp_path / "whole", tmp_path / "whole.log"))


def until(happened) -> None:
    for _ in range(12_000):
        if happened():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def group_lives(group: int) -> bool:
    """Whether a process of the group runs; zombies, which wait for a parent to notice, do not."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    states = [
        path.read_text().rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()
    ]
    return any(int(state[2]) == group and state[0] != "Z" for state in states)


@posix
@pytest.mark.process
def test_jobs_give_the_same_bits_and_a_dying_process_costs_its_own_cell_only(tmp_path):
    models = {"mf": small(), "by hand": ItemMeans(), "fails": Fails()}
    settings = {"repeats": 1, "protocol": "both", "metrics": ("mrr", "ndcg@5")}
    alone = compare(models, DATA, **settings)
    beside = compare(models | {"dies": Dies()}, DATA, jobs=2, folder=tmp_path, **settings)
    assert "process ended without an answer" in beside.error("dies")
    assert beside.models == ("mf", "by hand", "fails", "dies", "item-mean", "popularity", "recent-popularity", "random")
    for (name, repeat), cell in alone.cells.items():
        other = beside.cells[name, repeat]
        assert (cell.error, cell.curve) == (other.error, other.curve)
        for key, values in cell.values.items():
            assert values.tobytes() == other.values[key].tobytes()
    assert list(beside.cells) == [(name, 0) for name in beside.models]
    same_values(beside, Comparison.load(tmp_path))


def test_what_cannot_travel_is_refused_at_once():
    class Local(ItemMeans):
        pass

    with pytest.raises(ParameterError, match=r"'means by hand' cannot be sent to another process .*use jobs=1"):
        compare([Local()], DATA, jobs=2)


@pytest.mark.process
def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from topnrank import Random, synthetic\nfrom topnrank import compare\n"
        "compare([Random()], synthetic(20, 20, 200), repeats=1, jobs=2)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 1
    assert "call compare below `if __name__ == '__main__':`" in done.stderr.strip().splitlines()[-1]
