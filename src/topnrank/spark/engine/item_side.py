"""The item side of a batch that is computed in parts: the parts' sums are added up, then every item in it steps once."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from topnrank._typing import Float32Array, Float64Array, FloatArray, Int32Array, Int64Array
from topnrank.engines.base import ItemSums, Problem, State, StepReport
from topnrank.kernels.updates import add_rows, step_number, step_rows
from topnrank.scorers.neighbors import SCALE

NOBODY = StepReport(0.0, 0, 0, 0.0)


def merge(parts: Sequence[ItemSums]) -> ItemSums:
    """The sums of all parts, added in their order; items ascending."""
    items = np.unique(np.concatenate([part.items for part in parts]))
    places = [np.searchsorted(items, part.items).astype(np.int64) for part in parts]
    gradients: dict[str, FloatArray] = {}
    for name in parts[0].gradients:
        gradients[name] = _added(items, places, [part.gradients[name] for part in parts])
    in_lists = _added(items, places, [part.in_lists for part in parts])
    in_histories = _added(items, places, [part.in_histories for part in parts])
    scale = np.sum([part.scale for part in parts], axis=0)
    visits = [part.report for part in parts]
    together = StepReport(*(sum(numbers) for numbers in zip(*visits, strict=True)))
    return ItemSums(items, gradients, in_lists, in_histories, scale, together)


def _added(items: Int32Array, places: Sequence[Int64Array], rows: Sequence[Any]) -> Any:
    total = np.zeros((items.size, *rows[0].shape[1:]), rows[0].dtype)
    for place, part in zip(places, rows, strict=True):
        add_rows(place, _rows(part), _rows(total))
    return total


def step_items(problem: Problem, state: State, sums: ItemSums) -> float:
    """Steps the touched items of all blocks once; returns the squared distance moved. `sums` are used up."""
    moved = 0.0
    for name, gradient in sums.gradients.items():
        visits = sums.in_histories if name in problem.scorer.history_blocks else sums.in_lists
        rule = np.array(problem.rules[name], np.float64)
        values, accumulators = _rows(state.parameters[name]), _rows(state.accumulators[name])
        distances = np.empty(sums.items.size)
        step_rows(rule, sums.items, visits, _rows(gradient), values, accumulators, distances)
        moved += float(distances.sum())
    if SCALE in state.parameters:
        moved += _step_scale(problem, state, float(sums.scale[0]) / max(sums.report.lists, 1))
    return moved


def _step_scale(problem: Problem, state: State, gradient: float) -> float:
    rule = np.array(problem.rules[SCALE], np.float64)
    return float(step_number(rule, 1.0, gradient, state.parameters[SCALE], state.accumulators[SCALE], 0))


def _rows(block: FloatArray) -> Float32Array:
    """The block as rows; a bias is a row of one number."""
    rows: Float32Array = block.reshape(
        len(block), int(np.prod(block.shape[1:]))
    )  # -1 would not do where there are none
    return rows


def bytes_of(sums: ItemSums) -> int:
    """How many bytes of numbers the sums are."""
    arrays: list[FloatArray | Float64Array | Int32Array] = [sums.items, sums.in_lists, sums.in_histories]
    return sum(array.nbytes for array in [*arrays, *sums.gradients.values()])
