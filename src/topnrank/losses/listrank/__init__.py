"""ListRank: cross entropy of top-one probabilities."""
