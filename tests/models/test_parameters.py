"""Every bad hyper-parameter is one clear sentence; the paper's variants have the paper's settings."""

import pytest

from topnrank import BiasedMF, ItemMean, ParameterError, Random, Threshold, TopNRank
from topnrank.losses.steps import Ramp, ReLU, Sigmoid
from topnrank.losses.truncated.reference import TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.losses.weighted_dcg.reference import WeightedDCG
from topnrank.testing.base import small_split
from topnrank.training import AdaGrad

BAD = [
    ({"user_representation": "items"}, "user_representation must be one of 'history', 'factors', got 'items'"),
    ({"engine": "gpu"}, "engine must be one of 'cpu', 'reference', 'spark', got 'gpu'"),
    ({"factors": 0}, "TopNRank.factors must be an integer of at least 1, got 0"),
    ({"factors": 2.5}, "TopNRank.factors must be an integer of at least 1, got 2.5"),
    ({"factors": True}, "TopNRank.factors must be an integer of at least 1, got True"),
    ({"n": 0}, "TopNRank.n must be an integer of at least 1, got 0"),
    ({"n": -3}, "TopNRank.n must be an integer of at least 1, got -3"),
    ({"seed": -1}, "TopNRank.seed must be an integer of at least 0, got -1"),
    ({"num_threads": -1}, "TopNRank.num_threads must be an integer of at least 0, got -1"),
    ({"learning_rate": 0}, "TopNRank.learning_rate must be a finite number above 0, got 0"),
    ({"learning_rate": -0.1}, "TopNRank.learning_rate must be a finite number above 0, got -0.1"),
    ({"learning_rate": float("nan")}, "TopNRank.learning_rate must be a finite number above 0, got nan"),
    ({"learning_rate": "fast"}, "TopNRank.learning_rate must be a finite number above 0, got 'fast'"),
    ({"tolerance": -1.0}, "TopNRank.tolerance must be a finite number of at least 0, got -1.0"),
    ({"regularization": -0.1}, "TopNRank.regularization must be a finite number of at least 0, got -0.1"),
    ({"regularization": {"item": -1}}, "regularization of 'item' must be a finite number of at least 0, got -1"),
    ({"regularization": {"item": float("inf")}}, "regularization of 'item' must be a finite number of at least 0"),
    ({"regularization": {"items": 1}}, "did you mean 'item'"),
    ({"bias": "yes"}, "TopNRank.bias must be True or False, got 'yes'"),
    ({"truncate": 1}, "TopNRank.truncate must be True or False, got 1"),
    ({"batch_size": 0}, "TopNRank.batch_size must be a number of users"),
    ({"batch_size": 1.5}, "TopNRank.batch_size must be a number of users"),
    ({"batch_size": 0.0}, "TopNRank.batch_size must be a number of users"),
    ({"batch_size": None}, "TopNRank.batch_size must be a number of users"),
    ({"epochs": 0}, "TopNRank.epochs must be an integer of at least 1, got 0"),
    ({"epochs": None}, "give epochs or iterations"),
    ({"iterations": 5}, "give epochs or iterations"),
    ({"epochs": None, "iterations": -5}, "TopNRank.iterations must be an integer of at least 1, got -5"),
    ({"optimizer": "adam"}, "optimizer must be one of 'adagrad', 'sgd', got 'adam'"),
    ({"optimizer": AdaGrad(-1.0)}, "AdaGrad.initial must be a finite number above 0, got -1.0"),
    ({"init": "paper"}, "init='paper' goes with user_representation='factors'"),
    (
        {"init": "large", "user_representation": "factors"},
        "TopNRank.init must be a finite number above 0, or \"paper\", got 'large'",
    ),
    ({"init": 0.0}, 'TopNRank.init must be a finite number above 0, or "paper", got 0.0'),
    ({"smoothing": "tanh"}, "smoothing must be one of 'relu', 'sigmoid', 'laplace', 'ramp', got 'tanh'"),
    ({"smoothing": 7}, "smoothing must be one of .* or an object with methods"),
    ({"steepness": 0}, "TopNRank.steepness must be a finite number above 0, got 0"),
    ({"metric": "ndcg"}, "metric must be one of 'dcg', 'mrr', 'map', 'auc', got 'ndcg'; did you mean 'dcg'"),
    ({"metric": None}, "metric must be one of 'dcg', 'mrr', 'map', 'auc', got None"),
    ({"anneal_n": -0.1}, "TopNRank.anneal_n must be a number from 0 to 1, got -0.1"),
    ({"anneal_n": 0.5}, "anneal_n lets the cut at N come late; without truncate=True there is no cut"),
    ({"anneal_n": 1.5}, "TopNRank.anneal_n must be a number from 0 to 1, got 1.5"),
    ({"gradient": "full"}, "gradient must be one of 'paper', 'exact', got 'full'"),
    ({"discount": "ndcg"}, "did you mean 'dcg'"),
    ({"discount": 11}, "TopNRank.discount must be 'dcg', 'log' or a power from -10 to 10, got 11"),
    ({"discount": float("nan")}, "TopNRank.discount must be 'dcg', 'log' or a power from -10 to 10, got nan"),
    ({"discount": None}, "TopNRank.discount must be 'dcg', 'log' or a power from -10 to 10, got None"),
    ({"discount": "log", "truncate": True}, "truncate=True needs a discount"),
    ({"gradient_budget": 0.0}, "TopNRank.gradient_budget must be a finite number above 0, got 0.0"),
    ({"squared_weight": -1}, "TopNRank.squared_weight must be a finite number of at least 0, got -1"),
]


