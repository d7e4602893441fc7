"""ObjectiveTests: the conformance suite of objectives, and central differences."""

# ruff: noqa: D102 (the name of a test says what it tests)
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose

from topnrank._typing import Float64Array, Int64Array
from topnrank.losses.base import PLAIN_CONTEXT, ListContext, ListGradient, Objective
from topnrank.rng import stream


def central_differences(
    function: Callable[[Float64Array], float], point: Float64Array, *, step: float = 1e-6
) -> Float64Array:
    """The gradient of `function` at `point` (any shape), one coordinate after another; the error is O(step^2)."""
    gradient = np.empty(point.shape)
    for place in np.ndindex(point.shape):
        ahead, behind = point.astype(np.float64), point.astype(np.float64)
        ahead[place] += step
        behind[place] -= step
        gradient[place] = (function(ahead) - function(behind)) / (2.0 * step)
    return gradient


OWN_ROWS = (9, 4, 14)
"""Lengths of the random lists, sampled rows not counted."""
HAZARDOUS_SCORES = (
    np.array([1e6, -1e6, 0.0, 1e6, 1e-6, -3.0]),
    np.array([3.0, 3.0, 2.0, 1.0, 1.0, 0.0]),
    np.full(6, 0.1),
    np.zeros(6),
)
HAZARDOUS_GAINS = (
    np.zeros(6),
    np.ones(6),
    -np.ones(6),
    np.array([1.0, -1.0, 1.0, -1.0, 0.0, 5.0]),
    np.array([1.0, 0.0, -1.0, -2.0, -3.0, -4.0]),
    np.array([1e6, -1e6, 1e-300, 31 / 32, 1.0, 0.0]),
)


def random_list(case: int, kind: str, sampled: int = 0) -> tuple[Float64Array, Float64Array]:
    """Scores and gains of list number `case` of three; the `sampled` last rows have gain 0.

    The scores are distinct and no difference of two is near a multiple of 0.01, where kinks of losses lie. They are
    multiples of 2^-20, so that adding an integer changes no difference.
    """
    draw, m = stream(case, "list of ObjectiveTests"), OWN_ROWS[case] + sampled
    scores = np.round(draw.normal(size=m), 2) + np.linspace(0.001, 0.004, m)
    if kind == "grades":
        gains = draw.integers(0, 6, size=m) / 6.0
        gains[:2] = 0.5, 1 / 6
    else:
        gains = draw.normal(size=m) if case == 0 else draw.integers(-2, 3, size=m) / 2.0
        gains[:2] = 1.0, -1.0
    gains[m - sampled :] = 0.0
    return np.round(scores * 2**20) / 2**20, gains


def distance(first: ListGradient, second: ListGradient) -> float:
    """The largest difference between two results, relative to the value and to the largest gradient of the first."""
    value = abs(first.value - second.value) / max(abs(first.value), 1.0)
    gradients = np.array([first.user, first.item])
    gradient = np.abs(gradients - np.array([second.user, second.item])).max() / max(np.abs(gradients).max(), 1e-3)
    return float(max(value, gradient))


def _kept(result: ListGradient, rows: Int64Array) -> ListGradient:
    return result._replace(user=result.user[rows], item=result.item[rows])


def _named(value: Any) -> str:
    """Test id: a context by its fields that are not default, an objective by its repr."""
    if not isinstance(value, ListContext):
        return repr(value)
    fields = value._asdict().items()
    special = (f"{name} {field}" for name, field in fields if str(field) != str(getattr(PLAIN_CONTEXT, name)))
    return ", ".join(special) or "plain"


def _shortened(context: ListContext, size: int) -> ListContext:
    """The context for a list that may have fewer rows than it has sampled ones."""
    sampled = min(context.sampled, size)
    weight = context.weight
    return context._replace(sampled=sampled, weight=weight if np.ndim(weight) == 0 else np.asarray(weight)[:sampled])


