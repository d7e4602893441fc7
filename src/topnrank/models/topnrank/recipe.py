"""The two tasks of TopNRank, ranking rated items and ranking the catalog, and the settings that suit each."""

from typing import Any

import numpy as np

from topnrank.data.interactions import Interactions
from topnrank.models.search_space import Choice, Range, Space

TASKS = ("rated", "catalog")
AUTO = "auto"
"""Stands for the value that suits the task."""
SETTINGS: dict[str, dict[str, Any]] = {
    "rated": {
        "gradient": "paper",
        "discount": "dcg",
        "gradient_budget": 0.15,
        "squared_weight": 1.0,
        "negatives": 0,
        "neighbors": 0,
        "dislikes": "history",
        "learning_rate": 0.07,
        "regularization": 0.0125,
        "history_power": 0.6,
    },
    "catalog": {
        "gradient": "exact",
        "discount": -1.0,
        "gradient_budget": None,
        "squared_weight": 0.0,
        "negatives": 100,
        "neighbors": 50,
        "learning_rate": 0.1,
        "regularization": 0.02,
        "history_power": 0.5,
    },
}
"""What "auto" means for each task; both were picked on validation data (docs/results)."""
CATALOG_SPACE: Space = {
    "factors": Choice((32, 64, 128)),
    "learning_rate": Range(0.01, 0.2, log=True),
    "regularization": Range(0.005, 3.0, log=True),
    "neighbor_penalty": Range(10.0, 500.0, log=True),
    "history_power": Range(0.3, 0.8),
    "epochs": Range(3, 30, log=True, whole=True),
}
"""Values worth trying for the catalog."""
CATALOG_SHARES = {"user": 10.0, "item": 1.0, "history": 0.25, "bias": 0.0}
"""For the catalog: what of a plain number for lambda each group of parameters gets."""
CATALOG_STEEPNESS, CATALOG_ACCUMULATOR, CATALOG_BALANCE = 2.0, 0.4, 0.5
"""For the catalog: C of the Laplace step, AdaGrad's start, and the power of |likes| that a user's loss is divided by."""


def natural_task(data: Interactions) -> str:
    """The task that data can teach: ratings, or weights that differ within a user, an order of observed items."""
    if data.ratings is not None:
        return "rated"
    if data.weights is None or data.types is not None:
        return "catalog"
    same_user = np.diff(data.user_index) == 0
    return "rated" if np.any(same_user & (np.diff(data.weights) != 0)) else "catalog"
