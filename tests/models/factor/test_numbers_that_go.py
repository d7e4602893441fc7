"""Numbers that leave the range of floats, and fold-in after a training that ended early."""

import numpy as np
import pytest

import topnrank as tnr
from topnrank.errors import DivergenceError

DATA = tnr.synthetic(30, 20, 300, seed=3)
HISTORY = [(item, 5.0) for item in DATA.items.ids[:5].tolist()]


def test_lists_of_new_users_depend_on_what_was_trained_not_on_what_was_allowed():
    """Trainings that tolerance ends in their first round are the same, however many rounds were allowed."""
    lists = []
    for epochs in (5, 5000, 10**18):
        model = tnr.BiasedMF(factors=4, epochs=epochs, tolerance=1e30).fit(DATA)
        assert model.best_round_ == 1
        lists.append(model.recommend(history=HISTORY, n=8))
    assert lists[0].equals(lists[1])
    assert lists[0].equals(lists[2])


@pytest.mark.parametrize(
    "model",
    [
        tnr.EASE(regularization=1e300),
        tnr.ListRank(init=1e20, epochs=1),
        tnr.WARP(init=1e20, epochs=1),
    ],
    ids=lambda model: model.name,
)
def test_a_model_with_numbers_that_are_not_finite_is_refused(model):
    with np.errstate(all="ignore"), pytest.raises(DivergenceError):
        model.fit(DATA)
