"""Counter-based random streams: the same numbers for every engine, thread count and resume.

A stream is named by a seed, a purpose and any number of counters (iteration, user, ...) and has no state, so a run that
resumes at iteration t draws the same numbers as an uninterrupted one.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: the step of splitmix64."""

SAMPLING = 1 << 40
"""Draws of a key from here on sample the items of a list; those below belong to its objective."""


def stream(seed: int, purpose: str, *counters: int) -> np.random.Generator:
    """The generator of (`seed`, `purpose`, `counters`); equal names give equal numbers, different names independent ones."""
    key = np.random.SeedSequence([seed, zlib.crc32(purpose.encode()), *counters])
    return np.random.Generator(np.random.Philox(key))


def mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea & Flood 2014): every input bit reaches every output bit."""
    words = words + GOLDEN
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def uniforms(key: int, first: int, count: int) -> NDArray[np.float64]:
    """Draws number `first`, `first` + 1, ... of `key` from [0, 1): any of them without those before it."""
    counters = np.arange(first, first + count, dtype=np.uint64) * GOLDEN
    return (mix(np.uint64(key) + counters) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draws_below(key: int, first: int, n: NDArray[np.int64] | int, count: int = 1) -> NDArray[np.int64]:
    """Integers from 0 to n - 1 by the draws `first`, `first` + 1, ... of `key`."""
    draws: NDArray[np.int64] = np.minimum((uniforms(key, first, count) * n).astype(np.int64), np.asarray(n) - 1)
    return draws


def visit_keys(seed: int, iteration: int, users: NDArray[np.int64]) -> NDArray[np.uint64]:
    """One key for each user of a training step: draws depend on seed, iteration and user, not on threads or engines."""
    with np.errstate(over="ignore"):
        when = mix(mix(np.array([seed % 2**64], np.uint64)) + np.uint64(iteration))
        return mix(when + users.astype(np.uint64))
