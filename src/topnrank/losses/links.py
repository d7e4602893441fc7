"""Link functions: what maps a score f to the number s that a softmax is taken of.

| name     | s(f)                       | ds/df           |
|----------|----------------------------|-----------------|
| sigmoid  | g(f), g the logistic       | g(f) (1 - g(f)) |
| identity | f                          | 1               |
"""

import numpy as np

from topnrank._typing import Float64Array
from topnrank.losses.steps import Sigmoid

LINKS = ("sigmoid", "identity")
_LOGISTIC = Sigmoid(1.0)


def apply_link(link: str, scores: Float64Array) -> tuple[Float64Array, Float64Array]:
    """s and ds/df of a list, each of shape (m,)."""
    if link == "identity":
        return scores, np.ones_like(scores)
    return _LOGISTIC.h(scores), _LOGISTIC.dh(scores)
