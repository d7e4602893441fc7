"""Sessions against a loop over the events of each user."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topnrank import DataError, Interactions
from topnrank.models.factor.prepare import sessions_of

EVENTS = st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 9)), st.integers(0, 40), min_size=1)


@given(EVENTS, st.integers(1, 15))
def test_a_session_ends_where_nothing_happens_for_long(events, gap):
    (users, items), times = zip(*events, strict=True), list(events.values())
    data = Interactions.from_arrays(users, items, timestamps=times)
    found = sessions_of(data, gap)
    moments = defaultdict(list)
    for user, time in zip(data.user_index, data.timestamps, strict=True):
        moments[user].append(time)
    number, expected = -1, {}
    for user in sorted(moments):
        previous = None
        for time in sorted(moments[user]):
            number += previous is None or time - previous > gap
            expected[user, time] = number
            previous = time
    assert found.tolist() == [expected[key] for key in zip(data.user_index, data.timestamps, strict=True)]


def test_without_times_there_are_no_sessions():
    with pytest.raises(DataError, match="sessions need timestamps and the data has none; name that column"):
        sessions_of(Interactions.from_arrays([1], [2]), 60.0)


def test_sessions_are_numbered_through_all_users():
    data = Interactions.from_arrays([7, 7, 7, 9], [1, 2, 3, 1], timestamps=[100, 0, 60, 0])
    np.testing.assert_array_equal(sessions_of(data, 50.0), [1, 0, 1, 2])
