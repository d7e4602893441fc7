"""Kernels in Numba on plain arrays, and what all kernels share; losses and scorers have theirs beside their references."""
