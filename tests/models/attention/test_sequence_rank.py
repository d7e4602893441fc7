"""SequenceRank beyond the conformance suite: what it learns, its terms, resuming, memory, and answers without PyTorch."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from numpy.testing import assert_allclose

import topnrank as tnr
from topnrank import ParameterError, SequenceRank, UnknownIdError
from topnrank._torch import torch_device
from topnrank.errors import DataError
from topnrank.testing.base import learned
from topnrank.training.checkpoint import Checkpoint

torch = pytest.importorskip("torch", reason="PyTorch is not installed: SEQUENCERANK IS NOT TESTED")

from topnrank.models.attention import engine as engines  # noqa: E402
from topnrank.models.attention.engine import AttentionEngine, AttentionProblem  # noqa: E402
from topnrank.models.attention.losses import NextItemLoss  # noqa: E402
from topnrank.models.attention.network import start_values  # noqa: E402
from topnrank.models.attention.shape import Shape  # noqa: E402
from topnrank.models.attention.terms import FOLDS, Terms, TermsOnDevice  # noqa: E402
from topnrank.models.attention.windows import Windows  # noqa: E402
from topnrank.models.sequence.links import LinkScores  # noqa: E402
from topnrank.models.sequence.timeline import Pauses, Timeline  # noqa: E402

RIDGE = {
    "distance_power": 1.0,
    "smoothing": 0.3,
    "popularity": -0.1,
    "head": 3,
    "head_share": 0.8,
    "head_decay": 0.5,
    "undirected": 0.1,
    "recency": 4.0,
    "recent_popularity": 0.1,
    "neighbors": 8,
    "regularization": 3.0,
    "shrink": 1.0,
    "decays": [0.0, 0.8],
    "transitions": 0.1,
}
SMALL = {"width": 8, "length": 8, "dropout": 0.1, "device": "cpu", "batch_size": 32, "learning_rate": 0.01}


def walks(users=80, items=20, length=8, seed=0):
    """Users who walk up the items one by one, around the end."""
    drawn = np.random.default_rng(seed)
    starts, sizes = drawn.integers(0, items, users), drawn.integers(3, length + 1, users)
    owners = np.repeat(np.arange(users), sizes)
    steps = np.concatenate([np.arange(size) for size in sizes])
    return tnr.Interactions.from_arrays(owners, (starts[owners] + steps) % items, timestamps=1000 * steps)


def timeline_of(data):
    return Timeline.of(data.with_weights(np.ones(len(data), np.float32)), 0.0, Pauses(None, 1.0), "test")


def ndcg(model, train, test):
    return tnr.evaluate(model.fit(train), test, protocol="catalog", metrics="ndcg@10", relevant=None)["ndcg@10"]


@pytest.mark.parametrize("loss", ["softmax", "listwise", "sl@k"])
def test_it_learns_which_item_is_next(loss):
    train, test = tnr.split_last(walks())
    model = SequenceRank(**SMALL, terms="none", epochs=25, loss=loss)
    assert ndcg(model, train, test) > 0.9 > 0.6 > ndcg(tnr.Popularity(), train, test)
    assert model.recommend(history=[3, 4, 5], n=1)["item"].to_pylist() == [6]


def test_early_stopping_finds_a_number_of_epochs_and_trains_anew_on_all_rows():
    data = walks()
    model = SequenceRank(**SMALL, terms="none", patience=3, max_epochs=40).fit(data)
    info = model.fitted.info
    assert info.validation["ndcg@10"] > 0.8
    assert info.rounds == model.settings_["epochs"] <= 40
    given = SequenceRank(**SMALL, terms="none", epochs=info.rounds).fit(data)
    assert learned(given) == learned(model)


def test_terms_are_those_of_the_model_in_closed_form():
    data = walks()
    timeline = timeline_of(data)
    order = tnr.NextItemRidge(feedback="weights", **RIDGE)
    terms, cpu = Terms.of(order, timeline, 8, seed=0), torch.device("cpu")
    windows = Windows.of(timeline, 8)
    items, strengths = torch.from_numpy(windows.items).long(), torch.from_numpy(windows.strengths)
    folds = torch.full((len(windows.users),), FOLDS)
    dense, sparse = (TermsOnDevice(terms, data.n_items, cpu, room) for room in (1 << 30, 0))
    assert (dense.dense is None, sparse.dense is None) == (False, True)
    z = dense.scores(items, strengths, folds)
    for one, other in zip(z, sparse.scores(items, strengths, folds), strict=True):
        assert_allclose(one, other, atol=1e-6)
    chosen = torch.tensor([3, 17, 0])
    slots = torch.full((data.n_items,), -1)
    slots[chosen] = torch.arange(3)
    for one, other in zip(z, dense.scores(items, strengths, folds, slots, 3), strict=True):
        assert_allclose(one[:, :, chosen], other, atol=1e-6)
    for one, other in zip(z, dense.scores_at(items, strengths, folds, torch.full_like(folds, 1)), strict=True):
        assert_allclose(one[:, 1], other, atol=1e-6)
    whole = terms.links[-1]
    scores = LinkScores(whole.links, whole.bias.astype(np.float32), *(np.zeros(0),) * 3)  # type: ignore[arg-type]
    summed = sum(one.numpy() for one in z) + terms.bias
    for window, t in [(0, 0), (3, 1), (7, windows.lengths[7] - 1)]:
        own = windows.items[window, : t + 1]
        expected = terms.unit * scores.history(own, order.past_of(np.ones(t + 1)))
        assert_allclose(summed[window, t], expected, rtol=1e-4, atol=1e-5)


def test_the_terms_of_a_user_in_training_never_saw_the_user():
    data = walks()
    timeline, order = timeline_of(data), tnr.Transitions(feedback="weights", **_counts())
    terms = Terms.of(order, timeline, 8, seed=0)
    user = 5
    fold = terms.folds[user]
    others = timeline.take(terms.folds[timeline.events.owners] != fold)
    assert terms.links[fold].links.values.tobytes() == order.whole(others).links.values.tobytes()
    assert user not in others.events.owners


def _counts():
    not_counts = ("neighbors", "regularization", "shrink", "decays", "transitions", "undirected", "recent_popularity")
    return {name: value for name, value in RIDGE.items() if name not in not_counts}


def test_windows_ask_for_every_row_but_the_first_once():
    timeline = timeline_of(walks(length=9))
    windows = Windows.of(timeline, 3)
    asked = windows.wanted > 0
    assert asked.sum() == (np.diff(timeline.events.indptr) - 1).sum()
    assert (asked.sum(axis=1) == windows.lengths).all()
    starts = np.append(True, np.diff(windows.users) != 0)
    for window in np.flatnonzero(starts)[:10]:  # the first window of a user is the latest
        rows = slice(*timeline.events.indptr[windows.users[window] : windows.users[window] + 2])
        items = timeline.events.items[rows]
        m = windows.lengths[window]
        assert windows.items[window, :m].tolist() == items[-1 - m : -1].tolist()
        assert windows.targets[window, :m].tolist() == items[-m:].tolist()


def problem(**changed):
    timeline = timeline_of(walks())
    order = tnr.NextItemRidge(feedback="weights", **RIDGE)
    settings = {
        "shape": Shape(8, 2, 2, 8, terms=3),
        "windows": Windows.of(timeline, 8),
        "n_items": 20,
        "loss": NextItemLoss("softmax"),
        "terms": Terms.of(order, timeline, 8, seed=0),
        "learning_rate": 0.01,
        "weight_decay": 0.01,
        "dropout": 0.0,
        "negatives": 0,
        "seed": 0,
    }
    return AttentionProblem(**{**settings, **changed})


def engine_of(one):
    return AttentionEngine(one, AttentionEngine.start(start_values(one.shape, one.n_items, 0)), torch.device("cpu"))


def test_small_blocks_of_memory_give_the_same_step():
    whole, cut = engine_of(problem()), engine_of(problem())
    cut.sizes = engines._Sizes(windows=7, numbers=300, dense=0)
    users = np.arange(60)
    assert whole.step(users).value == pytest.approx(cut.step(users).value, rel=1e-5)
    for name, array in whole.state.parameters.items():
        assert_allclose(cut.state.parameters[name], array, atol=2e-5, err_msg=name)


def test_a_sample_of_all_candidates_is_the_full_loss():
    whole, sampled = engine_of(problem()), engine_of(problem(negatives=20))
    users = np.arange(60)
    assert sampled.step(users).value == pytest.approx(whole.step(users).value, rel=1e-5)
    full, few = engine_of(problem()).step(users).value, engine_of(problem(negatives=5)).step(users).value
    assert 0.5 * full < few < 2.0 * full


def test_memory_is_asked_for_before_it_is_full():
    with (
        patch.object(engines, "free_bytes", lambda device: 10_000),
        pytest.raises(
            ParameterError, match=r"SequenceRank needs .* GB on cpu and 0\.0 GB are free; give fewer negatives"
        ),
    ):
        engine_of(problem())


class StopError(Exception):
    pass


class StopAfter:
    def __init__(self, rounds):
        self.rounds = rounds

    def after_round(self, engine, round_):
        self.rounds -= 1
        if self.rounds < 0:
            raise StopError
        return False


@pytest.mark.parametrize("rounds", [2, 4])
def test_a_run_that_was_interrupted_resumes_and_ends_with_the_same_bits(rounds, tmp_path):
    settings = {**SMALL, "terms": "counts", "term_settings": _counts(), "max_epochs": 4, "patience": 4}
    data = walks()
    whole = SequenceRank(**settings).fit(data)
    with patch.dict(Checkpoint.__init__.__kwdefaults__, seconds=0.0):
        with pytest.raises(StopError):
            SequenceRank(**settings).fit(data, checkpoint=tmp_path, callbacks=[StopAfter(rounds)])
        resumed = SequenceRank(**settings).fit(data, checkpoint=tmp_path)
        assert learned(resumed) == learned(whole)
        again = SequenceRank(**settings).fit(data, checkpoint=tmp_path, callbacks=[StopAfter(0)])
        assert learned(again) == learned(whole)
    with pytest.raises(tnr.ModelFileError, match="belongs to another run"):
        SequenceRank(**{**settings, "width": 16}).fit(data, checkpoint=tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model with terms, and its file."""
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    model = SequenceRank(**SMALL, term_settings=RIDGE, blocks=2, heads=2, epochs=3).fit(walks())
    model.save(path)
    return model, path


