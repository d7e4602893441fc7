"""Several visits of a batch between two exchanges, for slow networks: another algorithm ("local SGD").

Each block of users visits its part of the batch `passes` times, its items stepping as if what the block sees were all there
is: sums of gradients over its w_b rows of an item are taken times

    1 + o / w_b,    o the rows of the item that other blocks' parts of the batch have, as expected from all lists,

so that a step is as long as one of all users. Then every item p goes to the mean of where the blocks took it, p_b:

    p <- p + sum_b w_b (p_b - p) / W,    W = sum_b w_b.

Accumulators of AdaGrad, sums of squares, grow by what blocks added times (w_b / W)^2: as the square of a mean of gradients
that have nothing in common but chance.

With one block these are `passes` visits of the CPU engine; with plain descent and one pass, up to what was expected and what
came, the usual iteration.
"""

import numpy as np

from topnrank._typing import Float64Array, FloatArray, Int32Array, Int64Array
from topnrank.engines.base import ItemSums, Problem, State, StepReport, TrainingTime
from topnrank.engines.cpu import CpuEngine
from topnrank.scorers import Parameters
from topnrank.scorers.neighbors import SCALE
from topnrank.spark.engine.item_side import step_items

ACCUMULATED = "accumulated "
"""Before the name of a block: the moves of its accumulators."""
_POWERS = {"": 1.0, ACCUMULATED: 2.0}
"""Of the rows by which moves are weighted."""


def moments(when: TrainingTime, passes: int) -> list[TrainingTime]:
    """When the visits between two exchanges happen: their random draws are named as if each were an iteration."""
    return [when._replace(iteration=when.iteration * passes + turn) for turn in range(passes)]


def expected_rows(problem: Problem, n_items: int) -> Float64Array:
    """(n_items,) rows of each item in the lists of all users of the problem, with those that a visit samples on average."""
    rows, sampling_weights = problem.rows, problem.sampling_weights
    kept = rows.items if problem.scorer.history_blocks or not rows.listed.size else rows.items[rows.listed]
    shares = np.full(n_items, 1.0 / n_items) if sampling_weights is None else sampling_weights / sampling_weights.sum()
    counted: Float64Array = np.bincount(kept, minlength=n_items) + problem.negatives * (rows.indptr.size - 1) * shares
    return counted


def visit_locally(engine: CpuEngine, users: Int64Array, when: list[TrainingTime], share: float) -> ItemSums:
    """Visits the users at each moment; the items' moves, weighted by their rows. `share` of all users is in the batch.

    Loss and effective N are those of the first visit, as elsewhere; `moved` is the users' part.
    """
    before = State(copies(engine.state.parameters), copies(engine.state.accumulators))
    others = share * _rows_elsewhere(engine)
    rows, visits = np.zeros(others.size), []
    for when in when:
        here = _rows_of_items(engine, users, when)
        visits.append(_visit(engine, users, when, 1.0 + others / np.maximum(here, 1.0)))
        rows += here
    report = visits[0]._replace(moved=sum(each.moved for each in visits))
    items = np.flatnonzero(rows).astype(np.int32)
    moves, scale = _moves(engine, before, items, rows[items])
    numbers = items if engine.held is None else engine.held[items]
    return ItemSums(numbers, moves, rows[items], rows[items], scale * report.lists, report)


def _moves(
    engine: CpuEngine, before: State, items: Int32Array, rows: Float64Array
) -> tuple[dict[str, FloatArray], Float64Array]:
    """How far items and their accumulators went, weighted; and the neighbors' scale and its accumulator, not weighted."""
    pairs = [
        ("", engine.state.parameters, before.parameters),
        (ACCUMULATED, engine.state.accumulators, before.accumulators),
    ]
    names = [name for name in before.parameters if name not in (engine.problem.scorer.user_block, SCALE)]
    moves: dict[str, FloatArray] = {
        prefix + name: _times(new[name][items] - old[name][items], rows ** _POWERS[prefix])
        for prefix, new, old in pairs
        for name in names
    }
    scale = [float(new[SCALE][0]) - float(old[SCALE][0]) for _, new, old in pairs if SCALE in old]
    return moves, np.array(scale, np.float64)


def _visit(engine: CpuEngine, users: Int64Array, when: TrainingTime, factors: Float64Array) -> StepReport:
    """A visit after which the items step along the sums times `factors`."""
    sums = engine.sums(users, when)
    places = sums.items if engine.held is None else np.searchsorted(engine.held, sums.items).astype(np.int32)
    times = factors[places]
    larger: dict[str, FloatArray] = {name: _times(block, times) for name, block in sums.gradients.items()}
    here = sums._replace(
        items=places, gradients=larger, in_lists=sums.in_lists * times, in_histories=sums.in_histories * times
    )
    step_items(engine.problem, engine.state, here)
    return sums.step


def move_items(state: State, sums: ItemSums) -> float:
    """Moves the items by what the blocks say together; returns the squared distance."""
    moved = 0.0
    for prefix, blocks in (("", state.parameters), (ACCUMULATED, state.accumulators)):
        for name in (name for name in state.parameters if prefix + name in sums.gradients):
            move = _times(sums.gradients[prefix + name], sums.in_lists ** -_POWERS[prefix])
            blocks[name][sums.items] += move
            moved += float((move**2).sum()) if prefix == "" else 0.0
    if SCALE in state.parameters:
        state.parameters[SCALE][0] += sums.scale[0] / max(sums.step.lists, 1)
        state.accumulators[SCALE][0] += sums.scale[1] / max(sums.step.lists, 1)
    return moved


def copies(blocks: Parameters) -> Parameters:
    """The same numbers in arrays of their own."""
    return {name: block.copy() for name, block in blocks.items()}


def _rows_elsewhere(engine: CpuEngine) -> Float64Array:
    """(held,) rows of each item in a pass over the users of other blocks."""
    total = engine.problem.item_rows
    assert total is not None
    others: Float64Array = total - expected_rows(engine.problem, total.size)
    return np.maximum(others if engine.held is None else others[engine.held], 0.0)


def _rows_of_items(engine: CpuEngine, users: Int64Array, when: TrainingTime) -> Float64Array:
    """(held,) how many rows of the batch each item has, sampled ones with them."""
    batch, n_held = engine.renumbered(engine.lay_out(users, when)), engine.state.parameters["item_bias"].size
    counts: Float64Array = np.bincount(batch.items, minlength=n_held).astype(np.float64)
    return counts


def _times(move: FloatArray, weights: Float64Array) -> FloatArray:
    product: FloatArray = (move * weights.reshape(-1, *[1] * (move.ndim - 1))).astype(np.float32)
    return product
