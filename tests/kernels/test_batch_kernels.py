import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from topnrank.kernels.batches import invert, lay_out
from topnrank.scorers import Rows

N_ITEMS = 8
lists = st.lists(st.lists(st.integers(0, N_ITEMS - 1), max_size=6, unique=True), min_size=1, max_size=6)


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
