"""A program with two kernels, one of which calls the other: tests of the cache append what it does."""

TWO_KERNELS = """
import numpy as np
from topnrank.kernels import jit

@jit.kernel
def inner(x):
    return x + 1

@jit.kernel
def outer(x):
    return inner(x) * inner(x)
"""
