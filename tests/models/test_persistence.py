"""Model files: atomic, standing alone, and refused in one sentence when damaged."""

import errno
import os
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from topnrank import (
    SGD,
    AdaGrad,
    Laplace,
    ModelFileError,
    OutputError,
    ParameterError,
    Popularity,
    Threshold,
    TopNRank,
    load,
    synthetic,
)
from topnrank.io.tensors import read_file, write_file
from topnrank.models.base import Model
from topnrank.testing.base import small_split

TRAIN, TEST = small_split()

pytestmark = pytest.mark.filterwarnings("ignore:this model learned to rank the items")


@pytest.fixture
def path(tmp_path):
    Popularity().fit(TRAIN).save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_a_write_that_fails_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full(file, tensors, metadata):
        file.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("topnrank.io.tensors._write", full)
    with pytest.raises(OutputError, match=r"the disk is full.*nothing was overwritten"):
        Popularity().fit(TEST).save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_an_interrupt_leaves_no_broken_file(path, monkeypatch):
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Popularity().fit(TEST).save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_failing_write_of_recommendations_leaves_the_old_file(path, monkeypatch):
    model, lists = load(path), path.with_name("lists.parquet")
    model.recommend_to(lists, n=2)
    before = lists.read_bytes()

    def failing(*_):
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_batch", failing)
    with pytest.raises(OutputError, match="no permission to write there"):
        model.recommend_to(lists, n=3)
    assert lists.read_bytes() == before


def test_the_file_can_be_read_by_others_like_any_new_file(path):
    plain = path.with_name("plain")
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize(
    "change",
    [
        {"optimizer": SGD(), "learning_rate": 0.01},
        {"optimizer": AdaGrad(5.0)},
        {"smoothing": Laplace(2.0)},
        {"feedback": Threshold(3.5)},
        {"feedback": "centered"},
        {"regularization": {"item": 0.1, "bias": 0.0}},
        {"learning_rate": np.float32(0.25)},
        {"factors": np.int64(3)},
    ],
    ids=str,
)
def test_every_kind_of_parameter_comes_back(change, tmp_path):
    model = TopNRank(**({"factors": 3, "epochs": 1} | change)).fit(TRAIN)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").get_params() == model.get_params()


class Mine:
    """A step that no file can hold."""

    def h(self, x):
        return Laplace().h(x)

    def dh(self, x):
        return Laplace().dh(x)


def test_a_step_of_ones_own_can_be_put_back(tmp_path):
    TopNRank(task="rated", factors=3, epochs=1, smoothing=Mine()).fit(TRAIN).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.recommend(n=1).num_rows == TRAIN.n_users
    with pytest.raises(ParameterError, match="Mine is an object of your own that the file cannot hold"):
        loaded.fit(TRAIN)
    loaded.save(tmp_path / "again")
    with pytest.raises(ParameterError, match="Mine is an object of your own that the file cannot hold"):
        load(tmp_path / "again").fit(TRAIN)
    assert loaded.set_params(smoothing=Mine()).fit(TRAIN) is loaded


def rewritten(path, **changes):
    """The file with some facts changed."""
    facts, arrays = read_file(path, "model")
    kept = {name: value for name, value in facts.items() if name not in ("kind", "format")}
    write_file(path, "model", arrays, kept | changes)


def test_a_model_of_an_unknown_kind_is_refused(path):
    rewritten(path, model="neural-rank")
    with pytest.raises(ModelFileError, match="holds a model of kind 'neural-rank', which this version does not know"):
        load(path)


@pytest.mark.parametrize(
    "changes", [{"parameters": {"color": 3}}, {"parameters": None}, {"info": None, "parameters": 3}], ids=str
)
def test_parameters_that_do_not_fit_are_refused(path, changes):
    rewritten(path, **changes)
    with pytest.raises(ModelFileError):
        load(path)


