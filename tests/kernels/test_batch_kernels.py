import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from topnrank.kernels.batches import Plan, invert, missing_item
from topnrank.kernels.batches import lay_out as lay_out_with
from topnrank.rng import visit_keys
from topnrank.scorers import Rows

N_ITEMS = 8
lists = st.lists(st.lists(st.integers(0, N_ITEMS - 1), max_size=6, unique=True), min_size=1, max_size=6)


def lay_out(users, rows, **plan):
    """A batch of the users' whole lists, unless `plan` says otherwise."""
    plan = {"histories": True, "negatives": 0, "n_items": N_ITEMS, "progress": 1.0} | plan
    return lay_out_with(users, visit_keys(0, 0, users), rows, Plan(**plan))


def rows_of(items_by_user, residuals=True):
    """Rows whose gains and residuals name their own position."""
    indptr = np.concatenate([[0], np.cumsum([len(items) for items in items_by_user])]).astype(np.int64)
    items = np.array([item for items in items_by_user for item in items], np.int32)
    gains = np.arange(items.size, dtype=np.float32)
    return Rows(indptr, items, gains, 10 * gains if residuals else np.empty(0, np.float32))


@given(items_by_user=lists, data=st.data())
def test_a_batch_is_the_users_rows_one_after_another(items_by_user, data):
    rows = rows_of(items_by_user)
    users = np.array(data.draw(st.permutations(range(len(items_by_user)))), np.int64)
    batch = lay_out(users, rows)
    assert_array_equal(batch.users, users)
    for n, user in enumerate(users):
        here = slice(batch.offsets[n], batch.offsets[n + 1])
        assert_array_equal(batch.items[here], items_by_user[user])
        assert_array_equal(batch.gains[here], rows.gains[rows.of(user)])
        assert_array_equal(batch.residuals[here], rows.residuals[rows.of(user)])
    assert batch.offsets[-1] == batch.items.size


@given(items_by_user=lists, listed=st.lists(st.booleans(), min_size=36, max_size=36), histories=st.booleans())
def test_rows_that_are_not_listed_stand_before_the_list_or_not_at_all(items_by_user, listed, histories):
    rows = rows_of(items_by_user)
    rows = rows._replace(listed=np.array(listed[: rows.items.size], np.bool_))
    batch = lay_out(np.arange(len(items_by_user)), rows, histories=histories)
    for n in range(len(items_by_user)):
        here, mask = rows.of(n), rows.listed[rows.of(n)] if rows.items.size else np.empty(0, np.bool_)
        aside, inside = rows.items[here][~mask], rows.items[here][mask]
        assert_array_equal(batch.items[batch.offsets[n] : batch.first[n]], aside if histories else [])
        assert_array_equal(batch.items[batch.first[n] : batch.own[n]], inside)
        assert batch.own[n] == batch.offsets[n + 1]
        assert_array_equal(batch.gains[batch.first[n] : batch.own[n]], rows.gains[here][mask])
        assert_array_equal(batch.residuals[batch.first[n] : batch.own[n]], rows.residuals[here][mask])


@given(items_by_user=lists.map(lambda users: [sorted(items) for items in users]), negatives=st.integers(1, 5))
def test_sampled_items_were_never_observed(items_by_user, negatives):
    rows = rows_of(items_by_user)
    batch = lay_out(np.arange(len(items_by_user)), rows, negatives=negatives)
    for n, items in enumerate(items_by_user):
        sampled = batch.items[batch.own[n] : batch.offsets[n + 1]]
        assert sampled.size == (negatives if items else 0)
        assert not set(sampled.tolist()) & set(items)
        assert not batch.gains[batch.own[n] : batch.offsets[n + 1]].any()
        if sampled.size:
            assert batch.weights[n] * negatives == pytest.approx(N_ITEMS - len(items))


def test_a_user_who_observed_everything_gets_no_samples():
    batch = lay_out(np.array([0]), rows_of([list(range(N_ITEMS))]), negatives=3)
    assert batch.items.size == N_ITEMS


def test_sampled_items_are_uniform():
    users = np.zeros(20_000, np.int64)
    users[:] = 0
    rows = rows_of([[1, 4, 5]])
    keys = visit_keys(7, 1, np.arange(users.size))
    batch = lay_out_with(users, keys, rows, Plan(True, 1, N_ITEMS, 1.0))
    counts = np.bincount(batch.items[batch.own], minlength=N_ITEMS)
    assert counts[[1, 4, 5]].sum() == 0
    assert np.abs(counts[[0, 2, 3, 6, 7]] / users.size - 0.2).max() < 0.015


@given(st.sets(st.integers(0, 30)))
def test_missing_items_by_their_number(observed):
    missing = [item for item in range(40) if item not in observed]
    items = np.array(sorted(observed), np.int32)
    assert [missing_item(items, place) for place in range(len(missing))] == missing


def test_without_residuals_a_batch_has_none():
    assert lay_out(np.array([1, 0]), rows_of([[0, 1], [2]], residuals=False)).residuals.size == 0


@given(items_by_user=lists, data=st.data())
def test_invert_lists_every_visit_of_every_touched_item_in_the_batchs_order(items_by_user, data):
    users = np.array(data.draw(st.permutations(range(len(items_by_user)))), np.int64)
    batch = lay_out(users, rows_of(items_by_user))
    counts = np.zeros(N_ITEMS, np.int64)
    touched = invert(batch, counts)
    assert not counts.any()
    visits = {}
    for n in range(users.size):
        for p in range(batch.offsets[n], batch.offsets[n + 1]):
            visits.setdefault(int(batch.items[p]), []).append((p, n))
    assert sorted(touched.items.tolist()) == sorted(visits)
    for t, item in enumerate(touched.items.tolist()):
        here = slice(touched.starts[t], touched.starts[t + 1])
        assert list(zip(touched.entries[here], touched.owners[here], strict=True)) == visits[item]


@pytest.mark.parametrize("times", [1, 2])
def test_the_scratch_can_be_used_again(times):
    counts = np.zeros(N_ITEMS, np.int64)
    batch = lay_out(np.array([0, 1]), rows_of([[3, 1], [1, 7]]))
    for _ in range(times):
        touched = invert(batch, counts)
    assert sorted(touched.items.tolist()) == [1, 3, 7]