def test_a_known_user_gets_the_list_of_the_own_history(trained):
    model, _ = trained
    data = walks()
    for user in (0, 7, 31):
        rows = slice(data.indptr[user], data.indptr[user + 1])
        history = data.indices[rows][np.argsort(data.timestamps[rows])].tolist()
        known, new = model.recommend(user, n=5), model.recommend(history=history, n=5)
        assert known["item"].to_pylist() == new["item"].to_pylist()
        assert_allclose(known["score"], new["score"], rtol=1e-4, atol=1e-5)


def test_an_explanation_has_a_part_for_attention_and_exact_ones_of_the_terms(trained):
    model, _ = trained
    table = model.explain(history=[3, 4, 5], item=6)
    whats = table["what"].to_pylist()
    assert {"ridge", "transitions", "attention", "bias"} <= set(whats)
    assert sum(table["part"].to_pylist()) == pytest.approx(model.score_history(np.array([3, 4, 5]), None)[6], rel=1e-4)
    assert [row["because"] for row in table.to_pylist() if row["what"] == "attention"] == [None]
    assert set(model.term_weights_) == {"ridge", "transitions", "undirected"}


WITHOUT = """
import sys
sys.modules["torch"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else found(name, *rest)
import topnrank as tnr
model = tnr.load(sys.argv[1])
print(model.recommend([0, 5], n=4)["item"].to_pylist() + model.recommend(history=[3, 4, 5], n=4)["item"].to_pylist())
try:
    model.fit(tnr.synthetic(30, 20, seed=0))
except tnr.ParameterError as error:
    print(error)
"""


