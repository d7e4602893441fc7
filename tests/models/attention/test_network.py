"""The transformer, the losses and the closed-form terms in PyTorch: gradients, causality, padding, and the NumPy twin."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch", reason="PyTorch is not installed: SEQUENCERANK IS NOT TESTED")

from topnrank.losses import Laplace  # noqa: E402
from topnrank.losses.weighted_dcg.reference import WeightedDCG  # noqa: E402
from topnrank.models.attention.forward import last_state  # noqa: E402
from topnrank.models.attention.losses import NextItemLoss  # noqa: E402
from topnrank.models.attention.network import start_values, states  # noqa: E402
from topnrank.models.attention.shape import Shape  # noqa: E402

SHAPES = [Shape(4, 1, 1, 6), Shape(8, 2, 2, 6, time_gaps=True), Shape(8, 3, 4, 6, time_gaps=True)]
N_ITEMS = 12


def parameters(shape, dtype=torch.float32):
    drawn = np.random.default_rng(1)
    arrays = start_values(shape, N_ITEMS, seed=1)
    return {
        name: torch.tensor(one + 0.3 * drawn.standard_normal(one.shape), dtype=dtype) for name, one in arrays.items()
    }


def windows(lengths=(6, 4, 1), width=6, seed=0):
    drawn = np.random.default_rng(seed)
    items = torch.from_numpy(drawn.integers(0, N_ITEMS, (len(lengths), width)))
    times = torch.from_numpy(np.cumsum(drawn.integers(0, 5000, (len(lengths), width)), axis=1))
    return items, torch.tensor(lengths), times


@pytest.mark.parametrize("loss", ["softmax", "listwise", "sl@k"])
@pytest.mark.parametrize("shape", SHAPES[:2])
def test_gradients_are_those_of_finite_differences(shape, loss):
    P, (items, lengths, times) = parameters(shape, torch.float64), windows((4, 2), 4)
    names, of = list(P), NextItemLoss(loss, top=3)

    def value(*arrays):
        own = dict(zip(names, arrays, strict=True))
        h = states(own, shape, items, lengths, times)
        scores = h[:, 1] @ own["item_vectors"].T + own["item_bias"]
        if loss == "sl@k":  # its quantile is held constant; held far from the step, it is
            scores = scores + 0.0
        return of(scores, torch.tensor([3, 7])).sum()

    arrays = [P[name].requires_grad_() for name in names]
    if loss != "sl@k":
        assert torch.autograd.gradcheck(value, arrays, eps=1e-6, atol=1e-6)
        return
    scores = torch.randn(2, N_ITEMS, dtype=torch.float64, requires_grad=True)
    wanted = torch.tensor([3, 7])
    bar = scores.detach().topk(3, dim=1).values[:, -1]
    share = 2.0 * torch.sigmoid(scores.detach().gather(1, wanted[:, None])[:, 0] - bar)
    plain = NextItemLoss("softmax")(scores, wanted)
    (gradient,) = torch.autograd.grad(of(scores, wanted).sum(), scores)
    (expected,) = torch.autograd.grad((share * plain).sum(), scores)
    assert_allclose(gradient, expected)


@pytest.mark.parametrize("discount", [-1.0, 0.0, 1.0, 2.0])
def test_the_list_wise_loss_is_that_of_top_n_rank(discount):
    drawn = np.random.default_rng(2)
    scores, wanted = drawn.standard_normal((3, 9)), np.array([0, 4, 8])
    given = torch.tensor(scores, requires_grad=True)
    values = NextItemLoss("listwise", discount=discount, steepness=2.0)(given, torch.from_numpy(wanted))
    (gradient,) = torch.autograd.grad(values.sum(), given)
    reference = WeightedDCG(Laplace(2.0), truncate=False, exact=True, discount=discount)
    for row, item in enumerate(wanted):
        expected = reference.evaluate(scores[row], np.eye(9)[item])
        assert_allclose(values[row].item(), expected.value, rtol=1e-10)
        assert_allclose(gradient[row], expected.user, atol=1e-12)


@pytest.mark.parametrize("loss", ["softmax", "listwise", "sl@k"])
def test_a_sample_of_all_items_is_all_items(loss):
    scores, wanted = torch.randn(4, N_ITEMS, dtype=torch.float64), torch.tensor([0, 3, 5, 11])
    weights = torch.ones_like(scores).scatter_(1, wanted[:, None], 0.0)
    of = NextItemLoss(loss, top=4)
    assert_allclose(of(scores, wanted, weights), of(scores, wanted))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_later_item_never_changes_an_earlier_state(shape):
    P, (items, lengths, times) = parameters(shape), windows((6, 6, 6))
    before = states(P, shape, items, lengths, times)
    for t in range(1, 6):
        other, later = items.clone(), times.clone()
        other[:, t:], later[:, t:] = (other[:, t:] + 5) % N_ITEMS, later[:, t:] + 10**6
        assert_allclose(states(P, shape, other, lengths, later)[:, :t], before[:, :t], rtol=1e-6, atol=1e-6)
        assert not np.allclose(states(P, shape, other, lengths, later)[:, t], before[:, t])


@pytest.mark.parametrize("shape", SHAPES)
def test_padding_and_neighbors_in_the_batch_change_nothing(shape):
    P, (items, lengths, times) = parameters(shape), windows()
    whole = states(P, shape, items, lengths, times)
    for row, m in enumerate(lengths.tolist()):
        alone = states(P, shape, items[row : row + 1, :m], lengths[row : row + 1], times[row : row + 1, :m])
        assert_allclose(whole[row, :m], alone[0], rtol=1e-5, atol=1e-6)
        other = items.clone()
        other[row, m:] = (other[row, m:] + 3) % N_ITEMS
        assert_allclose(states(P, shape, other, lengths, times)[row, :m], alone[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_gives_the_same_states(shape):
    P, (items, lengths, times) = parameters(shape), windows((6, 5, 2, 1))
    arrays = {name: one.numpy() for name, one in P.items()}
    for known in (times, None):
        h = states(P, shape, items, lengths, known)
        for row, m in enumerate(lengths.tolist()):
            when = None if known is None else known[row, :m].numpy()
            ours = last_state(arrays, shape, items[row, :m].numpy(), when)
            assert_allclose(ours, h[row, m - 1], rtol=2e-5, atol=2e-6)
