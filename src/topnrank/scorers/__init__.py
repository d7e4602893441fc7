"""From parameters to the scores of one user's list, and from a score gradient back into the parameters."""

from topnrank.scorers.base import Parameters, Rows, Rule, Scorer, Visited
from topnrank.scorers.factors import Factors
from topnrank.scorers.history import History, RatingResiduals, TypeChannels
from topnrank.scorers.neighbors import Neighbours

__all__ = [
    "Factors",
    "History",
    "Neighbours",
    "Parameters",
    "RatingResiduals",
    "Rows",
    "Rule",
    "Scorer",
    "TypeChannels",
    "Visited",
]
