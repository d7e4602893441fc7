"""What TopNRank decides before training: the task, the settings of that task, and the recipe they make.

`SETTINGS` is the one table of what "auto" means for each of the two tasks.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from topnrank._checks import is_number, one_of
from topnrank.data.feedback.by_name import feedback_from_dict
from topnrank.data.feedback.liked import likes_feedback
from topnrank.data.feedback.policies import Feedback, Threshold
from topnrank.data.interactions import Interactions
from topnrank.errors import ParameterError
from topnrank.losses import Objective, TruncatedAUC, TruncatedMAP, TruncatedMRR, WeightedDCG, make_step
from topnrank.models.base import FitInfo
from topnrank.models.factor.recipe import Task
from topnrank.models.parameters import (
    AUTO,
    Choice,
    Range,
    Space,
    require,
)
from topnrank.training import AdaGrad

if TYPE_CHECKING:
    from topnrank.models.topnrank.model import TopNRank

LOSSES: dict[str, Callable[..., Objective]] = {
    "dcg": WeightedDCG,
    "mrr": TruncatedMRR,
    "map": TruncatedMAP,
    "auc": TruncatedAUC,
}
"""The loss that smooths each metric."""
DISCOUNTS = {"dcg": 2.0, "log": 0.0}
"""Names of powers p of the discount's slope 1 / ((R+2) ln^p(R+2))."""
TASKS = ("rated", "catalog")
SETTINGS: dict[str, dict[str, Any]] = {
    "rated": {
        "gradient": "paper",
        "discount": "dcg",
        "gradient_budget": 0.15,
        "squared_weight": 1.0,
        "negatives": 0,
        "neighbors": 0,
        "neighbor_penalty": 80.0,
        "factor_weight": 1.0,
        "popularity": 0.0,
        "order": "none",
        "epochs": 20,
        "bias": True,
        "dislikes": "history",
        "learning_rate": 0.07,
        "regularization": 0.0125,
        "history_power": 0.6,
    },
    "catalog": {
        "gradient": "exact",
        "discount": -1.0,
        "gradient_budget": None,
        "squared_weight": 0.0,
        "negatives": 100,
        "neighbors": 50,
        "neighbor_penalty": 80.0,
        "factor_weight": 0.5,
        "popularity": 0.01,
        "order": "none",
        "epochs": 10,
        "bias": False,
        "learning_rate": 0.1,
        "regularization": 0.005,
        "history_power": 0.5,
    },
}
"""What "auto" means for each task; both were picked on validation data (docs/results). For the catalog the settings of
`models/topnrank/choice.py` are chosen by the data; these stand where there are too few rows to choose by."""
CHOSEN = ("neighbors", "neighbor_penalty", "epochs", "factor_weight", "popularity")
"""The settings of the catalog whose "auto" is chosen by the data."""
CATALOG_SPACE: Space = {
    "factors": Choice((32, 64, 128)),
    "learning_rate": Range(0.01, 0.2, log=True),
    "regularization": Range(0.005, 3.0, log=True),
    "neighbor_penalty": Range(10.0, 500.0, log=True),
    "history_power": Range(0.3, 0.8),
    "factor_weight": Range(0.05, 2.0, log=True),
    "popularity": Range(0.001, 1.0, log=True),
    "epochs": Range(3, 30, log=True, whole=True),
}
"""Values worth trying for the catalog."""
CATALOG_SHARES = {"user": 10.0, "item": 1.0, "history": 0.25, "bias": 0.0}
"""For the catalog: what of a plain number for lambda each group of parameters gets."""
CATALOG_STEEPNESS, CATALOG_ACCUMULATOR, CATALOG_LENGTH_POWER = 2.0, 0.4, 0.5
"""For the catalog: C of the Laplace step, AdaGrad's start, and the power of |likes| that a user's loss is divided by."""


OPEN_TASK: Task = "catalog"
"""Recommending is ranking the whole catalog, so that is learned unless something else is asked for."""


