"""Models of other libraries: the protocol, the wrapper for evaluation, the adapters."""

import copy

import numpy as np
import pytest

from support.rivals import ItemMeans, Scores
from topnrank import DataError, Interactions, ItemMean, ParameterError, Threshold, evaluate, split_per_user, synthetic
from topnrank.experiments.compare.competitors import LOWEST, Competitor, CompetitorRanker, ImplicitModel, LightFMModel
from topnrank.experiments.compare.rows import describe, parameters_of
from topnrank.experiments.compare.run import compare

pytestmark = pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")  # implicit's advice on speed
DATA = synthetic(60, 40, 1500, seed=1)
TRAIN, TEST = split_per_user(DATA, test=0.5, seed=0)


@pytest.mark.parametrize("protocol", ["rated", "catalog"])
def test_a_competitor_is_measured_as_our_own_model(protocol):
    """Item means by hand are ItemMean without damping."""
    assert isinstance(ItemMeans(), Competitor)
    ranker = CompetitorRanker.fit(ItemMeans(), TRAIN)
    measured = evaluate(ranker, TEST, protocol=protocol)
    expected = evaluate(ItemMean(damping=0.0).fit(TRAIN), TEST, protocol=protocol)
    for name, values in expected.per_user.items():
        np.testing.assert_allclose(measured.per_user[name], values, rtol=1e-6)


def test_blocks_are_scored_in_parts(monkeypatch):
    import topnrank.evaluation.foreign as module

    ranker = CompetitorRanker.fit(ItemMeans(), TRAIN)
    whole = ranker.score_block(np.arange(7))
    monkeypatch.setattr(module, "_PAIRS", 2 * TRAIN.n_items + 1)
    np.testing.assert_array_equal(ranker.score_block(np.arange(7)), whole)


def test_rows_of_several_types_are_seen_once():
    rows = Interactions.from_arrays([1, 1, 1, 2], [1, 1, 2, 1], types=["a", "b", "a", "a"])
    ranker = CompetitorRanker.fit(Scores(np.zeros), rows)
    assert (ranker.fitted.indptr.tolist(), ranker.fitted.indices.tolist()) == ([0, 2, 3], [0, 1, 0])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda n: np.full(n, np.nan), "scores: the score of user .* and item .* is NaN; return the lowest number"),
        (lambda n: np.zeros(n + 1), "must return numbers of shape"),
        (lambda n: ["a"] * n, "must return numbers of shape"),
        (lambda n: 3.0, "must return numbers of shape"),
    ],
)
def test_bad_scores_are_named(value, words):
    ranker = CompetitorRanker.fit(Scores(value), TRAIN)
    for call in (lambda: evaluate(ranker, TEST), lambda: evaluate(ranker, TEST, protocol="catalog")):
        with pytest.raises(DataError, match=words):
            call()
    made = compare({"bad": Scores(value)}, DATA, repeats=1, metrics="mrr")
    assert made.error("bad").startswith("scores: ")


def test_infinite_and_large_scores_stay_in_order():
    scores = CompetitorRanker.fit(Scores(lambda n: np.array([-np.inf, -1e300, 0.0, 1e300, np.inf])[:n]), TRAIN)
    found = scores.score_pairs(np.zeros(5, int), np.arange(5))
    assert np.isfinite(found).all()
    assert (np.diff(found) >= 0).all()
    assert found[1] < found[2] < found[3]


def test_parameters_are_seen_where_they_differ():
    class Mine:
        name = "mine"

        def __init__(self, **parameters):
            vars(self).update(parameters)

        fit = score = lambda *_: None

    pairs = [
        ({"a": 1}, {"a": 2}),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}),
        ({"a": np.arange(3)}, {"a": np.arange(3) + 1}),
        ({"a": np.random.RandomState(0)}, {"a": np.random.RandomState(1)}),
        ({"a": Mine(b=Mine(c=1))}, {"a": Mine(b=Mine(c=2))}),
        ({"a": np.sum}, {"a": np.prod}),
        ({"a": np.float32}, {"a": np.float64}),
        ({"a": Threshold(3.0)}, {"a": Threshold(4.0)}),
    ]
    for first, second in pairs:
        assert parameters_of(Mine(**first)) == parameters_of(Mine(**copy.deepcopy(first)))
        assert parameters_of(Mine(**first)) != parameters_of(Mine(**second)), (first, second)
    assert parameters_of(Mine(a=1, learned_=[2], _private=3)) == {"a": 1}
    assert describe(np.dtype("float32")) == "float32"


@pytest.mark.parametrize("given", [ItemMean(), "als", None])
def test_adapters_refuse_what_they_cannot_use(given):
    with pytest.raises(ParameterError, match="ImplicitModel needs a factor model of implicit"):
        ImplicitModel(given)
    with pytest.raises(ParameterError, match=r"LightFMModel needs a lightfm\.LightFM"):
        LightFMModel(given)


@pytest.fixture(params=["AlternatingLeastSquares", "BayesianPersonalizedRanking", "LogisticMatrixFactorization"])
def implicit_model(request):
    modules = {"Alternating": "als", "Bayesian": "bpr", "Logistic": "lmf"}
    name = next(module for start, module in modules.items() if request.param.startswith(start))
    pytest.importorskip("implicit")
    module = __import__(f"implicit.{name}", fromlist=[request.param])
    return getattr(module, request.param)(factors=6, iterations=10, random_state=0, num_threads=1)


