"""Counter-based random streams: the same numbers for every engine, thread count and resume.

A stream is named by a seed, a purpose and any number of counters (iteration, user, ...); nothing is carried from one
draw to the next, so a run that resumes at iteration t draws what an uninterrupted run draws there.
"""

import zlib

import numpy as np


def stream(seed: int, purpose: str, *counters: int) -> np.random.Generator:
    """The generator of (`seed`, `purpose`, `counters`); equal names give equal numbers, different names independent ones."""
    key = np.random.SeedSequence([seed, zlib.crc32(purpose.encode()), *counters])
    return np.random.Generator(np.random.Philox(key))
