"""Difference quotients: what every gradient is held against."""

from collections.abc import Callable

import numpy as np

from topnrank._typing import Float64Array


def central_differences(
    function: Callable[[Float64Array], float], point: Float64Array, *, step: float = 1e-6
) -> Float64Array:
    """The gradient of `function` at `point` (any shape), one coordinate after another; the error is O(step^2)."""
    gradient = np.empty(point.shape)
    for place in np.ndindex(point.shape):
        ahead, behind = point.astype(np.float64), point.astype(np.float64)
        ahead[place] += step
        behind[place] -= step
        gradient[place] = (function(ahead) - function(behind)) / (2.0 * step)
    return gradient
