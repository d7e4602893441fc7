"""XCLiMF: a lower bound of the smoothed expected reciprocal rank."""
