import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_array_equal

from topnrank.kernels.top_items import top_items, top_items_by_group
from topnrank.rng import stream

levels = st.sampled_from([np.nan, -np.inf, -1.0, 0.0, 0.5, 0.5, 2.0])
blocks = arrays.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 14)), elements=levels.map(np.float32))


def walk(scores, n, groups, most):
    """Down from the best, passing over items whose group is full: the definition."""
    chosen, counts = [], {}
    for item in np.argsort(-scores, kind="stable"):  # NaN last
        group = groups[item]
        if np.isnan(scores[item]) or len(chosen) == n or (group >= 0 and counts.get(group, 0) == most):
            continue
        chosen.append(item)
        counts[group] = counts.get(group, 0) + 1
    return chosen


@given(block=blocks, n=st.integers(1, 16), most=st.integers(1, 4), draw=st.data())
def test_the_lists_are_those_of_a_walk_from_the_top(block, n, most, draw):
    groups = draw.draw(arrays.arrays(np.int32, block.shape[1], elements=st.integers(-1, 3)))
    best = top_items_by_group(block, n, groups, most)
    assert best.shape == (block.shape[0], n)
    for scores, chosen in zip(block, best, strict=True):
        expected = walk(scores, n, groups, most)
        assert_array_equal(chosen[: len(expected)], expected)
        assert np.all(chosen[len(expected) :] == -1)


def test_many_columns_and_groups():
    draw = stream(0, "test groups")
    block = draw.normal(size=(30, 2000)).astype(np.float32)
    groups = draw.integers(-1, 12, 2000).astype(np.int32)
    best = top_items_by_group(block, 20, groups, 2)
    assert best.tolist() == [walk(scores, 20, groups, 2) for scores in block]


@given(block=blocks, n=st.integers(1, 16))
def test_without_groups_or_with_room_for_all_nothing_is_passed_over(block, n):
    none, one = np.full(block.shape[1], -1, np.int32), np.zeros(block.shape[1], np.int32)
    assert_array_equal(top_items_by_group(block, n, none, 1), top_items(block, n))
    assert_array_equal(top_items_by_group(block, n, one, block.shape[1]), top_items(block, n))
