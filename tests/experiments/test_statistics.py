"""Means, intervals and tests against SciPy, statsmodels, known cases and a simulation."""

import math

import numpy as np
import pytest

from topnrank import ParameterError
from topnrank.experiments.compare.result import Cell, Comparison
from topnrank.experiments.statistics import bootstrap_intervals, holm, paired_tests, per_user
from topnrank.rng import stream

METRICS = ("ndcg@1", "ndcg@10")


def interval_of(values, **options):
    return bootstrap_intervals([values], **options)[0]


def comparison(values, *, metrics=METRICS, errors=None):
    """A comparison from {row: (repeats, n_users)} values, the same shifted a little for each further metric."""
    repeats, n_users = next(iter(values.values())).shape
    cells = {
        (name, repeat): Cell(
            name,
            repeat,
            1.0,
            0.1,
            {} if errors and name in errors else {("rated", m): row[repeat] ** (k + 1) for k, m in enumerate(metrics)},
            [],
            (errors or {}).get(name),
        )
        for name, row in values.items()
        for repeat in range(repeats)
    }
    return Comparison(tuple(values), ("rated",), metrics, repeats, np.arange(n_users), {}, {}, cells)


def draws(purpose, *shape):
    return stream(0, f"test {purpose}").uniform(size=shape)


def test_per_user_averages_the_repeats_that_are_defined():
    values = np.array([[1.0, np.nan, np.nan, 0.5], [0.0, 0.25, np.nan, 0.5]])
    np.testing.assert_array_equal(per_user(values), [0.5, 0.25, np.nan, 0.5])
    np.testing.assert_array_equal(per_user(values[1]), values[1])


def test_means_and_standard_deviation_by_hand():
    values = np.array([[1.0, np.nan, 0.0], [0.5, 0.5, 0.2]])
    made = comparison({"a": values, "b": values * 0.0}, metrics=("ndcg@1",))
    means = [0.5, 0.4]
    np.testing.assert_allclose(made.repeat_means("a", "rated", "ndcg@1"), means)
    assert made.mean("a", "rated", "ndcg@1") == pytest.approx(0.45)
    assert made.std("a", "rated", "ndcg@1") == pytest.approx(np.std(means, ddof=1))
    assert made.fit_seconds("a") == 1.0


def test_one_repeat_has_no_standard_deviation():
    made = comparison({"a": np.array([[1.0, 0.0]])})
    assert math.isnan(made.std("a", "rated", "ndcg@1"))


