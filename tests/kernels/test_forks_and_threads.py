"""Right answers in forked children, in their children, and from many Python threads, whatever Numba's threading layer."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

TBB = Path(sys.prefix, "lib", "libtbb.so.12")
"""Where the package tbb puts it; Numba looks for it as for any library."""
no_tbb = pytest.mark.skipif(not TBB.exists(), reason="the package tbb is not installed")
LAYERS = ("omp", "workqueue", pytest.param("tbb", marks=no_tbb))
BEGIN = """
import os, signal, sys, threading
import numpy as np
import topnrank as tnr
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

data = tnr.synthetic(300, 60, seed=5)
models = {
    "rated": tnr.TopNRank(factors=7, epochs=2, batch_size=150),
    "catalog": tnr.TopNRank(factors=7, epochs=2, batch_size=150, task="catalog", neighbors=5),
    "ease": tnr.EASE(),
    "popularity": tnr.Popularity(),
}
for model in models.values():
    model.fit(data)
lists = {name: model.recommend(n=5) for name, model in models.items()}
layer = __import__("numba").threading_layer()
assert layer == os.environ["NUMBA_THREADING_LAYER"], layer

def right(name):
    return models[name].recommend(n=5).equals(lists[name])

def bits():
    fitted = tnr.TopNRank(factors=7, epochs=2, batch_size=150).fit(data)
    return all(np.array_equal(fitted.fitted.arrays[n], a) for n, a in models["rated"].fitted.arrays.items())
"""


def run(script, layer="omp", seconds=500, **environment):
    """What the script prints; it must end well, and in time."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script],
        env=os.environ
        | {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "4", "LD_LIBRARY_PATH": str(TBB.parent)}
        | environment,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


FORKS = """
signal.signal(signal.SIGTERM, lambda *_: print("SIGTERM", flush=True))  # as a server has it

def child(depth):
    if os.fork() == 0:
        print(*(right(name) for name in models), bits(), flush=True)
        if depth:
            child(depth - 1)
        os._exit(0)
    os.wait()

child(2)
print(bits())
"""


@pytest.mark.parametrize("layer", LAYERS)
def test_children_and_grandchildren_answer_and_train_with_the_same_bits(layer):
    assert run(FORKS, layer) == ["True"] * 16


POOLS = """
names = list(models) * 3
with get_context("fork").Pool(2) as pool:
    print(*pool.map(right, names))
with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
    print(*pool.map(right, names))
"""


@pytest.mark.parametrize("layer", LAYERS)
def test_pools_of_forked_workers_answer(layer):
    assert run(POOLS, layer) == ["True"] * 24


THREADS = """
import asyncio
with ThreadPoolExecutor(8) as pool:
    print(*pool.map(right, list(models) * 40))
    fits = [pool.submit(bits) for _ in range(4)]
    print(*pool.map(right, list(models) * 10), *(fit.result() for fit in fits))

async def ask():
    loop = asyncio.get_running_loop()
    return await asyncio.gather(*(loop.run_in_executor(None, right, name) for name in list(models) * 10))

print(*asyncio.run(ask()))
"""


@pytest.mark.parametrize("layer", LAYERS)
def test_many_python_threads_ask_and_train_at_once(layer):
    assert run(THREADS, layer) == ["True"] * (160 + 44 + 40)


FORK_WHILE_THREADS_ASK = """
done = threading.Event()
def ask():
    while not done.is_set():
        assert right("rated")
threads = [threading.Thread(target=ask) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(5):
    with get_context("fork").Pool(1) as pool:
        print(pool.apply(right, ("catalog",)))
done.set()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("layer", LAYERS)
def test_a_fork_in_the_middle_of_other_threads_requests(layer):
    words = run(FORK_WHILE_THREADS_ASK, layer)
    if layer == "tbb":  # Numba warns on standard output; in a child loops run on the thread that asks
        words = [word for word in words if word in ("True", "False")]
    assert words == ["True"] * 5


JOBLIB = """
from joblib import Parallel, delayed
for backend in ("threading", "multiprocessing"):
    print(*Parallel(2, backend=backend)(delayed(right)(name) for name in models))
