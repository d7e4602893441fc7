"""Real servers: swaps under load, workers killed while events come in, full disks, and the end.

Sizes here suit a suite. `make serve-campaign` runs the same at full size, with TOPNRANK_CAMPAIGN naming the report.
"""

import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import topnrank as tnr
from support.serving import RunningServer, free_port, postgres, serving

pytestmark = pytest.mark.process
CAMPAIGN = os.environ.get("TOPNRANK_CAMPAIGN")
SWAPS = 50 if CAMPAIGN else 8
EVENTS = 52_000 if CAMPAIGN else 3_000
KILLS = 6 if CAMPAIGN else 2
HISTORY = [7, 21, 35, 42]


def report(text: str) -> None:
    print(text)
    if CAMPAIGN:
        with Path(CAMPAIGN).open("a") as file:
            file.write(f"- {text}\n")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres() as made:
        yield made


class Load:
    """Threads that send the same request until they are told to stop."""

    def __init__(self, server: RunningServer, threads: int) -> None:
        self.server, self.answers, self.failures = server, [], []
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(threads)]

    def _send(self) -> None:
        client = self.server.client()
        while not self._end.is_set():
            try:
                status, answer = client.send("POST", "/v1/recommend", {"history": HISTORY, "n": 5})
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                continue
            if status != 200:
                self.failures.append(f"{status}: {answer}")
                continue
            self.answers.append((answer["version"], [(row["item"], row["score"]) for row in answer["items"]]))
        client.close()

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()


def put(source: Path, target: Path) -> None:
    """Replaces the target by a rename."""
    shutil.copy(source, f"{target}.new")
    os.replace(f"{target}.new", target)


def version(server: RunningServer) -> set[str]:
    """The versions that workers answer with, by some answers each."""
    found = set()
    for _ in range(12):
        found.add(server.send("POST", "/v1/recommend", {"history": HISTORY})[1]["version"])
    return found


