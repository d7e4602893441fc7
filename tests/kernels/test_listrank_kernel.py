"""ListRank's kernel against its reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lists import assert_lists_equal, batch_of

from topnrank.kernels.listrank import TopOneSettings, listrank_lists
from topnrank.objectives.listrank import TopOneCrossEntropy
from topnrank.rng import stream

VARIANTS = [
    TopOneCrossEntropy(),
    TopOneCrossEntropy(per_item=False),
    TopOneCrossEntropy("identity"),
    TopOneCrossEntropy("identity", per_item=False, scale=2.5),
]
every_variant = pytest.mark.parametrize("objective", VARIANTS, ids=repr)


def check(objective, lists, **occasion):
    numbers = TopOneSettings(objective.link == "sigmoid", objective.per_item, float(objective.scale))
    assert_lists_equal(objective, lists, lambda *arrays: listrank_lists(numbers, *arrays), 1e-9, **occasion)


@every_variant
@pytest.mark.parametrize("sampled", [0, 4])
def test_random_lists(objective, sampled):
    draw = stream(1, "test lists")
    sizes = [1, 2, 3, 10, 50, 300]
    lists = [(spread * draw.normal(size=m), draw.uniform(size=m)) for m in sizes for spread in (0.01, 1.0, 30.0)]
    check(objective, lists, sampled=sampled)


tied_list = st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([-1.0, 0.2, 0.6, 1.0])), min_size=1, max_size=30)


@settings(max_examples=50)
@given(drawn=st.lists(tied_list, min_size=1, max_size=4), objective=st.sampled_from(VARIANTS))
def test_lists_with_ties(drawn, objective):
    check(objective, [(np.array([f for f, _ in one]) / 4.0, np.array([a for _, a in one])) for one in drawn])


@every_variant
def test_hazards(objective):
    huge = np.array([1e6, -1e6, 0.0, 1e6, 3.0])
    gains = (np.zeros(5), np.ones(5), -np.ones(5), np.array([1.0, -1.0, 1.0, 0.0, 2.0]), huge[::-1].copy())
    check(objective, [*((huge, a) for a in gains), (np.zeros(6), np.ones(6)), (np.array([2.0]), np.array([1.0]))])


def test_an_empty_list_and_rows_of_the_history_are_left_alone():
    """List 0 is empty; list 1 begins after a row that belongs to the history only."""
    f, a = np.array([9.0, 0.5, 0.1]), np.array([7.0, 1.0, 0.2])
    batch, scores = batch_of([(np.empty(0), np.empty(0)), (f, a)])
    batch = batch._replace(first=np.array([0, 1]))
    G, report = np.full((2, 3), np.nan), np.full((2, 2), np.nan)
    listrank_lists(TopOneSettings(True, True, 1.0), batch, scores, G, report)
    expected = TopOneCrossEntropy().evaluate(f[1:], a[1:])
    assert report[0].tolist() == [0.0, 0.0]
    assert report[1].tolist() == pytest.approx([expected.value, 2.0], rel=1e-12)
    assert np.isnan(G[:, 0]).all()
    assert G[0, 1:].tolist() == pytest.approx(expected.user.tolist(), rel=1e-9)
