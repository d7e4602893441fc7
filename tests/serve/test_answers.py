"""What the server answers, through the whole application: as the model, to the bit; and one sentence for what is wrong."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import topnrank as tnr
from topnrank.serve import create_app
from topnrank.serve.catalog import Facts

HISTORY = [7, 21, 35, 42]


@pytest.fixture(scope="module")
def model(serving: Path) -> tnr.Model:
    return tnr.load(serving / "films.safetensors")


@pytest.fixture(scope="module")
def client(serving: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    events = tmp_path_factory.mktemp("events") / "events.db"
    paths = {name: str(serving / f"{name}.safetensors") for name in ("films", "linear", "vectors", "popular")}
    with TestClient(create_app(paths, items=str(serving / "items.csv"), events=str(events))) as made:
        yield made


def rows(answer) -> list[dict]:
    assert answer.status_code == 200, answer.text
    return [{name: row[name] for name in ("item", "score", "rank")} for row in answer.json()["items"]]


@pytest.mark.parametrize("name", ["films", "linear", "vectors", "popular"])
def test_lists_are_those_of_the_model_to_the_bit(client, serving, name):
    model = tnr.load(serving / f"{name}.safetensors")
    rated = [(item, rating) for item, rating in zip(HISTORY, (5, 4, 1, 3), strict=True)]
    entries = [{"item": item, "rating": rating} for item, rating in rated]
    for given, asked in ((HISTORY, {"history": HISTORY}), (rated, {"history": entries})):
        if name == "vectors" and given is HISTORY:
            continue  # free user vectors need ratings
        got = rows(client.post("/v1/recommend", json={"model": name, "n": 7, **asked}))
        assert got == model.recommend(history=given, n=7).to_pylist()
    for user in model.user_ids_[:3].tolist():
        got = rows(client.get(f"/v1/users/{user}/recommend", params={"model": name, "n": 12}))
        assert got == model.recommend(user, n=12).drop_columns("user").to_pylist()
    got = rows(client.post("/v1/recommend", json={"model": name, "user": "nobody"}))
    assert got == model.recommend(["nobody"], unknown="popular").drop_columns("user").to_pylist()
    assert rows(client.post("/v1/recommend", json={"model": name, "history": []})) == got


def test_filters_are_those_of_the_model(client, model, serving):
    groups = {row["item"]: row["group"] for row in tnr_items(serving)}
    asked = {"history": HISTORY, "n": 8, "exclude": [3, 4], "min_score": 0.0, "groups": {"max": 2}}
    expected = model.recommend(
        history=HISTORY, n=8, exclude=[3, 4], min_score=0.0, groups=groups, max_per_group=2
    ).to_pylist()
    assert rows(client.post("/v1/recommend", json=asked)) == expected
    some = {"history": HISTORY, "items": [1, 2, 3, 7], "exclude_seen": False}
    expected = model.recommend(history=HISTORY, items=[1, 2, 3, 7], exclude_seen=False).to_pylist()
    assert rows(client.post("/v1/recommend", json=some)) == expected
    ranked = client.post("/v1/rank", json={"history": HISTORY, "items": [7, 3, 2, 1, 999]})
    assert rows(ranked) == expected
    assert ranked.json()["unknown_items"] == [999]


def tnr_items(serving: Path) -> list[dict]:
    import pyarrow.csv as pc

    return pc.read_csv(serving / "items.csv").to_pylist()


def test_popularity_and_diversity_change_the_order_and_not_the_scores(client, model):
    plain = rows(client.post("/v1/recommend", json={"history": HISTORY, "n": 300}))
    scores = {row["item"]: row["score"] for row in plain}
    counts = np.bincount(model.seen_indices, minlength=300)

    def listed(**more):
        found = rows(client.post("/v1/recommend", json={"history": HISTORY, "n": 20, **more}))
        assert all(scores[row["item"]] == row["score"] for row in found)
        assert [row["rank"] for row in found] == list(range(1, len(found) + 1))
        return [row["item"] for row in found]

    known = [counts[model.item_map.index(listed(popularity=p))].mean() for p in (-1, 0, 1)]
    assert known[0] < known[1] < known[2]
    assert listed(diversity=0.0) == [row["item"] for row in plain[:20]]

    def alike(items):
        vectors = model.item_factors_[model.item_map.index(items)].astype(float)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors @ vectors.T)[np.triu_indices(len(items), 1)].mean()

    assert alike(listed(diversity=0.9)) < alike(listed(diversity=0.4)) < alike(listed())
    groups = [
        row["group"]
        for row in client.post(
            "/v1/recommend",
            json={"history": HISTORY, "n": 12, "diversity": 0.5, "groups": {"max": 2}, "fields": ["group"]},
        ).json()["items"]
    ]
    assert max(groups.count(group) for group in groups) <= 2


def test_parts_add_up_to_the_score_and_ranks_without_them_are_true(client, model):
    best = rows(client.post("/v1/recommend", json={"history": HISTORY, "n": 3}))[2]
    why = client.post("/v1/explain", json={"history": HISTORY, "item": best["item"]}).json()
    total = sum(part["part"] for part in why["parts"]) + sum(why["rest"].values())
    assert total == pytest.approx(why["score"], abs=1e-12) == pytest.approx(best["score"], rel=1e-4)
    assert why["rank"] == 3
    assert all(sum(part["parts"].values()) == pytest.approx(part["part"]) for part in why["parts"])
    for part in why["parts"]:
        less = [item for item in HISTORY if item != part["item"]]
        everything = model.recommend(history=less, n=300)["item"].to_pylist()
        assert everything.index(best["item"]) + 1 == part["rank_without"]
    listed = client.post("/v1/recommend", json={"history": HISTORY, "n": 3, "explain": 2}).json()["items"][2]["why"]
    expected = sorted(why["parts"], key=lambda part: -abs(part["part"]))[:2]
    assert [one["item"] for one in listed] == [one["item"] for one in expected]
    assert [one["part"] for one in listed] == pytest.approx([one["part"] for one in expected], rel=1e-12)


def test_the_reasons_of_a_known_user(client, model):
    user = model.user_ids_[4].item()
    best = model.recommend(user, n=1).to_pylist()[0]
    why = client.post("/v1/explain", json={"user": user, "item": best["item"]}).json()
    assert why["rank"] == 1
    assert why["score"] == pytest.approx(best["score"], rel=1e-4)
    assert {part["item"] for part in why["parts"]} <= set(
        model.item_ids_[model.seen_indices[slice(*model.seen_indptr[4:6])]]
    )


def test_an_event_counts_in_the_next_answer(client, model):
    events = [{"user": "zoe", "item": item, "type": "like", "time": 1e9 + n} for n, item in enumerate(HISTORY)]
    for n, event in enumerate(events):
        receipt = client.post("/v1/events", json={"events": [event | {"id": f"zoe{n}"}]})
        assert receipt.status_code == 202
        assert receipt.json()["accepted"] == 1
        again = client.post("/v1/events", json={"events": [event | {"id": f"zoe{n}"}]}).json()
        assert (again["accepted"], again["duplicates"]) == (0, 1)
        like = client.get("/v1/models").json()["models"][0]["like"]
        expected = model.recommend(history=[(item, like) for item in HISTORY[: n + 1]]).to_pylist()
        answer = client.get("/v1/users/zoe/recommend")
        assert rows(answer) == expected
        assert answer.json()["fresh_through"] == receipt.json()["through"]
    removed = [{"user": "zoe", "item": HISTORY[0], "type": "remove"}, {"user": "zoe", "item": 99999, "value": 3}]
    assert client.post("/v1/events", json={"events": removed}).json()["unknown_items"] == [99999]
    answer = client.get("/v1/users/zoe/recommend")
    assert rows(answer) == model.recommend(history=[(item, like) for item in HISTORY[1:]]).to_pylist()
    assert answer.json()["unknown_items"] == ["99999"]
    assert len(client.get("/v1/users/zoe/events").json()["events"]) == 6
    assert client.delete("/v1/users/zoe").json()["events"] == 6
    assert client.get("/v1/users/zoe/recommend").json()["source"] == "popular"


def test_events_add_to_the_training_rows_of_a_known_user(client, model):
    user = model.user_ids_[9].item()
    own = model.seen_indices[slice(*model.seen_indptr[9:11])]
    values = model.fitted.arrays["seen_values"][slice(*model.seen_indptr[9:11])]
    new = next(item for item in HISTORY if item not in model.item_ids_[own])
    told = [{"user": user, "item": new, "value": 5}, {"user": user, "item": model.item_ids_[own[0]].item(), "value": 1}]
    lines = "\n".join(map(json.dumps, told))
    posted = client.post("/v1/events", content=lines, headers={"content-type": "application/x-ndjson"})
    assert posted.status_code == 202
    history = dict(zip(model.item_ids_[own].tolist(), values.tolist(), strict=True)) | {new: 5.0}
    history.pop(model.item_ids_[own[0]].item())
    history[model.item_ids_[own[0]].item()] = 1.0
    assert rows(client.get(f"/v1/users/{user}/recommend")) == model.recommend(history=history).to_pylist()
    forgotten = client.delete(f"/v1/users/{user}").json()
    assert forgotten["training_rows"] == len(own)
    assert client.get(f"/v1/users/{user}/recommend").json()["source"] == "popular"


def test_items_are_found_by_words_and_the_best_known_come_first(client, model):
    found = client.get("/v1/items", params={"q": "THE", "n": 300}).json()
    assert found["total"] == len(found["items"]) > 10
    assert all("the" in one["title"].casefold() for one in found["items"])
    everything = client.get("/v1/items", params={"n": 5}).json()["items"]
    counts = np.bincount(model.seen_indices)
    assert [one["popularity"] for one in everything] == sorted(counts.tolist(), reverse=True)[:5]
    assert client.get(f"/v1/items/{HISTORY[0]}").json()["title"]
    similar = client.get(f"/v1/items/{HISTORY[0]}/similar", params={"n": 4})
    assert rows(similar) == model.similar_items(HISTORY[0], n=4).to_pylist()
    points = client.get("/v1/map").json()["items"]
    assert len(points) == 300
    assert max(abs(one["x"]) for one in points) == pytest.approx(1.0, abs=1e-3)


def test_two_models_side_by_side(client, serving):
    both = client.post("/v1/compare", json={"models": ["films", "linear"], "history": HISTORY, "n": 10}).json()
    lists = [
        tnr.load(serving / f"{name}.safetensors").recommend(history=HISTORY)["item"].to_pylist()
        for name in ("films", "linear")
    ]
    assert [[row["item"] for row in one["items"]] for one in both["answers"]] == lists
    shared = set(lists[0]) & set(lists[1])
    assert both["pairs"][0]["overlap"] == len(shared) / 10
    assert both["pairs"][0]["moves"] == {
        str(item): lists[0].index(item) - lists[1].index(item) for item in lists[1] if item in shared
    }


def test_a_batch_has_an_answer_or_a_problem_for_each(client, model):
    requests = [
        {"history": HISTORY, "n": 3},
        {"model": "nothing", "user": 1},
        {"user": model.user_ids_[0].item(), "n": 2},
    ]
    parts = client.post("/v1/recommend/batch", json={"requests": requests}).json()["answers"]
    assert [part["status"] for part in parts] == [200, 404, 200]
    assert "there is no model 'nothing'" in parts[1]["problem"]["detail"]
    assert [row["item"] for row in parts[0]["answer"]["items"]] == model.recommend(history=HISTORY, n=3)[
        "item"
    ].to_pylist()


WRONG = [
    ({}, 422, "give a user, a history, or both"),
    ({"history": [1], "n": 0}, 422, "n: expected"),
    ({"history": [1], "n": 1001}, 422, "n: expected"),
    ({"history": list(range(1001))}, 422, "history: expected"),
    ({"user": "x" * 257}, 422, "user: expected"),
    ({"history": [{"item": 1, "rating": "good"}]}, 422, "history[0].rating: expected"),
    ({"history": [{"item": 1, "type": "adore"}]}, 422, "the model knows no type 'adore'"),
    ({"history": [1], "hystory": [1]}, 422, "unknown field `hystory`"),
    ({"history": [1], "model": "films2"}, 404, "there is no model 'films2'"),
    ({"history": [{"item": 1, "rating": 1}], "model": "linear"}, 422, "no item of this history counts as liked"),
    ({"history": [1], "model": "popular", "explain": 1}, 422, "does not build scores from the items of a history"),
]


@pytest.mark.parametrize(("body", "status", "sentence"), WRONG)
def test_what_is_wrong_is_said_in_one_sentence(client, body, status, sentence):
    answer = client.post("/v1/recommend", json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert sentence in problem["detail"]
    assert problem["request_id"] == answer.headers["x-request-id"]


def test_what_is_no_request_is_refused(client):
    def status(**given):
        return client.post("/v1/recommend", **given).status_code

    sent = {"content-type": "application/json"}
    assert status(content=b"{", headers=sent) == 400
    assert status(content=b"[" * 200_000, headers=sent) == 422
    assert status(content=b'{"history":' + b"[" * 200_000, headers=sent) == 422
    assert status(content=b'{"user": "' + b"x" * (1 << 20) + b'"}', headers=sent) == 413
    assert status(content=b"{}", headers={"content-type": "text/plain"}) == 415
    assert client.get("/v1/nothing").status_code == 404
    assert client.put("/v1/recommend").status_code == 405
    assert client.get("/v1/users/1/recommend?n=many").status_code == 422
    assert client.get("/v1/users/a%00b/recommend").status_code == 422
    assert client.get("/v1/items/no-such-item").status_code == 404


def test_the_page_is_strict_about_what_it_loads(client):
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert client.get("/../app.py").status_code == 404
    assert client.get("/%2e%2e/app.py").status_code == 404


def test_a_file_of_ratings_describes_items_and_tells_nothing_of_users(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("movieId,Name,genres,year,userId,rating,timestamp\n7,Alien,Horror,1979,42,5,1\n")
    assert Facts.read(str(file)).rows == {"7": {"title": "Alien", "group": "Horror", "year": 1979}}
    file.write_text("asin,rating\nB0,4.5\n")
    assert Facts.read(str(file)).rows == {"B0": {"rating": 4.5}}
