"""Quality: ranking on data with planted preferences."""

# ruff: noqa: D102 (the name of a test says what it tests)

import numpy as np
import pytest

from topnrank.data.interactions import Interactions
from topnrank.evaluation import evaluate
from topnrank.models.base import Model
from topnrank.models.controls import Random
from topnrank.testing.base import ModelUnderTest


class QualityTests(ModelUnderTest):
    """Tests of ranking quality, and of evaluation with the model."""

    def test_it_ranks_better_than_its_floor(self, fitted: Model, test: Interactions) -> None:
        assert evaluate(fitted, test, protocol="rated")["ndcg@10"] > self.better_than

    def test_it_ranks_better_than_chance(self, fitted: Model, train: Interactions, test: Interactions) -> None:
        if not self.learns:
            pytest.skip(f"{type(self.model).__name__} does not learn an order")
        chance = evaluate(Random().fit(train), test, protocol="rated")["ndcg@10"]
        assert evaluate(fitted, test, protocol="rated")["ndcg@10"] > chance + 0.05

    def test_it_can_be_evaluated_on_the_whole_catalog(self, fitted: Model, test: Interactions) -> None:
        result = evaluate(fitted, test, protocol="catalog", metrics=["ndcg@10", "recall@20", "auc", "coverage@10"])
        assert all(0.0 < value <= 1.0 for value in result.values.values())

    def test_blocks_and_pairs_of_scores_agree(self, fitted: Model) -> None:
        users = np.array([3, 0, 9])
        block = fitted.score_block(users)
        assert block.shape == (3, len(fitted.item_map))
        items = np.arange(len(fitted.item_map))
        for row, user in enumerate(users):
            pairs = fitted.score_pairs(np.full(items.size, user), items)
            np.testing.assert_allclose(pairs, block[row], rtol=1e-4, atol=1e-5)
