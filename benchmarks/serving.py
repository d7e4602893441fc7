"""What a request costs: `topnrank serve` beside the FastAPI application that people write around implicit.

Needs wrk (apt-get install wrk) and, for latencies, autocannon (npm install autocannon; --autocannon PATH), and for the peer
pip install fastapi implicit. Everything runs on this machine over loopback, one worker each, and the order of the servers
alternates between repeats. First comes CPU time, of all processes of the server by /proc divided by the requests answered:
it is nearly the same on a busy machine, which requests per second and latencies are not.

    python benchmarks/serving.py --model ml1m.safetensors --data $TOPNRANK_DATA/ml-1m.parquet
"""

import argparse
import contextlib
import http.client
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

HISTORY = [(1193, 5), (661, 3), (914, 3), (3408, 4), (2355, 5), (1197, 3), (1287, 5), (2804, 5)]
N = 10
CONNECTIONS = 16
PEER = """
import os
import numpy as np, pyarrow.parquet as pq
from fastapi import FastAPI
from implicit.als import AlternatingLeastSquares
from pydantic import BaseModel
from scipy.sparse import csr_matrix

table = pq.read_table(os.environ["PEER_DATA"])
users, user_index = np.unique(table["user"].to_numpy(), return_inverse=True)
items, item_index = np.unique(table["item"].to_numpy(), return_inverse=True)
numbers = {item: number for number, item in enumerate(items.tolist())}
user_items = csr_matrix((table["rating"].to_numpy().astype(np.float32), (user_index, item_index)))
model = AlternatingLeastSquares(factors=50, iterations=3, num_threads=1, random_state=0)
model.fit(user_items, show_progress=False)

class Entry(BaseModel):
    item: int
    rating: float

class Request(BaseModel):
    history: list[Entry]
    n: int = 10

app = FastAPI()

def answer(request):
    columns = [numbers[entry.item] for entry in request.history]
    values = [entry.rating for entry in request.history]
    row = csr_matrix((values, ([0] * len(columns), columns)), shape=(1, len(items)), dtype=np.float32)
    found, scores = model.recommend(0, row, N=request.n, recalculate_user=True)
    return {"items": [{"item": int(items[i]), "score": float(s)} for i, s in zip(found, scores)]}

@app.post("/recommend")
def recommend(request: Request):
    return answer(request)

@app.post("/recommend-async")
async def recommend_async(request: Request):
    return answer(request)

@app.get("/ready")
def ready():
    return {}
"""
ONE_THREAD = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")


@dataclass
class Target:
    """A request to a server, and what was measured of it."""

    name: str
    server: str
    method: str
    path: str
    body: dict | None
    cpu: list[float] = field(default_factory=list)
    """Microseconds for each request"""
    rate: list[float] = field(default_factory=list)
    """Requests a second"""
    errors: int = 0


