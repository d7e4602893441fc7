"""Killed runs resume and end with the bits of an uninterrupted one."""

import signal
import subprocess
import sys
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest

from support import killed_run
from support.kill import watching
from support.killed_run import CASES, EVENTS, digest, fit
from topnrank import BiasedMF, DivergenceError, ModelFileError, OutputError, TopNRank, synthetic
from topnrank.io.tensors import read_file, write_file
from topnrank.rng import stream
from topnrank.training.checkpoint import FILE, Checkpoint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL does not exist on Windows")


@cache
def uninterrupted(case):
    """Digest, number of rounds and number of events of a run that nothing disturbs; its checkpoint counts as events."""
    import tempfile

    events = []
    fit(case, None)  # compiles, which writes files as well
    with tempfile.TemporaryDirectory() as folder, watching(lambda: events.append(1), *EVENTS):
        model = fit(case, folder)
    return digest(model), len(model.history_), len(events)


def killed(case, folder, event):
    """Runs a process that dies at its `event`-th event."""
    command = [sys.executable, killed_run.__file__, case, str(folder), str(event)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_the_cases_stop_where_they_should():
    assert uninterrupted("history")[1] == 5
    assert 3 < uninterrupted("factors with tolerance")[1] < 30
    assert 3 < uninterrupted("history with early stopping")[1] < 30
    assert 3 < uninterrupted("factors with early stopping")[1] < 30


@pytest.mark.parametrize("case", CASES)
@pytest.mark.process
def test_a_run_killed_twice_ends_with_the_same_bits(case, tmp_path):
    expected, _, events = uninterrupted(case)
    draw = stream(list(CASES).index(case), "test kills")
    first = int(draw.integers(4, events // 2))
    killed(case, tmp_path, first)
    killed(case, tmp_path, int(draw.integers(1, (events - first) // 2)))
    assert digest(fit(case, tmp_path)) == expected


@pytest.mark.parametrize("case", ["factors with tolerance", "history with early stopping"])
@pytest.mark.process
def test_a_run_killed_after_its_last_round_is_not_trained_further(case, tmp_path):
    """The last round is in the checkpoint, but the run could not say that it was finished."""
    expected, _, events = uninterrupted(case)
    killed(case, tmp_path, events - 1)
    assert digest(fit(case, tmp_path)) == expected


@pytest.mark.process
def test_a_run_killed_before_its_first_checkpoint_starts_again(tmp_path):
    killed("history", tmp_path, 2)
    assert not (tmp_path / FILE).exists()
    assert digest(fit("history", tmp_path)) == uninterrupted("history")[0]


def test_a_checkpoint_changes_nothing():
    assert digest(fit("history", None)) == uninterrupted("history")[0]


def test_a_finished_run_is_not_trained_again(tmp_path):
    first = fit("history with early stopping", tmp_path)
    visits = []
    with watching(lambda: visits.append(1), *EVENTS):
        again = fit("history with early stopping", tmp_path)
    assert digest(again) == digest(first)
    assert visits == []


@pytest.fixture
def finished(tmp_path):
    fit("history", tmp_path)
    return tmp_path


DATA = synthetic(40, 30, seed=3)
PARAMETERS = {"task": "rated", "factors": 4, "batch_size": 15, "seed": 3, "epochs": 5}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"learning_rate": 0.05}, "learning_rate was 0.07, now it is 0.05"),
        ({"factors": 5}, "factors was 4, now it is 5"),
        ({"smoothing": "relu"}, "smoothing was 'laplace', now it is 'relu'"),
    ],
)
def test_other_parameters_are_refused(finished, change, named):
    with pytest.raises(ModelFileError, match=f"belongs to another run .{named}"):
        TopNRank(**(PARAMETERS | change)).fit(DATA, checkpoint=finished)


def test_other_data_another_model_and_other_validation_are_refused(finished):
    with pytest.raises(ModelFileError, match=r"belongs to another run \(data was"):
        TopNRank(**PARAMETERS).fit(synthetic(40, 30, seed=4), checkpoint=finished)
    with pytest.raises(ModelFileError, match="belongs to another run"):
        BiasedMF(factors=4).fit(DATA, checkpoint=finished)
    with pytest.raises(ModelFileError, match="belongs to another run"):
        TopNRank(**PARAMETERS).fit(DATA, checkpoint=finished, validation=0.5)


def test_threads_and_engine_may_differ(finished):
    again = TopNRank(**PARAMETERS, num_threads=1).fit(DATA, checkpoint=finished)
    assert digest(again) == uninterrupted("history")[0]


@pytest.mark.parametrize("kept", [0, 7, 100, -1])
def test_a_damaged_checkpoint_is_refused(finished, kept):
    content = (finished / FILE).read_bytes()
    (finished / FILE).write_bytes(content[:kept])
    with pytest.raises(ModelFileError, match="damaged or cut off"):
        TopNRank(**PARAMETERS).fit(DATA, checkpoint=finished)


@pytest.mark.parametrize("lost", ["run", "rounds_done", "finished", "memory.recorder"])
def test_a_checkpoint_without_a_part_is_refused(finished, lost):
    facts, arrays = read_file(finished / FILE, "checkpoint")
    kept = {name: value for name, value in facts.items() if name not in (lost, "kind", "format")}
    write_file(finished / FILE, "checkpoint", arrays, kept)
    with pytest.raises(ModelFileError, match="lacks"):
        TopNRank(**PARAMETERS).fit(DATA, checkpoint=finished)


def test_a_model_file_is_no_checkpoint(finished):
    TopNRank(**PARAMETERS).fit(DATA).save(finished / FILE)
    with pytest.raises(ModelFileError, match="is a topnrank model file; a checkpoint file is needed here"):
        TopNRank(**PARAMETERS).fit(DATA, checkpoint=finished)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be created"):
        TopNRank(**PARAMETERS).fit(DATA, checkpoint=tmp_path / "file" / "folder")


def test_divergence_names_iteration_and_rate_and_keeps_the_last_good_checkpoint(tmp_path):
    model = BiasedMF(factors=4, learning_rate=3.0, epochs=50, batch_size=40, regularization=0.0)
    with patch.dict(Checkpoint.__init__.__kwdefaults__, seconds=0.0):
        with pytest.raises(DivergenceError) as first:
            model.fit(DATA, checkpoint=tmp_path)
        facts, arrays = read_file(tmp_path / FILE, "checkpoint")
        assert facts["rounds_done"] >= 1
        assert not facts["finished"]
        assert all(np.isfinite(array).all() for array in arrays.values())
        with pytest.raises(DivergenceError) as second:
            model.fit(DATA, checkpoint=tmp_path)
    message = str(first.value)
    assert f"diverged in iteration {facts['rounds_done'] + 1}: " in message
    assert "learning_rate=3.0" in message
    assert f"the last good checkpoint is in {tmp_path}" in message
    assert "try a smaller learning_rate" in message
    assert str(second.value) == message


def test_divergence_before_the_first_checkpoint_promises_none(tmp_path):
    model = BiasedMF(factors=4, learning_rate=1e30, epochs=2, optimizer="sgd")
    with pytest.raises(DivergenceError, match="diverged in iteration 1") as failure:
        model.fit(DATA, checkpoint=tmp_path)
    assert "checkpoint" not in str(failure.value)


def test_two_writes_are_some_seconds_apart(tmp_path):
    """Only the first round and the end are written when rounds are quick."""
    with patch("topnrank.training.checkpoint.write_file") as write:
        TopNRank(**PARAMETERS).fit(DATA, checkpoint=tmp_path)
    assert [call.args[3]["finished"] for call in write.call_args_list] == [False, True]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("parameter.item_bias", lambda a: a[:5]),
        ("parameter.item_factors", lambda a: a[:, :1].copy()),
        ("parameter.item_factors", lambda a: a.astype(np.float64)),
        ("accumulator.item_bias", lambda a: a[:5]),
        ("accumulator.item_bias", None),
        ("parameter.more", np.zeros(3, np.float32)),
    ],
)
def test_a_checkpoint_with_other_arrays_is_refused(finished, name, change):
    facts, arrays = read_file(finished / FILE, "checkpoint")
    arrays[name] = change(arrays[name]) if callable(change) else change
    kept = {key: value for key, value in facts.items() if key not in ("kind", "format")}
    write_file(finished / FILE, "checkpoint", {k: v for k, v in arrays.items() if v is not None}, kept)
    with pytest.raises(ModelFileError, match="lacks a part of the checkpoint or holds one that does not fit"):
        TopNRank(**PARAMETERS).fit(DATA, checkpoint=finished)


