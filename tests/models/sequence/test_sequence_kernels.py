"""Kernels of order against dense matrices: counts, the next-item ridge, scores, ranks of held-out items."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from topnrank.kernels.jit import threads
from topnrank.models.sequence import reference
from topnrank.models.sequence.choice import HeldOutNext, coordinate_search
from topnrank.models.sequence.counts import count
from topnrank.models.sequence.links import LinkScores, links_of, side_by_side
from topnrank.models.sequence.next_item_ridge import climb
from topnrank.models.sequence.parts import Part, summed
from topnrank.models.sequence.ridge import AllFeatures, NextItemSystem, ridge_past
from topnrank.models.sequence.timeline import HeadAndTail, Timeline, decayed

ITEMS, DECAYS = 9, np.array([0.0, 0.7, 0.9])


def timeline(seed=0, users=12, plain=False, items=ITEMS):
    """Users with 0 to 13 rows, items repeated, of different weights, some not wanted, some links weak or cut."""
    drawn = np.random.default_rng(seed)
    owners = np.repeat(np.arange(users), drawn.integers(0, 14, users))
    n = len(owners)
    values = [drawn.choice(choice, n).astype(np.float32) for choice in ([0.5, 1, 2], [0, 1, 3], [1, 1, 0.4, 0])]
    values = [np.ones(n, np.float32)] * 3 if plain else values
    return line_of(owners, drawn.integers(0, items, n), values, users, items)


def line_of(owners, items, values, n_users, n_items):
    """All rows, each a moment of its own; `values` are past, wanted and links."""
    columns, rows = dict(zip(("past", "wanted", "links"), values, strict=True)), np.arange(len(owners))
    return Timeline.from_rows(owners, items, rows, rows, **columns, n_users=n_users, n_items=n_items)


def dense(links, n_features, n_items=ITEMS):
    matrix = np.zeros((n_features, n_items))
    for feature in range(n_features):
        own = slice(links.indptr[feature], links.indptr[feature + 1])
        assert (np.diff(links.targets[own]) > 0).all()
        matrix[feature, links.targets[own]] = links.values[own]
    return matrix


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize(("window", "power"), [(1, 1.0), (4, 0.5), (50, 1.0)])
def test_counts_are_those_of_the_formula(window, power, plain):
    line = timeline(plain=plain)
    gamma = np.concatenate([[0.0], np.arange(1, window + 1) ** -power])
    expected = reference.transitions(line.events, gamma, ITEMS)
    assert_allclose(dense(count(line, window, power), ITEMS), expected, rtol=1e-6)


def test_a_link_of_nothing_ends_the_past():
    values = tuple(np.array(row, np.float32) for row in ([1, 1, 1, 1], [1, 1, 1, 1], [1, 0, 1, 1]))
    line = line_of(np.zeros(4, int), np.arange(4), values, 1, 4)
    assert_array_equal(dense(count(line, 3, 1.0), 4, 4), [[0, 1, 0, 0], [0] * 4, [0, 0, 0, 1], [0] * 4])


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("decays", [DECAYS, DECAYS[1:2], DECAYS[:1]])
def test_the_ridge_is_the_least_squares_solution_on_its_features(decays, plain):
    line, penalty = timeline(seed=3, plain=plain), 2.0
    S = len(decays)
    system = NextItemSystem.of(line, decays, neighbors=4, shrink=1.0, longest=1000)
    W = dense(system.solve(penalty), ITEMS * S)
    H = reference.pasts(line.events, decays, ITEMS)
    for item in range(ITEMS):
        features = system.chosen[item][system.chosen[item] >= 0]
        assert (np.bincount(features % S, minlength=S) <= 4).all()
        expected = reference.next_item_weights(line.events, H, item, features, penalty * system.unit)
        assert_allclose(W[features, item], expected, rtol=2e-4, atol=2e-5)
        assert np.count_nonzero(W[:, item]) <= len(features)


@pytest.mark.parametrize("plain", [True, False])
def test_all_features_at_once_are_the_least_squares_solution(plain):
    line, penalty = timeline(seed=3, plain=plain), 2.0
    unit = float((line.events.wanted * line.events.past**2).mean())
    W = dense(AllFeatures.of(line, DECAYS, longest=1000).solve(penalty), 3 * ITEMS)
    H = reference.pasts(line.events, DECAYS, ITEMS)
    for item in range(ITEMS):
        expected = reference.next_item_weights(line.events, H, item, np.arange(3 * ITEMS), penalty * unit)
        assert_allclose(W[:, item], expected, rtol=1e-3, atol=1e-5)


def test_features_are_the_nearest_of_each_scale():
    line, shrink = timeline(seed=5), 1.5
    system = NextItemSystem.of(line, DECAYS, neighbors=3, shrink=shrink, longest=1000)
    H, v = reference.pasts(line.events, DECAYS, ITEMS), line.events.wanted.astype(float)
    B = (v[:, None] * H).T @ np.eye(ITEMS)[line.events.items]
    G = (v[:, None] * H).T @ H
    counts = np.bincount(line.events.items, weights=v, minlength=ITEMS)
    score = B / (np.sqrt(np.diag(G)[:, None] * counts) + shrink * system.unit)
    for item in range(ITEMS):
        for scale in range(3):
            own = np.arange(ITEMS) * 3 + scale
            best = own[np.argsort(-score[own, item], kind="stable")][:3]
            got = system.chosen[item][(system.chosen[item] >= 0) & (system.chosen[item] % 3 == scale)]
            assert_array_equal(got, np.sort(best[B[best, item] > 0]))


def test_bits_do_not_depend_on_threads():
    line = timeline(seed=1, users=60, items=40)
    results = []
    for number in (1, 2):
        with threads(number):
            links = NextItemSystem.of(line, DECAYS, 5, 1.0, 1000).solve(3.0)
            results.append([array.tobytes() for array in (*links, *count(line, 5, 1.0))])
    assert results[0] == results[1]


def test_scores_are_sums_over_the_past():
    line, drawn = timeline(seed=2), np.random.default_rng(0)
    ridge = NextItemSystem.of(line, DECAYS, 4, 1.0, 1000).solve(2.0)
    links = side_by_side([ridge, count(line, 5, 1.0)], ITEMS)
    S, events = 4, line.events
    past, bias = drawn.random((len(events.items), S)).astype(np.float32), drawn.random(ITEMS).astype(np.float32)
    scores = LinkScores(links, bias, events.indptr, events.items, past)
    W = dense(links, ITEMS * S)
    assert_allclose(W.reshape(ITEMS, S, ITEMS)[:, :3].reshape(-1, ITEMS), dense(ridge, ITEMS * 3))
    expected = np.tile(bias.astype(float), (12, 1))
    for row, owner in enumerate(events.owners):
        for scale in range(S):
            expected[owner] += past[row, scale] * W[events.items[row] * S + scale]
    assert_allclose(scores.block(np.arange(12)), expected, rtol=1e-4)
    assert_allclose(scores.block(np.array([4]))[0], expected[4], rtol=1e-4)
    users, items = np.array([3, 3, 8]), np.array([1, 7, 0])
    assert_allclose(scores.pairs(users, items), expected[users, items], rtol=1e-4)
    own = slice(events.indptr[8], events.indptr[9])
    assert_allclose(scores.history(events.items[own], past[own]), expected[8], rtol=1e-4)
    parts = scores.parts(events.items[own], np.array([2])) * past[own]
    assert_allclose(parts.sum() + bias[2], expected[8, 2], rtol=1e-4)


def test_held_out_items_are_the_last_and_ranked_without_the_others():
    line = timeline(seed=4, plain=True)
    held = HeldOutNext.of(line)
    rest, events = held.rest.events, line.events
    sizes = np.diff(events.indptr)
    assert_array_equal(held.users, np.flatnonzero(sizes >= 3))
    assert_array_equal(np.diff(rest.indptr), sizes - (sizes >= 3))
    assert_array_equal(held.wanted, events.items[events.indptr[1:][held.users] - 1])
    links, past = count(held.rest, 3, 1.0), np.ones((len(rest.items), 1))
    scores = LinkScores(links, np.zeros(ITEMS, np.float32), rest.indptr, rest.items, past.astype(np.float32))
    gains = []
    for row, user, wanted in zip(scores.block(held.users), held.users, held.wanted, strict=True):
        seen = set(rest.items[rest.indptr[user] : rest.indptr[user + 1]]) - {wanted}
        others = [row[item] for item in range(ITEMS) if item not in seen and item != wanted]
        above = sum(other > row[wanted] for other in others) + 0.5 * sum(other == row[wanted] for other in others)
        gains.append(1 / np.log2(above + 2))
    assert held.ndcg(links, np.zeros(ITEMS), past) == pytest.approx(np.mean(gains))


def test_sums_of_parts_are_judged_as_one_by_one():
    held = HeldOutNext.of(timeline(seed=4, plain=True))
    rest = held.rest
    parts = [Part(count(rest, window, 1.0), np.arange(ITEMS) / 10, np.ones((len(rest.rows), 1))) for window in (1, 3)]
    both = summed([parts[0], parts[1].times(0.5)])
    values = held.values(parts, [[1.0, 0.0], [1.0, 0.5]])
    assert_allclose(values, [held.ndcg(*parts[0]), held.ndcg(*both)])


def test_no_user_has_items_enough():
    values = (np.ones(2, np.float32),) * 3
    assert HeldOutNext.of(line_of(np.zeros(2, int), np.arange(2), values, 1, 2)) is None


def test_the_head_counts_most_and_the_tail_shares_evenly():
    kernel = HeadAndTail(3, 0.8, 0.5)
    weights = kernel.weights(np.arange(5), np.full(5, 5))
    assert_allclose(weights, [0.8 * 4 / 7, 0.8 * 2 / 7, 0.8 / 7, 0.1, 0.1])
    assert_allclose(kernel.weights(np.arange(2), np.full(2, 2)), [2 / 3, 1 / 3])


def test_decays_of_old_rows():
    assert_allclose(decayed(np.array([0, 1, 2, 500]), [0.0, 0.5]), [[1, 1], [0, 0.5], [0, 0.25], [0, 0]])


def test_settings_are_searched_one_after_the_other():
    tried = []

    def value(settings):
        tried.append((settings["a"], settings["b"]))
        return -((settings["a"] - 3) ** 2) - (settings["b"] - 2) ** 2

    best = coordinate_search({"b": 1, "a": 1, "c": 0}, {"a": (1, 2, 3), "b": (1, 2, 3)}, value)
    assert best == {"a": 3, "b": 2, "c": 0}
    assert len(tried) == len(set(tried))
    assert coordinate_search({"a": 5}, {"a": (4, 6)}, lambda settings: 0.0) == {"a": 5}


def test_a_climb_goes_on_as_long_as_it_is_better():
    def towards(goal):
        tried = []

        def value(number):
            tried.append(number)
            return -abs(number - goal), number

        return climb((1.0, 2.0, 3.0, 4.0, 5.0), 2, value)[0], tried

    assert towards(5.0) == (5.0, [3.0, 4.0, 5.0])
    assert towards(2.0) == (2.0, [3.0, 4.0, 2.0, 1.0])
    assert towards(3.0) == (3.0, [3.0, 4.0, 2.0])


def test_ridge_past_fades_by_rows():
    line = timeline(seed=6, plain=True)
    past = ridge_past(line, DECAYS)
    assert_allclose(past, np.where(DECAYS ** line.ages()[:, None] < 1e-4, 0, DECAYS ** line.ages()[:, None]))


def test_links_need_no_feature():
    links = links_of(np.full((2, 3), -1, np.int32), np.zeros((2, 3), np.float32), 2)
    assert links.indptr.tolist() == [0, 0, 0]
