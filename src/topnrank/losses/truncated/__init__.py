"""Smoothed MRR, MAP and AUC, cut at N."""

from topnrank.losses.truncated.reference import TruncatedAUC, TruncatedMAP, TruncatedMRR

__all__ = ["TruncatedAUC", "TruncatedMAP", "TruncatedMRR"]
