import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topnrank.data.ids import IdMap
from topnrank.errors import DataError

INT64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.one_of(
    st.lists(st.integers(0, 30), min_size=1),
    st.lists(INT64, min_size=1),
    st.lists(st.text(min_size=1), min_size=1),
)


@settings(deadline=None)
@given(IDS)
def test_encode_numbers_the_sorted_distinct_ids(values):
    ids, codes = IdMap.encode(values)
    assert ids.ids.tolist() == sorted(set(values))
    assert [ids.ids.tolist()[code] for code in codes] == values
    assert codes.dtype == np.int32


@settings(deadline=None)
@given(IDS)
def test_index_inverts_ids_and_knows_no_others(values):
    ids, codes = IdMap.encode(values)
    np.testing.assert_array_equal(ids.index(values), codes)
    subset = IdMap(ids.ids[1:])
    np.testing.assert_array_equal(subset.index(values), codes - 1)


def test_chunks_share_one_numbering():
    ids, codes = IdMap.encode(pa.chunked_array([["b", "a"], ["c", "a"]]))
    assert ids.ids.tolist() == ["a", "b", "c"]
    assert codes.tolist() == [1, 0, 2, 0]


def test_one_id_may_be_asked_for_alone():
    assert IdMap(np.array([3, 42])).index(42).tolist() == [1]
    assert IdMap(np.array(["a", "b"])).index("b").tolist() == [1]


def test_integer_ids_are_found_by_numeric_text_and_text_ids_by_integers():
    assert IdMap(np.array([-3, 42])).index(["42", "-3", "x", "4_2", "", "9" * 30]).tolist() == [1, 0, -1, -1, -1, -1]
    assert IdMap(np.array([0, 42])).index([42.0, 0.5, np.nan]).tolist() == [1, -1, -1]
    assert IdMap(np.array(["3", "42"])).index([42, 3, 7]).tolist() == [1, 0, -1]


def test_an_unsigned_id_beyond_int64_is_unknown():
    assert IdMap(np.array([-1, 5])).index(np.array([2**64 - 1, 5], dtype=np.uint64)).tolist() == [-1, 1]


def test_an_empty_map_knows_nothing():
    assert IdMap(np.empty(0, dtype=np.int64)).index([1, 2]).tolist() == [-1, -1]


def test_whole_floats_are_integers():
    ids, codes = IdMap.encode(np.array([2.0, 1.0, 2.0]))
    assert ids.ids.dtype == np.int64
    assert codes.tolist() == [1, 0, 1]


def test_categories_are_read_by_value():
    ids, codes = IdMap.encode(pa.array(["b", "a", "b"]).dictionary_encode())
    assert ids.ids.tolist() == ["a", "b"]
    assert codes.tolist() == [1, 0, 1]


def test_ids_cannot_be_written_nor_change_with_the_callers_array():
    given = np.array([1, 2])
    ids = IdMap(given)
    with pytest.raises(ValueError, match="read-only"):
        ids.ids[0] = 5
    given[0] = 0
    assert ids.ids.tolist() == [1, 2]


@pytest.mark.parametrize("values", [[2, 1], [1, 1], ["b", "a"], [[1, 2]]])
def test_a_map_must_be_ascending(values):
    with pytest.raises(DataError, match="ascending"):
        IdMap(np.array(values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, None], "ids, row 2, column 'id': must not be empty, got null"),
        (pa.nulls(2), "row 1, .* got null"),
        (["a", ""], "row 2, .* got ''"),
        ([1.0, 2.5], "row 2, .* integers or text, got 2.5; convert"),
        ([1.0, float("nan")], "row 2, .* got nan"),
        ([2.0**60], "row 1, .* got 1.15"),
        ([True], "not bool, got True"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "not date32"),
        (np.array([1, 2**63], dtype=np.uint64), "row 2, .* 64-bit integer, got 9223372036854775808"),
    ],
)
def test_bad_ids_are_named(values, message):
    with pytest.raises(DataError, match=message):
        IdMap.encode(values)
