"""Models against each other: repeats on the same splits, statistics one can defend, competitors of other libraries."""

from topnrank.comparison.competitors import Competitor, ImplicitModel, LightFMModel
from topnrank.comparison.result import Cell, Comparison
from topnrank.comparison.run import CompareOptions, compare
from topnrank.comparison.statistics import PairedTest, bootstrap_interval, holm, paired_tests, per_user

__all__ = [
    "Cell",
    "CompareOptions",
    "Comparison",
    "Competitor",
    "ImplicitModel",
    "LightFMModel",
    "PairedTest",
    "bootstrap_interval",
    "compare",
    "holm",
    "paired_tests",
    "per_user",
]
