"""Losses on the scores of one user's list: plain NumPy that reads like the papers and is the reference for every kernel.

Each algorithm has a folder with its `reference.py` and its `kernel.py`; `table.py` ties the two together.
"""

from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient, Objective
from topnrank.losses.climf import CLiMFBound
from topnrank.losses.gaussian import GaussianDCG
from topnrank.losses.listpmf import PlackettLuce
from topnrank.losses.listrank import TopOneCrossEntropy
from topnrank.losses.mfadg import AveragedDiscountedGain
from topnrank.losses.pairwise import PairwiseLogistic, WarpHinge
from topnrank.losses.squared import Squared
from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid, StepFunction, make_step
from topnrank.losses.tfmap import SmoothAP
from topnrank.losses.truncated import TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.losses.weighted_dcg import WeightedDCG
from topnrank.losses.xclimf import XCLiMFBound

__all__ = [
    "PLAIN_CONTEXT",
    "AveragedDiscountedGain",
    "CLiMFBound",
    "GaussianDCG",
    "Laplace",
    "ListContext",
    "ListGradient",
    "Objective",
    "PairwiseLogistic",
    "PlackettLuce",
    "Ramp",
    "ReLU",
    "Sigmoid",
    "SmoothAP",
    "Squared",
    "StepFunction",
    "TopOneCrossEntropy",
    "TruncatedAUC",
    "TruncatedMAP",
    "TruncatedMRR",
    "WarpHinge",
    "WeightedDCG",
    "XCLiMFBound",
    "make_step",
]