def check_adapter(adapter, reference):
    """Scores are `reference` where the model knows both sides, and the lowest elsewhere; both protocols work."""
    unloved = np.flatnonzero(np.bincount(TRAIN.indices[TRAIN.ratings >= 4], minlength=TRAIN.n_items) == 0)
    known = np.setdiff1d(np.arange(TRAIN.n_items), unloved)[:20]
    users = np.arange(20)
    scores = adapter.score(TRAIN.users.ids[users], TRAIN.items.ids[known])
    np.testing.assert_allclose(scores, reference(users, known), rtol=1e-4, atol=1e-5)
    unknown_users = adapter.score([TRAIN.users.ids[0], 10**6, 10**6], [10**6, TRAIN.items.ids[known[0]], 10**6])
    np.testing.assert_array_equal(unknown_users, np.float32(LOWEST))
    full = adapter.score_all(TRAIN.users.ids[:3], TRAIN.items.ids)
    assert np.isfinite(full).all()
    assert (full[:, unloved] == np.float32(LOWEST)).all()
    np.testing.assert_allclose(
        full[np.arange(3)[:, None], known], adapter.score_all(TRAIN.users.ids[:3], TRAIN.items.ids[known])
    )
    pairs = [adapter.score([user] * len(known), TRAIN.items.ids[known]) for user in TRAIN.users.ids[:3]]
    np.testing.assert_allclose(full[:, known], pairs, rtol=1e-4, atol=1e-6)


def test_implicit_models(implicit_model):
    adapter = ImplicitModel(implicit_model)
    adapter.fit(TRAIN)
    assert implicit_model.user_factors is None  # the model given is never fitted itself
    from scipy.sparse import csr_matrix

    liked = TRAIN.take(TRAIN.ratings >= 4)
    fitted = copy.deepcopy(implicit_model)
    ones = np.ones(len(liked), np.float32)
    fitted.fit(
        csr_matrix((ones, liked.indices, liked.indptr), shape=(60, TRAIN.n_items), copy=True), show_progress=False
    )
    check_adapter(adapter, lambda users, items: (fitted.user_factors[users] * fitted.item_factors[items]).sum(axis=1))


def test_implicit_models_in_a_comparison(implicit_model):
    settings = {"repeats": 2, "protocol": "both", "metrics": ("ndcg@5",)}
    made = compare([ImplicitModel(implicit_model)], DATA, **settings)
    (name,) = (name for name in made.models if name.startswith("implicit-"))
    assert made.error(name) is None
    assert made.mean(name, "catalog", "ndcg@5") > made.mean("random", "catalog", "ndcg@5")
    again = compare([ImplicitModel(implicit_model)], DATA, **settings)
    for protocol in made.protocols:
        values = made.values(name, protocol, "ndcg@5")
        assert values.tobytes() == again.values(name, protocol, "ndcg@5").tobytes()
    assert made.settings["parameters"][name]["model"]["factors"] == 6


def test_feedback_of_the_adapters():
    als = pytest.importorskip("implicit.als").AlternatingLeastSquares(factors=4, random_state=0)
    views = Interactions.from_arrays(DATA.users.ids[DATA.user_index], DATA.items.ids[DATA.indices])
    assert np.isfinite(ImplicitModel(als).fit(views).score(views.users.ids[:2], views.items.ids[:2])).all()
    low, high = (ImplicitModel(als, feedback=Threshold(at)).fit(TRAIN)._knows_item.sum() for at in (1.0, 5.0))
    assert low > high
    with pytest.raises(DataError, match="implicit-als: no training row has a weight above 0"):
        ImplicitModel(als, feedback=Threshold(9.0)).fit(TRAIN)


@pytest.mark.parametrize("loss", ["warp", "bpr", "logistic", "warp-kos"])
def test_lightfm_models(loss):
    lightfm = pytest.importorskip("lightfm")
    adapter = LightFMModel(lightfm.LightFM(no_components=6, loss=loss, random_state=0), epochs=5)
    adapter.fit(TRAIN)
    from scipy.sparse import coo_matrix

    rows = TRAIN if loss == "logistic" else TRAIN.take(TRAIN.ratings >= 4)
    signs = np.where(rows.ratings >= 4, 1.0, -1.0).astype(np.float32)
    fitted = lightfm.LightFM(no_components=6, loss=loss, random_state=0)
    fitted.fit(coo_matrix((signs, (rows.user_index, rows.indices)), shape=(60, TRAIN.n_items), copy=True), epochs=5)
    bias = fitted.get_user_representations()[0]

    def reference(users, items):
        return fitted.predict(users.astype(np.int32), items.astype(np.int32)) - bias[users]

    check_adapter(adapter, reference)
    made = compare([adapter], DATA, repeats=1, protocol="both", metrics="ndcg@5")
    assert made.error(f"lightfm-{loss}") is None


def test_lightfm_epochs_are_checked():
    class Stub:
        loss, fit, get_user_representations = "warp", None, None

    with pytest.raises(ParameterError, match="epochs must be an integer of at least 1, got 0"):
        LightFMModel(Stub(), epochs=0)
