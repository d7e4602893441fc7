"""A model that returns given scores, and metrics written as plainly as possible."""

from itertools import permutations
from math import log2

import numpy as np

from topnrank._csr import indptr_from_counts
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions


class FixedRanker:
    """Scores (n_users, n_items) of users 0, 1, ... and items 0, 1, ... unless ids are given; `seen` lists items."""

    task_ = "rated"

    def __init__(self, scores, *, seen=None, user_ids=None, item_ids=None):
        self.scores = np.asarray(scores, dtype=np.float32)
        n_users, n_items = self.scores.shape
        users = IdMap(np.arange(n_users) if user_ids is None else np.asarray(user_ids, dtype=object))
        items = IdMap(np.arange(n_items) if item_ids is None else np.asarray(item_ids, dtype=object))
        lists = [[] for _ in range(n_users)] if seen is None else seen
        indices = np.array([item for items in lists for item in items], dtype=np.int32)
        self.fitted = Interactions(users, items, indptr_from_counts(np.array([*map(len, lists)])), indices)

    def score_block(self, users):
        return self.scores[users]

    def score_pairs(self, users, items):
        return self.scores[users, items]


def _dcg(gains):
    return sum(gain / log2(place + 2) for place, gain in enumerate(gains))


def plain_metric(kind, ranked, labels, *, cut, highest):
    """One metric of one order: `ranked` and `labels` hold (relevant, grade), `labels` those not retrieved, too."""
    top = ranked if cut is None else ranked[:cut]
    flags = [relevant for relevant, _ in top]
    n_relevant = sum(relevant for relevant, _ in labels)
    gain = {"ndcg": lambda label: label[0], "ndcg_graded": lambda label: 2 ** label[1] - 1}
    if kind in gain:
        best = sorted(map(gain[kind], labels), reverse=True)[:cut]
        return _dcg(map(gain[kind], top)) / _dcg(best)
    if kind == "map":
        hits = [sum(flags[: place + 1]) / (place + 1) for place, flag in enumerate(flags) if flag]
        return sum(hits) / (n_relevant if cut is None else min(cut, n_relevant))
    if kind == "mrr":
        return 1 / (flags.index(True) + 1) if any(flags) else 0.0
    if kind == "err":
        value, reading = 0.0, 1.0
        for place, (_, grade) in enumerate(top):
            stop = (2**grade - 1) / 2**highest
            value, reading = value + reading * stop / (place + 1), reading * (1 - stop)
        return value
    found = {"precision": len(ranked) if cut is None else cut, "recall": n_relevant}
    return sum(flags) / found[kind] if kind in found else float(any(flags))


def expected_metric(kind, candidates, labels, *, cut, highest):
    """Mean over all orders of `candidates` (score, relevant, grade) that keep the scores falling.

    Orders that differ only by equal candidates are as many for each, so each distinct order counts once.
    """
    orders = [sorted(order, key=lambda row: -row[0]) for order in permutations(candidates)]
    values = [
        plain_metric(kind, [row[1:] for row in order], labels, cut=cut, highest=highest)
        for order in {tuple(map(tuple, order)) for order in orders}
    ]
    return float(np.mean(values))
