"""One step of one row of parameters; a rule is three numbers: whether AdaGrad, the rate, and the decay 2 lambda."""

import numpy as np

from topnrank.kernels._jit import kernel, summing_kernel


@summing_kernel
def dot(x, y):
    """Inner product of two vectors in their own precision."""
    total = x.dtype.type(0)
    for d in range(x.size):
        total += x[d] * y[d]
    return total


@kernel
def step_row(rule, visits, gradient, row, accumulator):
    """Adds the penalty of `visits` visits to `gradient` and steps `row`; returns the squared distance moved.

    Plain descent: row -= rate * g. AdaGrad: accumulator += g^2, row -= rate * g / sqrt(accumulator), per coordinate.
    `gradient` is left holding the step: loops without a running sum are what wide registers can do.
    """
    rate = np.float32(rule[1])
    decay = np.float32(rule[2] * visits)
    if rule[0] > 0.0:
        for d in range(row.size):
            g = gradient[d] + decay * row[d]
            accumulator[d] += g * g
            gradient[d] = rate * g / np.sqrt(accumulator[d])
    else:
        for d in range(row.size):
            gradient[d] = rate * (gradient[d] + decay * row[d])
    for d in range(row.size):
        row[d] -= gradient[d]
    return dot(gradient, gradient)


@kernel
def step_number(rule, visits, gradient, values, accumulators, i):
    """`step_row` for the single number values[i]."""
    g = np.float32(gradient + rule[2] * visits * values[i])
    delta = np.float32(rule[1]) * g
    if rule[0] > 0.0:
        accumulators[i] += g * g
        delta /= np.sqrt(accumulators[i])
    values[i] -= delta
    return delta * delta