def wait_for(condition: Any, seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def test_swaps_under_load_fail_no_request_and_what_is_not_fit_is_refused(serving_folder: Path, tmp_path: Path):
    live = tmp_path / "live.safetensors"
    models = [serving_folder / "films.safetensors", serving_folder / "linear.safetensors"]
    put(models[0], live)
    expected = [
        [(row["item"], row["score"]) for row in tnr.load(path).recommend(history=HISTORY, n=5).to_pylist()]
        for path in models
    ]
    with serving(tmp_path, str(live), workers=2) as server:
        server.wait_for_workers(2)
        with Load(server, 4) as load:
            for n in range(SWAPS):
                time.sleep(1.3)
                put(models[(n + 1) % 2], live)
            time.sleep(2.5)
        assert load.failures == []
        by_version: dict[str, list] = {}
        for found, items in load.answers:
            assert items in expected, "an answer is of neither model"
            assert by_version.setdefault(found, items) == items
        assert len(by_version) == 2
        report(
            f"{SWAPS} swaps by rename under load, 2 workers: {len(load.answers)} answers, {len(load.failures)} failed"
        )

        before = wait_for(lambda: len(found := version(server)) == 1 and found)
        whole = models[0].read_bytes()
        smaller = tmp_path / "smaller.safetensors"
        data = tnr.demo_data()
        tnr.Popularity().fit(data.take(data.indices < 200).compact()).save(smaller)
        for content, reason in (
            (whole[: len(whole) // 2], "is damaged or cut off"),
            (b"not a model at all" * 100, "is not a topnrank model file"),
            (b"", "is not a topnrank model file"),
            (smaller.read_bytes(), "of the 300 items of the model that is served"),
        ):
            (tmp_path / "bad").write_bytes(content)
            put(tmp_path / "bad", live)
            refused = wait_for(lambda: server.send("GET", "/v1/models")[1]["models"][0]["refused"])
            status, problem = server.send("POST", "/v1/models/live/reload", {})
            assert status == 422
            for sentence in (refused, problem["detail"]):
                assert str(tmp_path) not in sentence
            assert reason in problem["detail"]
            assert version(server) == before
            assert server.send("GET", "/readyz")[0] == 200
        text = server.send("GET", "/metrics")[1].decode()
        assert 'topnrank_model_load_failures_total{model="live"}' in text
        status, answer = server.send("POST", "/v1/models/live/reload", {"force": True})
        assert (status, answer["changed"]) == (200, True)
        put(models[0], live)
        wait_for(lambda: version(server) == {tnr_version(live)})
        assert server.stop() == 0


class Ingestion:
    """Clients that store events, retry what failed with the same ids, and read what they wrote."""

    def __init__(self, server: RunningServer, events: int, clients: int) -> None:
        self.server, self.left, self.killing = server, events, True
        self.acknowledged: list[str] = []
        self.misses: list[str] = []
        self.reads = self.retries = 0
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ingest, args=(n,)) for n in range(clients)]

    def run(self) -> None:
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        for thread in self._threads:
            thread.join()

    def _ingest(self, number: int) -> None:
        rng, writer, reader, count = random.Random(number), self.server.client(), self.server.client(), 0
        while True:
            size = rng.choice((1, 5, 50))
            with self._lock:
                if self.left <= 0 and not self.killing:
                    break
                self.left -= size
            user = f"u{number}-{rng.randrange(5)}"
            events = [
                {"user": user, "item": rng.randrange(1, 301), "type": "like", "id": f"{number}-{count + k}"}
                for k in range(size)
            ]
            count += size
            receipt = self._stored(writer, events)
            with self._lock:
                self.acknowledged.extend(event["id"] for event in events)
            if count % 3 == 0:
                self._read(reader, user, receipt["through"], events)
        writer.close()
        reader.close()

    def _stored(self, writer: Any, events: list[dict]) -> dict:
        while True:
            try:
                status, answer = writer.send("POST", "/v1/events", {"events": events})
            except (OSError, http.client.HTTPException):
                with self._lock:
                    self.retries += 1
                time.sleep(0.05)
                continue
            assert status == 202, answer
            assert answer["accepted"] + answer["duplicates"] == len(events)
            return answer

    def _read(self, reader: Any, user: str, through: int, events: list[dict]) -> None:
        """What was acknowledged is in the next answer of whichever worker answers; a new connection each time."""
        reader.close()
        try:
            status, kept = reader.send("GET", f"/v1/users/{user}/events")
            _, answer = reader.send("GET", f"/v1/users/{user}/recommend?n=3")
        except (OSError, http.client.HTTPException):
            return
        known = {event["id"] for event in kept["events"]} if status == 200 else set()
        with self._lock:
            self.reads += 1
            if not {event["id"] for event in events} <= known or (answer["fresh_through"] or 0) < min(through, 1):
                self.misses.append(f"{user}: {events[-1]['id']}")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_workers_killed_while_events_come_in_lose_no_acknowledged_event(
    serving_folder: Path, tmp_path: Path, kind: str, request: pytest.FixtureRequest
):
    where = str(tmp_path / "events.db") if kind == "sqlite" else request.getfixturevalue("address")
    arguments = [str(serving_folder / "films.safetensors"), "--events", where]
    with serving(tmp_path, *arguments, workers=2) as server:
        server.wait_for_workers(2)
        ingestion = Ingestion(server, EVENTS, 8)
        ingestion.run()
        for number in range(KILLS):
            done = len(ingestion.acknowledged)
            wait_for(lambda done=done: len(ingestion.acknowledged) > done + EVENTS / KILLS / 4, 300)
            os.kill(random.Random(number).choice(server.wait_for_workers(2)), signal.SIGKILL)
        wait_for(lambda: len(server.workers()) == 2, 120)
        ingestion.killing = False
        ingestion.wait()
        total = server.send("GET", "/v1/status")[1]["events"]
        assert server.stop() == 0
    exported = tmp_path / "events.parquet"
    command = ["topnrank", "events", "export", where, "-o", str(exported)]
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
    import pyarrow.parquet as pq

    ids = pq.read_table(exported)["id"].to_pylist()
    lost = set(ingestion.acknowledged) - set(ids)
    assert lost == set()
    assert len(ids) == len(set(ids)) == len(ingestion.acknowledged) == total >= EVENTS
    assert ingestion.misses == []
    assert ingestion.reads > 0
    report(
        f"{kind}: {KILLS} workers killed by SIGKILL while {total} events came in from 8 clients ({ingestion.retries} "
        f"requests retried): {len(lost)} acknowledged events lost, 0 stored twice; {ingestion.reads} reads of own writes by "
        f"new connections, {len(ingestion.misses)} misses"
    )


def test_sigterm_answers_what_runs_and_stores_what_was_acknowledged(serving_folder: Path, tmp_path: Path):
    where = tmp_path / "events.db"
    with serving(tmp_path, str(serving_folder / "films.safetensors"), "--events", str(where)) as server:
        acknowledged: list[str] = []
        broken: list[str] = []

        clients = [server.client() for _ in range(6)]

        def ingest(number: int) -> None:
            client = clients[number]
            for n in range(100_000):
                event = {"user": "ann", "item": 1, "id": f"{number}-{n}"}
                try:
                    status, answer = client.send("POST", "/v1/events", {"events": [event]})
                except ConnectionError:
                    return
                except (
                    http.client.HTTPException
                ) as error:  # RemoteDisconnected is a ConnectionError; a torn answer is not
                    broken.append(repr(error))
                    return
                if status != 202:
                    broken.append(f"{status}: {answer}")
                    return
                acknowledged.append(event["id"])

        with ThreadPoolExecutor(6) as pool:
            running = [pool.submit(ingest, n) for n in range(6)]
            wait_for(lambda: len(acknowledged) > 100)
            assert server.stop() == 0
            for one in running:
                one.result()
        for client in clients:
            client.close()

    with contextlib.closing(sqlite3.connect(where)) as opened:
        stored = {name for (name,) in opened.execute("select id from events")}
    assert broken == []
    assert set(acknowledged) <= stored
    report(f"SIGTERM under load: exit code 0, {len(acknowledged)} acknowledged events, all stored, no answer torn")


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of a megabyte; skips, loudly, where it may not be mounted."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip(f"NO RIGHT TO MOUNT a small disk here ({made.stderr.decode().strip()}): full disks are not tested")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def store(server: RunningServer, item: int = 1) -> tuple[int, dict]:
    return server.send("POST", "/v1/events", {"events": [{"user": "ann", "item": item, "type": "x" * 60}] * 500})


def test_a_disk_that_is_full_or_read_only_is_503_with_the_reason_until_it_is_not(serving_folder: Path, tmp_path: Path):
    with small_disk(tmp_path / "disk") as disk:
        (disk / "filler").write_bytes(b"0" * 600_000)
        where = str(disk / "events.db")
        with serving(tmp_path, str(serving_folder / "films.safetensors"), "--events", where, workers=1) as server:
            acknowledged = 0
            for _ in range(100):
                status, answer = store(server)
                if status != 202:
                    break
                acknowledged += answer["accepted"]
            assert status == 503
            assert "disk is full" in answer["detail"]
            assert server.send("POST", "/v1/recommend", {"history": HISTORY})[0] == 200
            assert server.send("GET", "/v1/users/ann/recommend")[0] == 200
            (disk / "filler").unlink()
            status, answer = store(server)
            assert (status, answer.get("accepted")) == (202, 500)
            assert server.send("GET", "/v1/status")[1]["events"] == acknowledged + 500
            report(
                "full disk (tmpfs): 503 'the disk is full', lists go on; with room 202, nothing acknowledged was lost"
            )

            server.process.send_signal(signal.SIGSTOP)  # so that no worker starts before the disk changes
            (pid,) = server.workers()
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: remounted(disk, "ro"))
            server.process.send_signal(signal.SIGCONT)
            wait_for(lambda: status_of(server, "/healthz") == 200, 120)
            status, answer = store(server)
            assert (status, answer["title"]) == (503, "Not available now")
            assert "only be read" in answer["detail"] or "cannot be opened" in answer["detail"]
            assert status_of(server, "/readyz") == 503
            assert server.send("POST", "/v1/recommend", {"history": HISTORY})[0] == 200
            assert remounted(disk, "rw")
            assert store(server)[0] == 202
            assert status_of(server, "/readyz") == 200
            assert server.send("GET", "/v1/status")[1]["events"] == acknowledged + 1000
            report(f"read-only disk (tmpfs): 503 '{answer['detail']}', lists go on; when it may be written again 202")


