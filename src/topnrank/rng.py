"""Counter-based random streams: the same numbers for every engine, thread count and resume.

A stream is named by a seed, a purpose and any number of counters (iteration, user, ...); nothing is carried from one
draw to the next, so a run that resumes at iteration t draws what an uninterrupted run draws there.
"""

import zlib

import numpy as np
from numpy.typing import NDArray


def stream(seed: int, purpose: str, *counters: int) -> np.random.Generator:
    """The generator of (`seed`, `purpose`, `counters`); equal names give equal numbers, different names independent ones."""
    key = np.random.SeedSequence([seed, zlib.crc32(purpose.encode()), *counters])
    return np.random.Generator(np.random.Philox(key))


def mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea & Flood 2014): every input bit reaches every output bit."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
