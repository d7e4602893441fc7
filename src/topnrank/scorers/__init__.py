"""Scorers: from parameters to the scores of one user's list, and from a score gradient back to the parameters."""

from topnrank.scorers.base import Parameters, Scorer, TrainingLists, UpdateRule, UserRows
from topnrank.scorers.factors import Factors
from topnrank.scorers.history import DeviationSums, History, RatingResiduals, TypeChannels
from topnrank.scorers.neighbors import Neighbors

__all__ = [
    "DeviationSums",
    "Factors",
    "History",
    "Neighbors",
    "Parameters",
    "RatingResiduals",
    "Scorer",
    "TrainingLists",
    "TypeChannels",
    "UpdateRule",
    "UserRows",
]