def test_bootstrap_is_that_of_scipy_up_to_its_chance():
    stats = pytest.importorskip("scipy.stats")
    users = draws("skewed", 150) ** 3
    low, high = interval_of(users, draws=20_000)
    other = stats.bootstrap(
        (users,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(5)
    ).confidence_interval
    width = high - low
    assert low == pytest.approx(other.low, abs=0.02 * width)
    assert high == pytest.approx(other.high, abs=0.02 * width)


def test_bootstrap_is_repeatable_and_leaves_nan_out():
    users = draws("repeatable", 40)
    first = interval_of(users, seed=3)
    assert first == interval_of(np.concatenate([users, [np.nan] * 5]), seed=3)
    assert first == interval_of(np.stack([users, users]), seed=3)
    assert first != interval_of(users, seed=4)
    wide, narrow = interval_of(users, level=0.99), interval_of(users, level=0.5)
    assert wide[0] < narrow[0] < users.mean() < narrow[1] < wide[1]


def test_bootstrap_in_blocks_uses_every_draw(monkeypatch):
    """A block of one draw at a time gives an interval of the same quality."""
    import topnrank.experiments.statistics as module

    users = draws("blocks", 60)
    whole = interval_of(users, draws=4000)
    monkeypatch.setattr(module, "_BLOCK", 1)
    np.testing.assert_allclose(interval_of(users, draws=4000), whole, rtol=0.01)


@pytest.mark.parametrize("users", [np.array([]), np.array([0.5]), np.array([np.nan, 0.5])])
def test_an_interval_needs_two_users(users):
    assert all(map(math.isnan, interval_of(users)))


@pytest.mark.parametrize(("options", "words"), [({"level": 1.0}, "level"), ({"draws": 0}, "draws")])
def test_bad_options_of_the_bootstrap(options, words):
    with pytest.raises(ParameterError, match=words):
        interval_of(np.array([0.1, 0.2]), **options)


def test_the_bootstrap_covers_at_its_nominal_rate():
    """Values as NDCG has them: many ones, the rest spread below; the mean is known."""
    covered, simulations, share = 0, 400, 0.3
    for simulation in range(simulations):
        random = stream(simulation, "test coverage")
        users = np.where(random.uniform(size=200) < share, 1.0, random.beta(2.0, 3.0, size=200))
        low, high = interval_of(users, draws=500, seed=simulation)
        covered += low <= share + (1.0 - share) * 0.4 <= high
    assert 0.92 <= covered / simulations <= 0.975


def test_holm_on_a_known_case():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_array_equal(holm([0.5, np.nan, 0.9]), [1.0, np.nan, 1.0])
    assert holm([]).shape == (0,)


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_holm_is_that_of_statsmodels(size):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = draws(f"p {size}", size) ** 3
    np.testing.assert_allclose(holm(p), multitest.multipletests(p, method="holm")[1], rtol=1e-12)


def test_paired_tests_are_those_of_scipy_on_averaged_repeats():
    stats = pytest.importorskip("scipy.stats")
    values = {"a": draws("a", 3, 80), "b": draws("b", 3, 80) * 0.9, "c": draws("c", 3, 80) * 0.8}
    values["b"][:, :7] = np.nan  # users without a relevant item
    made = comparison(values)
    tests = {(test.second, test.metric): test for test in paired_tests(made)}
    assert set(tests) == {(name, metric) for name in "bc" for metric in METRICS}
    for (name, metric), test in tests.items():
        power = METRICS.index(metric) + 1
        first, second = ((values[one] ** power).mean(axis=0) for one in ("a", name))
        kept = ~np.isnan(second)
        first, second = first[kept], second[kept]
        assert test.users == kept.sum() == (73 if name == "b" else 80)
        assert test.difference == pytest.approx((first - second).mean())
        student = stats.ttest_rel(first, second)
        assert (test.t, test.t_p) == pytest.approx((student.statistic, student.pvalue))
        assert test.wilcoxon_p == pytest.approx(stats.wilcoxon(first, second).pvalue)
        assert test.effect == pytest.approx((first - second).mean() / (first - second).std(ddof=1))
        assert test.effect == pytest.approx(test.t / math.sqrt(test.users))
        assert test.interval == pytest.approx(interval_of(first - second))
        assert test.note == ""


def test_paired_t_on_a_textbook_case():
    """Student's own data (1908): hours of sleep gained by two drugs, t = 4.0621, p = 0.00283."""
    pytest.importorskip("scipy")
    second = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
    first = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
    made = comparison({"laevo": first[None], "dextro": second[None]}, metrics=("ndcg@1",))
    (test,) = paired_tests(made)
    assert (round(test.t, 4), round(test.t_p, 5)) == (4.0621, 0.00283)
    assert test.difference == pytest.approx(1.58)
    assert test.t_holm == test.t_p


def test_holm_goes_over_rows_and_metrics_of_a_protocol():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    made = comparison({name: draws(name, 2, 50) * (1 - k / 9) for k, name in enumerate("abcd")})
    tests = paired_tests(made, "b")
    assert [test.second for test in tests] == ["a", "a", "c", "c", "d", "d"]
    assert {test.first for test in tests} == {"b"}
    for raw, corrected in (("t_p", "t_holm"), ("wilcoxon_p", "wilcoxon_holm")):
        expected = multitest.multipletests([getattr(test, raw) for test in tests], method="holm")[1]
        np.testing.assert_allclose([getattr(test, corrected) for test in tests], expected)
    assert any(test.t_holm > test.t_p for test in tests)


def test_what_cannot_be_tested_says_why():
    pytest.importorskip("scipy")
    base = draws("few", 2, 30)
    few = np.full((2, 30), np.nan)
    few[:, 0] = 0.5
    rows = {"a": base, "same": base.copy(), "few": few, "shifted": base + 0.125, "broken": base, "other": base[:, ::-1]}
    tests = {test.second: test for test in paired_tests(comparison(rows, metrics=("mrr",), errors={"broken": "bang"}))}
    same, one, shifted, broken = (tests[name] for name in ("same", "few", "shifted", "broken"))
    assert (same.note, same.t, same.t_p, same.wilcoxon_p, same.effect) == ("no user differs", 0.0, 1.0, 1.0, 0.0)
    assert one.note == "too few users: 1 with a value for both, 2 are needed"
    assert one.users == 1
    assert math.isnan(one.t_holm)
    assert broken.note == "broken failed"
    assert broken.users == 0
    assert "same amount" in shifted.note
    assert math.isnan(shifted.t_p)
    assert shifted.wilcoxon_p < 1e-4
    assert tests["other"].note == ""
    assert tests["other"].t_holm == min(1.0, 2 * tests["other"].t_p)  # of two that can be tested


def test_noise_of_averaging_does_not_break_ties():
    """Differences of one size stay of one size for the rank test, and equal users stay equal."""
    stats = pytest.importorskip("scipy.stats")
    signs = np.where(draws("signs", 60) < 0.3, -1.0, 1.0)
    base = np.full((3, 60), 0.3)
    other = base + 0.1 * np.array([0.5, 1.0, 1.5])[:, None] * signs
    made = comparison({"a": other, "b": base}, metrics=("mrr",))
    (test,) = paired_tests(made)
    assert test.wilcoxon_p == pytest.approx(stats.wilcoxon(signs).pvalue)


def test_unknown_names_list_the_known_ones():
    made = comparison({"a": draws("a", 1, 5), "b": draws("b", 1, 5)})
    with pytest.raises(ParameterError, match="reference must be one of 'a', 'b', got 'c'"):
        paired_tests(made, "c")
    with pytest.raises(ParameterError, match="metric must be one of"):
        made.mean("a", "rated", "ndcg@2")
