"""Known answers, other libraries' answers, and what must not matter."""

import shutil
from math import comb, log2

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, ERR, RR, P, R, Success, nDCG
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from support.fixed_ranker import FixedRanker
from topnrank.data.interactions import Interactions
from topnrank.errors import ParameterError
from topnrank.evaluation import evaluate, protocols
from topnrank.evaluation.metrics import ACCURACY, parse_metrics
from topnrank.kernels.top_items import top_items

CUT_KINDS = [kind for kind in ACCURACY if kind != "auc"]


def one_list(scores, ratings, metrics, **options):
    """Values of one user's rated list."""
    data = Interactions.from_arrays([0] * len(ratings), range(len(ratings)), ratings=np.asarray(ratings, dtype=float))
    return evaluate(FixedRanker([scores]), data, metrics=metrics, **options)


def random_lists(seed, *, n_users=30, n_items=80, levels=None):
    """A model, and test rows with ratings 0 to 4; `levels` rounds the scores so that some tie."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_users, n_items))
    scores = scores if levels is None else np.round(scores * levels) / levels
    users, items = np.nonzero(rng.random((n_users, n_items)) < 0.25)
    seen = [rng.choice(n_items, 10, replace=False) for _ in range(n_users)]
    data = Interactions.from_arrays(users, items, ratings=rng.integers(0, 5, len(users)).astype(float))
    return FixedRanker(scores, seen=seen), data


def test_known_answers_of_a_list():
    result = one_list([4, 3, 2, 1], [1, 5, 2, 4], ["ndcg@3", "map", "mrr", "precision@2", "recall@2", "hit@1", "auc"])
    best = 1 + 1 / log2(3)
    assert result["ndcg@3"] == pytest.approx(1 / log2(3) / best)
    assert result["map"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert result["mrr"] == 1 / 2
    assert result["precision@2"] == 1 / 2
    assert result["recall@2"] == 1 / 2
    assert result["hit@1"] == 0
    assert result["auc"] == pytest.approx(1 / 4)


def test_known_answers_of_graded_metrics():
    result = one_list([2, 1], [3, 5], ["ndcg_graded@1", "ndcg_graded", "err"])
    assert result["ndcg_graded@1"] == pytest.approx(7 / 31)
    assert result["ndcg_graded"] == pytest.approx((7 + 31 / log2(3)) / (31 + 7 / log2(3)))
    assert result["err"] == pytest.approx(7 / 32 + (1 - 7 / 32) * 31 / 32 / 2)


def test_a_perfect_order_is_one():
    result = one_list([5, 4, 3, 2], [5, 4, 2, 1], ["ndcg@2", "ndcg", "ndcg_graded", "map@3", "mrr", "recall@2", "auc"])
    assert result.values == pytest.approx(dict.fromkeys(result.values, 1.0))


def test_constant_scores_give_the_random_floor():
    m, good, k = 12, 5, 4
    ratings = [5] * good + [1] * (m - good)
    result = one_list([0.0] * m, ratings, ["precision@4", "recall@4", "hit@4", "ndcg@4", "auc", "mrr"])
    assert result["precision@4"] == pytest.approx(good / m)
    assert result["recall@4"] == pytest.approx(k / m)
    assert result["hit@4"] == pytest.approx(1 - comb(m - good, k) / comb(m, k))
    assert result["ndcg@4"] == pytest.approx(good / m)
    assert result["auc"] == 0.5
    assert result["mrr"] == pytest.approx(sum(comb(m - i, good - 1) / comb(m, good) / i for i in range(1, m)))


@pytest.mark.parametrize("levels", [None, 2])
def test_ndcg_and_auc_equal_scikit_learn(levels):
    model, data = random_lists(1, levels=levels)
    result = evaluate(model, data, metrics=["ndcg@5", "ndcg", "auc", "map", "ndcg_graded@5"], relevant=3)
    for user in range(data.n_users):
        rows = slice(data.indptr[user], data.indptr[user + 1])
        scores, ratings = model.scores[user, data.indices[rows]], data.ratings[rows]
        flags, ours = ratings >= 3, {name: values[user] for name, values in result.per_user.items()}
        assert ours["ndcg@5"] == pytest.approx(ndcg_score([flags], [scores], k=5))
        assert ours["ndcg"] == pytest.approx(ndcg_score([flags], [scores]))
        assert ours["ndcg_graded@5"] == pytest.approx(ndcg_score([2.0**ratings - 1], [scores], k=5))
        assert ours["auc"] == pytest.approx(roc_auc_score(flags, scores))
        if levels is None:  # scikit-learn takes a tie group as one step, not in random order
            assert ours["map"] == pytest.approx(average_precision_score(flags, scores))


def judgments(model, data, users):
    """The lists in the form of ir-measures."""
    qrels, run = [], []
    for user in users:
        for row in range(data.indptr[user], data.indptr[user + 1]):
            item = data.indices[row]
            qrels.append(ir_measures.Qrel(str(user), str(item), int(data.ratings[row])))
            run.append(ir_measures.ScoredDoc(str(user), str(item), float(model.scores[user, item])))
    return qrels, run


def test_metrics_equal_ir_measures():
    model, data = random_lists(2)
    qrels, run = judgments(model, data, range(data.n_users))
    pairs = {"mrr@3": RR(rel=3) @ 3, "precision@5": P(rel=3) @ 5, "recall@5": R(rel=3) @ 5, "hit@2": Success(rel=3) @ 2,
             "ndcg_graded@5": nDCG(gains={0: 0, 1: 1, 2: 3, 3: 7, 4: 15}) @ 5, "map": AP(rel=3),
             "ndcg@5": nDCG(gains={0: 0, 1: 0, 2: 0, 3: 1, 4: 1}) @ 5}  # fmt: skip
    theirs = ir_measures.calc_aggregate(list(pairs.values()), qrels, run)
    result = evaluate(model, data, metrics=[*pairs, "map@5"], relevant=3)
    assert result.n_excluded == 0
    assert {name: result[name] for name in pairs} == pytest.approx({n: theirs[m] for n, m in pairs.items()})
    # trec_eval divides AP@k by all relevant items, we by those that fit
    n_relevant = np.bincount(data.user_index, weights=data.ratings >= 3)
    by_user = {row.query_id: row.value for row in ir_measures.iter_calc([AP(rel=3) @ 5], qrels, run)}
    scaled = [by_user[str(user)] * n / min(5, n) for user, n in enumerate(n_relevant)]
    assert result["map@5"] == pytest.approx(np.mean(scaled))


@pytest.mark.process
@pytest.mark.skipif(shutil.which("perl") is None, reason="ir-measures computes ERR with a Perl script")
def test_err_equals_ir_measures():
    model, data = random_lists(3)
    with_top_grade = [u for u in range(data.n_users) if data.ratings[data.indptr[u] : data.indptr[u + 1]].max() >= 3]
    theirs = ir_measures.calc_aggregate([ERR @ 10], *judgments(model, data, with_top_grade))[ERR @ 10]
    ours = evaluate(model, data, metrics="err@10", relevant=3)  # its highest grade is fixed at 4, as in these data
    assert ours["err@10"] == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("protocol", ["rated", "catalog"])
def test_threads_and_blocks_do_not_change_a_bit(protocol, monkeypatch):
    model, data = random_lists(4, levels=3)
    names = [f"{kind}@5" for kind in CUT_KINDS] + ["auc", "coverage@5"]
    one = evaluate(model, data, protocol=protocol, metrics=names, num_threads=1)
    monkeypatch.setattr(protocols, "_BLOCK_BYTES", 4 * 80 * 7)
    monkeypatch.setattr(protocols, "_PAIRS", 11)
    two = evaluate(model, data, protocol=protocol, metrics=names, num_threads=2)
    assert one.values == two.values
    for name, values in one.per_user.items():
        np.testing.assert_array_equal(values, two.per_user[name])


@pytest.mark.parametrize("protocol", ["rated", "catalog"])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_renumbering_items_changes_nothing(protocol, seed):
    model, data = random_lists(seed, n_users=12, n_items=20, levels=2)
    order = np.random.default_rng(seed).permutation(20)
    seen = [order[model.fitted.indices[model.fitted.indptr[u] : model.fitted.indptr[u + 1]]] for u in range(12)]
    scores = np.empty_like(model.scores)
    scores[:, order] = model.scores
    moved = Interactions.from_arrays(
        data.users.ids[data.user_index], order[data.items.ids[data.indices]], ratings=data.ratings
    )
    names = [f"{kind}@4" for kind in CUT_KINDS] + ["auc"]
    options = {"protocol": protocol, "metrics": names, "relevant": 3}
    first, second = evaluate(model, data, **options), evaluate(FixedRanker(scores, seen=seen), moved, **options)
    assert first.values == pytest.approx(second.values, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("levels", [None, 3])
def test_stopping_early_in_a_long_catalog_changes_nothing(levels):
    model, data = random_lists(5, n_users=8, n_items=5000, levels=levels)
    names = [f"{kind}@10" for kind in CUT_KINDS]
    pruned = evaluate(model, data, protocol="catalog", metrics=names)
    whole = evaluate(model, data, protocol="catalog", metrics=[*names, "auc"])  # auc needs every place
    assert pruned.values == {name: whole[name] for name in names}


def test_catalog_equals_scikit_learn_on_unseen_items():
    model, data = random_lists(6, n_items=3000, n_users=6)
    result = evaluate(model, data, protocol="catalog", metrics=["ndcg@10", "auc"], relevant=3)
    for user in range(6):
        candidates = np.setdiff1d(
            np.arange(3000), model.fitted.indices[model.fitted.indptr[user] : model.fitted.indptr[user + 1]]
        )
        rows = slice(data.indptr[user], data.indptr[user + 1])
        relevant = np.isin(candidates, data.items.ids[data.indices[rows]][data.ratings[rows] >= 3])
        scores = model.scores[user, candidates]
        assert result.per_user["ndcg@10"][user] == pytest.approx(ndcg_score([relevant], [scores], k=10))
        assert result.per_user["auc"][user] == pytest.approx(roc_auc_score(relevant, scores))


def test_coverage_breaks_ties_by_item_and_skips_seen_items():
    model = FixedRanker([[0, 0, 0, 0, 0], [1, 1, 9, 0, 0]], seen=[[0], []])
    data = Interactions.from_arrays([0, 1], [4, 4])
    result = evaluate(model, data, protocol="catalog", metrics=["coverage@1", "coverage@2", "coverage@9"])
    assert result["coverage@1"] == 2 / 5  # 1; 2
    assert result["coverage@2"] == 3 / 5  # 1, 2; 2, 0
    assert result["coverage@9"] == 1
    assert not result.per_user


def test_top_items_are_sorted_by_score_then_item():
    nan, low = np.nan, -np.inf
    block = np.array([[0, 0, 1, 1, 0], [nan, 2, nan, low, nan], [nan] * 5, [1, 0, 0, 0, 0]], dtype=np.float32)
    assert top_items(block, 3).tolist() == [[2, 3, 0], [1, 3, -1], [-1, -1, -1], [0, 1, 2]]


def test_coverage_of_rated_lists():
    data = Interactions.from_arrays([0, 0, 0], [1, 2, 3])
    assert evaluate(FixedRanker([[0, 5, 5, 1]]), data, metrics="coverage@1")["coverage@1"] == 1 / 4


def test_names_are_checked():
    assert [metric.name for metric in parse_metrics(["auc", "ndcg@3", "auc"])] == ["auc", "ndcg@3"]
    with pytest.raises(ParameterError, match=r"'ndcg', .*did you mean 'ndcg'"):
        parse_metrics("ndgc@10")
    for name in ("ndcg@0", "ndcg@-1", "ndcg@x", "ndcg@", "ndcg@1.5"):
        with pytest.raises(ParameterError, match="integer of at least 1"):
            parse_metrics(name)
    with pytest.raises(ParameterError, match="no cut-off"):
        parse_metrics("auc@5")
    with pytest.raises(ParameterError, match="coverage@10"):
        parse_metrics("coverage")
    with pytest.raises(ParameterError, match="at least one"):
        parse_metrics([])
