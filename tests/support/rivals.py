"""Competitors for tests, importable by the processes that `jobs` starts."""

import os
import signal
import time
from pathlib import Path

import numpy as np


class ItemMeans:
    """Item means by hand, without damping; items without ratings last."""

    name = "means by hand"

    def fit(self, train):
        rows = train.to_arrow().to_pydict()
        ratings: dict = {}
        for item, rating in zip(rows["item"], rows["rating"], strict=True):
            ratings.setdefault(item, []).append(rating)
        self.means_ = {item: float(np.mean(values)) for item, values in ratings.items()}

    def score(self, users, items):
        assert len(users) == len(items)
        return np.array([self.means_.get(item, -1.0) for item in items])


class Fails:
    """Raises in `fit`, always or until a file exists."""

    name = "fails"

    def __init__(self, error=ValueError, unless=None):
        self.error, self.unless = error, unless

    def fit(self, train):
        if self.unless is None or not Path(self.unless).exists():
            raise self.error("a bolt\nis loose")

    def score(self, users, items):
        return np.zeros(len(users))


class Dies:
    """Kills its own process, as the system does when memory runs out."""

    name = "dies"

    def fit(self, train):
        os.kill(os.getpid(), signal.SIGKILL)

    def score(self, users, items):
        return np.zeros(len(users))


class Counted:
    """Leaves a line in a file for each fit; may take its time from the `slow_from`-th on, which is no parameter."""

    def __init__(self, log, *, name="counted", color=None, slow_from=None):
        self.log, self.name, self.color, self.slow_from_ = str(log), name, color, slow_from

    def fit(self, train):
        with Path(self.log).open("a") as log:
            log.write(f"{self.name}\n")
        fits = Path(self.log).read_text().splitlines().count(self.name)
        if self.slow_from_ is not None and fits >= self.slow_from_:
            time.sleep(600)

    def score(self, users, items):
        return np.array([hash((int(user), int(item))) % 1000 for user, item in zip(users, items, strict=True)])


class Scores:
    """Returns what it is told to."""

    name = "scores"

    def __init__(self, value):
        self.value = value

    def fit(self, train):
        return None

    def score(self, users, items):
        return self.value(len(users))
