"""Order in time: ties, and what ids give away."""

import numpy as np
import pytest

from topnrank import DataError, Interactions, order_facts


def test_ties_and_steps_are_counted():
    data = Interactions.from_arrays([0, 0, 0, 0, 1, 1, 2], [4, 2, 3, 9, 8, 7, 1], timestamps=[1, 2, 2, 3, 5, 6, 1])
    facts = order_facts(data)
    assert (facts.n_items, facts.n_tied, facts.n_last, facts.n_last_tied) == (7, 2, 2, 0)
    # of user 0: 4 -> 2 (down), 3 -> 9 (up); of user 1: 8 -> 7 (down); the step between 2 and 3 is not known
    assert facts.ascending == pytest.approx(1 / 3)
    assert facts.last_ascending == 0.5


def test_a_last_item_of_one_moment_with_another_is_not_certain():
    data = Interactions.from_arrays([0, 0, 0, 1, 1], [1, 2, 3, 1, 2], timestamps=[1, 2, 2, 1, 2])
    facts = order_facts(data)
    assert (facts.n_tied, facts.n_last, facts.n_last_tied) == (2, 2, 1)


def test_it_says_whether_ids_tell_the_order():
    rng = np.random.default_rng(0)
    users, items = np.repeat(np.arange(500), 5), np.concatenate([rng.permutation(100)[:5] for _ in range(500)])
    by_id = np.lexsort((items, users))
    told = Interactions.from_arrays(users, items[by_id], timestamps=np.tile(np.arange(5), 500))
    fair = Interactions.from_arrays(users, items, timestamps=np.tile(np.arange(5), 500))
    assert order_facts(told).ids_tell_order
    assert "100% go to a larger item id" in str(order_facts(told))
    assert "compare with ItemIdOrder" in str(order_facts(told))
    assert not order_facts(fair).ids_tell_order
    assert "ItemIdOrder" not in str(order_facts(fair))


def test_it_needs_times():
    with pytest.raises(DataError, match="order_facts needs timestamps"):
        order_facts(Interactions.from_arrays([0], [0]))
