"""The neighbor ridge against a literal NumPy transcription of its formulas, and leaving out against fitting again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.kernels.jit import threads
from topnrank.models.linear import neighbors
from topnrank.models.linear._neighbors_kernel import pair_neighbor_scores
from topnrank.models.linear.neighbors import LikedItems, Ridge, fit_neighbors, seen_from_sources

RIDGE = Ridge(neighbors=4, penalty=3.0, shrink=2.0)


def random_likes(users=60, items=15, share=0.3, seed=0):
    """A dense 0/1 matrix with a user and an item without likes."""
    X = (np.random.default_rng(seed).random((users, items)) < share).astype(float)
    X[3], X[:, 5] = 0.0, 0.0
    return X


def as_liked(X):
    """The matrix as CSR."""
    indptr = np.concatenate([[0], np.cumsum((X > 0).sum(axis=1))]).astype(np.int64)
    return LikedItems(indptr, np.nonzero(X)[1].astype(np.int32), X.shape[1])


def literal(X, ridge):
    """W (items, items): column i holds the weights that predict item i."""
    sizes = np.maximum(X.sum(axis=1), 1.0)
    w = sizes**-ridge.user_power
    G = X.T @ (w[:, None] * X)
    scale = np.trace(G) / max(X.sum(), 1.0)
    W = np.zeros_like(G)
    for i in range(len(G)):
        cosine = G[i] / np.maximum(np.sqrt(G[i, i] * np.diag(G)) + ridge.shrink * scale, 1e-9)
        cosine[i] = 0.0
        order = np.argsort(-cosine, kind="stable")[: ridge.neighbors]
        N = order[cosine[order] > 0]
        A = G[np.ix_(N, N)] + ridge.penalty * scale * np.eye(len(N))
        W[N, i] = np.linalg.solve(A, G[N, i])
    return W


def dense(solved, n_items):
    """The solved weights as a matrix."""
    W = np.zeros((n_items, n_items))
    for i in range(n_items):
        mine = solved.neighbors.items[i] != i
        W[solved.neighbors.items[i][mine], i] = solved.neighbors.weights[i][mine]
    return W


@pytest.mark.parametrize("ridge", [RIDGE, Ridge(40, 1.0, 0.0, 0.0), Ridge(1, 0.5, 5.0, 1.0)])
@pytest.mark.parametrize("seed", range(3))
def test_weights_are_those_of_the_formulas(ridge, seed):
    X = random_likes(seed=seed)
    W = dense(fit_neighbors(as_liked(X), ridge), X.shape[1])
    assert_allclose(W, literal(X, ridge), atol=2e-6)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=9))
def test_weights_of_any_small_likes(rows):
    X = np.array(rows, float)
    ridge = Ridge(5, 1.0, 1.0)  # all other items may be neighbors, so that ties in the cosine do not matter
    assert_allclose(dense(fit_neighbors(as_liked(X), ridge), 6), literal(X, ridge), atol=2e-6)


def test_entries_found_by_bits_and_by_search_are_the_same(monkeypatch):
    liked = as_liked(random_likes(items=150))  # more than two words of bits
    found = fit_neighbors(liked, Ridge(20, 1.0), left_out=True)
    monkeypatch.setattr(neighbors, "MOST_BYTES", 0)
    searched = fit_neighbors(liked, Ridge(20, 1.0), left_out=True)
    assert_array_equal(found.neighbors.weights, searched.neighbors.weights)
    assert_array_equal(found.neighbor_scores, searched.neighbor_scores)


def test_all_other_items_as_neighbors_give_ease():
    X = random_likes(items=8)
    ridge = Ridge(7, 2.0, 0.0, 0.0)
    P = np.linalg.inv(X.T @ X + 2.0 * np.eye(8))
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    solved = fit_neighbors(as_liked(X), ridge)
    W = dense(solved, 8)
    B[:, 5] = B[5] = 0.0  # nobody likes it
    assert_allclose(W, B, atol=2e-6)


@pytest.mark.parametrize("faded", [False, True])
def test_left_out_links_are_those_of_regressions_without_the_user(faded):
    X = random_likes()
    ridge = Ridge(4, 3.0, 2.0, 0.25)
    recency_weights = (
        np.random.default_rng(1).random(int(X.sum())).astype(np.float32) if faded else np.empty(0, np.float32)
    )
    R = X.copy()
    if faded:
        R[X > 0] = recency_weights
    solved = fit_neighbors(as_liked(X)._replace(recency_weights=recency_weights), ridge, left_out=True)
    W = dense(solved, X.shape[1])
    w = np.maximum(X.sum(axis=1), 1.0) ** -ridge.user_power
    scale = (w * X.sum(axis=1)).sum() / X.sum()
    for user, item, link in zip(*np.nonzero(X), solved.neighbor_scores, strict=True):
        N = np.flatnonzero(W[:, item])
        others = np.delete(X, user, axis=0)
        weights = np.delete(w, user)
        A = others[:, N].T @ (weights[:, None] * others[:, N]) + ridge.penalty * scale * np.eye(len(N))
        without = np.linalg.solve(A, others[:, N].T @ (weights * others[:, item]))
        assert link == pytest.approx(R[user, N] @ without, abs=2e-6)


def with_sessions(X, recency_weights, seed=2):
    """Each user's likes cut into up to three sessions at random; those, and the matrix of sessions."""
    users = np.nonzero(X)[0]
    _, sessions = np.unique(3 * users + np.random.default_rng(seed).integers(0, 3, users.size), return_inverse=True)
    S = np.zeros((sessions.max() + 1, X.shape[1]))
    S[sessions, np.nonzero(X)[1]] = 1.0
    return as_liked(X)._replace(sessions=sessions.astype(np.int64), recency_weights=recency_weights), S


