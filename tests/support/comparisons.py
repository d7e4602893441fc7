"""Comparisons from real fits, small enough for tests."""

import time
from functools import cache
from typing import Any

import numpy as np

import topnrank as tnr
from topnrank._typing import Float64Array
from topnrank.experiments.compare.result import Cell, Comparison
from topnrank.experiments.report.summary import Summary
from topnrank.testing.base import small_data

METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg@20")
PROTOCOLS = ("rated", "catalog")
HOSTILE = "<b>\"&'|_x_"
"""A name that breaks out of every format that does not escape it."""
REPEATS = 3


class Broken(tnr.Model):
    """A model whose training fails."""

    name = "broken"

    def fit(self, data: tnr.Interactions) -> tnr.Model:
        raise tnr.DivergenceError("the objective became NaN in round 3 | lower\nlearning_rate to 50 % of <it>")

    check = score_block = score_pairs = score_history = lambda self, *_: None


def models() -> dict[str, tnr.Model]:
    """The rows, in order."""
    return {
        "TopNRank": tnr.TopNRank(task="rated", epochs=8, factors=4),
        "BiasedMF": tnr.BiasedMF(epochs=8, factors=4),
        HOSTILE: tnr.BPR(epochs=4, factors=4),
        "Broken": Broken(),
        "ItemMean": tnr.ItemMean(),
        "Popularity": tnr.Popularity(),
        "Random": tnr.Random(),
    }


def cell(name: str, repeat: int, metrics: tuple[str, ...] = METRICS) -> Cell:
    """One model fitted on one split of the small data, measured under both protocols."""
    data = small_data()
    train, test = tnr.split_per_user(data, test=0.5, seed=repeat)
    model, start = models()[name], time.perf_counter()
    try:
        model = model.fit(train, validation=0.25) if name == "TopNRank" else model.fit(train)
    except tnr.TopNRankError as error:
        return Cell(name, repeat, 0.0, 0.0, {}, [], str(error))
    fitted = time.perf_counter()
    values = {}
    for protocol in PROTOCOLS:
        result = tnr.evaluate(model, test, protocol=protocol, metrics=metrics)
        values |= {(protocol, metric): over(data.users, result, metric) for metric in metrics}
    curve = model.fitted.info.history
    return Cell(name, repeat, fitted - start, time.perf_counter() - fitted, values, curve, None)


def over(users: Any, result: tnr.Evaluation, metric: str) -> Float64Array:
    """The values of one metric over all users of the data."""
    values = np.full(len(users), np.nan)
    values[users.index(result.user_ids)] = result.per_user[metric]
    return values


def parameters(model: tnr.Model) -> dict[str, Any]:
    """What a report says of a model."""
    return {} if isinstance(model, Broken) else {name: str(value) for name, value in model.get_params().items()}


@cache
def small_comparison(metrics: tuple[str, ...] = METRICS) -> Comparison:
    """Seven rows, one of which fails, on three splits."""
    data, names = small_data(), tuple(models())
    cells = {(name, repeat): cell(name, repeat, metrics) for name in names for repeat in range(REPEATS)}
    settings = {
        "identity": {"data": data.fingerprint()},
        "split": "per-user",
        "test": 0.5,
        "seeds": [0, 1, 2],
        "relevance": "rating >= 4",
        "kinds": {name: model.name for name, model in models().items()},
        "parameters": {name: parameters(model) for name, model in models().items()},
        "versions": {"topnrank": tnr.__version__, "numpy": np.__version__},
    }
    lengths, counts = np.unique(np.diff(data.indptr), return_counts=True)
    facts = {
        "users": data.n_users,
        "items": data.n_items,
        "rows": len(data),
        "list_length_counts": dict(zip(map(str, lengths.tolist()), counts.tolist(), strict=True)),
        "users_excluded": {"rated": [1, 0, 2], "catalog": [1, 1, 1]},
    }
    return Comparison(names, PROTOCOLS, metrics, REPEATS, data.users.ids, settings, facts, cells)


@cache
def small_summary() -> Summary:
    """The same, with its intervals and tests, which take time."""
    return Summary.of(small_comparison())
