"""Refreshing a model by events: nothing is counted twice, nothing is lost, and what was forgotten leaves the file."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import topnrank as tnr
from topnrank.errors import ParameterError
from topnrank.serve import create_app
from topnrank.serve.refresh import Request, refresh


@pytest.fixture
def live(serving: Path, tmp_path: Path) -> Path:
    path = tmp_path / "live.safetensors"
    path.write_bytes((serving / "films.safetensors").read_bytes())
    return path


def client_of(path: Path, events: Path) -> TestClient:
    return TestClient(create_app(str(path), events=str(events), watch_seconds=0))


def items_of(client: TestClient, user: object) -> list[int]:
    answer = client.get(f"/v1/users/{user}/recommend", params={"n": 300}).json()
    return [row["item"] for row in answer["items"]]


def rows_of(model: tnr.Model, user: int) -> dict[int, float]:
    number = int(model.user_map.index([user])[0])
    rows = slice(*model.seen_indptr[number : number + 2])
    items = model.item_ids_[model.seen_indices[rows]]
    return dict(zip(items.tolist(), model.fitted.arrays["seen_values"][rows].tolist(), strict=True))


def test_events_become_rows_and_count_once(live: Path, tmp_path: Path):
    events, old = tmp_path / "events.db", tnr.load(live)
    own = rows_of(old, 10)
    first, second = list(own)[:2]
    new = next(item for item in range(1, 301) if item not in own)
    told = [
        {"user": 10, "item": new, "value": 5},
        {"user": 10, "item": first, "type": "remove"},
        {"user": 10, "item": second, "value": 1},
        {"user": 77_777, "item": 5, "type": "like"},
        {"user": 77_777, "item": 6, "type": "viewed the trailer"},
        {"user": "zoe", "item": 5, "type": "like"},
        {"user": 12, "item": 6, "type": "like"},
    ]
    with client_of(live, events) as client:
        assert client.post("/v1/events", json={"events": told}).json()["accepted"] == 7
        assert client.delete("/v1/users/12").status_code == 200
        seen = {user: set(range(1, 301)) - set(items_of(client, user)) for user in (10, 77_777, "zoe")}
    record = asyncio.run(refresh(Request(str(live), str(events))))
    assert (record.result, record.events) == ("updated", 3)
    model = tnr.load(live)
    assert rows_of(model, 10) == {k: v for k, v in own.items() if k != first} | {new: 5.0, second: 1.0}
    assert rows_of(model, 77_777) == {5: 4.0}
    assert rows_of(model, 12) == {}
    np.testing.assert_array_equal(model.item_factors_, old.item_factors_)
    with client_of(live, events) as client:
        for user, known in seen.items():
            assert set(range(1, 301)) - set(items_of(client, user)) == known
        assert client.get("/v1/users/10/recommend").json()["source"] == "user"
        assert client.get("/v1/users/zoe/recommend").json()["source"] == "history"
        assert client.get("/v1/users/12/recommend").json()["source"] == "popular"
        assert client.get("/v1/models").json()["models"][0]["events_through"] == record.through
        assert [line["result"] for line in client.get("/v1/status").json()["refreshes"]] == ["updated"]
    again = asyncio.run(refresh(Request(str(live), str(events))))
    assert again.result == "nothing new"


def test_another_store_has_numbers_of_its_own(live: Path, tmp_path: Path):
    for name in ("one.db", "two.db"):
        with client_of(live, tmp_path / name) as client:
            event = {"user": 77_777, "item": 5 if name == "one.db" else 6, "type": "like"}
            client.post("/v1/events", json={"events": [event]})
        asyncio.run(refresh(Request(str(live), str(tmp_path / name))))
    assert set(rows_of(tnr.load(live), 77_777)) == {5, 6}


def test_a_model_is_trained_anew_on_its_data_and_all_events(serving: Path, tmp_path: Path):
    live, events = tmp_path / "live.safetensors", tmp_path / "events.db"
    live.write_bytes((serving / "popular.safetensors").read_bytes())
    with client_of(live, events) as client:
        client.post("/v1/events", json={"events": [{"user": 77_777, "item": 5, "value": 5}]})
        client.delete("/v1/users/1")
    with pytest.raises(ParameterError, match="Popularity cannot take in rows; give the file it was trained on"):
        asyncio.run(refresh(Request(str(live), str(events))))
    data, before = tnr.demo_data(), tnr.load(live)
    record = asyncio.run(refresh(Request(str(live), str(events), data)))
    assert (record.result, record.events) == ("trained anew", 1)
    model = tnr.load(live)
    gone = int((data.users.ids[data.user_index] == 1).sum())
    assert model.fitted.info.rows == before.fitted.info.rows - gone + 1
    assert 77_777 in model.user_ids_
    assert 1 not in model.user_ids_


def test_a_store_that_is_not_there_is_not_made(live: Path, tmp_path: Path):
    with pytest.raises(ParameterError, match="there is no such file of events"):
        asyncio.run(refresh(Request(str(live), str(tmp_path / "no.db"))))
    assert not (tmp_path / "no.db").exists()
