"""Smoothed weighted DCG, cut at N: the loss of Top-N-Rank."""

from topnrank.losses.weighted_dcg.reference import WeightedDCG

__all__ = ["WeightedDCG"]
