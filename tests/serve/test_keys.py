"""Keys: who may do what, and what nobody learns."""

import hashlib
import logging
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from topnrank.errors import ParameterError
from topnrank.serve import create_app
from topnrank.serve.app import ROUTES
from topnrank.serve.keys import Keys
from topnrank.serve.problems import ProblemError

READ, WRITE, BOTH, ADMIN = (f"{name}-{'k' * 24}" for name in ("read", "write", "both", "admin"))
BODIES = {
    "/v1/recommend": {"history": [1]},
    "/v1/recommend/batch": {"requests": [{"history": [1]}]},
    "/v1/rank": {"history": [1], "items": [2]},
    "/v1/explain": {"history": [1], "item": 2},
    "/v1/compare": {"history": [1], "models": ["films", "films"]},
    "/v1/events": {"events": [{"user": "a", "item": 1}]},
    "/v1/models/{model}/reload": {},
    "/v2/models/{model}/infer": {"inputs": [{"name": "history", "shape": [1], "datatype": "BYTES", "data": ["1"]}]},
}


@pytest.fixture(scope="module")
def client(serving: Path, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("keys")
    lines = [f"shop read {READ}", f"tracker write {WRITE}", f"app read,write {BOTH}", "# a note", ""]
    lines.append(f"ops admin sha256:{hashlib.sha256(ADMIN.encode()).hexdigest()}")
    (folder / "keys.txt").write_text("\n".join(lines))
    settings = {"events": str(folder / "events.db"), "api_keys": str(folder / "keys.txt")}
    with TestClient(create_app(str(serving / "films.safetensors"), **settings)) as made:
        yield made


def ask(client: TestClient, route, **headers: str):
    path = route.path.replace("{user}", "1").replace("{item}", "1").replace("{model}", "films")
    return client.request(route.method, path, json=BODIES.get(route.path), headers=headers)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_keeps_its_scope(client, route):
    if route.scope is None:
        assert ask(client, route).status_code < 400
        return
    assert ask(client, route).status_code == 401
    assert ask(client, route).headers["www-authenticate"] == "Bearer"
    assert ask(client, route, authorization="Bearer " + "w" * 30).status_code == 401
    assert ask(client, route, **{"x-api-key": READ[:-1]}).status_code == 401
    assert ask(client, route, authorization=f"Basic {READ}").status_code == 401
    for key, scopes in ((READ, {"read"}), (WRITE, {"write"}), (BOTH, {"read", "write"})):
        expected = ask(client, route, **{"x-api-key": key}).status_code
        assert (expected < 300) if route.scope in scopes else expected == 403
    assert ask(client, route, authorization=f"Bearer {ADMIN}").status_code < 300


def test_no_answer_and_no_log_has_a_key(client, caplog):
    caplog.set_level(logging.DEBUG)
    for key in (READ, ADMIN, "w" * 30):
        for path in ("/v1/models", "/metrics", "/openapi.json", "/v1/nothing"):
            answer = client.get(path, headers={"authorization": f"Bearer {key}"})
            assert key not in answer.text
            assert key not in str(answer.headers)
    assert not any(key in caplog.text for key in (READ, ADMIN, "w" * 30))


def test_all_keys_are_compared_whatever_is_found(monkeypatch):
    """Constant time is in `hmac.compare_digest`; what is ours is that it runs for every key."""
    import hmac

    from topnrank.serve import keys

    calls = []
    monkeypatch.setattr(keys.hmac, "compare_digest", lambda one, other: calls.append(1) or one == other)
    known = Keys(keys.Key(str(n), frozenset(["read"]), hashlib.sha256(b"%d" % n).digest()) for n in range(5))
    known.require("read", [(b"x-api-key", b"0")])
    assert len(calls) == 5
    with pytest.raises(ProblemError):
        known.require("read", [(b"x-api-key", b"none")])
    assert len(calls) == 10
    assert hmac is keys.hmac


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("shop read", "needs a name, scopes and a key"),
        ("shop everything " + "k" * 20, "the scopes are read, write, admin"),
        ("shop read short", "at least 16 letters"),
        ("# nothing", "holds no key"),
    ],
)
def test_a_wrong_file_of_keys_is_refused_without_showing_a_key(tmp_path, line, sentence):
    (tmp_path / "keys.txt").write_text(line)
    with pytest.raises(ParameterError, match=sentence) as refused:
        Keys.read(str(tmp_path / "keys.txt"))
    assert line.split()[-1] not in str(refused.value)


def test_keys_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("TOPNRANK_API_KEYS", f"shop read {READ}; ops admin {ADMIN}")
    Keys.read(None).require("write", [(b"x-api-key", ADMIN.encode())])
    with pytest.raises(ProblemError, match="needs the scope write"):
        Keys.read(None).require("write", [(b"x-api-key", READ.encode())])


def test_strangers_need_a_key_and_a_server_without_keys_is_called_by_its_own_name(serving):
    from topnrank.cli.commands.serve import ServeOptions, settings_of

    models = [str(serving / "films.safetensors")]
    with pytest.raises(ParameterError, match="is reached by others, and there are no keys"):
        settings_of(models, ServeOptions(host="0.0.0.0"))
    assert settings_of(models, ServeOptions(host="0.0.0.0", no_auth=True)).hosts == ()
    local = settings_of(models, ServeOptions())
    assert "localhost" in local.hosts
    app = create_app(models[0], hosts=local.hosts)
    with TestClient(app, base_url="http://evil.example") as foreign:
        assert foreign.get("/v1/models").status_code == 421
    for host in ("http://127.0.0.1:8000", "http://localhost", "http://[::1]:80"):
        with TestClient(app, base_url=host) as own:
            assert own.get("/healthz").status_code == 200
