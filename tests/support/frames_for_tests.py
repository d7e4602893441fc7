"""Small data as pandas frames and the same rows as Spark DataFrames."""

import numpy as np
import pandas as pd

from topnrank.data.frames import Columns
from topnrank.spark.data.interactions import collect_table

RATED = Columns(user="user", item="item", rating="rating", timestamp="timestamp")
EVENTS = Columns(user="user", item="item", type="type", timestamp="timestamp")


def ratings(n_users=40, n_items=30, n_rows=600, seed=0) -> pd.DataFrame:
    """Distinct pairs in random order: textual users, integer items, half of which are below 0."""
    rng = np.random.default_rng(seed)
    users, items = np.divmod(rng.permutation(n_users * n_items)[:n_rows], n_items)
    taste = rng.normal(size=(n_users, 3)) @ rng.normal(size=(3, n_items))
    return pd.DataFrame(
        {
            "user": [f"{'uü𝄞'[user % 3]}{user}" for user in users],
            "item": 3 * items - 45,
            "rating": np.clip(np.round(3 + taste[users, items]), 1, 5),
            "timestamp": rng.integers(0, 10**9, n_rows),
        }
    )


def events(seed=0, **sizes: int) -> pd.DataFrame:
    """As `ratings`, with a type and a weight in place of the rating."""
    rng = np.random.default_rng(seed + 1)
    frame = ratings(seed=seed, **sizes).drop(columns="rating")
    frame["type"] = rng.choice(["buy", "view", "dislike"], len(frame))
    return frame


def collected(frame) -> pd.DataFrame:
    """A Spark DataFrame in pandas, by way of Arrow: Spark's own way warns about new versions of pandas."""
    return collect_table(frame).to_pandas()
