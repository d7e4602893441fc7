"""Squared error with the user bias fitted: the loss of BiasedMF."""

from topnrank.losses.squared.reference import Squared

__all__ = ["Squared"]
