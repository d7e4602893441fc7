"""CLiMF: a lower bound of the smoothed reciprocal rank."""
