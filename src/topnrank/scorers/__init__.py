"""From parameters to the scores of one user's list, and from a score gradient back into the parameters."""

from topnrank.scorers.base import Parameters, Scorer, TrainingLists, UpdateRule, UserRows
from topnrank.scorers.factors import Factors
from topnrank.scorers.history import History, RatingResiduals, TypeChannels
from topnrank.scorers.neighbors import Neighbors

__all__ = [
    "Factors",
    "History",
    "Neighbors",
    "Parameters",
    "RatingResiduals",
    "TrainingLists",
    "UpdateRule",
    "Scorer",
    "TypeChannels",
    "UserRows",
]