@pytest.mark.parametrize("facts", [{"rounds_done": "3"}, {"rounds_done": -1}, {"finished": "no"}, {"run": 3}], ids=str)
def test_a_checkpoint_with_facts_of_another_type_is_refused(finished, facts):
    found, arrays = read_file(finished / FILE, "checkpoint")
    kept = {key: value for key, value in found.items() if key not in ("kind", "format")}
    write_file(finished / FILE, "checkpoint", arrays, kept | facts)
    with pytest.raises(ModelFileError):
        TopNRank(**PARAMETERS).fit(DATA, checkpoint=finished)


def test_every_changed_bit_of_a_checkpoint_is_noticed(finished):
    content, draw = (finished / FILE).read_bytes(), np.random.default_rng(2)
    begin = 8 + int.from_bytes(content[:8], "little")
    for place in draw.integers(begin, len(content), 20):
        changed = bytearray(content)
        changed[place] ^= 1 << int(draw.integers(8))
        (finished / FILE).write_bytes(changed)
        with pytest.raises(ModelFileError, match="is damaged: the array"):
            TopNRank(**PARAMETERS).fit(DATA, checkpoint=finished)


def test_of_two_trainings_in_one_folder_the_second_is_refused(tmp_path):
    """It would take the place of the first one's checkpoint."""
    script = (
        "import sys; from topnrank import TopNRank, OutputError, synthetic\n"
        "try: TopNRank(factors=2, epochs=1).fit(synthetic(20, 10, 60, seed=1), checkpoint=sys.argv[1])\n"
        "except OutputError as error: print(error)"
    )

    def other():
        command = [sys.executable, "-c", script, str(tmp_path / "run")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with Checkpoint(tmp_path / "run", {}, {}).alone():
        wanted = "another process trains there; wait until it ends, or give another place\n"
        assert other() == f"checkpoint folder {tmp_path / 'run'}: {wanted}"
    assert other() == ""
