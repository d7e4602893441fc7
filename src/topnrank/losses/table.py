"""The kernel of each loss: a new loss needs one entry here."""

from collections.abc import Callable
from functools import partial
from typing import Any

from topnrank._typing import Float32Array, Float64Array
from topnrank.kernels.batch import Batch, Lists
from topnrank.losses._ranks_kernel import LAPLACE, RAMP, RELU, SIGMOID, Step, sigmoid_terms
from topnrank.losses.base import ListContext, Objective, evaluate_list
from topnrank.losses.climf import CLiMFBound
from topnrank.losses.climf.kernel import CLiMFSettings, climf_lists, log_terms
from topnrank.losses.gaussian import GaussianDCG
from topnrank.losses.gaussian.kernel import GaussianSettings, gaussian_lists
from topnrank.losses.listpmf import PlackettLuce
from topnrank.losses.listpmf.kernel import BRESLOW, FIXED, SHUFFLED, PlackettLuceSettings, listpmf_lists
from topnrank.losses.listrank import TopOneCrossEntropy
from topnrank.losses.listrank.kernel import TopOneSettings, listrank_lists
from topnrank.losses.mfadg import AveragedDiscountedGain
from topnrank.losses.mfadg.kernel import mfadg_lists
from topnrank.losses.pairwise import PairwiseLogistic, WarpHinge
from topnrank.losses.pairwise.kernel import BPRSettings, WarpSettings, bpr_lists, warp_lists
from topnrank.losses.squared import Squared
from topnrank.losses.squared.kernel import squared_lists
from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid, StepFunction
from topnrank.losses.tfmap import SmoothAP
from topnrank.losses.tfmap.kernel import tfmap_lists
from topnrank.losses.truncated import TruncatedAUC, TruncatedMAP, TruncatedMRR
from topnrank.losses.truncated.kernel import TruncatedSettings, auc_lists, map_lists, mrr_lists
from topnrank.losses.weighted_dcg import WeightedDCG
from topnrank.losses.weighted_dcg.kernel import DCGSettings, weighted_dcg_lists
from topnrank.losses.xclimf import XCLiMFBound
from topnrank.losses.xclimf.kernel import XCLiMFSettings, xclimf_lists

RunLists = Callable[[Batch, Float64Array, Float32Array, Float64Array], None]
"""Fills the arrays G and report of `Lists` from a batch and its scores."""

_STEPS: dict[type, int] = {ReLU: RELU, Sigmoid: SIGMOID, Laplace: LAPLACE, Ramp: RAMP}
_TERMS = sigmoid_terms()
_TIES = {"breslow": BRESLOW, "shuffled": SHUFFLED, "fixed": FIXED}


def _step(step: StepFunction) -> Step:
    """The step function as numbers for the kernels."""
    return Step(_STEPS[type(step)], float(getattr(step, "steepness", 1.0)), _TERMS)


def _truncated(o: Any, lists: Callable[..., None]) -> RunLists:
    own = (getattr(o, "tau", 1.0), getattr(o, "margin", 1.0))
    numbers = (float(number) for number in (o.gradient_budget, o.squared_weight, o.anneal_n, *own))
    return partial(lists, _step(o.step), TruncatedSettings(float(o.n), o.truncate, *numbers))


_KERNELS: dict[type, Callable[[Any], RunLists]] = {
    WeightedDCG: lambda o: partial(
        weighted_dcg_lists,
        _step(o.step),
        DCGSettings(
            n=float(o.n),
            truncate=o.truncate,
            exact=o.exact,
            discount=float(o.discount),
            gradient_budget=float(o.gradient_budget),
            squared_weight=float(o.squared_weight),
            anneal_n=float(o.anneal_n),
            length_power=float(o.length_power),
        ),
    ),
    TruncatedMRR: lambda o: _truncated(o, mrr_lists),
    TruncatedMAP: lambda o: _truncated(o, map_lists),
    TruncatedAUC: lambda o: _truncated(o, auc_lists),
    Squared: lambda o: squared_lists,
    CLiMFBound: lambda o: partial(climf_lists, _step(Sigmoid(1.0)), CLiMFSettings(o.mean_pairs, log_terms())),
    XCLiMFBound: lambda o: partial(xclimf_lists, XCLiMFSettings(o.mean_pairs)),
    SmoothAP: lambda o: partial(tfmap_lists, _step(Sigmoid(1.0))),
    TopOneCrossEntropy: lambda o: partial(
        listrank_lists, TopOneSettings(o.link == "sigmoid", o.per_item, float(o.scale))
    ),
    PlackettLuce: lambda o: partial(
        listpmf_lists, PlackettLuceSettings(_TIES[o.ties], o.link == "sigmoid", o.normalize)
    ),
    GaussianDCG: lambda o: partial(gaussian_lists, GaussianSettings(float(o.floor), o.normalize)),
    AveragedDiscountedGain: lambda o: partial(mfadg_lists, _step(Sigmoid(o.steepness))),
    PairwiseLogistic: lambda o: partial(bpr_lists, BPRSettings(o.tries, o.pairs)),
    WarpHinge: lambda o: partial(warp_lists, WarpSettings(float(o.margin), o.tries)),
}


def compiled_lists(objective: Objective) -> RunLists:
    """The kernel of an objective; for one without a kernel, or with a step function without one, its NumPy `evaluate`."""
    has_own_step = hasattr(objective, "step") and type(objective.step) not in _STEPS
    if type(objective) not in _KERNELS or has_own_step:
        return partial(_reference_lists, objective)
    return _KERNELS[type(objective)](objective)


def _reference_lists(
    objective: Objective, batch: Batch, scores: Float64Array, G: Float32Array, report: Float64Array
) -> None:
    lists = Lists(G, report)
    for n, (lo, hi) in enumerate(zip(batch.first, batch.offsets[1:], strict=True)):
        own = max(batch.own[n], lo)
        context = ListContext(int(hi - own), batch.weights[own:hi], int(batch.keys[n]), batch.progress)
        g = evaluate_list(objective, scores[lo:hi], batch.gains[lo:hi], context)
        lists.G[:, lo:hi] = g.user, g.item
        lists.report[n] = g.value, g.active
