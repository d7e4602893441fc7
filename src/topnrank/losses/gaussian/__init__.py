"""GaussianRank: expected DCG of Gaussian ranks."""
