"""GridSearch: chooses on validation rows, fits on all, and is that model."""

import numpy as np
import pytest

import topnrank as tnr
from topnrank.experiments.tuning.grid import GridSearch

RATES = (1e-4, 1e-2, 0.1)


@pytest.fixture(scope="module")
def data() -> tnr.Interactions:
    return tnr.synthetic(60, 40, seed=5)


def value(model: tnr.Model, data: tnr.Interactions) -> float:
    """What the choice goes by."""
    part, held_out = tnr.split_per_user(data, test=0.25, seed=0)
    return tnr.evaluate(model.fit(part), held_out, metrics="ndcg@10")["ndcg@10"]


@pytest.mark.filterwarnings("ignore:this model learned to rank the items")
def test_the_best_rate_on_validation_rows_is_fitted_on_all(data: tnr.Interactions) -> None:
    chosen = GridSearch(model=tnr.TopNRank.paper(), grid={"learning_rate": RATES}, num_threads=1).fit(data)
    values = {rate: value(tnr.TopNRank.paper(learning_rate=rate), data) for rate in RATES}
    best = max(values, key=lambda rate: values[rate])
    assert chosen.chosen_.get_params()["learning_rate"] == best
    alone = tnr.TopNRank.paper(learning_rate=best).fit(data)
    users, items = np.arange(20), np.arange(20)
    np.testing.assert_array_equal(chosen.score_pairs(users, items), alone.score_pairs(users, items))
    np.testing.assert_array_equal(chosen.score_block(users), alone.score_block(users))
    ratings = np.tile([5.0, 2.0], 10)
    np.testing.assert_array_equal(chosen.score_history(items, ratings), alone.score_history(items, ratings))
    assert chosen.recommend([data.users.ids[0]], n=3).equals(alone.recommend([data.users.ids[0]], n=3))


def test_the_history_tells_the_choice_at_its_end(data: tnr.Interactions) -> None:
    chosen = GridSearch(
        model=tnr.TopNRank.paper(iterations=3), grid={"learning_rate": (0.01,), "regularization": (0.1,)}
    )
    *before, last = chosen.fit(data).history_
    assert before == chosen.chosen_.history_[:-1]
    assert last.items() >= {**chosen.chosen_.history_[-1], "learning_rate": 0.01, "regularization": 0.1}.items()
    assert last["fit_seconds"] > 0


def test_every_combination_or_in_turn(data: tnr.Interactions) -> None:
    grid = {"learning_rate": (1e-3, 1e-2, 0.1), "regularization": (0.1, 1e-3, 1e-2)}
    model = tnr.TopNRank.paper()
    assert len(list(GridSearch(model=model, grid=grid).points())) == 9
    values = {
        (rate, penalty): value(tnr.TopNRank.paper(learning_rate=rate, regularization=penalty), data)
        for rate in grid["learning_rate"]
        for penalty in grid["regularization"]
    }
    whole = GridSearch(model=model, grid=grid).fit(data).history_[-1]
    best = max(values, key=lambda point: values[point])
    assert (whole["learning_rate"], whole["regularization"]) == best
    turns = GridSearch(model=model, grid=grid, in_turn=True).fit(data).history_[-1]
    rate = max(grid["learning_rate"], key=lambda one: values[one, 0.1])  # at the model's own lambda
    penalty = max(grid["regularization"], key=lambda one: values[rate, one])
    assert (turns["learning_rate"], turns["regularization"]) == (rate, penalty)


def test_points_that_diverge_are_out(data: tnr.Interactions) -> None:
    grid = {"learning_rate": (1e30, 1e-3, 1e29)}
    assert GridSearch(model=tnr.TopNRank.paper(), grid=grid).fit(data).history_[-1]["learning_rate"] == 1e-3
    with pytest.raises(tnr.DivergenceError, match="every point of the grid diverged"):
        GridSearch(model=tnr.TopNRank.paper(), grid={"learning_rate": (1e30,)}).fit(data)


def test_bad_grids() -> None:
    for grid, sentence in (
        ({}, "the grid must name a parameter"),
        ({"learning_rate": ()}, "the grid must name a parameter"),
        ({"learning_rate": (0.1, -1.0)}, "learning_rate must be"),
    ):
        with pytest.raises(tnr.ParameterError, match=sentence):
            GridSearch(model=tnr.TopNRank.paper(), grid=grid)
    with pytest.raises(TypeError, match="rate"):
        GridSearch(model=tnr.TopNRank.paper(), grid={"rate": (0.1,)})
    with pytest.raises(tnr.NotFittedError):
        _ = GridSearch(model=tnr.TopNRank.paper(), grid={"n": (5,)}).chosen_