class ObjectiveTests:
    """Conformance tests of an objective; a subclass whose name begins with Test sets `objectives`.

    Flags say which properties an objective has. A flag is tested in both directions: one that is off although the
    objective has the property is an error too.
    """

    objectives: ClassVar[Sequence[Objective]]
    """The objective, with the parameters to test."""
    contexts: ClassVar[Sequence[ListContext]] = (PLAIN_CONTEXT,)
    """The contexts to test: with sampled rows, with a key for random draws, early in training."""
    gains: ClassVar[str] = "signed"
    """"signed", or "grades" where gains are meant to lie between 0 and 1."""
    tolerance: ClassVar[float] = 1e-7
    """Tolerance between gradient and difference quotient, relative to its largest entry."""
    autograd_formula: ClassVar[Callable[..., Any] | None] = None
    """(np, objective, f, a, context) -> loss: a static method with the paper's formula once more, with
    autograd.numpy as `np`; value and gradient are compared with it."""

    one_gradient: ClassVar[bool] = True
    """Whether the gradients for user and items are the same."""
    only_differences: ClassVar[bool] = True
    """Whether only differences of scores matter."""
    any_order: ClassVar[bool] = True
    """Whether the order of the rows does not matter."""
    needs_positives: ClassVar[bool] = False
    """Whether lists without a gain above 0 have neither loss nor gradient."""
    ignores_others: ClassVar[bool] = False
    """Whether own rows with a gain of 0 or less have no effect."""
    every_item_counts: ClassVar[bool] = True
    """Whether `active` is the length of the list."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each objective and each context."""
        for name, values in (("objective", self.objectives), ("context", self.contexts)):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, values, ids=_named)

    def differentiated(
        self, objective: Objective, scores: Float64Array, gains: Float64Array, context: ListContext
    ) -> Callable[[Float64Array], float]:
        """The function of the scores whose derivative at `scores` the gradient is: the value, unless overridden."""
        return lambda f: float(objective.evaluate(f, gains, context).value)

    def lists(self, context: ListContext) -> Iterator[tuple[Float64Array, Float64Array]]:
        """The random lists."""
        return (random_list(case, self.gains, context.sampled) for case in range(len(OWN_ROWS)))

    def hazards(self) -> Iterator[tuple[Float64Array, Float64Array]]:
        """Huge, equal and single scores with all sorts of gains."""
        for gains in HAZARDOUS_GAINS:
            for scores in HAZARDOUS_SCORES:
                yield scores, gains.copy()
            yield HAZARDOUS_SCORES[0][:1], gains[:1].copy()

    def test_the_gradient_is_the_derivative_of_the_value(self, objective: Objective, context: ListContext) -> None:
        """The user's gradient; the items' is the same, or the flag is off."""
        same = []
        for scores, gains in self.lists(context):
            result = objective.evaluate(scores, gains, context)
            numeric = central_differences(self.differentiated(objective, scores, gains, context), scores)
            rounding = 1e-9 * max(abs(result.value), 1.0)
            assert_allclose(result.user, numeric, rtol=0, atol=self.tolerance * np.abs(numeric).max() + rounding)
            same.append(np.array_equal(result.item, result.user))
        assert all(same) == self.one_gradient, same

    def test_value_and_gradient_are_those_of_the_formula_by_autograd(
        self, objective: Objective, context: ListContext
    ) -> None:
        formula = type(self).autograd_formula
        if formula is None:
            pytest.skip("no autograd_formula is given")
        autograd, anp = pytest.importorskip("autograd"), pytest.importorskip("autograd.numpy")
        for scores, gains in self.lists(context):

            def loss(f: Any, gains: Float64Array = gains) -> Any:
                return formula(anp, objective, f, gains, context)

            G = np.asarray(autograd.grad(loss)(scores), np.float64)
            result = objective.evaluate(scores, gains, context)
            assert distance(result._replace(item=result.user), ListGradient(float(loss(scores)), G, G, 0)) < 1e-10

    def test_hazards_stay_finite(self, objective: Objective, context: ListContext) -> None:
        for scores, gains in self.hazards():
            short = _shortened(context, scores.size)
            gains[scores.size - short.sampled :] = 0.0
            with np.errstate(all="raise", under="ignore"):
                result = objective.evaluate(scores, gains, short)
            assert np.isfinite([result.value, *result.user, *result.item]).all(), (scores, gains)

    def test_a_pure_function_gives_a_number_and_two_gradients(self, objective: Objective, context: ListContext) -> None:
        for scores, gains in self.lists(context):
            before = scores.tobytes(), gains.tobytes()
            first, second = (objective.evaluate(scores, gains, context) for _ in range(2))
            assert (scores.tobytes(), gains.tobytes()) == before
            for once, again in ((first.user, second.user), (first.item, second.item)):
                assert once.tobytes() == again.tobytes()
                assert once.dtype == np.float64
                assert once.shape == scores.shape
                assert not any(np.shares_memory(once, given) for given in (scores, gains))
            assert isinstance(first.value, float)
            assert isinstance(first.active, int)
            assert (first.value, first.active) == (second.value, second.active)
            assert 0 <= first.active <= scores.size
            assert first.active == scores.size or not self.every_item_counts

    def test_only_differences_of_scores_matter(self, objective: Objective, context: ListContext) -> None:
        changes = []
        for scores, gains in self.lists(context):
            here = objective.evaluate(scores, gains, context)
            changes += [distance(here, objective.evaluate(scores + c, gains, context)) for c in (-1.0, 2.0, 1e6)]
            changes.append(float(abs(here.user.sum()) / max(np.abs(here.user).sum(), 1.0)))
        alone = objective.evaluate(scores[:1], gains[:1], PLAIN_CONTEXT)
        assert (np.max(changes) < 1e-8) == self.only_differences, changes
        assert alone.user[0] == 0.0 or not self.only_differences

    def test_the_order_of_the_rows_does_not_matter(self, objective: Objective, context: ListContext) -> None:
        """Own rows and sampled rows each change places among themselves."""
        changes = []
        for case, (scores, gains) in enumerate(self.lists(context)):
            draw, own = stream(case, "order of ObjectiveTests"), OWN_ROWS[case]
            order = np.append(draw.permutation(own), own + draw.permutation(context.sampled))
            here = objective.evaluate(scores, gains, context)
            weight = context.weight if np.ndim(context.weight) == 0 else np.asarray(context.weight)[order[own:] - own]
            there = objective.evaluate(scores[order], gains[order], context._replace(weight=weight))
            changes.append(distance(_kept(here, order), there))
        assert (np.max(changes) < 1e-10) == self.any_order, changes

    def test_lists_without_positives(self, objective: Objective, context: ListContext) -> None:
        """They have no loss and no gradient where the objective needs positives."""
        silent = []
        for scores, gains in self.lists(context):
            for none in (-np.abs(gains), np.zeros_like(gains), np.zeros(context.sampled)):
                if none.size:
                    value, user, item, _ = objective.evaluate(scores[: none.size], none, context)
                    silent.append(value == 0.0 and not user.any() and not item.any())
        assert all(silent) == self.needs_positives, silent

    def test_rows_that_are_not_positive(self, objective: Objective, context: ListContext) -> None:
        """They have no gradient and do not change that of the positives where the objective ignores them."""
        changes = []
        for scores, gains in self.lists(context):
            kept = np.flatnonzero((gains > 0.0) | (np.arange(gains.size) >= gains.size - context.sampled))
            here = objective.evaluate(scores, gains, context)
            alone = objective.evaluate(scores[kept], gains[kept], context)
            changes += [distance(_kept(here, kept), alone), float(np.abs(np.delete(here.user, kept)).sum())]
        assert (np.max(changes) < 1e-12) == self.ignores_others, changes
