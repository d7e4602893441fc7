"""Models recover preferences that were planted: an order of rated items, likes among unobserved ones, a checkerboard."""

from functools import cache

import numpy as np
import pytest

from topnrank import (
    BPR,
    MFADG,
    TFMAP,
    WARP,
    BiasedMF,
    CLiMF,
    GaussianRank,
    Interactions,
    ItemMean,
    ListPMF,
    ListRank,
    TopNRank,
    XCLiMF,
)
from topnrank.data import Recipe, plant
from topnrank.rng import stream

SMALL = {"factors": 8, "epochs": 40}
PURE = {"squared_weight": 0.0, "truncate": True, "anneal_n": 0.5}
both_scorers = pytest.mark.parametrize("users", ["history", "factors"])

# -- ratings of 400 users for half of 80 items, given at random; the planted order of the other half is to be found ------


@cache
def planted_ratings():
    return plant(Recipe(users=400, items=80, ratings=16_000, factors=2, taste=1.2, noise=0.2, seed=3))


def concordance(model):
    """Share of the pairs of items a user has not rated that the model orders as planted."""
    planted = planted_ratings()
    data = planted.interactions
    everybody, everything = np.indices((data.n_users, data.n_items))
    truth = planted.score(everybody.ravel(), everything.ravel()).reshape(everybody.shape)
    scores = model.fit(data).score_block(np.arange(data.n_users)).astype(np.float64)
    agree, pairs = 0, 0
    for user in range(data.n_users):
        unseen = np.setdiff1d(np.arange(data.n_items), data.indices[data.indptr[user] : data.indptr[user + 1]])
        first, second = unseen[np.array(np.triu_indices(unseen.size, 1))]
        agree += np.sum((scores[user, first] > scores[user, second]) == (truth[user, first] > truth[user, second]))
        pairs += first.size
    return agree / pairs


def test_the_mean_of_an_item_finds_what_all_agree_on_and_no_more():
    assert 0.74 < concordance(ItemMean()) < 0.78


@both_scorers
@pytest.mark.parametrize(
    ("kind", "settings", "reaches"),
    [
        (BiasedMF, {"init": 0.03, "optimizer": "adagrad", "learning_rate": 0.07}, 0.90),
        (TopNRank, {"task": "rated"}, 0.90),
        (ListPMF, {}, 0.90),
        (ListPMF, {"ties": "shuffled"}, 0.88),
        (ListRank, {"link": "identity", "learning_rate": 0.3, "regularization": 0.003}, 0.85),
        (BPR, {}, 0.87),
        (WARP, {"learning_rate": 0.03}, 0.87),
    ],
)
def test_tastes_are_found_beyond_what_all_agree_on(kind, settings, reaches, users):
    assert concordance(kind(user_representation=users, **(SMALL | settings))) > reaches


@both_scorers
@pytest.mark.parametrize(
    ("kind", "settings", "reaches"),
    [
        (TopNRank, {"task": "rated", "metric": "map"} | PURE, 0.68),
        (TopNRank, {"task": "rated", "metric": "auc"} | PURE, 0.68),
        (TopNRank, {"task": "rated", "metric": "dcg", "smoothing": "relu"} | PURE, 0.70),
        (GaussianRank, {"learning_rate": 0.03}, 0.70),
        (XCLiMF, {"learning_rate": 0.3, "regularization": 0.5}, 0.72),
        (TFMAP, {}, 0.60),
    ],
)
def test_models_that_care_for_part_of_the_order_find_part_of_it(kind, settings, reaches, users):
    """The top (cut metrics), liked or not (MAP, AUC, TFMAP), or the standing of items (xCLiMF, see docs/models.md)."""
    assert concordance(kind(user_representation=users, **(SMALL | settings))) > reaches


def test_xclimfs_published_sum_turns_long_lists_upside_down():
    """docs/models.md: the pair term prefers the lower grade and drowns the rest; averaged and held small it does not."""
    settings = SMALL | {"learning_rate": 0.3, "regularization": 0.0125}
    assert concordance(XCLiMF(mean_pairs=False, **settings)) < 0.4


