"""Small training problems for the engine tests."""

from dataclasses import replace

import numpy as np

from topnrank.engines import Problem, State, TrainingTime
from topnrank.losses.weighted_dcg.reference import WeightedDCG
from topnrank.rng import stream
from topnrank.scorers import Factors, History, Neighbors, TrainingLists, UpdateRule
from topnrank.scorers.neighbors import SCALE

N_USERS, N_ITEMS = 12, 15
SCORERS = {"factors": Factors(4, 0.3), "history": History(4, 0.3), "types": History(4, 0.3)}
"""The last: histories with three types of feedback, each with vectors of its own, as the residuals of the rows say"""


def random_rows(seed: int = 0) -> TrainingLists:
    """Lists of 2 to 9 items with gains and residuals around zero; item 0 is in every list, some items in none."""
    draw = stream(seed, "test rows")
    lists = [np.sort(np.append(0, 1 + draw.permutation(N_ITEMS - 2)[: draw.integers(1, 9)])) for _ in range(N_USERS)]
    indptr = np.concatenate([[0], np.cumsum([items.size for items in lists])]).astype(np.int64)
    gains, residuals = draw.normal(size=(2, indptr[-1])).astype(np.float32)
    return read_only(TrainingLists(indptr, np.concatenate(lists).astype(np.int32), gains, residuals[:, None]))


def read_only(rows: TrainingLists) -> TrainingLists:
    """The lists with arrays as those of real data are, for which the kernels need not be compiled once more."""
    for array in rows[:3]:
        array.flags.writeable = False
    return rows


LISTS = ("whole", "liked", "sampled", "linked")
"""What lists hold: all rows of the user; only those with a gain above 0; those, and four unobserved items; the same, drawn
by chances, with a shared penalty, strengths of the history's rows and neighbors beside the scorer."""


def make_problem(
    scorer: str, objective=None, *, adagrad: bool = False, rate: float = 0.01, lists: str = "whole"
) -> Problem:
    """A problem whose blocks all step, each with a penalty of its own."""
    names = ("user_factors", "item_factors", "history_factors", "rating_factors", "item_bias")
    decays = {name: 0.01 * (1 + place // 2) for place, name in enumerate(names)}
    decays["rating_factors"] = decays["history_factors"]
    rules = {name: UpdateRule(adagrad, rate, decays[name]) for name in names}
    rows = random_rows() if lists == "whole" else random_rows()._replace(listed=random_rows().gains > 0)
    negatives = 4 if lists == "sampled" else 0
    if scorer == "types":
        types = stream(9, "test types").integers(0, 3, rows.items.size)
        rows = rows._replace(residuals=np.eye(3, dtype=np.float32)[types])
    problem = Problem(SCORERS[scorer], objective or WeightedDCG(n=5), rows, rules, negatives, seed=3)
    return neighbor_term(problem, UpdateRule(adagrad, rate, 0.0)) if lists == "linked" else problem


def neighbor_term(problem: Problem, rule: UpdateRule) -> Problem:
    """The problem with chances, a shared penalty and random neighbors; item 3 has fewer of them."""
    draw = stream(5, "test neighbors")
    items = np.sort([draw.permutation(np.delete(np.arange(N_ITEMS), i))[:3] for i in range(N_ITEMS)], axis=1)
    weights = draw.normal(size=items.shape).astype(np.float32)
    items[3, 1:], weights[3, 1:] = 3, 0.0
    neighbor_scores = draw.normal(size=problem.rows.items.size).astype(np.float32)
    return replace(
        problem,
        rows=problem.rows._replace(
            neighbor_scores=neighbor_scores, recency_weights=draw.random(neighbor_scores.size).astype(np.float32)
        ),
        rules=problem.rules | {SCALE: rule},
        negatives=4,
        sampling_weights=draw.integers(1, 9, N_ITEMS),
        shared=True,
        neighbors=Neighbors(items.astype(np.int32), weights),
    )


def start(problem: Problem, seed: int = 1) -> State:
    """Start values with biases that are not zero."""
    parameters = problem.scorer.initialize(N_USERS, N_ITEMS, seed, problem.rows.residuals.shape[1])
    parameters["item_bias"] = (0.2 * stream(seed, "test bias").normal(size=N_ITEMS)).astype(np.float32)
    if problem.neighbors is not None:
        parameters[SCALE] = np.array([0.7], np.float32)
    return State.start(parameters, 1.0)


def visit_all(engine, visits: int = 6) -> list:
    """Batches of five random users, so that users meet in the items of a batch."""
    batches = (stream(t, "test batch").permutation(N_USERS)[:5] for t in range(visits))
    return [engine.step(users, TrainingTime(t, t / visits)) for t, users in enumerate(batches)]
