"""DCG with Gaussian ranks over a batch of lists (reference: losses/gaussian/reference.py): a few passes, no sort."""

import math
from typing import NamedTuple

import numpy as np

from topnrank.kernels.jit import kernel, parallel_kernel, prange
from topnrank.kernels.work_stealing import claim, new_work


class GaussianSettings(NamedTuple):
    """The fields of `GaussianDCG` as numbers."""

    floor: float
    normalize: bool


@kernel
def _standardize(floor, f, z):
    """Writes z; returns sigma. The mean is taken twice, against the rounding of a large one."""
    m = f.size
    mean, rest, squares = 0.0, 0.0, 0.0
    for i in range(m):
        mean += f[i]
    mean /= m
    for i in range(m):
        z[i] = f[i] - mean
        rest += z[i]
    rest /= m
    for i in range(m):
        z[i] -= rest
        squares += z[i] * z[i]
    sigma = math.hypot(math.sqrt(squares / m), floor)
    for i in range(m):
        z[i] /= sigma
    return sigma


@kernel
def _gaussian_dcg(settings, f, a, G_user, G_item):
    """One list; returns the loss."""
    m = f.size
    work = np.empty((2, m))
    z, q = work[0], work[1]
    sigma = _standardize(settings.floor, f, z)
    total = 0.0
    for i in range(m):
        total += abs(a[i])
    if total == 0.0 or not settings.normalize:
        total = 1.0
    value, mean_q, mean_qz = 0.0, 0.0, 0.0
    for i in range(m):
        R = (m - 1) * 0.5 * math.erfc(z[i] / math.sqrt(2.0))
        log = np.log(R + 2.0)
        weight = a[i] / total
        density = np.exp(-0.5 * z[i] * z[i]) / math.sqrt(2.0 * math.pi)
        q[i] = -weight * (m - 1) * density / ((R + 2.0) * log * log)
        value -= weight / log
        mean_q += q[i]
        mean_qz += q[i] * z[i]
    mean_q /= m
    mean_qz /= m
    for i in range(m):
        G_user[i] = (q[i] - mean_q - z[i] * mean_qz) / sigma
        G_item[i] = G_user[i]
    return value


@parallel_kernel
def gaussian_lists(settings, batch, scores, G, report):
    """The DCG of Gaussian ranks for every list of the batch; G (2, flat) and report (b, 2) as in `Lists`."""
    work = new_work(batch.workers)
    for worker in prange(batch.workers):
        for n in claim(work, worker, batch.users.size):
            lo, hi = batch.first[n], batch.offsets[n + 1]
            report[n, 0] = 0.0
            report[n, 1] = hi - lo
            if hi > lo:
                report[n, 0] = _gaussian_dcg(settings, scores[lo:hi], batch.gains[lo:hi], G[0, lo:hi], G[1, lo:hi])