def remounted(disk: Path, how: str) -> bool:
    return (
        subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=False, capture_output=True).returncode == 0
    )


def status_of(server: RunningServer, path: str) -> int:
    try:
        return server.send("GET", path)[0]
    except (OSError, http.client.HTTPException):
        return 0


def test_a_new_file_of_another_process_by_refresh_counts_and_is_not_counted_twice(serving_folder: Path, tmp_path: Path):
    live, where = tmp_path / "live.safetensors", tmp_path / "events.db"
    put(serving_folder / "films.safetensors", live)
    with serving(tmp_path, str(live), "--events", str(where)) as server:
        events = [{"user": 70_001, "item": item, "value": 5} for item in HISTORY]
        assert server.send("POST", "/v1/events", {"events": events})[0] == 202
        before = server.send("GET", "/v1/users/70001/recommend")[1]
        assert before["source"] == "history"
        command = ["topnrank", "refresh", str(live), "--events", str(where), "--json"]
        done = subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True, text=True)
        assert json.loads(done.stdout)["events"] == 4
        wait_for(lambda: version(server) == {tnr_version(live)})
        after = server.send("GET", "/v1/users/70001/recommend")[1]
        assert after["source"] == "user"
        model = tnr.load(live)
        expected = model.recommend(70_001).drop_columns("user").to_pylist()
        assert [{k: row[k] for k in ("item", "score", "rank")} for row in after["items"]] == expected
        assert server.send("GET", "/v1/status")[1]["refreshes"][0]["result"] == "updated"


