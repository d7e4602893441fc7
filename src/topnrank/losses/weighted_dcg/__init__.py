"""Weighted DCG cut at N, smoothed: the loss of Top-N-Rank."""