@pytest.mark.process
def test_a_saved_model_answers_without_pytorch(trained):
    model, path = trained
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(path)], capture_output=True, text=True, check=True, env=environment
    ).stdout.splitlines()
    ours = (
        model.recommend([0, 5], n=4)["item"].to_pylist() + model.recommend(history=[3, 4, 5], n=4)["item"].to_pylist()
    )
    assert told[0] == str(ours)
    assert told[1].startswith(
        "SequenceRank is trained with PyTorch, which is not installed; pip install 'topnrank[torch]'"
    )


def test_torch_is_not_imported_before_it_is_needed():
    script = "import sys, topnrank as tnr; tnr.SequenceRank(); tnr.MODELS; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parent)


def test_what_it_cannot_do_is_one_sentence():
    with pytest.raises(ParameterError, match="width must be a multiple of heads"):
        SequenceRank(width=10, heads=3)
    with pytest.raises(ParameterError, match="term_settings: NextItemRidge has no parameter 'neighbours'"):
        SequenceRank(term_settings={"neighbours": 3})
    if not torch.cuda.is_available():
        with pytest.raises(ParameterError, match=r"device='cuda': PyTorch .* finds no such device"):
            torch_device("cuda", "SequenceRank")
    data = walks()
    with pytest.raises(DataError, match="SequenceRank needs timestamps"):
        SequenceRank(**SMALL).fit(tnr.Interactions.from_arrays(data.user_index, data.indices))
    with pytest.raises(UnknownIdError):
        SequenceRank(**SMALL, terms="none", epochs=1).fit(data).recommend(history=[999])