@pytest.mark.filterwarnings("ignore:this model learned to rank the items")
def test_mrr_cares_for_the_first_item():
    """Of the items a user has not rated, the one put first stands in the planted order's best tenth more often."""
    planted = planted_ratings()
    data = planted.interactions
    model = TopNRank(task="rated", metric="mrr", **(SMALL | PURE)).fit(data)
    first = model.recommend(n=1)
    users = model.user_numbers(first["user"].to_numpy())
    best = planted.score(users, model.item_numbers(first["item"].to_numpy()))
    everything = np.arange(data.n_items)
    above = [np.mean(planted.score(np.full(80, u), everything) > score) for u, score in zip(users, best, strict=True)]
    assert np.mean(np.array(above) < 0.1) > 0.25


# -- likes: 24 of 80 items by taste alone, three in five of them observed --------------------------------------------


@cache
def planted_likes():
    draw = stream(2, "planted likes")
    items = draw.normal(size=(4, 80))
    liking = draw.normal(size=(400, 4)) @ (items / np.linalg.norm(items, axis=0))
    liked = np.argsort(np.argsort(-liking, axis=1), axis=1) < 24
    return liked, liked & (draw.random(liked.shape) < 0.6)


def auc_of_likes(model):
    """Chance that a liked item not observed stands above one that is not liked."""
    liked, seen = planted_likes()
    users, items = np.nonzero(seen)
    model.fit(Interactions.from_arrays(users, items, weights=np.ones(users.size)))
    return auc_among_unseen(model.score_block(np.arange(len(liked))))


def auc_among_unseen(scores):
    liked, seen = planted_likes()
    found = [(s[yes & ~known][:, None] > s[~yes]).mean() for s, yes, known in zip(scores, liked, seen, strict=True)]
    return np.mean(found)


SAMPLED = [
    (BPR, {"negatives": 30}, 0.88),
    (WARP, {"negatives": 30, "learning_rate": 0.03}, 0.88),
    (MFADG, {"negatives": 30, "learning_rate": 30.0, "regularization": 1e-5}, 0.85),
]


@both_scorers
@pytest.mark.parametrize(("kind", "settings", "reaches"), SAMPLED)
def test_likes_among_unobserved_items_are_found(kind, settings, reaches, users):
    assert auc_of_likes(kind(user_representation=users, **(SMALL | settings))) > reaches


def test_climf_finds_likes_without_ever_seeing_another_item():
    assert auc_of_likes(CLiMF(user_representation="factors", learning_rate=0.3, regularization=0.0125, **SMALL)) > 0.7


@pytest.mark.filterwarnings("ignore")  # of the other library, about threads of its own
def test_bpr_finds_the_order_that_another_librarys_bpr_finds():
    """implicit's BPR and ours, trained apart, put all items of a user in nearly the same order."""
    bpr = pytest.importorskip("implicit.bpr")
    sparse, stats = pytest.importorskip("scipy.sparse"), pytest.importorskip("scipy.stats")
    liked, seen = planted_likes()
    theirs = bpr.BayesianPersonalizedRanking(
        factors=8, learning_rate=0.03, regularization=0.02, iterations=200, num_threads=1, random_state=1
    )
    theirs.fit(sparse.csr_matrix(seen.astype(np.float32)), show_progress=False)
    model = BPR(user_representation="factors", negatives=30, **SMALL)
    ours = auc_of_likes(model)
    scores = theirs.user_factors @ theirs.item_factors.T
    agreement = [
        stats.spearmanr(one, other).statistic
        for one, other in zip(scores, model.score_block(np.arange(len(liked))), strict=True)
    ]
    assert np.mean(agreement) > 0.93
    assert abs(ours - auc_among_unseen(scores)) < 0.03


# -- checkerboard: users like items of their own color; the one withheld must come first ------------------------------


def withheld_come_first(model, size=50):
    """Share of users whose own withheld item is recommended first."""
    numbers = np.arange(size)
    same_color = numbers[:, None] % 2 == numbers % 2
    users, items = np.nonzero(same_color & (numbers[:, None] != numbers))
    model.fit(Interactions.from_arrays(users, items, weights=np.ones(users.size)))
    first = model.recommend(n=1)
    return np.mean(first["user"].to_numpy() == first["item"].to_numpy())


@both_scorers
@pytest.mark.parametrize(("kind", "settings"), [*(one[:2] for one in SAMPLED), (CLiMF, {"learning_rate": 0.3})])
def test_checkerboard(kind, settings, users):
    assert withheld_come_first(kind(user_representation=users, **(SMALL | settings))) == 1.0
