import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from support.problems import read_only
from topnrank.engines.cpu import balanced_order
from topnrank.kernels.batch import Plan, _missing_item, arrange, sample_items
from topnrank.kernels.batch import lay_out as lay_out_with
from topnrank.kernels.item_index import invert
from topnrank.rng import visit_keys
from topnrank.scorers import TrainingLists

N_ITEMS = 8
EQUAL = np.arange(N_ITEMS + 1)
lists = st.lists(st.lists(st.integers(0, N_ITEMS - 1), max_size=6, unique=True), min_size=1, max_size=6)


def lay_out(users, rows, **plan):
    """A batch of the users' whole lists, unless `plan` says otherwise."""
    made = plan_of(**plan)
    return sampled(lay_out_with(arrange(users, rows, made), rows, made), rows, made.sampling_weights)


def plan_of(**plan):
    """Whole lists and nothing sampled, unless `plan` says otherwise."""
    usual = {"histories": True, "negatives": 0, "sampling_weights": EQUAL, "shared": False, "progress": 1.0}
    return Plan(**usual | {"seed": np.uint64(0), "iteration": np.uint64(0), "first_user": 0} | plan)


def visits_of_one_user(rows, times, plan):
    """The batch of so many visits of user 0, each with draws of its own."""
    places = arrange(np.zeros(times, np.int64), rows, plan)
    keys = visit_keys(int(plan.seed), 1, np.arange(times))
    return sampled(lay_out_with(places._replace(keys=keys), rows, plan), rows, plan.sampling_weights)


def sampled(batch, rows, sampling_weights):
    """The batch with its sampled items drawn."""
    sample_items(batch, rows, sampling_weights, batch.items, batch.weights)
    return batch


def rows_of(items_by_user, residuals=True):
    """Rows whose gains and residuals name their own position."""
    indptr = np.concatenate([[0], np.cumsum([len(items) for items in items_by_user])]).astype(np.int64)
    items = np.array([item for items in items_by_user for item in items], np.int32)
    gains = np.arange(items.size, dtype=np.float32)
    return read_only(TrainingLists(indptr, items, gains, (10 * gains if residuals else gains[:0])[:, None]))


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
            weights = batch.weights[batch.own[n] : batch.offsets[n + 1]]
            assert weights == pytest.approx((N_ITEMS - len(items)) / negatives)
        assert batch.counts[n] == 1.0


def test_a_user_who_observed_everything_gets_no_samples():
    batch = lay_out(np.array([0]), rows_of([list(range(N_ITEMS))]), negatives=3)
    assert batch.items.size == N_ITEMS


@pytest.mark.parametrize("masses", [[1] * N_ITEMS, [5, 1, 1, 2, 9, 1, 1, 1]])
def test_items_are_sampled_by_their_chances(masses):
    rows, sampling_weights = rows_of([[1, 4, 5]]), np.concatenate([[0], np.cumsum(masses)])
    batch = visits_of_one_user(rows, 20_000, plan_of(negatives=1, sampling_weights=sampling_weights, seed=np.uint64(7)))
    counts = np.bincount(batch.items[batch.own], minlength=N_ITEMS)
    wanted = np.array(masses, float)
    wanted[[1, 4, 5]] = 0.0
    assert np.abs(counts / 20_000 - wanted / wanted.sum()).max() < 0.015


@given(observed=st.sets(st.integers(0, 11)), masses=st.lists(st.integers(1, 4), min_size=12, max_size=12))
def test_each_missing_item_has_its_share_of_places(observed, masses):
    sampling_weights, items = np.concatenate([[0], np.cumsum(masses)]), np.array(sorted(observed), np.int32)
    before = np.concatenate([[0], np.cumsum(np.array(masses)[items])]).astype(np.int64)
    shares = [item for item in range(12) if item not in observed for _ in range(masses[item])]
    assert [_missing_item(sampling_weights, items, before, place) for place in range(len(shares))] == shares


