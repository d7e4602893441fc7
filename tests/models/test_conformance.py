"""Every model passes the conformance suite."""

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
    ItemMean,
    ListPMF,
    ListRank,
    NeighborRidge,
    Popularity,
    Random,
    TopNRank,
    XCLiMF,
)
from topnrank.testing.models import ModelTests


class TestTopNRank(ModelTests):
    model = TopNRank(factors=8, epochs=20)
    better_than = 0.85


class TestTopNRankWithFactors(ModelTests):
    model = TopNRank(user_representation="factors", factors=8, epochs=20)
    better_than = 0.85


class TestTopNRankOfThePaper(ModelTests):
    model = TopNRank.paper(learning_rate=1e-3, iterations=200, tolerance=0.0)
    better_than = 0.80


class TestTopNRankForTheCatalog(ModelTests):
    model = TopNRank(task="catalog", factors=8, epochs=10, negatives=20, neighbors=8)


class TestTopNRankForTheCatalogWithFactors(ModelTests):
    model = TopNRank(task="catalog", user_representation="factors", factors=8, epochs=10, negatives=20, neighbors=0)


class TestTopNRankForMRR(ModelTests):
    model = TopNRank(metric="mrr", factors=8)
    better_than = 0.84


class TestTopNRankForMAP(ModelTests):
    model = TopNRank(metric="map", factors=8, squared_weight=0.0, truncate=True, anneal_n=0.5)
    better_than = 0.82


class TestTopNRankForAUC(ModelTests):
    model = TopNRank(
        metric="auc", user_representation="factors", factors=8, squared_weight=0.0, truncate=True, anneal_n=0.5
    )
    better_than = 0.8


class TestCLiMF(ModelTests):
    model = CLiMF(factors=8, learning_rate=0.2, epochs=20)
    better_than = 0.8


class TestCLiMFWithFactors(ModelTests):
    model = CLiMF(user_representation="factors", factors=8, learning_rate=0.2, epochs=20)
    better_than = 0.8


class TestXCLiMF(ModelTests):
    model = XCLiMF(factors=8, learning_rate=0.3, regularization=0.3, epochs=20)
    better_than = 0.8


class TestXCLiMFWithFactors(ModelTests):
    model = XCLiMF(user_representation="factors", factors=8, learning_rate=0.3, regularization=0.3, epochs=20)
    better_than = 0.8


class TestListRank(ModelTests):
    model = ListRank(factors=8, learning_rate=0.3, epochs=20)
    better_than = 0.85


class TestListRankWithFactors(ModelTests):
    model = ListRank(user_representation="factors", factors=8, learning_rate=0.3, epochs=20)
    better_than = 0.85


class TestListPMF(ModelTests):
    model = ListPMF(factors=8, epochs=20)
    better_than = 0.85


class TestListPMFWithFactors(ModelTests):
    model = ListPMF(user_representation="factors", factors=8, ties="shuffled", epochs=20)
    better_than = 0.84


class TestMFADG(ModelTests):
    model = MFADG(factors=8, negatives=30, learning_rate=30.0, regularization=1e-5, epochs=20)
    better_than = 0.8


class TestMFADGWithFactors(ModelTests):
    model = MFADG(
        user_representation="factors", factors=8, negatives=30, learning_rate=3.0, regularization=1e-3, epochs=30
    )
    better_than = 0.79


class TestTFMAP(ModelTests):
    model = TFMAP(factors=8, epochs=20)
    better_than = 0.8


class TestTFMAPWithFactors(ModelTests):
    model = TFMAP(user_representation="factors", factors=8, epochs=20)
    better_than = 0.8


class TestGaussianRank(ModelTests):
    model = GaussianRank(factors=8, epochs=20)
    better_than = 0.84


class TestGaussianRankWithFactors(ModelTests):
    model = GaussianRank(user_representation="factors", factors=8, epochs=20)
    better_than = 0.84


class TestBPR(ModelTests):
    model = BPR(factors=8, epochs=20)
    better_than = 0.84


class TestBPRAgainstUnobservedItems(ModelTests):
    model = BPR(user_representation="factors", factors=8, negatives=20, epochs=20)
    better_than = 0.79


class TestWARP(ModelTests):
    model = WARP(user_representation="factors", factors=8, learning_rate=0.03, epochs=20)
    better_than = 0.84


class TestWARPAgainstUnobservedItems(ModelTests):
    model = WARP(factors=8, negatives=20, learning_rate=0.02, epochs=20)
    better_than = 0.79


class TestNeighborRidge(ModelTests):
    model = NeighborRidge(neighbors=8, regularization=5.0)


class TestEASE(ModelTests):
    model = EASE(regularization=30.0)
    better_than = 0.82


class TestBiasedMF(ModelTests):
    model = BiasedMF(factors=8, epochs=20)
    better_than = 0.85


class TestItemMean(ModelTests):
    model = ItemMean()
    better_than = 0.80


class TestPopularity(ModelTests):
    model = Popularity()
    learns = False
    better_than = 0.60


class TestRandom(ModelTests):
    model = Random()
    learns = False
    better_than = 0.50


def test_every_model_is_tested():
    tested = {type(tests.model) for tests in ModelTests.__subclasses__() if tests.__module__ == __name__}
    assert tested == set(MODELS.values())
