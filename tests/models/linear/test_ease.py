"""EASE against the paper written in plain NumPy: both forms, dislikes, new users, files, bad input."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topnrank as tnr
from topnrank import (
    EASE,
    DataError,
    DivergenceError,
    EventWeights,
    Interactions,
    ParameterError,
    Recency,
    Threshold,
    Unary,
    evaluate,
    load,
    split_per_user,
    synthetic,
)
from topnrank.evaluation.splits import hold_out
from topnrank.io.tensors import read_file, write_file
from topnrank.models.linear import ease as inverse
from topnrank.models.linear.ease import ByItems, ByUsers, Penalties, Signed
from topnrank.testing.base import small_data
from topnrank.testing.models import ModelTests

FEW_ITEMS = synthetic(60, 25, 700, seed=3)
FEW_USERS = synthetic(20, 50, 450, seed=4)
LIKES, DISLIKES = 15.0, 40.0


def matrices(weighted):
    """Likes and dislikes as dense users x items matrices."""
    likes, dislikes = np.zeros((2, weighted.n_users, weighted.n_items))
    likes[weighted.user_index, weighted.indices] = np.maximum(weighted.weights, 0)
    dislikes[weighted.user_index, weighted.indices] = np.maximum(-weighted.weights, 0)
    return likes, dislikes


def paper(X, penalty):
    """B of Steck (2019), eq. 8: G = X'X + lambda I; P = G^-1; B = P / -diag P; diag B = 0."""
    P = np.linalg.inv(X.T @ X + np.diag(penalty))
    B = P / -np.diag(P)
    np.fill_diagonal(B, 0.0)
    return B


def expected(weighted, *, dislikes=False):
    """Scores of all users and B, (features, items)."""
    likes, disliked = matrices(weighted)
    X = np.hstack([likes, disliked]) if dislikes else likes
    B = paper(X, np.repeat([LIKES, DISLIKES], weighted.n_items)[: X.shape[1]])[:, : weighted.n_items]
    return X @ B, B


def solved(form, weighted, *, dislikes=False):
    rows, penalties = Signed.of(weighted, dislikes), Penalties(LIKES, DISLIKES)
    return form(rows, penalties, form.solve(rows, penalties))


def ease(**parameters):
    return EASE(regularization=LIKES, dislike_regularization=DISLIKES, **parameters)


@cache
def few_users_split():
    """Sixty users of the suite's data, and seventy items more that one of them dislikes."""
    data = small_data()
    rows = data.take(np.arange(data.indptr[60])).to_arrow().to_pydict()
    more = {"user": [rows["user"][0]] * 70, "item": list(range(1000, 1070)), "rating": [1.0] * 70}
    return split_per_user(Interactions.from_frame({name: rows[name] + more[name] for name in more}), test=0.5, seed=0)


@cache
def few_users_model():
    return EASE(regularization=30.0).fit(few_users_split()[0])


class TestEASEWithDislikes(ModelTests):
    model = EASE(regularization=30.0, dislikes=True, dislike_regularization=30.0)
    better_than = 0.82


class TestEASEOfFewUsers(ModelTests):
    """The form over users; the suite's data has too many of them, so only some are taken."""

    model = EASE(regularization=30.0)
    better_than = 0.8

    @pytest.fixture
    def train(self):
        return few_users_split()[0]

    @pytest.fixture
    def test(self):
        return few_users_split()[1]

    @pytest.fixture
    def fitted(self):
        return few_users_model()

    def test_it_is_the_form_over_users(self, fitted):
        assert set(fitted.fitted.arrays) == {"user_kernel", "item_free", "seen_weights"}


@pytest.mark.parametrize("data", [FEW_ITEMS, FEW_USERS], ids=["few items", "few users"])
@pytest.mark.parametrize("dislikes", [False, True])
def test_fit_is_the_paper(data, dislikes):
    weighted = Threshold(4)(data)
    model = ease(dislikes=dislikes).fit(data)
    scores, B = expected(weighted, dislikes=dislikes)
    np.testing.assert_allclose(model.score_block(np.arange(data.n_users)), scores, atol=2e-6)
    similar = model.similar_items(data.items.ids[7], n=3).to_pydict()
    column = np.delete(B[: data.n_items, 7], 7)
    assert similar["score"] == pytest.approx(np.sort(column)[::-1][:3], abs=2e-6)
    assert similar["item"][0] == np.delete(data.items.ids, 7)[np.argmax(column)]


