"""The rank engine: smooth weighted ranks and their backward pass in O(m) on a sorted list (reference: losses/ranks.py).

All functions take scores sorted in DESCENDING order. For the step functions:

* relu: cumulative sums of W * gap, which cannot cancel or go negative.
* laplace: two recurrences, A_r = e^{-C gap_r} (A_{r-1} + w_{r-1}) from the top and its mirror from the bottom; exact.
* sigmoid: g(-Cx) = t/(1+t) with t = e^{-Cx} is replaced by sum_p k_p t^p, p = 1..P, from the Chebyshev interpolant of
  1/(1+t) on [0, 1]; each power is a Laplace-like recurrence. The error is at most (3 + 2 sqrt 2)^-P = 5.83^-P whatever
  C, m and the scores are, and the derivative used is that of the sum, so gradients stay exact for what is computed.
* ramp: two pointers and prefix sums; exact.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev, polynomial

from topnrank._typing import Float64Array
from topnrank.kernels.elementary import exponentials
from topnrank.kernels.jit import kernel
from topnrank.kernels.sorting import descending_order

RELU, SIGMOID, LAPLACE, RAMP = 0, 1, 2, 3
TERMS = 12
"""P of the sigmoid's exponential sum: error 6.5e-10. `advance` and `combined` are written out for this number."""
NO_TERMS = (0.0,) * TERMS


class Step(NamedTuple):
    """A step function as numbers."""

    kind: int
    steepness: float
    terms: Float64Array
    """The k_p of the sigmoid's exponential sum; ignored by the others."""


def power_terms(ratio: Callable[[Float64Array], Float64Array], terms: int) -> Float64Array:
    """Coefficients of t^1 .. t^P in t times the Chebyshev interpolant of `ratio` on [0, 1]; zeros beyond P up to TERMS."""
    nodes = 0.5 * (1.0 + np.cos(np.pi * (np.arange(terms) + 0.5) / terms))
    fit = chebyshev.chebfit(2.0 * nodes - 1.0, ratio(nodes), terms - 1)
    in_s = chebyshev.cheb2poly(fit)  # powers of s = 2t - 1
    in_t = np.zeros(1)
    for coefficient in in_s[::-1]:  # Horner's scheme in polynomials of t
        in_t = polynomial.polyadd(polynomial.polymul(in_t, [-1.0, 2.0]), [coefficient])
    return np.pad(in_t[:terms], (0, max(TERMS - terms, 0)))


def sigmoid_terms(terms: int = TERMS) -> Float64Array:
    """(TERMS,) the k_p: coefficients of t^1 .. t^P in the approximation of t / (1 + t) on [0, 1]."""
    return power_terms(lambda t: 1.0 / (1.0 + t), terms)


@kernel
def step_value(step, x):
    """h(x) of a single number, for the gate H(N - R)."""
    if step.kind == RELU:
        return max(x, 0.0)
    if step.kind == RAMP:
        return min(max(x * step.steepness, 0.0), 1.0)
    t = np.exp(-step.steepness * abs(x))
    below = 0.5 * t if step.kind == LAPLACE else t / (1.0 + t)
    return 1.0 - below if x > 0.0 else below


@kernel
def step_slope(step, x):
    """h'(x) of a single number."""
    if step.kind == RELU:
        return 1.0 if x > 0.0 else 0.0
    if step.kind == RAMP:
        return step.steepness if (x > 0.0 and x < 1.0 / step.steepness) else 0.0
    t = np.exp(-step.steepness * abs(x))
    return 0.5 * step.steepness * t if step.kind == LAPLACE else step.steepness * t / (1.0 + t) ** 2


@kernel
def gates(step, cut, R, H, slope):
    """h(cut - R) and h'(cut - R) of many ranks."""
    if step.kind != SIGMOID and step.kind != LAPLACE:
        for r in range(R.size):
            H[r] = step_value(step, cut - R[r])
            slope[r] = step_slope(step, cut - R[r])
        return
    for r in range(R.size):
        slope[r] = -step.steepness * abs(cut - R[r])
    exponentials(slope, H)
    for r in range(R.size):
        t = H[r]
        below = 0.5 * t if step.kind == LAPLACE else t / (1.0 + t)
        H[r] = 1.0 - below if cut > R[r] else below
        slope[r] = step.steepness * (below if step.kind == LAPLACE else below * (1.0 - below))


