"""Gaussian ranks: DCG with ranks from a normal distribution of the scores."""

from topnrank.losses.gaussian.reference import GaussianDCG

__all__ = ["GaussianDCG"]