def tnr_version(path: Path) -> str:
    from topnrank.io.tensors import fingerprint_of_head

    return fingerprint_of_head(path)


def test_the_refresh_timer_trains_and_sighup_brings_new_workers(serving_folder: Path, tmp_path: Path):
    live, where = tmp_path / "live.safetensors", tmp_path / "events.db"
    put(serving_folder / "films.safetensors", live)
    with serving(tmp_path, str(live), "--events", str(where), "--refresh", "0.05", workers=1) as server:
        events = [{"user": 70_001, "item": item, "value": 5} for item in HISTORY]
        assert server.send("POST", "/v1/events", {"events": events})[0] == 202
        wait_for(lambda: server.send("GET", "/v1/users/70001/recommend")[1]["source"] == "user", 120)
        assert "updated" in {line["result"] for line in server.send("GET", "/v1/status")[1]["refreshes"]}
        before = server.workers()
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: status_of(server, "/healthz") == 200 and set(server.workers()).isdisjoint(before), 120)
        assert server.send("GET", "/v1/users/70001/recommend")[1]["source"] == "user"
        assert server.stop() == 0


def test_a_server_that_cannot_start_ends_with_one_sentence(serving_folder: Path, tmp_path: Path):
    torn = tmp_path / "torn.safetensors"
    torn.write_bytes((serving_folder / "films.safetensors").read_bytes()[:5000])
    program = f"""
from topnrank.serve.settings import Settings
from topnrank.serve.workers import run
if __name__ == "__main__":
    run(Settings({{"torn": {str(torn)!r}}}, workers=2), "127.0.0.1", {free_port()})  # torn after it was looked at
"""
    (tmp_path / "program.py").write_text(program)
    nowhere = ["--events", str(tmp_path / "no" / "events.db"), "--port", str(free_port())]
    films = str(serving_folder / "films.safetensors")
    for command, sentence in (
        ([str(tmp_path / "program.py")], f"the server cannot start: {torn}: "),
        (
            ["-m", "topnrank", "serve", films, *nowhere],
            "events.db: the event store cannot be opened; give another file",
        ),
    ):
        done = subprocess.run([sys.executable, *command], check=False, capture_output=True, text=True, timeout=300)
        assert done.returncode == (2 if "-m" in command else 1), done.stderr
        assert sentence in done.stderr.splitlines()[-1]
