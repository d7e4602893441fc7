"""One training step of SequenceRank on a device of PyTorch, in the training loop of all models.

A batch of windows is cut twice: into blocks of windows whose activations fit the memory, and for the loss into blocks whose
scores of all candidates fit. A block's loss goes back at once to the states of its rows, so that no more than one block of
scores is held; gradients add up. Same bits from run to run on a device: gradients of looked-up rows sum in a fixed order,
and random numbers are keyed by seed and step.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from topnrank._torch import free_bytes, tensor_cores
from topnrank._typing import Float32Array, FloatArray, Int64Array
from topnrank.engines import State, StepReport, TrainingTime
from topnrank.engines.base import END_OF_TRAINING
from topnrank.errors import ParameterError
from topnrank.models.attention.losses import NextItemLoss
from topnrank.models.attention.network import Dropout, states
from topnrank.models.attention.shape import GAP_BUCKETS, Shape
from topnrank.models.attention.terms import Terms, TermsOnDevice
from topnrank.models.attention.windows import Windows
from topnrank.rng import stream

FIRST, SECOND, ADAM_EPSILON = 0.9, 0.999, 1e-8
"""Adam's."""
LONGEST_GRADIENT = 5.0
TERM_PACE = 10.0
"""So many times faster than the rest the weights of the terms learn."""
GIGABYTE = 1e9
CPU_BYTES = 1 << 28
"""Memory for blocks on devices that do not tell what is free."""


@dataclass(frozen=True)
class AttentionProblem:
    """What training needs and does not change."""

    shape: Shape
    windows: Windows
    n_items: int
    loss: NextItemLoss
    terms: Terms | None
    learning_rate: float
    weight_decay: float
    dropout: float
    negatives: int
    """Sampled candidates, the same for a block; 0: all items"""
    seed: int


@dataclass(frozen=True)
class _Sizes:
    """What fits."""

    windows: int
    """of a block whose activations are held"""
    numbers: int
    """Scores of a block"""
    dense: int
    """Bytes for links as matrices"""


