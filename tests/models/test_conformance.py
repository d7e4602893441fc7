"""Every model passes the conformance suite."""

from importlib.util import find_spec

import pytest

from topnrank import (
    BPR,
    EASE,
    MFADG,
    MODELS,
    TFMAP,
    WARP,
    BiasedMF,
    CLiMF,
    GaussianRank,
    ItemIdOrder,
    ItemMean,
    ListPMF,
    ListRank,
    NeighborRidge,
    NextItemRidge,
    Popularity,
    Random,
    RecentPopularity,
    SequenceRank,
    TopNRank,
    Transitions,
    XCLiMF,
)
from topnrank.testing.models import ModelTests

pytestmark = pytest.mark.filterwarnings("ignore:this model learned to rank the items")

FACTORS = {"user_representation": "factors", "factors": 8}
CATALOG = {"task": "catalog", "epochs": 10, "negatives": 20, "factor_weight": 1.0, "popularity": 0.01}
"""With all settings given: which rows are held out to choose them by depends on the ids."""
CASES = {
    "TopNRank": (TopNRank(task="rated", factors=8, epochs=20), 0.85),
    "TopNRankWithFactors": (TopNRank(task="rated", **FACTORS, epochs=20), 0.85),
    "TopNRankOfThePaper": (TopNRank.paper(learning_rate=1e-3, iterations=200, tolerance=0.0), 0.80),
    "TopNRankForTheCatalog": (TopNRank(**CATALOG, factors=8, neighbors=8, neighbor_penalty=80.0), None),
    "TopNRankForTheCatalogWithFactors": (
        TopNRank(**CATALOG, **FACTORS, neighbors=0),
        None,
    ),
    "TopNRankForMRR": (TopNRank(task="rated", metric="mrr", factors=8), 0.84),
    "TopNRankForMAP": (
        TopNRank(task="rated", metric="map", factors=8, squared_weight=0.0, truncate=True, anneal_n=0.5),
        0.82,
    ),
    "TopNRankForAUC": (
        TopNRank(task="rated", metric="auc", **FACTORS, squared_weight=0.0, truncate=True, anneal_n=0.5),
        0.8,
    ),
    "CLiMF": (CLiMF(factors=8, learning_rate=0.2, epochs=20), 0.8),
    "CLiMFWithFactors": (CLiMF(**FACTORS, learning_rate=0.2, epochs=20), 0.8),
    "XCLiMF": (XCLiMF(factors=8, learning_rate=0.3, regularization=0.3, epochs=20), 0.8),
    "XCLiMFWithFactors": (XCLiMF(**FACTORS, learning_rate=0.3, regularization=0.3, epochs=20), 0.8),
    "ListRank": (ListRank(factors=8, learning_rate=0.3, epochs=20), 0.85),
    "ListRankWithFactors": (ListRank(**FACTORS, learning_rate=0.3, epochs=20), 0.85),
    "ListPMF": (ListPMF(factors=8, epochs=20), 0.85),
    "ListPMFWithFactors": (ListPMF(**FACTORS, ties="shuffled", epochs=20), 0.84),
    "MFADG": (MFADG(factors=8, negatives=30, learning_rate=30.0, regularization=1e-5, epochs=20), 0.8),
    "MFADGWithFactors": (MFADG(**FACTORS, negatives=30, learning_rate=3.0, regularization=1e-3, epochs=30), 0.79),
    "TFMAP": (TFMAP(factors=8, epochs=20), 0.8),
    "TFMAPWithFactors": (TFMAP(**FACTORS, epochs=20), 0.8),
    "GaussianRank": (GaussianRank(factors=8, epochs=20), 0.84),
    "GaussianRankWithFactors": (GaussianRank(**FACTORS, epochs=20), 0.84),
    "BPR": (BPR(factors=8, epochs=20), 0.84),
    "BPRAgainstUnobservedItems": (BPR(**FACTORS, negatives=20, epochs=20), 0.79),
    "WARP": (WARP(**FACTORS, learning_rate=0.03, epochs=20), 0.84),
    "WARPAgainstUnobservedItems": (WARP(factors=8, negatives=20, learning_rate=0.02, epochs=20), 0.79),
    "NeighborRidge": (NeighborRidge(neighbors=8, regularization=5.0), None),
    "Transitions": (
        Transitions(smoothing=0.3, distance_power=0.5, popularity=0.0, head=20, head_share=0.5, head_decay=0.9),
        None,
    ),
    "TransitionsChosen": (Transitions(feedback="unary"), None),
    "NextItemRidge": (
        NextItemRidge(neighbors=8, regularization=5.0, shrink=1.0, decays=[0.9, 0.0], transitions=0.0),
        None,
    ),
    "NextItemRidgeWithCounts": (NextItemRidge(neighbors=8, shrink=1.0), None),
    "EASE": (EASE(regularization=30.0), 0.82),
    "BiasedMF": (BiasedMF(factors=8, epochs=20), 0.85),
    "ItemMean": (ItemMean(), 0.80),
    "Popularity": (Popularity(), 0.60),
    "RecentPopularity": (RecentPopularity(), 0.60),
    "ItemIdOrder": (ItemIdOrder(), None),
    "Random": (Random(), 0.50),
}
"""Each model, and the AUC that it is better than on the suite's data, where that is not the suite's own bound."""

if find_spec("torch") is not None:
    NETWORK = {"width": 8, "length": 20, "epochs": 3, "device": "cpu"}
    COUNTS = {
        "smoothing": 0.3,
        "distance_power": 0.5,
        "popularity": 0.0,
        "head_share": 0.5,
        "head_decay": 0.9,
        "recency": 8.0,
    }
    CASES["SequenceRank"] = (SequenceRank(**NETWORK, heads=2, time_gaps=True, terms="none"), None)
    CASES["SequenceRankWithTerms"] = (SequenceRank(**NETWORK, terms="counts", term_settings=COUNTS), None)


def suite(model, better_than):
    """The class of tests of a model."""
    learns = not isinstance(model, ItemIdOrder | Popularity | RecentPopularity | Random)
    if isinstance(model, SequenceRank) or (isinstance(model, Transitions) and model.feedback == "unary"):
        learns = False
    own = {"model": model, "learns": learns}
    return type("Tests", (ModelTests,), own if better_than is None else {**own, "better_than": better_than})


globals().update({f"Test{name}": suite(*case) for name, case in CASES.items()})


def test_every_model_is_tested():
    untested = set() if find_spec("torch") is not None else {SequenceRank}
    assert {type(model) for model, _ in CASES.values()} == set(MODELS.values()) - untested
