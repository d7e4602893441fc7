"""Every model passes the conformance suite."""

from topnrank import MODELS, BiasedMF, ItemMean, Popularity, Random, TopNRank
from topnrank.testing import ModelTests


class TestTopNRank(ModelTests):
    model = TopNRank(factors=8, epochs=20)
    better_than = 0.85


class TestTopNRankWithFactors(ModelTests):
    model = TopNRank(users="factors", factors=8, epochs=20)
    better_than = 0.85


class TestTopNRankOfThePaper(ModelTests):
    model = TopNRank.paper(learning_rate=1e-3, iterations=200, tolerance=0.0)
    better_than = 0.80


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
