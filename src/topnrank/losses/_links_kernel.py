"""Link functions between scores and a softmax (reference: losses/links.py)."""

import numpy as np

from topnrank.kernels.jit import kernel


@kernel
def apply_link(sigmoid, f, s, slope):
    """Writes s = g(f) and g'(f) with `sigmoid`, else f and 1; with t = e^{-|f|}, so that nothing overflows."""
    for i in range(f.size):
        if sigmoid:
            t = np.exp(-abs(f[i]))
            s[i] = 1.0 / (1.0 + t) if f[i] > 0.0 else t / (1.0 + t)
            slope[i] = t / (1.0 + t) ** 2
        else:
            s[i] = f[i]
            slope[i] = 1.0
