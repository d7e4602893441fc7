"""CLiMF: a lower bound of the smoothed reciprocal rank."""

from topnrank.losses.climf.reference import CLiMFBound

__all__ = ["CLiMFBound"]
