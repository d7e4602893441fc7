"""Files of arrays: which versions are read."""

import fcntl
import os

import numpy as np
import pytest

import topnrank as tnr
from topnrank.io import atomic, tensors

DATA = tnr.synthetic(20, 10, 100, seed=0)


@pytest.fixture
def model(tmp_path):
    tnr.Popularity().fit(DATA).save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def _in_format(model, number, monkeypatch):
    facts, arrays = tensors.read_file(model, "model")
    with monkeypatch.context() as patch:
        patch.setattr(tensors, "FORMAT", number)
        tensors.write_file(model, "model", arrays, {k: v for k, v in facts.items() if k not in ("kind", "format")})


def test_a_model_of_this_version_is_read(model, monkeypatch):
    _in_format(model, tensors.FORMAT, monkeypatch)
    assert tnr.load(model).name == "popularity"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, r"was written by an earlier version of topnrank, whose names differ; train the model again$"),
        (tensors.FORMAT + 1, rf"has file format {tensors.FORMAT + 1}, .* reads {tensors.FORMAT}; upgrade topnrank$"),
        ("x", "has file format x"),
    ],
)
def test_models_of_other_versions_are_refused_by_one_sentence(model, monkeypatch, number, words):
    _in_format(model, number, monkeypatch)
    with pytest.raises(tnr.ModelFileError, match=rf"^{model}: {words}"):
        tnr.load(model)


def test_arrays_and_ids_come_back(tmp_path):
    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        **tensors.pack_ids("ids", np.array(["x", "é"], object)),
    }
    tensors.write_file(tmp_path / "f", "kind", arrays, {"name": "n"})
    for mapped in (False, True):
        facts, found = tensors.read_file(tmp_path / "f", "kind", mapped=mapped)
        assert facts["name"] == "n"
        np.testing.assert_array_equal(found["a"], arrays["a"])
        assert tensors.unpack_ids("ids", found).tolist() == ["x", "é"]


def test_one_file_is_written_which_stays_locked(tmp_path, monkeypatch):
    """A second one beside it, as `safetensors.save_file` makes, would stay behind a kill, and take the lock's place."""
    seen, fsync = [], os.fsync

    def watching(handle):
        for name in os.listdir(tmp_path):
            with (tmp_path / name).open("rb") as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            seen.append(name)
        monkeypatch.undo()
        fsync(handle)

    monkeypatch.setattr(atomic.os, "fsync", watching)
    tensors.write_file(tmp_path / "f", "kind", {"a": np.zeros(3)}, {})
    assert len(seen) == 1


def test_files_are_those_of_safetensors(tmp_path):
    from safetensors.numpy import load_file

    kinds = ("<f4", "<f8", "<i4", "<i8", "u1", "?")
    arrays = {f"{kind}{size}": np.arange(size).astype(kind) for kind in kinds for size in (0, 1, 7)}
    tensors.write_file(tmp_path / "f", "kind", arrays | {"matrix": np.ones((2, 3, 1), np.float32)}, {"name": "é"})
    found = load_file(tmp_path / "f")
    assert found.pop("matrix").shape == (2, 3, 1)
    assert found.keys() == arrays.keys()
    assert all(found[name].dtype == array.dtype and (found[name] == array).all() for name, array in arrays.items())
