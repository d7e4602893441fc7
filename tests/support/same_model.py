"""Equality of models that two engines trained."""

import numpy as np
from numpy.testing import assert_allclose


def assert_same_model(ours, theirs):
    """All arrays agree: sums were added in another order, no more."""
    assert ours.fitted.arrays.keys() == theirs.fitted.arrays.keys()
    for name, array in theirs.fitted.arrays.items():
        scale = max(float(np.abs(array).max(initial=0.0)), 1e-6)
        assert_allclose(ours.fitted.arrays[name], array, rtol=1e-4, atol=1e-5 * scale, err_msg=name)
    assert_allclose(
        [record["objective"] for record in ours.history_],
        [record["objective"] for record in theirs.history_],
        rtol=1e-5,
    )
