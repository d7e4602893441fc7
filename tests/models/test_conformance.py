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
    NeighbourRidge,
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
    model = TopNRank(users="factors", factors=8, epochs=20)
    better_than = 0.85


class TestTopNRankOfThePaper(ModelTests):
    model = TopNRank.paper(learning_rate=1e-3, iterations=200, tolerance=0.0)
    better_than = 0.80


class TestTopNRankForTheCatalogue(ModelTests):
    model = TopNRank(protocol="catalogue", factors=8, epochs=10, negatives=20, neighbours=8)


class TestTopNRankForTheCatalogueWithFactors(ModelTests):
    model = TopNRank(protocol="catalogue", users="factors", factors=8, epochs=10, negatives=20, neighbours=0)


class TestTopNRankForMRR(ModelTests):
    model = TopNRank(metric="mrr", factors=8)
    better_than = 0.84


class TestTopNRankForMAP(ModelTests):
    model = TopNRank(metric="map", factors=8, anchor=0.0, truncate=True, anneal=0.5)
    better_than = 0.82


class TestTopNRankForAUC(ModelTests):
    model = TopNRank(metric="auc", users="factors", factors=8, anchor=0.0, truncate=True, anneal=0.5)
    better_than = 0.8


class TestCLiMF(ModelTests):
    model = CLiMF(factors=8, learning_rate=0.2, epochs=20)
    better_than = 0.8


class TestCLiMFWithFactors(ModelTests):
    model = CLiMF(users="factors", factors=8, learning_rate=0.2, epochs=20)
    better_than = 0.8


class TestXCLiMF(ModelTests):
    model = XCLiMF(factors=8, learning_rate=0.3, regularization=0.3, epochs=20)
    better_than = 0.8


class TestXCLiMFWithFactors(ModelTests):
    model = XCLiMF(users="factors", factors=8, learning_rate=0.3, regularization=0.3, epochs=20)
    better_than = 0.8


class TestListRank(ModelTests):
    model = ListRank(factors=8, learning_rate=0.3, epochs=20)
    better_than = 0.85


class TestListRankWithFactors(ModelTests):
    model = ListRank(users="factors", factors=8, learning_rate=0.3, epochs=20)
    better_than = 0.85


class TestListRankOfItsAuthors(ModelTests):
    model = ListRank.authors(factors=8)
    better_than = 0.8


class TestListPMF(ModelTests):
    model = ListPMF(factors=8, epochs=20)
    better_than = 0.85


class TestListPMFWithFactors(ModelTests):
    model = ListPMF(users="factors", factors=8, ties="shuffled", epochs=20)
    better_than = 0.84


class TestMFADG(ModelTests):
    model = MFADG(factors=8, negatives=30, learning_rate=30.0, regularization=1e-5, epochs=20)
    better_than = 0.8


class TestMFADGWithFactors(ModelTests):
    model = MFADG(users="factors", factors=8, negatives=30, learning_rate=3.0, regularization=1e-3, epochs=30)
    better_than = 0.79


class TestTFMAP(ModelTests):
    model = TFMAP(factors=8, epochs=20)
    better_than = 0.8


class TestTFMAPWithFactors(ModelTests):
    model = TFMAP(users="factors", factors=8, epochs=20)
    better_than = 0.8


class TestGaussianRank(ModelTests):
    model = GaussianRank(factors=8, epochs=20)
    better_than = 0.84


class TestGaussianRankWithFactors(ModelTests):
    model = GaussianRank(users="factors", factors=8, epochs=20)
    better_than = 0.84


class TestBPR(ModelTests):
    model = BPR(factors=8, epochs=20)
    better_than = 0.84


class TestBPRAgainstUnobservedItems(ModelTests):
    model = BPR(users="factors", factors=8, negatives=20, epochs=20)
    better_than = 0.79


class TestWARP(ModelTests):
    model = WARP(users="factors", factors=8, learning_rate=0.03, epochs=20)
    better_than = 0.84


class TestWARPAgainstUnobservedItems(ModelTests):
    model = WARP(factors=8, negatives=20, learning_rate=0.02, epochs=20)
    better_than = 0.79


class TestNeighbourRidge(ModelTests):
    model = NeighbourRidge(neighbours=8, regularization=5.0)


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
