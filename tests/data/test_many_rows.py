"""Millions of rows go another way to the same result; here the way is taken by a handful."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from topnrank import DataError, Interactions
from topnrank.data import many_rows

rows = st.lists(
    st.tuples(st.integers(-3, 9), st.integers(5, 12), st.sampled_from(["buy", "cart", "view"]), st.integers(0, 99)),
    min_size=1,
    max_size=40,
)


def built(table, duplicates="error"):
    try:
        return Interactions.from_frame(table, duplicates=duplicates)
    except DataError as error:
        return str(error)


@given(rows=rows, typed=st.booleans(), rule=st.sampled_from(["error", "last", "sum"]), cut=st.integers(0, 40))
def test_both_ways_give_the_same_rows_or_the_same_error(rows, typed, rule, cut):
    columns = dict(zip(("user", "item", "type", "timestamp"), map(list, zip(*rows, strict=True)), strict=True))
    columns["rating"] = [float(time % 5) for time in columns["timestamp"]]
    if not typed:
        del columns["type"]
    table = pa.table(columns)
    table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])  # two chunks
    expected = built(table, rule)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_rows, "MANY", 1)
        found = built(table, rule)
    if isinstance(expected, str):
        assert found == expected
    else:
        assert found.fingerprint() == expected.fingerprint()
        assert found.merged_rows == expected.merged_rows


@given(pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7)), min_size=1, max_size=60))
def test_the_order_is_that_of_a_lexsort(pairs):
    users, cells = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    order = many_rows.CsrOrder(users, cells, 6)
    expected = np.lexsort((cells, users))
    assert_array_equal(order.of(np.arange(users.size)), expected)
    assert_array_equal(order.users(), users[expected])
    assert_array_equal(order.cells(), cells[expected])
    assert order.has_repeats == (len(set(pairs)) < len(pairs))
    ascending = all(a < b for a, b in pairwise(pairs))
    assert many_rows.is_ascending(users, cells) == ascending


def test_rows_of_the_caller_are_copied(monkeypatch):
    monkeypatch.setattr(many_rows, "MANY", 1)
    ratings, times = np.array([1, 2, 3], np.float32), np.array([7, 8, 9])
    data = Interactions.from_arrays([1, 1, 2], [1, 2, 1], ratings=ratings, timestamps=times)
    ratings[:], times[:] = 0, 0
    assert data.ratings.tolist() == [1, 2, 3]
    assert data.timestamps.tolist() == [7, 8, 9]
