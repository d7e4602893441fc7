"""Counter-based random numbers in kernels, bit for bit those of `topnrank.rng`."""

import numpy as np

from topnrank.kernels.jit import kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
SAMPLING = np.uint64(1 << 40)
"""Draws with counters from here on sample the items of a list; those below belong to its objective."""


@kernel
def mix(word):
    """`rng.mix` of one word."""
    word = word + GOLDEN
    word = (word ^ (word >> _S30)) * _FIRST
    word = (word ^ (word >> _S27)) * _SECOND
    return word ^ (word >> _S31)


@kernel
def visit_keys(seed, iteration, first_user, users, keys):
    """Fills `keys` with `rng.visit_keys` of the users `first_user` + `users`; seed and iteration are uint64."""
    when = mix(mix(seed) + iteration)
    for n in range(users.size):
        keys[n] = mix(when + np.uint64(first_user + users[n]))


@kernel
def uniform(key, counter):
    """Draw number `counter` of `key` from [0, 1); both are uint64 (splitmix64 at position `counter`)."""
    return float(mix(key + counter * GOLDEN) >> _S11) * 2.0**-53


@kernel
def draw_below(key, counter, n):
    """Draw number `counter` of `key`: an integer from 0 to n - 1."""
    return min(int(uniform(key, np.uint64(counter)) * n), n - 1)