def test_the_diagonal_is_zero_and_the_weights_are_those_of_the_regression():
    weighted = Threshold(4)(FEW_ITEMS)
    weights = ease().fit(FEW_ITEMS).fitted.arrays["item_weights"]
    assert not weights.diagonal().any()
    X, _ = matrices(weighted)
    others = np.delete(X, 3, axis=1)  # ridge regression of item 3 on all others, straight from its normal equations
    alone = np.linalg.solve(others.T @ others + LIKES * np.eye(24), others.T @ X[:, 3])
    np.testing.assert_allclose(np.delete(weights[:, 3], 3), alone, atol=2e-6)


@pytest.mark.parametrize("data", [FEW_ITEMS, FEW_USERS], ids=["few items", "few users"])
@pytest.mark.parametrize("dislikes", [False, True])
def test_both_forms_agree_in_everything(data, dislikes):
    weighted = Threshold(4)(data)
    one, other = (solved(form, weighted, dislikes=dislikes) for form in (ByItems, ByUsers))
    users, items = np.divmod(np.random.default_rng(0).permutation(data.n_users * data.n_items), data.n_items)
    scores, _ = expected(weighted, dislikes=dislikes)
    history = np.array([4, 11, 2]), np.array([1.0, -1.0, 0.5], np.float32)
    for form in (one, other):
        np.testing.assert_allclose(form.pairs(users, items), scores[users, items], atol=2e-6)
        np.testing.assert_allclose(form.block(np.array([9, 0])), scores[[9, 0]], atol=2e-6)
    np.testing.assert_allclose(one.history(*history), other.history(*history), atol=2e-6)
    np.testing.assert_allclose(np.delete(one.column(5), 5), np.delete(other.column(5), 5), atol=2e-6)


@st.composite
def weighted_rows(draw):
    """A few users and items with weights of both signs and zeros, some likes among them."""
    n_users, n_items = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    pairs = draw(st.sets(st.tuples(st.integers(0, n_users - 1), st.integers(0, n_items - 1)), min_size=1))
    weights = draw(
        st.lists(st.sampled_from([1.0, 0.25, 3.0, 0.0, -1.0, -0.5]), min_size=len(pairs), max_size=len(pairs))
    )
    users, items = zip(*sorted(pairs), strict=True)
    return Interactions.from_arrays(users, items, weights=[1.0, *weights[1:]])


@settings(max_examples=60, deadline=None)
@given(weighted_rows(), st.booleans())
def test_both_forms_are_the_paper_on_any_rows(weighted, dislikes):
    scores, _ = expected(weighted, dislikes=dislikes)
    for form in (ByItems, ByUsers):
        found = solved(form, weighted, dislikes=dislikes)
        np.testing.assert_allclose(found.block(np.arange(weighted.n_users)), scores, atol=1e-5)
    model = ease(dislikes=dislikes, feedback="weights").fit(weighted)
    np.testing.assert_allclose(model.score_block(np.arange(weighted.n_users)), scores, atol=1e-5)


@pytest.mark.parametrize("data", [FEW_ITEMS, FEW_USERS], ids=["few items", "few users"])
@pytest.mark.parametrize("dislikes", [False, True])
def test_a_new_user_with_the_rows_of_a_known_one_gets_that_users_scores(data, dislikes):
    model = ease(dislikes=dislikes).fit(data)
    for user in (0, 7):
        rows = slice(data.indptr[user], data.indptr[user + 1])
        order = np.random.default_rng(user).permutation(data.indptr[user + 1] - data.indptr[user])
        items, ratings = data.indices[rows][order], data.ratings[rows][order]
        known = model.score_block(np.array([user]))[0]
        np.testing.assert_allclose(model.score_history(items, ratings), known, atol=2e-6)
        if not dislikes:
            liked = items[ratings >= 4]
            np.testing.assert_allclose(model.score_history(liked, None), known, atol=2e-6)


