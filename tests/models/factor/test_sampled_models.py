"""BPR, WARP and MFADG: what their hyper-parameters mean and which values are refused."""

import re

import pytest

from topnrank.errors import ParameterError
from topnrank.losses.mfadg.reference import AveragedDiscountedGain
from topnrank.losses.pairwise.reference import PairwiseLogistic, WarpHinge
from topnrank.models.listwise import MFADG
from topnrank.models.pairwise import BPR, WARP
from topnrank.models.parameters import Choice

every_model = pytest.mark.parametrize("kind", [BPR, WARP, MFADG])


def test_the_objectives_have_the_models_settings():
    assert BPR(tries=7, pairs=2).objective() == PairwiseLogistic(tries=7, pairs=2)
    assert WARP(margin=0.5, tries=9).objective() == WarpHinge(margin=0.5, tries=9)
    assert MFADG(steepness=3).objective() == AveragedDiscountedGain(steepness=3.0)


def test_the_usual_settings():
    assert BPR().objective() == PairwiseLogistic(tries=5, pairs=2)
    assert WARP().objective() == WarpHinge(margin=0.3, tries=10)
    assert MFADG().objective() == AveragedDiscountedGain(steepness=1.3)
    assert (BPR().negatives, WARP().negatives, MFADG().negatives) == (0, 0, 100)


@pytest.mark.parametrize("kind", [BPR, WARP])
def test_only_likes_enter_the_lists_once_there_are_negatives(kind):
    assert not kind().selection().relevant_only
    assert kind(negatives=50).selection().relevant_only


def test_only_likes_ever_enter_the_lists_of_mfadg():
    assert MFADG().selection().relevant_only


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (BPR, {"negatives": -1}, "BPR.negatives must be an integer of at least 0, got -1"),
        (BPR, {"tries": 0}, "BPR.tries must be an integer of at least 1, got 0"),
        (BPR, {"pairs": 1.5}, "BPR.pairs must be an integer of at least 1, got 1.5"),
        (BPR, {"pairs": 300, "tries": 300}, "BPR: pairs * tries must be at most 65536, got 300 * 300"),
        (WARP, {"negatives": 2.0}, "WARP.negatives must be an integer of at least 0, got 2.0"),
        (WARP, {"tries": 0}, "WARP.tries must be an integer of at least 1, got 0"),
        (WARP, {"tries": 65537}, "WARP: tries must be at most 65536, got 65537"),
        (WARP, {"margin": 0.0}, "WARP.margin must be a finite number above 0, got 0.0"),
        (MFADG, {"negatives": 0}, "MFADG.negatives must be an integer of at least 1, got 0"),
        (MFADG, {"steepness": float("nan")}, "MFADG.steepness must be a finite number above 0, got nan"),
        (BPR, {"factors": 0}, "BPR.factors must be an integer of at least 1, got 0"),
    ],
)
def test_bad_values_are_refused(kind, values, message):
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
        kind(**values)


@every_model
def test_every_setting_of_the_search_space_is_allowed(kind):
    for name, values in kind.own_space.items():
        for value in values.values if isinstance(values, Choice) else (values.low, values.high):
            kind(**{name: round(value) if isinstance(value, float) and values.whole else value})


@every_model
def test_the_summary_says_what_kind_of_loss_it_is(kind):
    assert kind.summary.split(":")[0] in ("pair-wise", "list-wise")
    assert len(kind.summary) < 110


def test_a_history_without_likes_is_refused_where_only_likes_teach():
    from topnrank import CLiMF, synthetic

    model = CLiMF(user_representation="factors", factors=3, epochs=1).fit(synthetic(30, 20, seed=1))
    first, second = model.item_ids_[:2]
    with pytest.raises(
        ParameterError, match="no item of this history counts as liked, and CLiMF learns from likes alone"
    ):
        model.recommend(history={first: 1, second: 1})
    assert model.recommend(history=[first, second], n=3).num_rows == 3


@pytest.mark.parametrize("kind", [BPR, WARP, MFADG])
def test_where_everything_is_observed_nothing_can_be_sampled(kind):
    from topnrank import Interactions
    from topnrank.errors import DataError

    everything = Interactions.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], ratings=[5, 1, 4, 2])
    with pytest.raises(DataError, match="every user has observed all 2 items"):
        kind(negatives=5).fit(everything)