def test_sessions_take_the_place_of_users():
    X = random_likes()
    liked, S = with_sessions(X, np.empty(0, np.float32))
    assert_allclose(dense(fit_neighbors(liked, RIDGE), X.shape[1]), literal(S, RIDGE), atol=2e-6)


@pytest.mark.parametrize("faded", [False, True])
def test_left_out_links_are_those_of_regressions_without_the_session(faded):
    X = random_likes()
    recency_weights = (
        np.random.default_rng(1).random(int(X.sum())).astype(np.float32) if faded else np.empty(0, np.float32)
    )
    R = X.copy()
    if faded:
        R[X > 0] = recency_weights
    liked, S = with_sessions(X, recency_weights)
    solved = fit_neighbors(liked, RIDGE, left_out=True)
    W = dense(solved, X.shape[1])
    w = S.sum(axis=1) ** -RIDGE.user_power
    scale = (w * S.sum(axis=1)).sum() / S.sum()
    for user, item, session, link in zip(*np.nonzero(X), liked.sessions, solved.neighbor_scores, strict=True):
        N = np.flatnonzero(W[:, item])
        others, weights = np.delete(S, session, axis=0), np.delete(w, session)
        A = others[:, N].T @ (weights[:, None] * others[:, N]) + RIDGE.penalty * scale * np.eye(len(N))
        without = np.linalg.solve(A, others[:, N].T @ (weights * others[:, item]))
        assert link == pytest.approx(R[user, N] @ without, abs=2e-6)


def test_one_session_for_each_user_is_none():
    X = random_likes()
    plain = as_liked(X)
    parted = plain._replace(sessions=np.nonzero(X)[0].astype(np.int64))
    expected, found = (fit_neighbors(likes, RIDGE, left_out=True) for likes in (plain, parted))
    assert_array_equal(found.neighbors.items, expected.neighbors.items)
    assert_allclose(found.neighbors.weights, expected.neighbors.weights, atol=1e-7)
    assert_allclose(found.neighbor_scores, expected.neighbor_scores, atol=1e-6)


def test_likes_beyond_the_longest_session_have_links_too():
    X = random_likes(users=30)
    X[0] = 1.0
    sessions = np.nonzero(X)[0].astype(np.int64)
    sessions[:4] = -1  # the first user has two sessions, of 4 and 11 items
    liked = as_liked(X)._replace(sessions=sessions + 1)
    capped, whole = (fit_neighbors(liked, Ridge(4, 3.0, longest=n), left_out=True) for n in (6, 15))
    assert capped.neighbor_scores.size == whole.neighbor_scores.size == int(X.sum())
    as_they_are = np.isclose(capped.neighbor_scores[:15], X[0] @ dense(capped, 15), atol=1e-6)
    assert as_they_are.sum() >= 5  # 5 of its 11 likes entered no regression
    assert not np.array_equal(capped.neighbors.weights, whole.neighbors.weights)


def test_long_lists_are_capped_for_the_regressions_only():
    X = random_likes(users=30)
    X[0] = 1.0
    capped = fit_neighbors(as_liked(X), Ridge(4, 3.0, longest=6), left_out=True)
    again = fit_neighbors(as_liked(X), Ridge(4, 3.0, longest=6), left_out=True)
    assert_array_equal(capped.neighbor_scores, again.neighbor_scores)
    assert capped.neighbor_scores.size == int(X.sum())
    whole = fit_neighbors(as_liked(X), Ridge(4, 3.0, longest=15))
    assert not np.array_equal(capped.neighbors.weights, whole.neighbors.weights)


def test_bits_do_not_depend_on_threads():
    likes = as_liked(random_likes(users=300, items=90))
    results = []
    for count in (1, 2):
        with threads(count):
            results.append(fit_neighbors(likes, RIDGE, left_out=True))
    assert_array_equal(results[0].neighbor_scores, results[1].neighbor_scores)
    assert_array_equal(results[0].neighbors.weights, results[1].neighbors.weights)


def test_weights_seen_from_their_sources_are_the_same():
    X = random_likes()
    solved = fit_neighbors(as_liked(X), RIDGE)
    sources, W = seen_from_sources(solved.neighbors), np.zeros((15, 15))
    for j in range(15):
        here = slice(sources.indptr[j], sources.indptr[j + 1])
        W[j, sources.targets[here]] = sources.values[here]
    assert_array_equal(W.astype(np.float32), dense(solved, 15).astype(np.float32))


def test_links_of_pairs_are_sums_over_the_likes():
    X = random_likes()
    likes, solved = as_liked(X), fit_neighbors(as_liked(X), RIDGE)
    users, items = (part.ravel().astype(np.int64) for part in np.indices(X.shape))
    scores = np.empty(users.size, np.float32)
    pair_neighbor_scores(
        *solved.neighbors, (likes.indptr, likes.items, np.ones(likes.items.size, np.float32)), users, items, scores
    )
    assert_allclose(scores.reshape(X.shape), X @ dense(solved, 15), atol=1e-6)
    assert_allclose(
        solved.neighbors.neighbor_scores(np.flatnonzero(X[0]), np.arange(15)), (X @ dense(solved, 15))[0], atol=1e-6
    )
