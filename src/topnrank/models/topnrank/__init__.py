"""Top-N-Rank: the model and the recipe it resolves to."""
