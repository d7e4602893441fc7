"""What nobody meant to send: the OpenAPI document under schemathesis, and fuzzed requests, against a real server."""

import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.serving import RunningServer, serving

pytestmark = pytest.mark.process
CAMPAIGN = os.environ.get("TOPNRANK_CAMPAIGN")
EXAMPLES = 100 if CAMPAIGN else 5
FUZZED = 10_000 if CAMPAIGN else 2_000
KEY = "k" * 32
UNREAD = 1 << 16


@pytest.fixture(scope="module")
def server(serving_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("contract")
    (folder / "keys.txt").write_text(f"all admin {KEY}\n")
    models = [str(serving_folder / f"{name}.safetensors") for name in ("films", "linear", "vectors", "popular")]
    more = ["--items", str(serving_folder / "items.csv"), "--events", str(folder / "events.db")]
    with serving(folder, *models, *more, "--api-keys", str(folder / "keys.txt"), workers=1) as made:
        yield made


def report(text: str) -> None:
    print(text)
    if CAMPAIGN:
        with Path(CAMPAIGN).open("a") as file:
            file.write(f"- {text}\n")


def test_schemathesis_finds_nothing(server: RunningServer, tmp_path: Path):
    """All checks; of requests that keep the document 422 is an answer too: rules across fields, and what the model at hand
    knows, are not in it."""
    (tmp_path / "schemathesis.toml").write_text(
        """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "422", "503"]
"""
    )
    program = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("schemathesis is not installed")
    command = [program, "--config-file", str(tmp_path / "schemathesis.toml"), "run"]
    command += [f"http://127.0.0.1:{server.port}/openapi.json", "-H", f"Authorization: Bearer {KEY}"]
    command += ["--max-examples", str(EXAMPLES), "--seed", "1", "--workers", "1", "--generation-database", "none"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-8000:]
    (cases,) = re.findall(r"(\d+) generated", done.stdout)
    report(f"schemathesis on the OpenAPI document, all checks: {cases} cases, nothing found")


TEXTS = [
    "",
    "a",
    "ann",
    "0",
    "-1",
    "1e999",
    "\u0000",
    "\ud800",
    "𝔘",
    "x" * 257,
    "../../etc/passwd",
    "' or 1=1 --",
    "%00",
    "NaN",
]
NUMBERS = [0, 1, -1, 7, 10**6, 2**31, 2**63, 2**64, -(2**63), 0.5, -0.0, 1e308, 1e-320, 10**400]
PATHS = [
    "/v1/recommend",
    "/v1/recommend/batch",
    "/v1/rank",
    "/v1/explain",
    "/v1/compare",
    "/v1/events",
    "/v2/models/films/infer",
    "/v1/models/films/reload",
]
GETS = [
    "/v1/users/{}/recommend",
    "/v1/users/{}/events",
    "/v1/items/{}",
    "/v1/items/{}/similar",
    "/v1/items?q={}",
    "/v1/map?n={}",
]
NAMES = [
    "user",
    "history",
    "items",
    "item",
    "n",
    "model",
    "models",
    "exclude",
    "exclude_seen",
    "min_score",
    "groups",
    "max",
]
NAMES += ["popularity", "diversity", "explain", "fields", "requests", "events", "type", "value", "rating", "time", "id"]
NAMES += ["inputs", "outputs", "name", "shape", "datatype", "data", "force", "recommendation", "nothing"]
WHOLE: list[dict[str, Any]] = [
    {"history": [7, {"item": 21, "rating": 5}], "n": 5, "explain": 2, "diversity": 0.5, "fields": ["title"]},
    {"user": 3, "history": [1], "items": [1, 2, 3], "exclude": [9], "groups": {"max": 1}, "popularity": -1},
    {"history": [7, 8], "item": 9, "model": "linear"},
    {"history": [7, 8], "items": [9, 10]},
    {"models": ["films", "linear", "popular"], "history": [{"item": 5, "type": "like"}]},
    {"requests": [{"user": 1}, {"history": [2]}]},
    {"events": [{"user": "ann", "item": 7, "type": "like", "id": "e1", "time": "2026-11-16T11:00:00Z"}]},
    {"inputs": [{"name": "history", "shape": [2], "datatype": "BYTES", "data": ["7", "8"]}], "id": "1"},
    {"user": "5", "model": "vectors", "n": 3, "min_score": 0.1},
]


class Fuzzer:
    """Requests that are mostly wrong, from whole ones with parts replaced, dropped, added, or torn."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        kind = self.rng.randrange(9 if depth < 4 else 5)
        if kind < 2:
            return self.rng.choice(NUMBERS)
        if kind < 4:
            return self.rng.choice(TEXTS)
        if kind == 4:
            return self.rng.choice([None, True, False])
        if kind < 7:
            return [self.value(depth + 1) for _ in range(self.rng.choice([0, 1, 2, 3]))]
        return {self.rng.choice(NAMES): self.value(depth + 1) for _ in range(self.rng.randrange(4))}

    def changed(self, value: Any) -> Any:
        if self.rng.random() < 0.15:
            return self.value()
        if isinstance(value, dict):
            made = {key: self.changed(one) for key, one in value.items() if self.rng.random() > 0.08}
            if self.rng.random() < 0.2:
                made[self.rng.choice(NAMES)] = self.value()
            return made
        if isinstance(value, list):
            return [self.changed(one) for one in value] * self.rng.choice([1, 1, 1, 2, 600])
        return value

    def body(self) -> bytes:
        text = json.dumps(self.changed(self.rng.choice(WHOLE)))
        body = text.encode("utf-8", "surrogatepass")
        if self.rng.random() < 0.2 and body:
            place = self.rng.randrange(len(body))
            body = body[:place] + self.rng.randbytes(self.rng.randrange(4)) + body[place + self.rng.randrange(3) :]
        return body

    def request(self) -> bytes:
        rng = self.rng
        if rng.random() < 0.3:
            part = "".join(f"%{byte:02x}" for byte in rng.choice(TEXTS).encode("utf-8", "surrogatepass"))
            path = rng.choice(GETS).format(part or "x")
            if rng.random() < 0.5:
                path += f"{'&' if '?' in path else '?'}{rng.choice(NAMES)}={part}"
            return self.raw(rng.choice(["GET", "GET", "GET", "DELETE", "POST", "PUT", "HEAD"]), path, b"")
        return self.raw(rng.choice(["POST"] * 12 + ["GET", "PUT", "DELETE"]), rng.choice(PATHS), self.body())

    def raw(self, method: str, path: str, body: bytes) -> bytes:
        kinds = ["application/json"] * 8 + [
            "application/x-ndjson",
            "text/plain",
            "",
            "application/json; charset=utf-16",
        ]
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"X-API-Key: {KEY}", f"Content-Length: {len(body)}"]
        lines += [f"Content-Type: {self.rng.choice(kinds)}", f"X-Request-ID: {self.rng.choice(['a b', 'r1', '<x>'])}"]
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode() + body


def exchange(port: int, request: bytes) -> bytes:
    parts = []
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        try:
            connection.sendall(request)
            while part := connection.recv(1 << 16):
                parts.append(part)
        except ConnectionError:  # "Connection: close" and an answer before the long body was read
            assert len(request) > UNREAD
    return b"".join(parts) or b"HTTP/1.1 413"


def test_fuzzed_requests_get_an_answer_that_tells_nothing_of_the_inside(server: RunningServer):
    fuzzer, counts = Fuzzer(7), dict[int, int]()
    for _ in range(FUZZED):
        request = fuzzer.request()
        answer = exchange(server.port, request)
        status = int(answer[9:12])
        counts[status] = counts.get(status, 0) + 1
        assert status < 500, (request[:2000], answer)
        for word in (b"Traceback", b".py", b"site-packages", b"/tmp", b"safetensors"):
            assert word not in answer, (request[:2000], answer)
    assert server.send("GET", "/healthz")[0] == 200
    assert "traceback" not in server.log.read_text().casefold()
    assert counts[200] > FUZZED / 20
    kinds = ", ".join(f"{status}: {count}" for status, count in sorted(counts.items()))
    report(f"{FUZZED} fuzzed requests: no 5xx, no traceback, no inside told ({kinds})")
