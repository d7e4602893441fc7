import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError

INTEGER_ID = st.integers(-5, 20)
TEXT_ID = st.text("abé1 ", min_size=1, max_size=3)
RATING = st.integers(1, 10).map(lambda halves: halves / 2)


@st.composite
def rating_dicts(draw):
    """{(user, item): (rating, timestamp)} with integer or text ids."""
    user, item = draw(st.sampled_from([(INTEGER_ID, TEXT_ID), (TEXT_ID, INTEGER_ID), (INTEGER_ID, INTEGER_ID)]))
    return draw(st.dictionaries(st.tuples(user, item), st.tuples(RATING, st.integers(0, 9)), min_size=1, max_size=30))


def from_dict(model, order=None):
    rows = [(user, item, *values) for (user, item), values in model.items()]
    users, items, ratings, clock = zip(*[rows[k] for k in order or range(len(rows))], strict=True)
    return Interactions.from_arrays(users, items, ratings=ratings, timestamps=clock)


def to_dict(data):
    table = data.to_arrow().to_pydict()
    pairs = zip(table["user"], table["item"], strict=True)
    return dict(zip(pairs, zip(table["rating"], table["timestamp"], strict=True), strict=True))


@settings(deadline=None)
@given(rating_dicts())
def test_csr_equals_a_dictionary(model):
    data = from_dict(model)
    assert to_dict(data) == model
    assert data.users.ids.tolist() == sorted({user for user, _ in model})
    assert data.items.ids.tolist() == sorted({item for _, item in model})
    for number, user in enumerate(data.users.ids.tolist()):
        row = slice(data.indptr[number], data.indptr[number + 1])
        assert data.items.ids[data.indices[row]].tolist() == sorted(item for other, item in model if other == user)
        assert (data.user_index[row] == number).all()


@settings(deadline=None)
@given(rating_dicts(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(model, random):
    order = list(range(len(model)))
    random.shuffle(order)
    assert from_dict(model, order).fingerprint() == from_dict(model).fingerprint()


@settings(deadline=None)
@given(rating_dicts(), rating_dicts())
def test_different_data_have_different_fingerprints(one, other):
    assert (from_dict(one).fingerprint() == from_dict(other).fingerprint()) == (one == other)


def test_the_fingerprint_sees_every_part():
    columns = {"ratings": [1, 2], "types": ["a", "b"], "weights": [1, 2], "timestamps": [1, 2]}
    digests = [Interactions.from_arrays([1, 2], [3, 4]).fingerprint()]
    digests += [Interactions.from_arrays([1, 2], [3, 4], **{name: v}).fingerprint() for name, v in columns.items()]
    digests.append(Interactions.from_arrays(["1", "2"], [3, 4]).fingerprint())
    digests.append(Interactions.from_arrays([1, 2], [3, 5]).fingerprint())
    assert len(set(digests)) == len(digests)


@settings(deadline=None)
@given(rating_dicts(), st.data())
def test_take_and_compact(model, data):
    whole = from_dict(model)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(whole), max_size=len(whole))))
    part = whole.take(mask)
    assert part.users is whole.users
    assert part.items is whole.items
    np.testing.assert_array_equal(part.user_index, whole.user_index[mask])
    np.testing.assert_array_equal(part.indices, whole.indices[mask])
    np.testing.assert_array_equal(part.ratings, whole.ratings[mask])
    assert part.fingerprint() == whole.take(np.flatnonzero(mask)).fingerprint()
    expected = dict(pair for pair, kept in zip(to_dict(whole).items(), mask, strict=True) if kept)
    assert to_dict(part.compact()) == expected
    if expected:
        assert part.compact().fingerprint() == from_dict(expected).fingerprint()


def test_rows_of_several_types_are_ordered_by_type():
    data = Interactions.from_arrays([1, 1, 1], ["x", "x", "a"], types=["view", "buy", "view"])
    assert data.type_names == ("buy", "view")
    assert data.indices.tolist() == [0, 1, 1]
    assert data.types.tolist() == [1, 0, 1]
    assert data.pair_starts.tolist() == [True, True, False]
    assert data.to_arrow()["type"].to_pylist() == ["view", "buy", "view"]