def test_a_history_follows_the_feedback_of_training():
    first, second, third = FEW_ITEMS.items.ids[:3].tolist()
    strict = ease(feedback=Threshold(5)).fit(FEW_ITEMS)
    assert strict.recommend(history={first: 5, second: 4}).equals(strict.recommend(history=[first], exclude=[second]))
    with pytest.raises(ParameterError, match="no item of this history counts as liked"):
        strict.recommend(history={second: 4, third: 1})
    hated = ease(dislikes=True).fit(FEW_ITEMS)
    assert hated.recommend(history={second: 1}).num_rows == 10
    weighted = ease().fit(Interactions.from_frame(FEW_ITEMS.to_arrow().select(["user", "item"])))
    double = weighted.score_history(np.array([2]), np.array([2.0]))
    np.testing.assert_allclose(double, 2 * weighted.score_history(np.array([2]), None), rtol=1e-5)


def test_changed_parameters_wait_for_the_next_fit():
    model = ease().fit(FEW_USERS)
    before = model.score_block(np.arange(3)), model.similar_items(FEW_USERS.items.ids[0])
    model.set_params(regularization=1.0, dislikes=True)
    np.testing.assert_array_equal(model.score_block(np.arange(3)), before[0])
    assert model.similar_items(FEW_USERS.items.ids[0]).equals(before[1])
    assert np.abs(model.fit(FEW_USERS).score_block(np.arange(3)) - before[0]).max() > 0.01


def test_weights_are_the_values_of_the_regression():
    log = event_log()
    weights = {"buy": 1.0, "cart": 0.5, "view": 0.1}
    model = ease(feedback=EventWeights(weights)).fit(log)
    scores, _ = expected(EventWeights(weights)(log))
    np.testing.assert_allclose(model.score_block(np.arange(log.n_users)), scores, atol=2e-6)
    assert model.weigh(log).fingerprint() == EventWeights(weights)(log).fingerprint()


def event_log(kinds=("view", "cart", "buy"), seed=0):
    rng = np.random.default_rng(seed)
    users, items, types = np.unravel_index(rng.permutation(40 * 15 * len(kinds))[:700], (40, 15, len(kinds)))
    times = rng.integers(0, 10**7, 700)
    return Interactions.from_arrays(users, items, types=np.array(kinds)[types], timestamps=times)


def test_recency_is_taken_from_the_training_rows(tmp_path):
    log = event_log()
    policy = Recency(EventWeights({"buy": 1.0, "cart": 0.5, "view": 0.1}), half_life_days=20)
    model = ease(feedback=policy).fit(log)
    scores, _ = expected(policy(log))
    np.testing.assert_allclose(model.score_block(np.arange(log.n_users)), scores, atol=2e-6)
    model.save(tmp_path / "shop.safetensors")
    early = log.take(log.timestamps < 5 * 10**6)
    for weigher in (model, load(tmp_path / "shop.safetensors")):
        np.testing.assert_array_equal(weigher.weigh(early).weights, policy.fitted_to(log)(early).weights)
    assert model.recommend(history=[3, 4]).num_rows == 10


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        (EventWeights({"buy": 1.0, "cart": 0.5}), "no weight for the feedback types 'view'"),
        (EventWeights({"buy": 0.0, "cart": 0.0, "view": 0.0}), "none of the .* rows has a weight above 0"),
        (EventWeights({"buy": -1.0, "cart": 0.0, "view": -0.5}), "none of the .* rows has a weight above 0"),
        (None, r"has feedback types and no weights; say what they mean with EventWeights\({'buy': ..."),
        (Threshold(4), "Threshold needs ratings"),
    ],
)
def test_events_that_mean_nothing_are_refused(feedback, message):
    with pytest.raises(DataError, match=message):
        EASE(feedback=feedback).fit(event_log())


def test_data_that_lack_what_the_feedback_needs_are_refused():
    with pytest.raises(DataError, match="EventWeights needs feedback types and the data has none; name that column"):
        EASE(feedback=EventWeights({"buy": 1.0})).fit(FEW_ITEMS)
    untimed = Interactions.from_arrays([1, 1, 2], [1, 2, 1])
    with pytest.raises(DataError, match="Recency needs timestamps and the data has none; name that column"):
        EASE(feedback=Recency(Unary())).fit(untimed)
    with pytest.raises(DataError, match="none of the 3 rows has a weight above 0"):
        EASE(feedback=Threshold(4)).fit(Interactions.from_arrays([1, 1, 2], [1, 2, 1], ratings=[1, 2, 3]))


