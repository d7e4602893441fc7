"""The same bits for 1, 2 and 4 threads."""

import os
import subprocess
import sys

import numpy as np
import pytest

from topnrank.engines.cpu import balanced_order

SCRIPT = """
import hashlib, numba
from topnrank import BPR, MFADG, BiasedMF, CLiMF, ListPMF, TopNRank, evaluate, split_per_user, synthetic

from topnrank.engines.cpu import SMALL_BATCH

assert numba.config.NUMBA_NUM_THREADS == 4
train, test = split_per_user(synthetic(300, 60, seed=5), seed=0)
assert len(train) / 2 > SMALL_BATCH  # so that batches of half the users do use the threads
models = {
    "history": TopNRank(task="rated", factors=7, epochs=3, batch_size=150),
    "factors": TopNRank.paper(iterations=5, tolerance=0.0, batch_size=0.6),
    "sigmoid": TopNRank(
        task="rated",
        user_representation="factors", epochs=2, batch_size=150, smoothing="sigmoid", truncate=True, gradient="exact"
    ),
    "squared": BiasedMF(factors=7, epochs=2, batch_size=150),
    "likes": CLiMF(factors=7, epochs=2, batch_size=150),
    "shuffled": ListPMF(factors=7, epochs=2, batch_size=150, ties="shuffled"),
    "sampled": MFADG(factors=7, epochs=2, batch_size=150, negatives=20),
    "pairs": BPR(user_representation="factors", factors=7, epochs=2, batch_size=150, negatives=20),
}
for name, model in models.items():
    for num_threads in (1, 2, 4):
        model.set_params(num_threads=num_threads).fit(train)
        digest = hashlib.sha256(repr(evaluate(model, test, num_threads=num_threads).values).encode())
        for block in sorted(model.fitted.arrays):
            digest.update(model.fitted.arrays[block].tobytes())
        digest.update(repr(model.history_).encode())
        print(name, digest.hexdigest())
"""


@pytest.mark.process
def test_the_bits_do_not_depend_on_the_number_of_threads():
    environment = os.environ | {"NUMBA_NUM_THREADS": "4"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == 24
    assert len(set(lines)) == 8, done.stdout


@pytest.mark.process
def test_the_bits_do_not_depend_on_which_process_compiled_the_kernels(tmp_path):
    """A kernel just compiled and the same kernel read from the cache: the compiler may not reorder sums."""
    environment = os.environ | {"TOPNRANK_CACHE": str(tmp_path)}
    script = SCRIPT.replace("== 4\n", ">= 1\n")
    runs = [
        subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert runs[0].returncode == 0, runs[0].stderr
    assert any(tmp_path.rglob("*.nbi"))
    assert runs[0].stdout == runs[1].stdout


@pytest.mark.parametrize("threads", [2, 4, 16])
def test_users_are_ordered_so_that_threads_have_about_as_many_rows(threads):
    sizes = np.sort(np.random.default_rng(1).geometric(0.01, 400))[::-1]
    order = balanced_order(sizes.size)
    assert sorted(order.tolist()) == list(range(400))
    parts = [part.sum() for part in np.array_split(sizes[order], threads)]
    assert max(parts) - min(parts) <= sizes.max()  # no more than one list can make
