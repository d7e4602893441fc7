"""Settings of the closed-form models chosen on held-out rows.

Rows are held out at random, not the latest ones: what is chosen here, how strongly weights are held near 0 and how many
neighbors may explain an item, depends on how much data there is, which the random share leaves as it is.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from topnrank._typing import Float32Array, Int64Array
from topnrank.evaluation.held_out import HeldOut
from topnrank.models.linear.neighbors import CoOccurrences, NeighborTerm
from topnrank.scorers import Neighbors

PENALTIES = (5.0, 20.0, 80.0, 320.0)
"""Values of lambda that are tried first; further out when the best one is the last, then half a step to both sides."""
STEP, LEAST, MOST = 4.0, 1.25, 5120.0
SIZES = (50, 100, 200)
"""Numbers of neighbors, tried in this order."""
WORTH = 1.002
"""More neighbors must be better by this factor: they cost more in all that follows."""
MOST_WORK = 1e10
"""More neighbors are not tried where solving with them takes so many multiplications."""
USUAL_SIZE, USUAL_PENALTY = 50, 80.0
"""Where too few rows can be held out to choose by."""


class ChosenRidge(NamedTuple):
    """The best number of neighbors and lambda of those tried, and what they reach on the held-out rows."""

    neighbors: int
    penalty: float
    value: float


class _Trials:
    """Regressions on the same likes, measured on held-out rows; nothing is measured twice."""

    def __init__(self, together: CoOccurrences, held_out: HeldOut) -> None:
        self.together, self.held_out = together, held_out
        self.values: dict[tuple[int, float], float] = {}

    def best(self, size: int, penalties: Sequence[float]) -> ChosenRidge:
        """The best of these penalties and those measured before with this size."""
        new = [penalty for penalty in penalties if (size, penalty) not in self.values]
        if new:
            solved = self.together.solve(size, new)
            self.values |= zip(((size, penalty) for penalty in new), self._measure(solved), strict=True)
        of_size = [ChosenRidge(*key, value) for key, value in self.values.items() if key[0] == size]
        return max(of_size, key=lambda one: (one.value, one.penalty))

    def _measure(self, candidates: Sequence[Neighbors]) -> list[float]:
        """The metric of each."""
        liked = self.together.liked
        terms = [NeighborTerm.of(one, liked) for one in candidates]

        def blocks(users: Int64Array) -> list[Float32Array]:
            scores = [np.zeros((users.size, liked.n_items), np.float32) for _ in terms]
            for term, block in zip(terms, scores, strict=True):
                term.add_to(block, users)
            return scores

        return [float(value) for value in self.held_out.means(blocks)]


def choose_ridge(
    together: CoOccurrences,
    held_out: HeldOut,
    *,
    sizes: Sequence[int],
    penalty: float | None,
    best: ChosenRidge | None = None,
) -> ChosenRidge:
    """The best of `sizes` neighbors, and unless `penalty` is given the best lambda.

    lambda is chosen with the first size; with each further one, as long as it is worth it, it may grow by half a step.
    `best` is what was found with a smaller size before.
    """
    trials = _Trials(together, held_out)
    if best is None and penalty is None:
        best = best_penalty(lambda penalties: trials.best(sizes[0], penalties))
    elif best is None:
        assert penalty is not None
        best = trials.best(sizes[0], [penalty])
    for size in sizes:
        m, most = together.ranked.shape
        if size <= best.neighbors:
            continue
        if size > most or m * size**3 / 6 > MOST_WORK:
            break
        penalties = [best.penalty] if penalty is not None else [best.penalty, best.penalty * STEP**0.5]
        larger = trials.best(size, penalties)
        if larger.value <= WORTH * best.value:
            break
        best = larger
    return best


def best_penalty(best_of: Callable[[Sequence[float]], ChosenRidge]) -> ChosenRidge:
    """The best lambda; `best_of` gives the best of some and of all that it was given before.

    Steps by a factor of 4 until the best one is not the last, then half a step to both sides of it.
    """
    tried = sorted(PENALTIES)
    best = best_of(tried)
    while True:
        if best.penalty == tried[0] and tried[0] > LEAST:
            tried.insert(0, tried[0] / STEP)
        elif best.penalty == tried[-1] and tried[-1] < MOST:
            tried.append(tried[-1] * STEP)
        else:
            break
        best = best_of(tried)
    return best_of([best.penalty / STEP**0.5, best.penalty * STEP**0.5])
