"""Small data for models of the whole catalog."""

import numpy as np

from topnrank import Interactions
from topnrank.data import synthetic

SMALL = {
    "order": "none",
    "task": "catalog",
    "factors": 8,
    "epochs": 8,
    "negatives": 30,
    "neighbors": 6,
    "batch_size": 20,
}


def ratings():
    """Ratings of 150 users for 80 items with planted tastes."""
    return synthetic(users=150, items=80, ratings=3000, taste=0.9, noise=0.5, seed=3)


def groups(seed=0, users=120, items=60, each=9):
    """Likes alone: a user likes items of the own group of ten, now and then another one."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        own = rng.permutation(10)[: each - 1] + 10 * (user % 6)
        rows += [(user, int(item)) for item in {*own.tolist(), int(rng.integers(items))}]
    pairs = np.array(rows)
    return Interactions.from_arrays(pairs[:, 0], pairs[:, 1])
