"""Draws inside kernels are those of `rng`."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topnrank.kernels import random as kernels
from topnrank.rng import SAMPLING, draws_below, uniforms, visit_keys

key = st.integers(0, 2**64 - 1)


@given(key=key, first=st.integers(0, 2**41), n=st.integers(1, 1000))
def test_kernels_and_numpy_draw_the_same(key, first, n):
    counters = [np.uint64(first + t) for t in range(5)]
    assert [kernels.uniform(np.uint64(key), c) for c in counters] == uniforms(key, first, 5).tolist()
    assert [kernels.draw_below(np.uint64(key), c, n) for c in counters] == draws_below(key, first, n, 5).tolist()


@given(
    seed=key,
    iteration=st.integers(0, 2**40),
    first=st.integers(0, 2**31),
    users=st.lists(st.integers(0, 2**31), max_size=5),
)
def test_kernels_and_numpy_name_visits_the_same(seed, iteration, first, users):
    whole = np.array(users, np.int64)
    keys = np.empty(whole.size, np.uint64)
    kernels.visit_keys(np.uint64(seed), np.uint64(iteration), first, whole, keys)
    assert keys.tolist() == visit_keys(seed, iteration, first + whole).tolist()


def test_both_keep_the_same_draws_for_sampling():
    assert int(kernels.SAMPLING) == SAMPLING


def test_draws_are_uniform_and_keys_differ():
    draws = uniforms(12345, 0, 50_000)
    assert 0.0 <= draws.min() < draws.max() < 1.0
    assert np.abs(np.histogram(draws, 10, (0, 1))[0] / draws.size - 0.1).max() < 0.01
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.02
    keys = {int(k) for seed in (0, 1) for t in range(20) for k in visit_keys(seed, t, np.arange(50))}
    assert len(keys) == 2000
