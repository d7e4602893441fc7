"""RecentPopularity: counts and the choice of the half-life against plain references, files, bad input."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topnrank import DataError, Interactions, ParameterError, Popularity, RecentPopularity, load
from topnrank.models.recent_popularity import TimedPairs, choose_half_life, recent_counts

DAY = 86_400
rows_of_days = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 12), st.integers(0, 40)), min_size=1, max_size=60)


def timed(rows):
    """Interactions of (user, item, day); of repeated pairs the latest."""
    users, items, days = zip(*rows, strict=True)
    times = [day * DAY + 7 for day in days]
    return Interactions.from_arrays(users, items, timestamps=times, duplicates="last")


def drifting(n_users=400, n_items=30, days=100, life=8.0, seed=0):
    """Users who each take a few of the items that are in fashion on three days; a fashion lasts some `life` days."""
    rng = np.random.default_rng(seed)
    born = np.linspace(-life, days, n_items)
    rows = []
    for user in range(n_users):
        for day in np.sort(rng.integers(0, days, 3)):
            chances = np.exp(-np.abs(day - born) / life) if life else np.arange(1, n_items + 1) / n_items
            rows += [(user, item, day) for item in rng.choice(n_items, 2, replace=False, p=chances / chances.sum())]
    return timed(rows)


def plain_counts(pairs, n_items, half_life):
    """One pair after the other."""
    counts = np.zeros(n_items)
    for _, item, time in zip(*pairs, strict=True):
        counts[item] += 2.0 ** (-(max(pairs.times) - time) / DAY / half_life)
    return counts


def plain_choice(pairs, n_items):
    """The rule of `choose_half_life`, written with sets and lists."""
    span = (max(pairs.times) - min(pairs.times)) / DAY
    half_lives = [math.inf, *(span / 2**k for k in range(1, 11))]
    ordered, rows = sorted(pairs.times), list(zip(*pairs, strict=True))
    moments = [ordered[len(rows) * tenth // 10] for tenth in (7, 8, 9)] + [math.inf]
    values = [[] for _ in half_lives]
    for start, end in pairwise(moments):
        early = [row for row in rows if row[2] < start]
        if not early:
            continue
        late = [row for row in rows if start <= row[2] < end]
        for k, half_life in enumerate(half_lives):
            counts = plain_counts(TimedPairs(*map(np.array, zip(*early, strict=True))), n_items, half_life)
            order = sorted(range(n_items), key=lambda item, counts=counts: -counts[item])
            for user in sorted({row[0] for row in early} & {row[0] for row in late}):
                own = {row[1] for row in early if row[0] == user}
                shown = [item for item in order if item not in own][:10]
                wanted = {row[1] for row in late if row[0] == user}
                gain = sum(1 / math.log2(place + 2) for place, item in enumerate(shown) if item in wanted)
                values[k].append(gain / sum(1 / math.log2(place + 2) for place in range(min(len(wanted), 10))))
    values = np.array(values)
    if not values.size:
        return math.inf
    behind = values[values.mean(axis=1).argmax()] - values
    error = behind.std(axis=1) / math.sqrt(values.shape[1])
    return next(h for h, gap, limit in zip(half_lives, behind.mean(axis=1), error, strict=True) if gap <= limit)


def test_a_row_counts_half_after_a_half_life():
    data = timed([(0, 0, 20), (0, 1, 10), (1, 1, 0), (2, 2, 0)])
    model = RecentPopularity(half_life=10.0).fit(data)
    assert model.item_bias_.tolist() == [1.0, 0.5 + 0.25, 0.25]
    assert model.half_life_ == 10.0


@settings(max_examples=60, deadline=None)
@given(rows_of_days, st.floats(0.5, 1000))
def test_counts_are_those_of_the_reference(rows, half_life):
    pairs = TimedPairs.of(timed(rows), "a test")
    n_items = int(pairs.items.max()) + 2
    np.testing.assert_allclose(
        recent_counts(pairs, n_items, half_life), plain_counts(pairs, n_items, half_life), rtol=1e-12
    )


@settings(max_examples=60, deadline=None)
@given(rows_of_days)
def test_without_fading_it_is_popularity(rows):
    data = timed(rows)
    popular = Popularity().fit(data).item_bias_
    assert RecentPopularity(half_life="never").fit(data).item_bias_.tolist() == popular.tolist()
    slow = RecentPopularity(half_life=1e9).fit(data).item_bias_
    more = popular[:, None] > popular[None, :]
    assert (slow[:, None] > slow[None, :])[more].all()


@settings(max_examples=40, deadline=None)
@given(rows_of_days)
def test_the_half_life_is_that_of_the_reference(rows):
    data = timed(rows)
    pairs = TimedPairs.of(data, "a test")
    assert choose_half_life(pairs, data.n_items) == plain_choice(pairs, data.n_items)


@pytest.mark.parametrize("seed", range(3))
def test_a_short_half_life_is_chosen_where_fashions_change(seed):
    assert RecentPopularity().fit(drifting(seed=seed)).half_life_ < 8


@pytest.mark.parametrize("seed", range(3))
def test_none_is_chosen_where_nothing_changes(seed):
    assert RecentPopularity().fit(drifting(life=0.0, seed=seed)).half_life_ == math.inf


def test_the_choice_fits_all_rows_and_is_kept_in_the_file(tmp_path):
    data = drifting()
    model = RecentPopularity().fit(data)
    explicit = model.with_explicit_defaults(data)
    assert explicit.get_params() == {"half_life": model.half_life_}
    assert explicit.fit(data).item_bias_.tolist() == model.item_bias_.tolist()
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert (again.half_life, again.half_life_) == ("auto", model.half_life_)
    RecentPopularity(half_life="never").fit(data).save(tmp_path / "never.safetensors")
    assert load(tmp_path / "never.safetensors").half_life_ == math.inf


def test_several_rows_of_a_pair_count_once_by_the_latest():
    data = Interactions.from_arrays(
        [0, 0, 1, 2], [0, 0, 1, 1], types=["view", "buy", "view", "buy"], timestamps=[0, 10 * DAY, 10 * DAY, 0]
    )
    assert RecentPopularity(half_life=10).fit(data).item_bias_.tolist() == [1.0, 1.5]


def test_rows_of_one_moment_do_not_fade():
    assert RecentPopularity().fit(timed([(0, 0, 3), (1, 0, 3), (1, 1, 3)])).item_bias_.tolist() == [2.0, 1.0]


def test_bad_input_is_named():
    with pytest.raises(DataError, match="RecentPopularity needs timestamps and the data have none"):
        RecentPopularity().fit(Interactions.from_arrays([0, 1], [0, 1]))
    for half_life in (0, -1.0, math.inf, "soon", True):
        with pytest.raises(ParameterError, match=r"RecentPopularity\.half_life must be a finite number above 0"):
            RecentPopularity(half_life=half_life)
