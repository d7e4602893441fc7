"""A real server for tests: `topnrank serve` as a process with workers, and a real PostgreSQL."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@dataclass
class Client:
    """One connection that is kept alive, and opened again after it was closed."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)
    connection: http.client.HTTPConnection | None = None

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and answer; ConnectionError and others as they come."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Content-Type": "application/json"} | self.headers if body is not None else self.headers
        content = None if body is None else json.dumps(body)
        try:
            self.connection.request(method, path, content, headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        kind = answer.headers.get("content-type", "")
        return answer.status, json.loads(text) if "json" in kind else text

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


@dataclass
class RunningServer:
    process: subprocess.Popen
    port: int
    log: Path

    def client(self, **headers: str) -> Client:
        return Client(self.port, headers)

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request by a connection of its own."""
        client = self.client()
        try:
            return client.send(method, path, body)
        finally:
            client.close()

    def workers(self) -> list[int]:
        """Process ids of the workers, without multiprocessing's helper."""
        found = []
        for child in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                    found.append(int(child))
        return found

    def wait_for_workers(self, count: int, seconds: float = 120) -> list[int]:
        """The workers, when that many of them answer."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if len(pids := self.workers()) == count:
                return pids
            time.sleep(0.2)
        raise AssertionError(f"{len(self.workers())} of {count} workers: {self.log.read_text()}")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


@contextlib.contextmanager
def serving(folder: Path, *arguments: str, workers: int = 2, **environment: str) -> Iterator[RunningServer]:
    """`topnrank serve` with these arguments, ready."""
    port, log = free_port(), folder / f"server-{time.monotonic_ns()}.log"
    command = [sys.executable, "-m", "topnrank", "serve", *arguments, "--port", str(port), "--workers", str(workers)]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=errors, stderr=errors, stdin=subprocess.DEVNULL, env=os.environ | environment
        )
    server = RunningServer(process, port, log)
    try:
        end = time.monotonic() + 300
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            with contextlib.suppress(OSError, http.client.HTTPException):
                if server.send("GET", "/readyz")[0] == 200:
                    break
            time.sleep(0.2)
        yield server
    finally:
        if process.poll() is None:
            workers_left = server.workers()
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                for pid in workers_left:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                process.wait(60)


def postgres_programs() -> Path | None:
    """The folder with PostgreSQL's server programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    named = shutil.which("initdb") if shutil.which("postgres") else None
    return found[-1].parent if found else Path(named).parent if named else None


def answers(address: str) -> bool:
    """Whether a PostgreSQL server takes a connection."""
    import psycopg

    with contextlib.suppress(psycopg.Error), psycopg.connect(address, connect_timeout=5):
        return True
    return False


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server of our own in a temporary folder; skips, loudly, where there is none."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("NO POSTGRESQL SERVER on this machine: apt-get install postgresql runs these tests")
    as_root = os.geteuid() == 0  # PostgreSQL refuses to run as root
    prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if as_root else []
    with tempfile.TemporaryDirectory(prefix="topnrank-pg-") as name:
        folder, port = Path(name), free_port()
        if as_root:
            shutil.chown(folder, "postgres", "postgres")
        data = str(folder / "data")
        initialize = [*prefix, str(programs / "initdb"), "-D", data, "-U", "topnrank", "-A", "trust", "--no-sync"]
        subprocess.run(initialize, check=True, capture_output=True, cwd=folder)
        options = ["-p", str(port), "-k", str(folder), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=60"]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(
                [*prefix, str(programs / "postgres"), "-D", data, *options], stdout=log, stderr=log, cwd=folder
            )
        try:
            end = time.monotonic() + 60
            address = f"postgresql://topnrank@127.0.0.1:{port}/postgres"
            while not answers(address):
                assert server.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < end, (folder / "log").read_text()
                time.sleep(0.1)
            yield address
        finally:
            server.send_signal(signal.SIGINT)  # ends at once, cleanly
            server.wait(60)