@pytest.mark.parametrize("users", [[1, 1, 2], [2, 1, 1]])
def test_data_do_not_change_with_the_callers_arrays(users):
    ratings, weights = np.array([1, 2, 3], dtype=np.float32), np.array([4, 5, 6], dtype=np.float32)
    timestamps = np.array([7, 8, 9])
    data = Interactions.from_arrays(users, [1, 2, 3], ratings=ratings, weights=weights, timestamps=timestamps)
    weighted = data.with_weights(weights)
    before = data.fingerprint(), weighted.fingerprint()
    for array in (ratings, weights, timestamps):
        array[:] = 0
    assert (data.fingerprint(), weighted.fingerprint()) == before


def test_arrays_are_read_only_and_the_callers_array_stays_writable():
    data = Interactions.from_arrays([1, 2], [3, 4], ratings=[1, 2])
    assert data.indptr.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        data.ratings[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        data.user_index[0] = 5
    weights = np.ones(2, dtype=np.float32)
    data.with_weights(weights)
    weights[0] = 2


@pytest.mark.parametrize("rows", [[1, 0], [0, 0], [-1], [2], [True]])
def test_take_refuses_what_is_no_subset(rows):
    with pytest.raises(ParameterError, match=r"row positions must be|a mask of rows must"):
        Interactions.from_arrays([1, 2], [3, 4]).take(np.array(rows))


def test_with_weights():
    data = Interactions.from_arrays([1, 2], [3, 4]).with_weights([1, -1])
    assert data.weights.tolist() == [1, -1]
    assert data.weights.dtype == np.float32
    with pytest.raises(DataError, match="shape \\(2,\\)"):
        data.with_weights([1])
    with pytest.raises(DataError, match="got nan at position 1"):
        data.with_weights([1, np.nan])


def test_filter_drops_items_then_users_once():
    users, items = [1, 1, 2, 2, 3, 3], ["a", "b", "a", "c", "a", "b"]
    data = Interactions.from_arrays(users, items, ratings=range(6))
    kept = data.filter(min_item_users=2, min_user_items=2)
    assert kept.to_arrow().to_pydict() == {"user": [1, 1, 3, 3], "item": ["a", "b"] * 2, "rating": [0, 1, 4, 5]}
    # user 2 goes after item c went; item a, now of two users, is not counted again
    assert data.filter(min_item_users=3).items.ids.tolist() == ["a"]
    assert data.filter().fingerprint() == data.fingerprint()


def test_filter_counts_pairs_not_types():
    data = Interactions.from_arrays([1, 1, 2], ["a", "a", "b"], types=["view", "buy", "view"])
    with pytest.raises(DataError, match=r"no rows are left of 3 after the filter .*min_user_items=2; lower them"):
        data.filter(min_user_items=2)
    with pytest.raises(DataError, match="min_item_users=2"):
        data.filter(min_item_users=2)
    with pytest.raises(ParameterError, match="min_user_items must be an integer of at least 0, got -1"):
        data.filter(min_user_items=-1)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.csc_array])
def test_from_scipy_keeps_empty_rows_and_columns(kind):
    dense = np.array([[0, 2, 0], [0, 0, 0], [1, 0, 0]])
    data = Interactions.from_scipy(kind(dense), user_ids=["z", "y", "x"])
    assert data.to_arrow().to_pydict() == {"user": ["x", "z"], "item": [0, 1], "rating": [1, 2]}
    assert data.users.ids.tolist() == ["x", "y", "z"]
    assert data.n_items == 3


def test_from_scipy_adds_repeated_entries_up():
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])))
    data = Interactions.from_scipy(matrix, values="weight")
    assert data.ratings is None
    assert data.weights.tolist() == [3, 3]
    assert data.merged_rows == 1


def test_from_scipy_errors():
    matrix = scipy.sparse.coo_array(([1.0, np.nan], ([0, 1], [1, 0])))
    with pytest.raises(DataError, match=r"matrix entry \(1, 0\), .* finite number, got nan"):
        Interactions.from_scipy(matrix)
    with pytest.raises(DataError, match="user_ids must be 2 different ids, got 2 with 1"):
        Interactions.from_scipy(matrix, user_ids=[1, 1])
    with pytest.raises(DataError, match="no entries"):
        Interactions.from_scipy(scipy.sparse.coo_array((2, 2)))
    with pytest.raises(DataError, match="got ndarray"):
        Interactions.from_scipy(np.eye(2))
    with pytest.raises(ParameterError, match="values must be one of"):
        Interactions.from_scipy(matrix, values="count")


def test_repr_tells_the_size():
    data = Interactions.from_arrays([1, 2], [3, 3], ratings=[1, 2])
    assert repr(data) == "Interactions(2 rows, 2 users, 1 items, ratings)"
