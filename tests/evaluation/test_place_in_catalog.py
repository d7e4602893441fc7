"""Where labels stand among all items, against counting them one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.testing import assert_array_equal

from topnrank.evaluation._metrics_kernel import WHOLE, order_lists, place_in_catalog
from topnrank.rng import stream

scores = st.sampled_from([np.nan, -np.inf, -1.0, -0.0, 0.0, 0.5, 2.0, np.inf]).map(np.float32)


@given(values=arrays.arrays(np.float32, st.integers(0, 30), elements=scores), cut=st.integers(0, 30))
def test_lists_are_ordered_as_by_a_stable_sort(values, cut):
    indptr = np.array([0, min(cut, values.size), values.size])
    owner = np.repeat([0, 1], np.diff(indptr))
    assert_array_equal(order_lists(values, indptr), np.lexsort((-values, owner)))


@pytest.mark.parametrize("n_items", [31, 32, 300, 2000])
@pytest.mark.parametrize("depth", [1, 5, 20, 100, WHOLE])
def test_places_are_exact_down_to_the_depth(n_items, depth):
    draw = stream(n_items, "test places")
    block = draw.integers(0, 400, (12, n_items)).astype(np.float32)
    block[draw.random(block.shape) < 0.2] = np.nan
    levels = [np.unique(row[~np.isnan(row)])[::-1][:: draw.integers(1, 9)] for row in block]
    levels = [np.append(own, np.float32(np.nan)) for own in levels]
    indptr = np.concatenate(([0], np.cumsum([own.size for own in levels])))
    above, tied, length = place_in_catalog(block, indptr, np.concatenate(levels), depth)
    for user, (row, own) in enumerate(zip(block, levels, strict=True)):
        assert length[user] == np.count_nonzero(~np.isnan(row))
        for level, score in enumerate(own):
            place = indptr[user] + level
            higher = length[user] if np.isnan(score) else np.count_nonzero(row > score)
            if higher < depth:
                assert above[place] == higher
                assert tied[place] == (1 if np.isnan(score) else np.count_nonzero(row == score))
            else:
                assert depth <= above[place] <= higher