def requested_task(model: "TopNRank") -> Task | None:
    """The task that the parameters ask for; None where they leave it open.

    Sampled items, neighbors, sessions and recency belong to the catalog; the cut at N and other metrics to rated items.
    """
    for_catalog = (model.negatives, model.neighbors, model.sessions, model.recency)
    if model.task is not None:
        return "catalog" if model.task == "catalog" else "rated"
    if any(value not in (AUTO, None, 0) for value in for_catalog) or model.order in ("counts", "ridge"):
        return "catalog"
    return "rated" if model.metric != "dcg" or model.truncate or model.negatives == 0 else None


def resolve_settings(model: "TopNRank", task: Task, rated: bool, data: Interactions | None = None) -> dict[str, Any]:
    """The values of the task in place of "auto", by name; `rated` says whether the data have ratings.

    What is liked is taken from `data`; without them the feedback stays open.
    """
    settings: dict[str, Any] = {"task": task}
    for name, value in SETTINGS[task].items():
        given = getattr(model, name)
        settings[name] = value if isinstance(given, str) and given == AUTO else given
    if task == "rated":
        return settings
    if model.steepness is None and model.smoothing == "laplace":
        settings["steepness"] = CATALOG_STEEPNESS
    if model.optimizer == "adagrad":
        settings["optimizer"] = AdaGrad(CATALOG_ACCUMULATOR)
    if isinstance(settings["regularization"], int | float):
        settings["regularization"] = {
            group: share * settings["regularization"] for group, share in CATALOG_SHARES.items()
        }
    settings["dislikes"] = model.dislikes
    if model.dislikes == AUTO:
        settings["dislikes"] = "history" if rated else "list"
    if model.feedback is None and data is not None and (data.ratings is not None or data.weights is not None):
        settings["feedback"] = likes_feedback(None, data)
    return settings


def feedback_of_fitted(info: FitInfo) -> Feedback | None:
    """What a model fitted for the catalog took for likes, where its parameters leave that open."""
    if info.feedback is not None:
        return feedback_from_dict(info.feedback)
    if info.value != "ratings":
        return None
    return Threshold() if info.liked is None else info.liked.policy


def check_combinations(model: "TopNRank", task: Task, settings: Mapping[str, Any]) -> None:
    """ParameterError where resolved settings do not go together."""
    make_step(model.smoothing, model.steepness)
    if model.anneal_n > 0.0 and not model.truncate:
        raise ParameterError("TopNRank: anneal_n lets the cut at N come late; without truncate=True there is no cut")
    if model.type_vectors and model.user_representation != "history":
        raise ParameterError(
            "TopNRank: type_vectors are parts of histories; set user_representation='history', or leave them out"
        )
    if discount_power(settings["discount"]) < 1.0 and model.truncate and model.metric == "dcg":
        raise ParameterError(
            "TopNRank: truncate=True needs a discount that is positive and falls to 0, such as 'dcg'; "
            f"got discount={settings['discount']!r}"
        )
    if task == "rated":
        ordered = model.order in ("counts", "ridge")
        if settings["negatives"] or settings["neighbors"] or model.recency or model.sessions or ordered:
            raise ParameterError(
                "TopNRank: negatives, neighbors, sessions, recency and order are for the whole catalog; "
                "set task='catalog', or leave them out"
            )
        return
    if model.sessions is not None and not settings["neighbors"]:
        raise ParameterError("TopNRank: sessions say how neighbors are found; set neighbors, or leave them out")
    if model.metric != "dcg":
        raise ParameterError(f"TopNRank: task='catalog' knows metric='dcg' only, got {model.metric!r}")
    if not settings["negatives"]:
        raise ParameterError(
            "TopNRank: task='catalog' needs unobserved items to rank against: set negatives, such as 200"
        )


def discount_power(discount: Any) -> float:
    """The power p of the discount's slope 1 / ((R+2) ln^p(R+2)), given as such or by name."""
    if isinstance(discount, str):
        return DISCOUNTS[one_of("discount", discount, tuple(DISCOUNTS))]
    holds = is_number(discount) and -10.0 <= discount <= 10.0
    require(holds, "TopNRank.discount", "'dcg', 'log' or a power from -10 to 10", discount)
    return float(discount)
