"""Interactions to look at and to hand to other libraries."""

import numpy as np
import pytest

from topnrank import DataError, Interactions, ParameterError, TopNRank, split_time, synthetic

DATA = synthetic(30, 20, 300, seed=1)


def test_frames_and_matrices_of_other_libraries():
    assert DATA.to_pandas().equals(DATA.to_arrow().to_pandas())
    assert DATA.to_polars().shape == (300, len(DATA.to_arrow().column_names))
    matrix = DATA.to_scipy()
    assert matrix.shape == (DATA.n_users, DATA.n_items)
    assert (matrix.toarray()[DATA.user_index, DATA.indices] == DATA.ratings).all()
    matrix.data[0] = 0
    matrix.eliminate_zeros()  # the memory is its own
    assert matrix.nnz == 299
    assert Interactions.from_scipy(DATA.to_scipy()).ratings.sum() == DATA.ratings.sum()


def test_head_and_sample():
    assert DATA.head(3).to_arrow().equals(DATA.to_arrow().slice(0, 3))
    assert len(DATA.sample(10)) == 10
    assert (
        DATA.sample(10, seed=1).fingerprint() == DATA.sample(10, seed=1).fingerprint() != DATA.sample(10).fingerprint()
    )
    some = DATA.sample(users=4)
    counts = np.diff(some.indptr)
    assert (counts > 0).sum() == 4
    assert (counts[counts > 0] == np.diff(DATA.indptr)[counts > 0]).all()
    with pytest.raises(ParameterError, match="a number of rows, or users"):
        DATA.sample()
    assert str(DATA).splitlines()[1].split() == DATA.to_arrow().column_names
    assert str(DATA).count("\n") == 7


def test_filter_by_ids():
    users, items = DATA.users.ids[:5], DATA.items.ids[2:12]
    kept = DATA.filter(users=users, items=items)
    frame = DATA.to_pandas()
    assert len(kept) == (frame.user.isin(users) & frame.item.isin(items)).sum()
    assert set(kept.users.ids) <= set(users)
    with pytest.raises(DataError, match="users and items given"):
        DATA.filter(users=["nobody"])


def test_a_split_by_a_date():
    times = np.array(["2025-12-31T23:00", "2026-01-01T00:00", "2026-01-01T12:00", "2026-02-01"], "datetime64[s]")
    data = Interactions.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], timestamps=times.astype(np.int64))
    assert [len(part) for part in split_time(data, at="2026-01-01")] == [1, 3]
    assert [len(part) for part in split_time(data, at="2026-01-01T12:00+01:00")] == [2, 2]
    assert [len(part) for part in split_time(data, at=times[3].item())] == [3, 1]
    with pytest.raises(ParameterError, match="a date such as '2026-01-01', got 'soon'"):
        split_time(data, at="soon")


def test_lists_are_written_in_the_format_of_the_name(tmp_path):
    model = TopNRank(task="catalog", factors=4, epochs=1, neighbors=0).fit(DATA)
    assert model.recommend_to(tmp_path / "lists.csv", n=2) == 57
    assert (tmp_path / "lists.csv").read_text().splitlines()[0] == '"user","item","score","rank"'
    assert model.recommend_to(tmp_path / "lists.parquet", [DATA.users.ids[0]], n=2) == 2
    with pytest.raises(Exception, match="the name must end in"):
        model.recommend_to(tmp_path / "lists.xls")