@pytest.mark.parametrize(("parameters", "sentence"), BAD, ids=[str(bad) for bad, _ in BAD])
def test_a_bad_parameter_is_one_clear_sentence(parameters, sentence):
    with pytest.raises(ParameterError, match=sentence) as error:
        TopNRank(**parameters)
    assert "\n" not in str(error.value)
    with pytest.raises(ParameterError, match=sentence):
        TopNRank().set_params(**parameters)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: BiasedMF(factors=-1), "BiasedMF.factors must be an integer of at least 1, got -1"),
        (lambda: ItemMean(damping=-1), "ItemMean.damping must be a finite number of at least 0, got -1"),
        (lambda: Random(seed=1.5), "Random.seed must be an integer of at least 0, got 1.5"),
        (lambda: TopNRank.paper(smoothing="laplace"), "smoothing must be one of 'relu', 'sigmoid', got 'laplace'"),
    ],
)
def test_bad_parameters_of_the_others(make, sentence):
    with pytest.raises(ParameterError, match=sentence):
        make()


@pytest.mark.parametrize("feedback", ["stars", 4])
def test_an_unknown_feedback_is_refused_when_the_data_are_known(feedback):
    with pytest.raises(ParameterError, match="feedback must be one of"):
        TopNRank(feedback=feedback).fit(small_split()[0])


def test_a_refused_change_leaves_the_model_as_it_was():
    model = TopNRank()
    with pytest.raises(ParameterError):
        model.set_params(factors=9, learning_rate=-1.0)
    assert (model.factors, model.learning_rate) == (50, "auto")


@pytest.mark.parametrize("smoothing", ["relu", "sigmoid"])
@pytest.mark.parametrize("truncate", [True, False])
def test_the_papers_four_variants_have_its_settings(smoothing, truncate):
    model = TopNRank.paper(smoothing=smoothing, truncate=truncate)
    expected = {
        "user_representation": "factors",
        "factors": 10,
        "n": 20,
        "metric": "dcg",
        "smoothing": smoothing,
        "truncate": truncate,
        "anneal_n": 0.0,
        "gradient": "paper",
        "discount": "dcg",
        "gradient_budget": None,
        "squared_weight": 0.0,
        "feedback": Threshold(4.0),
        "bias": False,
        "init": "paper",
        "optimizer": "sgd",
        "regularization": 0.1,
        "batch_size": 0.1,
        "epochs": None,
        "iterations": 30,
        "tolerance": 0.1,
    }
    assert expected.items() <= model.get_params().items()
    step = ReLU() if smoothing == "relu" else Sigmoid(7.0)
    assert model.objective() == WeightedDCG(step, n=20, truncate=truncate, exact=False, discount=2.0)


def test_the_papers_settings_can_be_changed():
    assert TopNRank.paper(factors=3, learning_rate=0.5).get_params()["factors"] == 3


@pytest.mark.parametrize(("discount", "power"), [("dcg", 2.0), ("log", 0.0), (-0.5, -0.5), (3, 3.0)])
def test_discounts_by_name_or_power(discount, power):
    assert TopNRank(discount=discount).objective().discount == power


@pytest.mark.parametrize(("metric", "kind"), [("mrr", TruncatedMRR), ("map", TruncatedMAP), ("auc", TruncatedAUC)])
def test_the_other_metrics_take_the_shared_settings(metric, kind):
    model = TopNRank(
        metric=metric, n=7, smoothing="ramp", truncate=True, anneal_n=0.5, gradient_budget=0.3, squared_weight=0.2
    )
    assert model.objective() == kind(Ramp(), n=7, truncate=True, anneal_n=0.5, gradient_budget=0.3, squared_weight=0.2)


def test_the_other_metrics_ignore_gradient_and_discount():
    model = TopNRank(metric="map", gradient="paper", discount="log", truncate=True)
    assert model.objective() == TopNRank(metric="map", gradient="exact", truncate=True).objective()


def test_dcg_anneals_too():
    assert TopNRank(truncate=True, anneal_n=0.25).objective().anneal_n == 0.25


def test_settings_of_the_search_space_are_ones_the_model_takes():
    for name, values in TopNRank.own_space.items():
        for value in (values.low, values.high):
            assert TopNRank(**{name: round(value) if values.whole else value}).get_params()[name] == value
