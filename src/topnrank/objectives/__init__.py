"""The mathematics of the losses: plain NumPy that reads like the papers and is the reference for every kernel."""

from topnrank.objectives.base import ListGradient, Objective
from topnrank.objectives.squared import Squared
from topnrank.objectives.steps import Laplace, Ramp, ReLU, Sigmoid, StepFunction, make_step
from topnrank.objectives.topnrank import WeightedDCG

__all__ = [
    "Laplace",
    "ListGradient",
    "Objective",
    "Ramp",
    "ReLU",
    "Sigmoid",
    "Squared",
    "StepFunction",
    "WeightedDCG",
    "make_step",
]
