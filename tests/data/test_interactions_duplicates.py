from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topnrank.data.duplicates import sort_stably
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError

COLUMNS = ("user", "item", "type", "rating", "weight", "timestamp")
ROW = st.tuples(  # narrow ranges, so that ties are common
    st.integers(0, 1),
    st.integers(0, 1),
    st.sampled_from(["buy", "view"]),
    st.integers(1, 2),
    st.integers(-1, 1),
    st.integers(-3, -1),
)
OPTIONAL = st.sets(st.sampled_from(COLUMNS[2:]))


def build(rows, used, rule):
    columns = {name: [row[k] for row in rows] for k, name in enumerate(COLUMNS)}
    return Interactions.from_arrays(
        columns["user"],
        columns["item"],
        **{f"{name}s": columns[name] for name in used},
        duplicates=rule,
    )


def expected(rows, used, rule):
    """The rule in plain Python: rows as dicts, in CSR order."""
    groups = defaultdict(list)
    for row in rows:
        one = {name: value for name, value in zip(COLUMNS, row, strict=True) if name in {"user", "item", *used}}
        groups[one["user"], one["item"], one.get("type")].append(one)
    return [merge(groups[key], rule) for key in sorted(groups)]


def merge(group, rule):
    if rule == "sum":
        totals = {name: sum(row[name] for row in group) for name in ("rating", "weight") if name in group[0]}
        clock = {"timestamp": max(row["timestamp"] for row in group)} if "timestamp" in group[0] else {}
        return group[0] | totals | clock
    best = group[0]
    for row in group[1:]:
        if rank(row, rule) >= rank(best, rule):
            best = row
    return best


def rank(row, rule):
    clock = row.get("timestamp", 0)
    return (row.get("rating", row.get("weight")), clock) if rule == "max" else (clock,)


@settings(deadline=None)
@given(st.lists(ROW, min_size=1, max_size=40), OPTIONAL, st.sampled_from(["last", "sum", "max"]))
def test_rules_equal_plain_python(rows, used, rule):
    if rule != "last" and not used & {"rating", "weight"}:
        used = used | {"weight"}
    data = build(rows, used, rule)
    model = expected(rows, used, rule)
    assert data.to_arrow().to_pylist() == [
        {name: row[name] for name in ("user", "item", "rating", "type", "weight", "timestamp") if name in row}
        for row in model
    ]
    assert data.merged_rows == len(rows) - len(model)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**40), min_size=1))
def test_both_ways_to_sort_are_stable(keys):
    for scale in (1, 2**22):  # the second leaves no bits for the position
        scaled = np.array(keys, dtype=np.int64) * scale
        expected_order = np.argsort(scaled, kind="stable")
        expected_keys = scaled[expected_order]
        np.testing.assert_array_equal(sort_stably(scaled), expected_order)
        np.testing.assert_array_equal(scaled, expected_keys)


def test_the_error_names_the_first_pair_and_the_rules():
    with pytest.raises(
        DataError,
        match=r"^frame, row 3: user 'b' and item 7 must occur once but are also in frame, row 1 \(repeated"
        r" combinations in all: 2\); remove the repeats or choose a rule with duplicates='last', 'sum' or 'max'$",
    ):
        Interactions.from_arrays(["b", "a", "b", "a", "b"], [7, 7, 7, 7, 7], ratings=[1, 2, 3, 4, 5])


@pytest.mark.parametrize("types", [None, ["view", "view", "buy", "view", "view"]])
def test_events_that_come_again_are_no_error(types):
    times = [5, 1, 3, 9, 2]
    data = Interactions.from_arrays([1, 2, 1, 1, 2], [7, 7, 7, 7, 7], types=types, timestamps=times)
    assert (len(data), data.merged_rows) == ((2, 3) if types is None else (3, 2))
    assert data.weights is None
    assert sorted(data.timestamps.tolist()) == ([2, 9] if types is None else [2, 3, 9])


def test_events_are_counted():
    data = Interactions.from_arrays([1, 2, 1, 1], [7, 7, 7, 8], timestamps=[5, 1, 3, 2], duplicates="count")
    assert data.weights.tolist() == [2, 1, 1]
    assert data.timestamps.tolist() == [5, 2, 1]
    assert Interactions.from_arrays([1, 2], [7, 7], duplicates="count").weights.tolist() == [1, 1]
    with pytest.raises(DataError, match=r"counts rows without ratings and weights.*use duplicates='sum'"):
        Interactions.from_arrays([1, 1], [7, 7], ratings=[1, 2], duplicates="count")


def test_types_make_pairs_different():
    assert len(Interactions.from_arrays([1, 1], [2, 2], types=["view", "buy"])) == 2
    with pytest.raises(DataError, match="row 2: user 1 and item 2 with type 'buy' must occur once"):
        Interactions.from_arrays([1, 1], [2, 2], types=["buy", "buy"], weights=[1, 2])


@pytest.mark.parametrize("rule", ["sum", "max"])
def test_sum_and_max_need_a_value(rule):
    with pytest.raises(DataError, match=f"duplicates='{rule}' needs a rating or weight column"):
        Interactions.from_arrays([1, 1], [2, 2], duplicates=rule)


def test_a_sum_must_stay_finite():
    with pytest.raises(DataError, match="beyond the range of float32"):
        Interactions.from_arrays([1, 1], [2, 2], weights=[3e38, 3e38], duplicates="sum")


def test_an_unknown_rule_is_refused_even_without_duplicates():
    with pytest.raises(ParameterError, match="did you mean 'last'"):
        Interactions.from_arrays([1], [2], duplicates="lats")
