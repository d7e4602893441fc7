"""Vectors for indexes of nearest neighbors."""

import os
from functools import cache

import numpy as np
import pytest

from topnrank import OutputError, TopNRank
from topnrank.testing.base import small_split, with_text_ids


@cache
def fitted():
    return TopNRank(task="rated", factors=6, epochs=5).fit(with_text_ids(small_split()[0]))


def best(model, n=5):
    return model.item_numbers(model.recommend(n=n, exclude_seen=False)["item"].to_pylist()).reshape(-1, n)


def test_the_inner_product_is_the_score_bias_included():
    vectors = fitted().export_factors()
    assert vectors.user_vectors.shape == (len(fitted().user_map), 7)
    assert np.ptp(fitted().item_bias_) > 0.01
    np.testing.assert_allclose(
        vectors.user_vectors @ vectors.item_vectors.T,
        fitted().score_block(np.arange(len(fitted().user_map))),
        rtol=1e-5,
        atol=1e-6,
    )
    assert vectors.item_ids.tolist() == fitted().item_ids_.tolist()


def test_the_file_needs_no_pickle_and_holds_text_ids(tmp_path):
    fitted().export_factors(tmp_path / "v.npz")
    with np.load(tmp_path / "v.npz", allow_pickle=False) as file:
        assert file["user_ids"].tolist() == fitted().user_ids_.tolist()
        assert sorted(file) == ["item_ids", "item_vectors", "user_ids", "user_vectors"]


def test_a_place_or_name_that_will_not_do(tmp_path, monkeypatch):
    with pytest.raises(OutputError, match=r"v\.bin: the name must end in \.npz"):
        fitted().export_factors(tmp_path / "v.bin")
    with pytest.raises(OutputError, match="its folder does not exist"):
        fitted().export_factors(tmp_path / "none" / "v.npz")
    (tmp_path / "v.npz").write_text("old")

    def full(file, **arrays):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OutputError, match="the disk is full"):
        fitted().export_factors(tmp_path / "v.npz")
    assert os.listdir(tmp_path) == ["v.npz"]
    assert (tmp_path / "v.npz").read_text() == "old"


def test_an_index_of_hnswlib_finds_the_lists():
    hnswlib = pytest.importorskip("hnswlib")
    vectors = fitted().export_factors()
    index = hnswlib.Index(space="ip", dim=vectors.item_vectors.shape[1])
    index.init_index(max_elements=len(vectors.item_ids), random_seed=1)
    index.add_items(vectors.item_vectors, num_threads=1)
    index.set_ef(len(vectors.item_ids))  # with so few items the search looks at all of them
    found, _ = index.knn_query(vectors.user_vectors, k=5, num_threads=1)
    assert np.mean(np.sort(found) == np.sort(best(fitted()))) > 0.99


def test_an_index_of_faiss_finds_the_lists():
    faiss = pytest.importorskip("faiss")
    vectors = fitted().export_factors()
    index = faiss.IndexFlatIP(vectors.item_vectors.shape[1])
    index.add(vectors.item_vectors)
    _, found = index.search(vectors.user_vectors, 5)
    assert np.mean(found == best(fitted())) > 0.99