@kernel
def _relu_forward(f, w, R, D):
    """R_r = R_{r-1} + W_r * gap; D_r = weight strictly above (ties exert no force)."""
    above, strictly, rank = 0.0, 0.0, 0.0
    for r in range(f.size):
        if r > 0:
            above += w[r - 1]
            if f[r] < f[r - 1]:
                rank += above * (f[r - 1] - f[r])
                strictly = above
        R[r] = rank
        D[r] = strictly


@kernel
def _relu_backward(f, c, X):
    """X_r = sum of c over the items strictly below."""
    below, strictly = 0.0, 0.0
    for r in range(f.size - 1, -1, -1):
        if r < f.size - 1:
            below += c[r + 1]
            if f[r] > f[r + 1]:
                strictly = below
        X[r] = strictly


@kernel
def _decays(steepness, f, scratch, e):
    """e_r = exp(-C (f_{r-1} - f_r)), e_0 = 0."""
    scratch[0] = 0.0
    for r in range(1, f.size):
        scratch[r] = -steepness * (f[r - 1] - f[r])
    exponentials(scratch, e)
    e[0] = 0.0


@kernel
def _laplace_forward(steepness, w, e, R, D):
    """R_r = W_r - A_r/2 + B_r/2 and D_r = C/2 (A_r + B_r)."""
    last = w.size - 1
    A, W, B = 0.0, 0.0, 0.0
    R[0], D[last] = 0.0, 0.0
    for r in range(1, w.size):  # from the top into R, from the bottom into D: neither waits for the other
        A = e[r] * (A + w[r - 1])
        W += w[r - 1]
        R[r] = A
        B = e[last - r + 1] * (B + w[last - r + 1])
        D[last - r] = B
    W = 0.0
    for r in range(w.size):
        A, B = R[r], D[r]
        R[r] = max(W - 0.5 * A + 0.5 * B, 0.0)
        D[r] = 0.5 * steepness * (A + B)
        W += w[r]


@kernel
def _laplace_backward(steepness, c, e, X):
    """X_r = C/2 (sum over above + sum over below) of c e^{-C |gap|}."""
    last = c.size - 1
    A, B = 0.0, 0.0
    for r in range(c.size):
        X[r] = 0.0
    for r in range(1, c.size):
        A = e[r] * (A + c[r - 1])
        X[r] += 0.5 * steepness * A
        B = e[last - r + 1] * (B + c[last - r + 1])
        X[last - r] += 0.5 * steepness * B


@kernel
def advance(t, arriving, A):
    """The P recurrences A_p one item on, t^p (A_p + arriving); numbers in a tuple stay in registers."""
    t2 = t * t
    t3, t4 = t2 * t, t2 * t2
    t8 = t4 * t4
    return (
        t * (A[0] + arriving),
        t2 * (A[1] + arriving),
        t3 * (A[2] + arriving),
        t4 * (A[3] + arriving),
        t * t4 * (A[4] + arriving),
        t2 * t4 * (A[5] + arriving),
        t3 * t4 * (A[6] + arriving),
        t8 * (A[7] + arriving),
        t * t8 * (A[8] + arriving),
        t2 * t8 * (A[9] + arriving),
        t3 * t8 * (A[10] + arriving),
        t4 * t8 * (A[11] + arriving),
    )


@kernel
def combined(k, A):
    """sum_p k_p A_p"""
    low = (k[0] * A[0] + k[1] * A[1]) + (k[2] * A[2] + k[3] * A[3])
    middle = (k[4] * A[4] + k[5] * A[5]) + (k[6] * A[6] + k[7] * A[7])
    return low + middle + ((k[8] * A[8] + k[9] * A[9]) + (k[10] * A[10] + k[11] * A[11]))


@kernel
def _slope_terms(step):
    """C p k_p, the coefficients of the sum's derivative."""
    terms = np.empty(TERMS)
    for p in range(TERMS):
        terms[p] = step.steepness * (p + 1) * step.terms[p]
    return terms


@kernel
def _sigmoid_forward(step, w, e, R, D, limit):
    """R_r = W_r - (sum over above) + (sum over below) of the exponential sum; returns the first r with R above `limit`.

    The first part is a lower bound of R, and R only grows down the list: from that r on R is set to infinity and D to 0.
    """
    slopes, values, live = _slope_terms(step), step.terms, w.size
    A, W = NO_TERMS, 0.0
    R[0], D[0] = 0.0, 0.0
    for r in range(1, w.size):
        A = advance(e[r], w[r - 1], A)
        W += w[r - 1]
        R[r] = W - combined(values, A)
        if R[r] > limit:
            live = r
            break
        D[r] = combined(slopes, A)
    R[live:] = np.inf
    D[live:] = 0.0
    A = NO_TERMS
    for r in range(w.size - 2, live - 1, -1):
        A = advance(e[r + 1], w[r + 1], A)
    for r in range(min(live - 1, w.size - 2), -1, -1):
        A = advance(e[r + 1], w[r + 1], A)
        R[r] = max(R[r] + combined(values, A), 0.0)
        D[r] += combined(slopes, A)
    return live


