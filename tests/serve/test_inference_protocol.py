"""The Open Inference Protocol, version 2."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import topnrank as tnr
from topnrank.serve import create_app


@pytest.fixture(scope="module")
def client(serving: Path) -> Iterator[TestClient]:
    with TestClient(create_app({"films": str(serving / "films.safetensors")})) as made:
        yield made


def tensor(name: str, kind: str, data: list) -> dict:
    return {"name": name, "shape": [len(data)], "datatype": kind, "data": data}


def test_health_and_metadata(client):
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    assert client.get("/v2").json()["name"] == "topnrank"
    assert client.get("/v2/models/films/ready").json() == {"name": "films", "ready": True}
    about = client.get("/v2/models/films").json()
    assert [one["name"] for one in about["inputs"]] == ["user", "history", "rating", "n"]
    assert [(one["name"], one["datatype"]) for one in about["outputs"]] == [("item", "BYTES"), ("score", "FP32")]


def test_lists_are_those_of_the_model(client, serving):
    model = tnr.load(serving / "films.safetensors")
    for inputs, expected in (
        ([tensor("history", "BYTES", ["7", "21"])], model.recommend(history=[7, 21])),
        (
            [tensor("history", "BYTES", ["7", "21"]), tensor("rating", "FP32", [5, 1.5]), tensor("n", "INT32", [3])],
            model.recommend(history=[(7, 5), (21, 1.5)], n=3),
        ),
        ([tensor("user", "BYTES", ["5"]), tensor("n", "INT64", [4])], model.recommend(5, n=4)),
    ):
        answer = client.post("/v2/models/films/infer", json={"id": "a1", "inputs": inputs}).json()
        assert (answer["id"], answer["model_name"]) == ("a1", "films")
        items, scores = answer["outputs"]
        assert items["data"] == list(map(str, expected["item"].to_pylist()))
        assert scores["data"] == expected["score"].to_pylist()
        assert items["shape"] == scores["shape"] == [expected.num_rows]
    only = {"inputs": inputs, "outputs": [{"name": "score"}]}
    assert [one["name"] for one in client.post("/v2/models/films/infer", json=only).json()["outputs"]] == ["score"]


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ([tensor("film", "BYTES", ["7"])], "there is no input 'film'"),
        ([tensor("history", "BYTES", ["7"]) | {"shape": [2]}], "has 1 values, and its shape says 2"),
        ([tensor("history", "BYTES", ["7"]), tensor("n", "INT32", [0])], "n must be an integer from 1"),
        ([tensor("history", "BYTES", ["7"]), tensor("rating", "FP32", [1, 2])], "must be as long"),
        ([tensor("history", "BYTES", [""])], "text of 1 to 256 letters"),
        ([], "inputs: expected"),
    ],
)
def test_errors_are_an_object_with_one_sentence(client, inputs, sentence):
    answer = client.post("/v2/models/films/infer", json={"inputs": inputs})
    assert answer.status_code == 422
    assert sentence in answer.json()["error"]
    assert client.get("/v2/models/series").status_code == 404
