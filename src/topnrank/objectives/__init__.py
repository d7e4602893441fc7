"""The mathematics of the losses: plain NumPy that reads like the papers and is the reference for every kernel."""

from topnrank.objectives.base import PLAIN, ListGradient, Objective, Occasion
from topnrank.objectives.bpr import PairwiseLogistic
from topnrank.objectives.climf import CLiMFBound
from topnrank.objectives.gaussian import GaussianDCG
from topnrank.objectives.listpmf import PlackettLuce
from topnrank.objectives.listrank import TopOneCrossEntropy
from topnrank.objectives.mfadg import AveragedDiscountedGain
from topnrank.objectives.squared import Squared
from topnrank.objectives.steps import Laplace, Ramp, ReLU, Sigmoid, StepFunction, make_step
from topnrank.objectives.tfmap import SmoothAP
from topnrank.objectives.topnrank import WeightedDCG
from topnrank.objectives.truncated import TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.objectives.warp import WarpHinge
from topnrank.objectives.xclimf import XCLiMFBound

__all__ = [
    "PLAIN",
    "AveragedDiscountedGain",
    "CLiMFBound",
    "GaussianDCG",
    "Laplace",
    "ListGradient",
    "Objective",
    "Occasion",
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