@pytest.mark.parametrize("lost", ["user_ids", "item_ids", "seen.indptr", "seen.indices"])
def test_a_file_without_a_part_is_refused(path, lost):
    facts, arrays = read_file(path, "model")
    kept = {name: value for name, value in facts.items() if name not in ("kind", "format")}
    write_file(path, "model", {name: array for name, array in arrays.items() if name != lost}, kept)
    with pytest.raises(ModelFileError, match="lacks a part of the model"):
        load(path)


def test_a_safetensors_file_of_others_is_refused(path):
    from safetensors.numpy import save_file

    save_file({"weights": np.zeros(3)}, path)
    with pytest.raises(ModelFileError, match="is a safetensors file, but not one of topnrank"):
        load(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(place=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_a_file_with_one_wrong_byte_in_its_head_loads_or_is_refused_in_one_sentence(path, place, byte):
    """Whatever the byte does to the head (sizes, names, JSON), no error comes from deep inside."""
    Popularity().fit(TRAIN).save(path)
    content = bytearray(path.read_bytes())
    head = 8 + int.from_bytes(content[:8], "little")
    content[int(place * head)] = byte
    path.write_bytes(content)
    with suppress(ModelFileError):
        assert isinstance(load(path), Model)


@pytest.mark.parametrize("change", ["lost", "cut"])
def test_a_file_whose_arrays_do_not_fit_is_refused(tmp_path, change):
    path = tmp_path / "model.safetensors"
    TopNRank(task="rated", factors=2, epochs=1).fit(TRAIN).save(path)
    facts, arrays = read_file(path, "model")
    vectors = arrays.pop("model.item_factors")
    if change == "cut":
        arrays["model.item_factors"] = vectors[:3]
    write_file(path, "model", arrays, {name: facts[name] for name in ("model", "parameters", "info", "versions")})
    with pytest.raises(ModelFileError, match=r"lacks a part of the model or holds one that does not fit.*item_factors"):
        load(path)


def test_a_loaded_model_lies_in_its_file_and_writing_to_it_does_not(tmp_path):
    path = tmp_path / "model.safetensors"
    TopNRank(task="rated", factors=4, epochs=1).fit(TRAIN).save(path)
    before, loaded = path.read_bytes(), load(path)
    mapped = [*loaded.fitted.arrays.values(), loaded.seen_indptr, loaded.seen_indices]
    assert all(not array.flags.owndata and array.flags.aligned and type(array) is np.ndarray for array in mapped)
    assert all(isinstance(root(array), np.memmap) for array in mapped)
    loaded.item_factors_[:] = 0.0  # in this process only
    assert path.read_bytes() == before
    assert load(path).item_factors_.any()


def root(array):
    while not isinstance(array, np.memmap) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def test_mapped_and_copied_arrays_are_the_same(tmp_path):
    path = tmp_path / "model.safetensors"
    TopNRank(task="rated", factors=3, epochs=1).fit(TRAIN).save(path)
    facts, copied = read_file(path, "model")
    same_facts, mapped = read_file(path, "model", mapped=True)
    assert facts == same_facts
    assert copied.keys() == mapped.keys()
    for name, array in copied.items():
        assert array.dtype == mapped[name].dtype
        np.testing.assert_array_equal(array, mapped[name])


def test_a_model_can_be_saved_over_the_file_it_was_loaded_from(tmp_path):
    path = tmp_path / "model.safetensors"
    model = TopNRank(task="rated", factors=3, epochs=1).fit(TRAIN)
    model.save(path)
    loaded = load(path)
    loaded.save(path)
    assert load(path).recommend(n=3).equals(loaded.recommend(n=3))
    assert loaded.recommend(n=3).equals(model.recommend(n=3))


@pytest.mark.parametrize("order", ["counts", "ridge"])
def test_a_model_that_knows_what_comes_next_is_loaded_as_it_was(tmp_path, order):
    data = synthetic(60, 40, 1200, seed=1)
    model = TopNRank(task="catalog", factors=4, epochs=1, neighbors=5, order=order).fit(data)
    model.save(tmp_path / "m.safetensors")
    users = np.arange(5)
    assert (load(tmp_path / "m.safetensors").score_block(users) == model.score_block(users)).all()