def test_importance_weights_estimate_sums_over_the_missing_items_without_bias():
    masses, values = np.array([5, 1, 1, 2, 9, 1, 3, 1]), np.arange(8.0) ** 2
    sampling_weights, rows = np.concatenate([[0], np.cumsum(masses)]), rows_of([[1, 4]])
    batch = visits_of_one_user(
        rows, 400, plan_of(negatives=300, sampling_weights=sampling_weights, shared=True, seed=np.uint64(3))
    )
    drawn = batch.weights.reshape(400, -1)[:, 2:]
    assert drawn.sum(axis=1) == pytest.approx(6.0)
    estimates = (drawn * values[batch.items.reshape(400, -1)[:, 2:]]).sum(axis=1)
    assert estimates.mean() == pytest.approx(values[[0, 2, 3, 5, 6, 7]].sum(), rel=0.01)
    assert batch.counts == pytest.approx(2 / 300)  # together as many visits as the two own rows


def test_without_residuals_a_batch_has_none():
    assert lay_out(np.array([1, 0]), rows_of([[0, 1], [2]], residuals=False)).residuals.size == 0


@given(items_by_user=lists, iteration=st.integers(0, 9), data=st.data())
def test_users_are_dealt_from_the_longest_list_to_the_shortest_and_keep_their_draws(items_by_user, iteration, data):
    rows, n = rows_of(items_by_user), len(items_by_user)
    users = np.array(data.draw(st.permutations(range(n))), np.int64)
    places = arrange(users, rows, plan_of(iteration=np.uint64(iteration), first_user=5), balanced_order(n))
    by_length = sorted(users.tolist(), key=lambda user: -len(items_by_user[user]))  # equals as they came
    assert places.users.tolist() == [by_length[place] for place in balanced_order(n)]
    assert_array_equal(places.keys, visit_keys(0, iteration, 5 + places.users))
    assert_array_equal(np.diff(places.offsets), [len(items_by_user[user]) for user in places.users])


def by_one(batch):
    """`invert`, which leaves its scratch as it was."""
    counts = np.zeros(N_ITEMS, np.int32)
    active_items = invert(batch, counts)
    assert not counts.any()
    return active_items


def in_parts(parts):
    """`invert` in parts, which does not care what is in its scratch; without sampled items half of it will do."""

    def inverted(batch):
        kinds = 2 if (batch.own < batch.offsets[1:]).any() else 1
        return invert(batch, np.full((kinds, parts, N_ITEMS), 7, np.int32))

    return inverted


@pytest.mark.parametrize("inverted", [by_one, in_parts(1), in_parts(2), in_parts(8)])
@given(items_by_user=st.lists(lists, max_size=4).map(lambda parts: sum(parts, [[1]])), negatives=st.integers(0, 2))
def test_every_visit_of_every_touched_item_in_the_batchs_order_sampled_ones_last(inverted, items_by_user, negatives):
    rows = rows_of([sorted(items) for items in items_by_user])
    users = np.arange(len(items_by_user))[::-1].copy()
    batch = lay_out(users, rows, negatives=negatives)
    active_items = inverted(batch)
    own, sampled = {}, {}
    for n in range(users.size):
        for p in range(batch.offsets[n], batch.offsets[n + 1]):
            visits = own if p < batch.own[n] else sampled
            visits.setdefault(int(batch.items[p]), []).append((p, n))
    assert sorted(active_items.items.tolist()) == sorted({*own, *sampled})
    assert active_items.starts[-1] == batch.items.size
    for t, item in enumerate(active_items.items.tolist()):
        for visits, lo, hi in (
            (own, active_items.starts, active_items.own),
            (sampled, active_items.own, active_items.starts[1:]),
        ):
            here = slice(lo[t], hi[t])
            assert [tuple(report) for report in active_items.visits[here].tolist()] == visits.get(item, [])


@pytest.mark.parametrize("times", [1, 2])
def test_the_scratch_can_be_used_again(times):
    counts = np.zeros(N_ITEMS, np.int32)
    batch = lay_out(np.array([0, 1]), rows_of([[3, 1], [1, 7]]))
    for _ in range(times):
        active_items = invert(batch, counts)
    assert sorted(active_items.items.tolist()) == [1, 3, 7]
