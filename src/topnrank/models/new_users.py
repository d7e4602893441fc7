"""Users never seen in training: a history sum, or a vector fitted under the model's own objective."""

from typing import TYPE_CHECKING, Any

import numpy as np

from topnrank._typing import FloatArray, IntArray
from topnrank.data.interactions import Interactions
from topnrank.data.policies import feedback_from_dict
from topnrank.engines import Moment, make_engine
from topnrank.errors import ParameterError
from topnrank.models.prepare import prepare
from topnrank.scorers import History, Parameters, RatingResiduals, Rows, Rule
from topnrank.training import make_optimizer, start_state

if TYPE_CHECKING:
    from topnrank.models.factor_model import FactorModel


def history_vector(model: "FactorModel", items: IntArray, values: FloatArray | None) -> FloatArray:
    """s_u; items without ratings count as average ones, so only "rated at all" speaks."""
    residuals: FloatArray = np.zeros(items.size)
    if values is not None:
        facts = RatingResiduals(model.array("item_offsets"), float(model.fitted.facts["residual_mean"]))
        residuals = facts.of(np.array([0, items.size]), items, values)
    scorer = model.scorer()
    assert isinstance(scorer, History)
    return scorer.vector(model.fitted.arrays, items, residuals)


def fold_in(model: "FactorModel", items: IntArray, values: FloatArray | None) -> FloatArray:
    """A user vector from the usual visits with all items fixed, starting at the mean user."""
    if values is None and not model.relevant_only():
        raise ParameterError("recommend: with users='factors' a history needs ratings: give (item, rating) pairs")
    rows, numbers = _one_user(model, items, values)
    if rows.listed.size and not rows.listed.any():
        raise ParameterError(
            f"recommend: no item of this history counts as liked, and {type(model).__name__} learns from likes alone; give "
            "the liked items without ratings, or ratings that differ"
        )
    blocks: Parameters = {
        "user_factors": model.user_factors_.mean(axis=0, keepdims=True),
        "item_factors": model.item_factors_[numbers],
        "item_bias": model.item_bias_[numbers],
    }
    problem = model.problem(rows)
    for block in ("item_factors", "item_bias"):
        problem.rules[block] = Rule(False, 0.0, 0.0)
    engine = make_engine(model.engine, problem, start_state(blocks, make_optimizer(model.optimizer)), 1)
    visits = model.visits_per_user()
    for visit in range(visits):
        engine.visit(np.zeros(1, np.int64), Moment(visit, visit / max(visits - 1, 1)))
    return np.asarray(engine.state.parameters["user_factors"][0])


def _one_user(model: "FactorModel", items: IntArray, values: FloatArray | None) -> tuple[Rows, IntArray]:
    """The history as the rows of one user, and which item each of its item numbers is.

    Only the items of the history travel, unless unobserved ones are sampled from all the others. A history without
    values means: all of them liked.
    """
    known, value = model.fitted.facts.get("feedback"), model.fitted.facts["value"]
    policy = model.policy() if value == "ratings" else "weights"  # what a row's number was in training
    if values is None:
        value, policy, values = "weights", "weights", np.ones(items.size)
    elif known is not None and known["kind"] in ("grades", "relevance"):
        policy = feedback_from_dict(known)  # the scale of the training rows, not of this history
    column: dict[str, Any] = {value: values}
    one = Interactions.from_arrays(np.zeros(items.size, np.int64), np.asarray(items, np.int64), **column)
    prepared = prepare(one, policy, model.selection(), strict=False)
    chosen = prepared.data.items.ids.astype(np.int64)
    if not model.selection().negatives:
        return prepared.rows, chosen
    return prepared.rows._replace(items=chosen[prepared.rows.items].astype(np.int32)), np.arange(len(model.item_map))
