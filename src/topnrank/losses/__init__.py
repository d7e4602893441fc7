"""The mathematics of the losses: plain NumPy that reads like the papers and is the reference for every kernel."""

from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient, Objective
from topnrank.losses.climf.reference import CLiMFBound
from topnrank.losses.gaussian.reference import GaussianDCG
from topnrank.losses.listpmf.reference import PlackettLuce
from topnrank.losses.listrank.reference import TopOneCrossEntropy
from topnrank.losses.mfadg.reference import AveragedDiscountedGain
from topnrank.losses.pairwise.reference import PairwiseLogistic, WarpHinge
from topnrank.losses.shaping import Squared
from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid, StepFunction, make_step
from topnrank.losses.tfmap.reference import SmoothAP
from topnrank.losses.truncated.reference import TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.losses.weighted_dcg.reference import WeightedDCG
from topnrank.losses.xclimf.reference import XCLiMFBound

__all__ = [
    "PLAIN_CONTEXT",
    "AveragedDiscountedGain",
    "CLiMFBound",
    "GaussianDCG",
    "Laplace",
    "ListGradient",
    "Objective",
    "ListContext",
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