class AttentionEngine:
    """Trains; `state` holds NumPy arrays, as those of all engines do."""

    def __init__(self, problem: AttentionProblem, state: State, device: Any) -> None:
        self.problem, self.device = problem, device
        self._P = {name: self._tensor(array).requires_grad_() for name, array in state.parameters.items()}
        self._moments = {name: self._tensor(array) for name, array in state.accumulators.items()}
        self.sizes = _sizes(problem, device)
        windows = problem.windows
        self._windows = {name: self._tensor(getattr(windows, name)) for name in ("strengths", "wanted", "times")}
        self._windows |= {name: self._tensor(getattr(windows, name)).long() for name in ("items", "targets", "lengths")}
        self.terms = None
        if problem.terms is not None:
            self.terms = TermsOnDevice(problem.terms, problem.n_items, device, self.sizes.dense)
            self._windows["folds"] = self._tensor(problem.terms.folds[windows.users])

    @staticmethod
    def start(parameters: dict[str, FloatArray]) -> State:
        """Before the first step."""
        moments = {
            f"{which}.{name}": np.zeros_like(one) for which in ("mean", "square") for name, one in parameters.items()
        }
        return State(parameters, moments)

    @property
    def state(self) -> State:
        """Parameters and Adam's moments after the latest step."""
        return State(_arrays(self._P), _arrays(self._moments))

    def step(self, users: Int64Array, when: TrainingTime = END_OF_TRAINING) -> StepReport:
        """One step on a batch; `users` are numbers of windows."""
        lengths = self.problem.windows.lengths[users]
        batch = users[np.argsort(-lengths, kind="stable")]
        total = float(self.problem.windows.wanted[batch].sum())
        draws = self._draws("dropout", when.iteration)
        values = []
        with tensor_cores():
            for first in range(0, batch.size, self.sizes.windows):
                values += self._back(batch[first : first + self.sizes.windows], total, draws, when.iteration)
        moved = self._update(when.iteration + 1)
        value, moved = torch.stack([torch.stack(values).sum() if values else moved * 0.0, moved]).tolist()
        rows = int((self.problem.windows.wanted[batch] > 0).sum())
        return StepReport(value * rows, rows, max(rows, 1), moved)

    # -- loss ---------------------------------------------------------------------------------------------------------

    def _back(self, block: Int64Array, total: float, draws: Any, step: int) -> list[Any]:
        """Adds the gradients of some windows, the longest first; their parts of the loss."""
        W = self._take(block)
        dropout = Dropout(self.problem.dropout, draws)
        h = states(self._P, self.problem.shape, W["items"], W["lengths"], W.get("times"), dropout)
        ends = h.detach().requires_grad_()
        values = []
        for part in self._parts(self.problem.windows.lengths[block]):
            L = int(self.problem.windows.lengths[block[part]].max(initial=0))
            asked = np.flatnonzero(self.problem.windows.wanted[block[part], :L] > 0)  # here, so that nobody waits
            if asked.size:
                own = {name: one[part, :L] if one.ndim == 2 else one[part] for name, one in W.items()}
                loss = self._loss(own, ends[part, :L], self._tensor(asked), step) / total
                loss.backward()
                values.append(loss.detach())
        if values:
            h.backward(ends.grad)
        return values

    def _loss(self, W: dict[str, Any], h: Any, asked: Any, step: int) -> Any:
        """The sum of the losses of the rows `asked` (P,) of some windows, counted through all (B, L) of them."""
        targets, weights = W["targets"].flatten()[asked], W["wanted"].flatten()[asked]
        vectors, bias = self._P["item_vectors"], self._P["item_bias"]
        chosen = slots = None
        if self.problem.negatives:
            chosen, slots = self._sample(targets, step)
            vectors, bias = vectors[chosen], bias[chosen]
        scores = h.flatten(0, 1).index_select(0, asked) @ vectors.T + bias
        if self.terms is not None:
            n = 0 if chosen is None else len(chosen)
            with torch.no_grad():
                z = self.terms.scores(W["items"], W["strengths"], W["folds"], slots, n)
                z = [one.flatten(0, 1).index_select(0, asked) for one in z]
            for weight, one in zip(self._P["network_term_weights"], z, strict=True):
                scores = scores + weight * one
        scores = scores.masked_fill(self._seen(W["items"], asked, slots, vectors.shape[0]), -1e9)
        if chosen is None or slots is None:
            values = self.problem.loss(scores, targets)
        else:
            own = slots[targets]
            values = self.problem.loss(scores, own, self._stand_for(chosen, own))
        return (values * weights).sum()

    def _seen(self, items: Any, asked: Any, slots: Any, n: int) -> Any:
        """(P, n) whether the user had the candidate before: it is not asked for."""
        B, L = items.shape
        past = torch.ones(L, L, dtype=torch.bool, device=self.device).tril()
        had = torch.where(
            past, items[:, None, :], items[:, :, None]
        )  # (B, L, L); a row's own item stands for later ones
        if slots is not None:
            had = slots[had]
            had = torch.where(had < 0, n, had)  # a column too many takes those that are no candidates
        seen = torch.zeros(B, L, n + 1, dtype=torch.bool, device=self.device).scatter_(2, had, True)
        return seen.flatten(0, 1).index_select(0, asked)[:, :n]

    def _sample(self, targets: Any, step: int) -> tuple[Any, Any]:
        """Candidates of a block: items drawn with equal chances, then the next items that are not among them; and where
        each item stands among them."""
        n, count = self.problem.n_items, self.problem.negatives
        draws = stream(self.problem.seed, "candidates", step).choice(n, min(count, n), replace=False)
        self._drawn = len(draws)
        drawn = torch.from_numpy(draws).to(self.device)
        slots = torch.full((n,), -1, device=self.device)
        slots[drawn] = torch.arange(len(draws), device=self.device)
        others = targets.unique()
        others = others[slots[others] < 0]
        slots[others] = len(draws) + torch.arange(len(others), device=self.device)
        return torch.cat([drawn, others]), slots

    def _stand_for(self, chosen: Any, own: Any) -> Any:
        """(P, C) how many items each candidate stands for."""
        weights = torch.zeros(len(own), len(chosen), device=self.device)
        weights[:, : self._drawn] = self.problem.n_items / self._drawn
        weights[torch.arange(len(own), device=self.device), own] = 0.0
        return weights

    # -- memory -------------------------------------------------------------------------------------------------------

    def _parts(self, lengths: Int64Array) -> Iterator[slice]:
        """Windows, the longest first, cut so that the scores of a part fit."""
        candidates = self.problem.n_items
        if self.problem.negatives:
            candidates = min(candidates, self.problem.negatives + self.sizes.windows * int(lengths.max(initial=1)))
        first = 0
        while first < lengths.size:
            many = max(1, self.sizes.numbers // max(int(lengths[first]) * candidates, 1))
            yield slice(first, first + many)
            first += many

    def _take(self, block: Int64Array) -> dict[str, Any]:
        L = max(int(self.problem.windows.lengths[block].max(initial=1)), 1)
        places = torch.from_numpy(block).to(self.device)
        taken = {name: one[places] for name, one in self._windows.items()}
        return {name: one[:, :L] if one.ndim == 2 else one for name, one in taken.items()}

    def _tensor(self, array: Any) -> Any:
        return torch.from_numpy(np.array(array)).to(self.device)

    def _draws(self, purpose: str, step: int) -> Any:
        key = int(stream(self.problem.seed, purpose, step).integers(2**62))
        return torch.Generator(self.device).manual_seed(key)

    # -- update -------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _update(self, step: int) -> Any:
        """Adam with decoupled weight decay on all that is not a vector of biases, scales or weights; the squared step."""
        names = [name for name, one in self._P.items() if one.grad is not None]
        gradients = [self._P[name].grad for name in names]
        length = torch.stack(torch._foreach_norm(gradients)).norm()
        torch._foreach_mul_(gradients, torch.clamp(LONGEST_GRADIENT / (length + 1e-12), max=1.0))
        means = [self._moments[f"mean.{name}"] for name in names]
        squares = [self._moments[f"square.{name}"] for name in names]
        torch._foreach_lerp_(means, gradients, 1.0 - FIRST)
        torch._foreach_mul_(squares, SECOND)
        torch._foreach_addcmul_(squares, gradients, gradients, 1.0 - SECOND)
        steps = torch._foreach_sqrt(squares)
        torch._foreach_div_(steps, math.sqrt(1.0 - SECOND**step))
        torch._foreach_add_(steps, ADAM_EPSILON)
        steps = torch._foreach_div(means, steps)
        rate = self.problem.learning_rate
        torch._foreach_mul_(steps, -rate / (1.0 - FIRST**step))
        for place, name in enumerate(names):
            if name == "network_term_weights":
                steps[place].mul_(TERM_PACE)
            elif not name.endswith(("bias", "scale")):
                steps[place].add_(self._P[name], alpha=-rate * self.problem.weight_decay)
        torch._foreach_add_([self._P[name] for name in names], steps)
        for name in names:
            self._P[name].grad = None
        return torch.stack(torch._foreach_norm(steps)).square().sum()

    # -- asking -------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def last_states(self, windows: Windows) -> Float32Array:
        """(W, d) h of the last rows; 0 for a window without rows."""
        found = np.zeros((windows.users.size, self.problem.shape.width), np.float32)
        for first in range(0, windows.users.size, 4 * self.sizes.windows):
            part = slice(first, first + 4 * self.sizes.windows)
            found[part] = self._last(windows, part).cpu().numpy()
        return found

    @torch.no_grad()
    def scores(self, windows: Windows, part: slice) -> Any:
        """(w, n_items) scores after the last rows of some windows, the terms by the links of all users."""
        scores = self._last(windows, part) @ self._P["item_vectors"].T + self._P["item_bias"]
        if self.terms is not None:
            items, strengths = self._tensor(windows.items[part]).long(), self._tensor(windows.strengths[part])
            last = self._tensor(windows.lengths[part]).long() - 1
            folds = torch.full_like(last, len(self.terms.terms.links) - 1)
            z = self.terms.scores_at(items, strengths, folds, last)
            for weight, one in zip(self._P["network_term_weights"], z, strict=True):
                scores = scores + weight * one
        return scores

    def _last(self, windows: Windows, part: slice) -> Any:
        lengths = self._tensor(windows.lengths[part]).long()
        items, times = self._tensor(windows.items[part]).long(), self._tensor(windows.times[part])
        h = states(self._P, self.problem.shape, items, lengths, times)
        last = h[torch.arange(len(lengths), device=self.device), (lengths - 1).clamp(min=0)]
        return last * (lengths > 0)[:, None]


def _arrays(tensors: dict[str, Any]) -> dict[str, FloatArray]:
    return {name: one.detach().cpu().numpy().copy() for name, one in tensors.items()}


def _sizes(problem: AttentionProblem, device: Any) -> _Sizes:
    """What fits into the memory that is free; a ParameterError where not even one window does."""
    shape = problem.shape
    numbers = sum(math.prod(size) for size in shape.sizes(problem.n_items).values())
    free = free_bytes(device)
    whole = 16 * numbers  # parameters, gradients, two moments
    room = CPU_BYTES * 4 if free is None else free - whole
    window = 4 * shape.length * shape.blocks * (30 * shape.width + 6 * shape.heads * shape.length)
    if shape.time_gaps:  # which bucket each pair of rows is in, as numbers and as a matrix
        window += 12 * (GAP_BUCKETS + 1) * shape.length**2
    candidates = problem.negatives or problem.n_items
    copies = 9 + shape.terms
    row = 4 * shape.length * candidates * copies
    if free is not None and room < 2 * (window + row):
        raise ParameterError(
            f"SequenceRank needs {(whole + 2 * (window + row)) / GIGABYTE:.1f} GB on {device} and {free / GIGABYTE:.1f} GB "
            "are free; give fewer negatives (such as negatives=2000), a smaller width or a smaller length"
        )
    blocks = CPU_BYTES if free is None else room // 4
    return _Sizes(max(1, blocks // window), max(1, blocks // (4 * copies)), blocks)
