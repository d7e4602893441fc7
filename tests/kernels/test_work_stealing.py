"""Every turn of a loop is taken once, by whoever comes first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topnrank.kernels.jit import parallel_kernel, prange
from topnrank.kernels.work_stealing import claim, new_work


@given(workers=st.integers(1, 9), size=st.integers(0, 40), data=st.data())
def test_the_turns_of_all_workers_are_all_turns_in_any_interleaving(workers, size, data):
    work = new_work(workers)
    calls = {worker: claim(work, worker, size) for worker in range(workers)}
    seen = []
    while calls:
        worker = data.draw(st.sampled_from(sorted(calls)))
        turn = next(calls[worker], None)
        if turn is None:
            del calls[worker]
        else:
            seen.append(turn)
    assert sorted(seen) == list(range(size))


def test_a_worker_takes_its_own_turns_first_then_those_of_the_workers_after_it():
    work = new_work(3)
    assert next(claim(work, 0, 9)) == 0
    assert list(claim(work, 1, 9)) == [3, 4, 5, 6, 7, 8, 1, 2]
    assert list(claim(work, 0, 9)) == []


@parallel_kernel
def _count_turns(work, workers, counts):
    for worker in prange(workers):
        for turn in claim(work, worker, counts.size):
            counts[turn] += 1


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_threads_do_not_take_a_turn_twice(workers):
    for _ in range(20):
        counts = np.zeros(20_000, np.int64)
        _count_turns(new_work(workers), workers, counts)
        assert (counts == 1).all()
