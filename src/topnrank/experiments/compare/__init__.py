"""Models against each other: repeats on the same splits, statistics one can defend, competitors of other libraries."""

from topnrank.experiments.compare.competitors import Competitor, ImplicitModel, LightFMModel
from topnrank.experiments.compare.result import Cell, Comparison
from topnrank.experiments.compare.run import CompareOptions, compare
from topnrank.experiments.statistics import PairedTest, bootstrap_interval, holm, paired_tests, per_user

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
