"""xCLiMF: a lower bound of the smoothed expected reciprocal rank."""

from topnrank.losses.xclimf.reference import XCLiMFBound

__all__ = ["XCLiMFBound"]