@kernel
def _sigmoid_backward(step, c, e, X, live):
    """X_r = C sum over all others of c times sum_p p k_p t^p; c is 0 from `live` on."""
    slopes, A = _slope_terms(step), NO_TERMS
    X[0] = 0.0
    for r in range(1, c.size):
        A = advance(e[r], c[r - 1], A)
        X[r] = combined(slopes, A)
    A = NO_TERMS
    for r in range(min(live - 1, c.size - 2), -1, -1):
        A = advance(e[r + 1], c[r + 1], A)
        X[r] += combined(slopes, A)


@kernel
def _ramp_forward(steepness, f, w, R, D):
    """Items that lead by 1/C or more count w; those between count w C (f_j - f_r); centered sums against cancellation."""
    width = 1.0 / steepness
    far, far_w = 0, 0.0  # items at least a width above
    near_w, near_wf = 0.0, 0.0  # items above by less, and their w (f - f_r) kept relative to the current f_r
    strict = 0
    for r in range(f.size):
        if r > 0:
            near_wf += near_w * (f[r - 1] - f[r])
        while strict < r and f[strict] > f[r]:
            near_w += w[strict]
            near_wf += w[strict] * (f[strict] - f[r])
            strict += 1
        while far < strict and f[far] - f[r] >= width:
            far_w += w[far]
            near_w -= w[far]
            near_wf -= w[far] * (f[far] - f[r])
            far += 1
        if far == strict:  # nothing in between: forget the rounding of what came and went
            near_w, near_wf = 0.0, 0.0
        R[r] = max(far_w + steepness * near_wf, 0.0)
        D[r] = steepness * near_w


@kernel
def _ramp_backward(steepness, f, c, X):
    """X_r = C times the sum of c over items strictly below by less than 1/C."""
    width = 1.0 / steepness
    far, near, strict = f.size - 1, 0.0, f.size - 1
    for r in range(f.size - 1, -1, -1):
        while strict > r and f[r] > f[strict]:
            near += c[strict]
            strict -= 1
        while far > strict and f[r] - f[far] >= width:
            near -= c[far]
            far -= 1
        if far == strict:
            near = 0.0
        X[r] = steepness * near


@kernel
def ranks_forward(step, f, w, e, R, D, limit):
    """Writes R and D of a sorted list with rank weights `w`; `e` is scratch that `ranks_backward` needs again.

    Ranks beyond `limit` may be infinity, which saves the sigmoid most of its work. Returns the position where they begin,
    the size of the list if there are none.
    """
    if step.kind == RELU:
        _relu_forward(f, w, R, D)
    elif step.kind == RAMP:
        _ramp_forward(step.steepness, f, w, R, D)
    else:
        _decays(step.steepness, f, D, e)
        if step.kind == SIGMOID:
            return _sigmoid_forward(step, w, e, R, D, limit)
        _laplace_forward(step.steepness, w, e, R, D)
    return f.size


@kernel
def ranks_backward(step, f, c, e, X, live):
    """Writes X_r = sum over the others of c h'(f_r - f), to be multiplied by the item's rank weight; c[live:] is 0."""
    if step.kind == RELU:
        _relu_backward(f, c, X)
    elif step.kind == RAMP:
        _ramp_backward(step.steepness, f, c, X)
    elif step.kind == LAPLACE:
        _laplace_backward(step.steepness, c, e, X)
    else:
        _sigmoid_backward(step, c, e, X, live)


@kernel
def relevant_rows(f, a):
    """Positions of the rows with a gain above 0, from the highest score to the lowest, and their scores."""
    rows, scores = np.empty(f.size, np.int64), np.empty(f.size)
    m = 0
    for i in range(f.size):
        if a[i] > 0.0:
            rows[m] = i
            scores[m] = f[i]
            m += 1
    order = descending_order(scores[:m])
    for r in range(m):
        order[r] = rows[order[r]]
        scores[r] = f[order[r]]
    return order, scores[:m]