def test_a_catalog_that_is_too_large_is_refused_with_advice():
    with pytest.raises(
        DataError, match=r"25 x 25, which takes 0\.0 GiB .* max_items is 24; use NeighborRidge or TopNRank"
    ):
        EASE(max_items=24).fit(FEW_ITEMS)
    # twenty users: the smaller system is theirs
    assert EASE(max_items=20).fit(FEW_USERS).recommend(n=1, exclude_seen=False).num_rows == 20
    with pytest.raises(DataError, match="20 x 20"):
        EASE(max_items=19).fit(FEW_USERS)
    with pytest.raises(DataError, match="50 x 50"):
        EASE(dislikes=True, max_items=49).fit(FEW_ITEMS)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"regularization": 0.0}, "EASE.regularization must be a finite number above 0, got 0.0"),
        ({"dislike_regularization": -1}, "EASE.dislike_regularization must be a finite number above 0, got -1"),
        ({"dislikes": 1}, "EASE.dislikes must be True or False, got 1"),
        ({"max_items": 0}, "EASE.max_items must be an integer of at least 1, got 0"),
    ],
)
def test_a_bad_parameter_is_one_clear_sentence(parameters, sentence):
    with pytest.raises(ParameterError, match=sentence):
        EASE(**parameters)


def test_users_without_a_like_are_ranked_nothing():
    data = Interactions.from_arrays([1, 1, 2, 2, 3], [1, 2, 1, 2, 1], ratings=[5, 5, 4, 5, 1])
    assert not ease().fit(data).score_block(np.array([2])).any()


def test_one_item_and_one_user():
    for data in (Interactions.from_arrays([1, 2], [7, 7]), Interactions.from_arrays([1, 1], [7, 8])):
        model = ease().fit(data)
        assert np.isfinite(model.score_block(np.arange(data.n_users))).all()
        assert model.recommend(exclude_seen=False).num_rows == data.n_users * data.n_items


@pytest.mark.parametrize("size", [1, 5, 511, 512, 513, 1100])
def test_the_inverse_in_place(size):
    rng = np.random.default_rng(size)
    square = rng.normal(size=(size, max(3, size // 3))).astype(np.float32)
    matrix = square @ square.T + np.eye(size, dtype=np.float32)
    exact = np.linalg.inv(matrix.astype(np.float64))
    result = matrix.copy()
    inverse.invert_in_place(result)
    error = (
        np.finfo(np.float32).eps * np.linalg.cond(exact) * np.linalg.norm(exact, 2)
    )  # of any backward stable inverse
    np.testing.assert_allclose(result, exact, atol=10 * error)
    with pytest.raises(DivergenceError, match="regularization is too small"):
        inverse.invert_in_place(-np.eye(size, dtype=np.float32))


@pytest.mark.parametrize(("data", "name"), [(FEW_ITEMS, "model.item_weights"), (FEW_USERS, "model.user_kernel")])
def test_a_file_with_a_matrix_of_another_shape_is_refused(tmp_path, data, name):
    path = tmp_path / "m.safetensors"
    ease().fit(data).save(path)
    facts, arrays = read_file(path, "model")
    arrays[name] = arrays[name][:, :-1]
    write_file(path, "model", arrays, {key: facts[key] for key in ("model", "parameters", "info", "versions")})
    with pytest.raises(Exception, match="is not square"):
        load(path)


@pytest.mark.realdata
def test_movielens_has_the_known_quality(realdata):
    """NDCG@10 over the whole catalog; popularity reaches .17 there."""
    from topnrank import read

    train, test = split_per_user(read(realdata / "ml-100k.parquet"), test=0.2, seed=0)
    value = evaluate(EASE().fit(train), test, protocol="catalog", metrics="ndcg@10")["ndcg@10"]
    assert value == pytest.approx(0.373, abs=0.005)


def test_lambda_chosen_on_held_out_rows():
    data = tnr.synthetic(300, 80, 9000)
    auto = EASE(regularization="auto").fit(data)
    chosen = auto.fitted.info.chosen["regularization"]
    again = EASE(regularization=chosen).fit(data)
    users = np.arange(data.n_users)
    np.testing.assert_array_equal(auto.score_block(users), again.score_block(users))
    train, rest = hold_out(data)

    def value(penalty):
        model = EASE(regularization=penalty).fit(train)
        return tnr.evaluate(model, rest, protocol="catalog", metrics="ndcg@10")["ndcg@10"]

    assert max((1.25, chosen, 5120.0), key=value) == chosen
    assert EASE(regularization="auto").fit(tnr.synthetic(20, 30, 300)).fitted.info.chosen == {"regularization": 400.0}