"""


@pytest.mark.parametrize("layer", LAYERS)
def test_joblib(layer):
    pytest.importorskip("joblib")
    assert run(JOBLIB, layer) == ["True"] * 8


COMPLETION = """
from topnrank.kernels import _parallel_for
signal.signal(signal.SIGTERM, lambda *_: print("SIGTERM", flush=True))
if os.fork() == 0:
    _parallel_for._state[_parallel_for._FORKED] = 0  # as if nobody had noticed the fork: OpenMP refuses, and says nothing
    print(right("popularity"), flush=True)
    os._exit(0)
os.wait()
"""


def test_a_loop_that_the_threading_layer_did_not_run_is_no_answer():
    said = run(COMPLETION, "omp")
    assert said[-1] == "True"
    assert said.count("SIGTERM") >= 1


ONE_USER = """
import os, tempfile
import topnrank as tnr
data = tnr.synthetic(300, 60, seed=5)
folder = tempfile.mkdtemp()
if os.fork() == 0:  # trains in a child, so that this process has not used a thread yet
    for kind in tnr.MODELS.values():
        given = {"epochs": 1} if "epochs" in kind().get_params() else {}
        kind(**given).fit(data).save(os.path.join(folder, kind.name))
    os._exit(0)
os.wait()
def ask(model):
    model.recommend([data.users.ids[3]])
    model.recommend([data.users.ids[3]], exclude_seen=False, exclude=data.items.ids[:2].tolist())
    model.score(data.users.ids[3], data.items.ids[4])
    items = data.items.ids[:4].tolist()
    for history in (items, [(item, 5) for item in items]):
        try:
            model.recommend(history=history)
        except tnr.ParameterError:
            pass  # some models need ratings
before = len(os.listdir("/proc/self/task"))
for name in sorted(os.listdir(folder)):
    ask(tnr.load(os.path.join(folder, name)))
    print(name, len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads as Linux shows them")
def test_a_request_of_one_user_wakes_no_thread():
    """It would wait at a barrier for threads that a busy machine may not run."""
    environment = {"NUMBA_NUM_THREADS": "4", "NUMBA_THREADING_LAYER": "omp", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ONE_USER],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split() for line in done.stdout.splitlines())
    assert len(said) > 10
    assert set(said.values()) == {"0"}, said


APP = """
import json, sys
import topnrank as tnr
model = tnr.load("model.safetensors")
model.recommend(n=2)  # all users: the kernels have had their threads before the fork

def app(environ, start):
    table = model.recommend(n=2) if environ["PATH_INFO"] == "/all" else model.recommend([5], n=2)
    start("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(table.to_pylist()).encode()]
"""


def test_gunicorn_with_a_preloaded_model(tmp_path):
    pytest.importorskip("gunicorn")
    import topnrank as tnr

    model = tnr.TopNRank(factors=3, epochs=1).fit(tnr.synthetic(50, 20, seed=1))
    model.save(tmp_path / "model.safetensors")
    (tmp_path / "wsgi.py").write_text(APP)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "--preload", "-w", "2", "-b", f"127.0.0.1:{port}", "wsgi:app"],
        cwd=tmp_path,
        env=os.environ | {"NUMBA_NUM_THREADS": "4"},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        answers = {path: [_fetched(f"http://127.0.0.1:{port}{path}") for _ in range(4)] for path in ("/5", "/all")}
    finally:
        server.terminate()
        said = server.communicate(timeout=60)[1]
    assert "unsafe" not in said
    assert [json.loads(answer) for answer in answers["/5"]] == [model.recommend([5], n=2).to_pylist()] * 4
    assert [json.loads(answer) for answer in answers["/all"]] == [model.recommend(n=2).to_pylist()] * 4


def _fetched(url):
    for _ in range(600):
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.read()
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the server does not answer")
