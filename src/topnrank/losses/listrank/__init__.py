"""ListRank: cross entropy of top-one probabilities."""

from topnrank.losses.listrank.reference import TopOneCrossEntropy

__all__ = ["TopOneCrossEntropy"]
