"""How activity is spread, against values worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topnrank.data.interactions import Interactions
from topnrank.data.summary import Distribution


def spread(*counts: int) -> Distribution:
    return Distribution(np.array(counts))


def test_lists_and_popularity_count_pairs_once() -> None:
    data = Interactions.from_arrays(
        [1, 1, 1, 2, 3], ["a", "a", "b", "a", "b"], types=["view", "buy", "view", "view", "view"]
    )
    assert Distribution.over_users(data).counts.tolist() == [2, 1, 1]
    assert Distribution.over_items(data).counts.tolist() == [2, 2]
    some = data.take(data.user_index == 0)
    assert Distribution.over_users(some).counts.tolist() == [2]


def test_quantiles() -> None:
    found = spread(*range(1, 102)).quantiles()
    wanted = {
        "min": 1,
        "10 %": 11,
        "25 %": 26,
        "median": 51,
        "75 %": 76,
        "90 %": 91,
        "99 %": 100,
        "max": 101,
        "mean": 51,
    }
    assert found == pytest.approx(wanted)


def test_shares() -> None:
    skewed = spread(*[1] * 90, *[91] * 10)
    assert skewed.top_share(0.1) == pytest.approx(0.91)
    assert skewed.top_share(0.01) == pytest.approx(0.091)
    assert skewed.tenths().tolist() == pytest.approx([0.91, *[0.01] * 9])
    assert spread(3, 1).top_share(0.01) == 0.75  # one at least


def test_gini() -> None:
    assert spread(4, 4, 4).gini() == pytest.approx(0.0)
    assert spread(1, 3).gini() == pytest.approx(0.25)
    assert spread(7).gini() == pytest.approx(0.0)
    assert spread(*[1] * 999, 10**9).gini() == pytest.approx(0.999, abs=1e-5)


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=50))
def test_gini_is_half_the_mean_difference(counts: list[int]) -> None:
    differences = np.abs(np.subtract.outer(counts, counts)).mean()
    assert spread(*counts).gini() == pytest.approx(differences / (2 * np.mean(counts)), abs=1e-9)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50))
def test_bins_hold_everybody_once(counts: list[int]) -> None:
    bins = spread(*counts).bins()
    assert sum(bins.values()) == len(counts)
    first, *_, last = [*bins, *bins]
    assert min(counts) >= int(first.split("-")[0].replace(",", ""))
    assert max(counts) <= int(last.split("-")[-1].replace(",", ""))


def test_bins_have_round_edges() -> None:
    low = {"1": 1, "2-4": 2, "5-9": 2, "10-19": 2, "20-49": 1}
    high = {"50-99": 0, "100-199": 0, "200-499": 0, "500-999": 0, "1,000-1,999": 1}
    assert spread(1, 2, 4, 5, 9, 10, 19, 20, 1000).bins() == low | high
    assert spread(30, 49).bins() == {"20-49": 2}
    assert spread(50).bins() == {"50-99": 1}
