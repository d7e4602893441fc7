"""MF-ADG: averaged discounted gain against sampled unobserved items."""

from topnrank.losses.mfadg.reference import AveragedDiscountedGain

__all__ = ["AveragedDiscountedGain"]