@dataclass
class Server:
    """A running server."""

    process: subprocess.Popen
    port: int

    def pids(self) -> list[int]:
        """The server and all processes below it."""
        found = [self.process.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return found

    def cpu(self) -> float:
        """Seconds of all of them."""
        ticks = 0
        for pid in self.pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], port: int, ready: str, folder: Path, **environment: str) -> Iterator[Server]:
    """The server, when it answers."""
    log = folder / f"{port}.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=errors, stderr=errors, cwd=folder, env=os.environ | ONE_THREAD | environment
        )
    try:
        for _ in range(3000):
            if process.poll() is not None:
                sys.exit(f"{command} ended: {log.read_text()[-2000:]}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", ready)
                if connection.getresponse().status == 200:
                    break
            time.sleep(0.2)
        yield Server(process, port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def ours(arguments: argparse.Namespace, folder: Path, workers: int) -> contextlib.AbstractContextManager[Server]:
    """`topnrank serve`."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "topnrank",
        "serve",
        arguments.model,
        "--port",
        str(port),
        "--workers",
        str(workers),
    ]
    command += ["--events", str(folder / f"events-{port}.db")]
    return running(command, port, "/readyz", folder)


def peer(arguments: argparse.Namespace, folder: Path) -> contextlib.AbstractContextManager[Server]:
    """The FastAPI application."""
    port = free_port()
    (folder / "peer.py").write_text(PEER)
    command = [sys.executable, "-m", "uvicorn", "peer:app", "--port", str(port), "--no-access-log"]
    return running(command, port, "/ready", folder, PEER_DATA=str(Path(arguments.data).resolve()))


def wrk(target: Target, server: Server, seconds: int, folder: Path) -> None:
    """Capacity by wrk, and the CPU time of the server meanwhile."""
    script = folder / "request.lua"
    body = "" if target.body is None else json.dumps(target.body)
    script.write_text(
        f"wrk.method = '{target.method}'\nwrk.body = '{body}'\nwrk.headers['Content-Type'] = 'application/json'\n"
    )
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", "-s", str(script)]
    url = f"http://127.0.0.1:{server.port}{target.path}"
    subprocess.run([*command, "-d2s", url], check=True, capture_output=True)  # warm
    before = server.cpu()
    said = subprocess.run([*command, f"-d{seconds}s", url], check=True, capture_output=True, text=True).stdout
    cpu = server.cpu() - before
    (requests,) = re.findall(r"(\d+) requests in", said)
    (rate,) = re.findall(r"Requests/sec:\s+([\d.]+)", said)
    target.cpu.append(1e6 * cpu / int(requests))
    target.rate.append(float(rate))
    target.errors += sum(map(int, re.findall(r"Non-2xx or 3xx responses: (\d+)", said)))
    for counts in re.findall(r"Socket errors: (.*)", said):
        target.errors += sum(map(int, re.findall(r"\d+", counts)))


def latencies(program: str, target: Target, server: Server, rate: int, seconds: int) -> dict:
    """At a fixed rate, corrected for coordinated omission, by autocannon."""
    command = [program, "-c", str(CONNECTIONS), "-R", str(rate), "-d", str(seconds), "-m", target.method, "-j", "-n"]
    command += ["-H", "Content-Type=application/json", "-b", json.dumps(target.body)]
    said = subprocess.run(
        [*command, f"http://127.0.0.1:{server.port}{target.path}"], check=True, capture_output=True, text=True
    ).stdout
    found = json.loads(said)
    return {name: found["latency"][name] for name in ("p50", "p99", "p99_9")} | {
        "non2xx": found["non2xx"] + found["errors"]
    }


def memory(server: Server, model: str) -> dict[str, float]:
    """MiB of the workers: in all (shared pages divided), and of the pages of the model file, shared and of one's own."""
    whole = mapped = private = 0
    for pid in server.pids():
        with contextlib.suppress(OSError):
            whole += sum(map(int, re.findall(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)))
            text, inside = Path(f"/proc/{pid}/smaps").read_text(), False
            for line in text.splitlines():
                if re.match(r"^[0-9a-f]+-[0-9a-f]+ ", line):
                    inside = line.endswith(model)
                elif inside and line.startswith("Pss:"):
                    mapped += int(line.split()[1])
                elif inside and line.startswith("Private_Dirty:"):
                    private += int(line.split()[1])
    return {"pss": whole / 1024, "model": mapped / 1024, "model_own": private / 1024}


def main() -> None:
    """Measures, and prints Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True, help="The ratings, for the peer's model.")
    parser.add_argument("--autocannon", default=shutil.which("autocannon"))
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    arguments.model = str(Path(arguments.model).resolve())
    history = [{"item": item, "rating": rating} for item, rating in HISTORY]
    with_reasons = {"history": history, "n": N, "explain": 3}
    targets = [
        Target("topnrank, history of 8, n = 10", "ours", "POST", "/v1/recommend", {"history": history, "n": N}),
        Target("topnrank, known user, n = 10", "ours", "POST", "/v1/recommend", {"user": 42, "n": N}),
        Target("topnrank, history, n = 10, explain 3", "ours", "POST", "/v1/recommend", with_reasons),
        Target("topnrank, /healthz (the floor)", "ours", "GET", "/healthz", None),
    ]
    if not arguments.no_peer:
        body = {"history": history, "n": N}
        targets += [
            Target("FastAPI (def) + implicit ALS", "peer", "POST", "/recommend", body),
            Target("FastAPI (async def) + implicit ALS", "peer", "POST", "/recommend-async", body),
        ]
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        servers = {"ours": stack.enter_context(ours(arguments, folder, 1))}
        if not arguments.no_peer:
            servers["peer"] = stack.enter_context(peer(arguments, folder))
        for _ in range(arguments.repeats):
            for target in targets:
                wrk(target, servers[target.server], arguments.seconds, folder)
        print(
            f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; ",
            end="",
        )
        names = ["topnrank", "starlette", "uvicorn", "msgspec", "numpy"] + (
            [] if arguments.no_peer else ["fastapi", "implicit"]
        )
        print(f"Python {platform.python_version()}, {', '.join(f'{one} {version(one)}' for one in names)}.")
        repeats = f"{arguments.repeats} interleaved runs of {arguments.seconds} s; medians"
        print(f"One worker, {CONNECTIONS} connections, {repeats}.\n")
        print("| request | CPU µs | of each run | requests/s | errors |\n|---|---|---|---|---|")
        for target in targets:
            each = ", ".join(f"{cpu:.0f}" for cpu in target.cpu)
            cpu, rate = statistics.median(target.cpu), statistics.median(target.rate)
            print(f"| {target.name} | {cpu:.0f} | {each} | {rate:.0f} | {target.errors} |")
        if arguments.autocannon:
            print("\n| rate | p50 ms | p99 ms | p99.9 ms | errors |\n|---|---|---|---|---|")
            for share in (25, 50, 75):
                rate = int(statistics.median(targets[0].rate) * share / 100)
                found = latencies(arguments.autocannon, targets[0], servers["ours"], rate, max(10, arguments.seconds))
                print(
                    f"| {share} % ({rate}/s) | {found['p50']} | {found['p99']} | {found['p99_9']} | {found['non2xx']} |"
                )
    print("\n| workers | PSS MiB of all | of the model file | of it not shared |\n|---|---|---|---|")
    for workers in (1, 2, 4):
        with tempfile.TemporaryDirectory() as name, ours(arguments, Path(name), workers) as server:
            end = time.monotonic() + 120
            while time.monotonic() < end and len(server.pids()) < workers + 1:
                time.sleep(0.5)
            time.sleep(10)
            for target in targets[:2]:
                wrk(target, server, 2, Path(name))
            found = memory(server, arguments.model)
        print(f"| {workers} | {found['pss']:.0f} | {found['model']:.1f} | {found['model_own']:.1f} |")


if __name__ == "__main__":
    main()
