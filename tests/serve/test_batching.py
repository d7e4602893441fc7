"""Micro-batching gives everybody the list that is theirs."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

import topnrank as tnr
from topnrank.serve import batching
from topnrank.serve.app import make_app
from topnrank.serve.settings import Settings
from topnrank.serve.wire import Entry, RecommendRequest


def test_requests_of_a_moment_are_scored_together_and_each_gets_its_own_list(serving: Path, monkeypatch):
    monkeypatch.setattr(batching, "LARGE", 1)
    together = []
    whole = batching._together
    monkeypatch.setattr(batching, "_together", lambda *a, **k: together.append(len(a[1])) or whole(*a, **k))
    paths = {name: str(serving / f"{name}.safetensors") for name in ("films", "linear")}
    server = make_app(Settings(models=paths, batch_window_ms=5.0)).state.server
    model, rng = tnr.load(paths["films"]), np.random.default_rng(0)
    histories = [rng.choice(300, size=rng.integers(1, 9), replace=False) + 1 for _ in range(80)]

    async def ask(*requests: RecommendRequest):
        return await asyncio.gather(*map(server.answer, requests), return_exceptions=True)

    answers = asyncio.run(ask(*(RecommendRequest(history=history.tolist(), n=5) for history in histories)))
    assert together == [32, 32, 16]
    for history, answer in zip(histories, answers, strict=True):
        expected = model.recommend(history=history.tolist(), n=5)
        assert [row.item for row in answer.items] == expected["item"].to_pylist()
        np.testing.assert_allclose(
            [row.score for row in answer.items], expected["score"].to_numpy(), rtol=1e-4, atol=1e-5
        )

    alone = asyncio.run(ask(RecommendRequest(history=[7, 21], n=5)))[0]
    assert [row.score for row in alone.items] == model.recommend(history=[7, 21], n=5)["score"].to_pylist()

    nothing_liked = RecommendRequest(history=[Entry(item=1, rating=1.0)], model="linear")
    wrong, right = asyncio.run(ask(nothing_liked, RecommendRequest(history=[7], model="linear", n=2)))
    with pytest.raises(ValueError, match="no item of this history counts as liked"):
        raise wrong
    assert [row.item for row in right.items] == tnr.load(paths["linear"]).recommend(history=[7], n=2)[
        "item"
    ].to_pylist()
