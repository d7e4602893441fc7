"""Start-up and memory: how long the import takes, and what a fit needs."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from suite_data import Bench
from suite_measure import Bar, Measure
from suite_processes import peak_memory, seconds_of_import

PART = "startup"
PACKAGE, MODEL = "import topnrank", "from topnrank import TopNRank"
PEERS = {"implicit": "from implicit.bpr import BayesianPersonalizedRanking", "pandas": "import pandas"}
IMPORT_BAR = Bar(0.3)
COUNTED = "Seconds of the import statement in a fresh process each time; files in the page cache."
MEMORY = (
    "MB in a fresh process, beyond what it holds after reading the training rows (ours: Interactions, implicit: a CSR "
    "matrix of 32-bit ones): the peak of `fit` with one pass, 10 factors, one thread."
)
KEEP = "kept = 0"


def run(bench: Bench) -> Iterator[Measure]:
    """Imports and memory."""
    bench.tell("import")
    yield from imports(bench)
    bench.tell("memory of a fit")
    yield from memory(bench)


def imports(bench: Bench) -> Iterator[Measure]:
    """Ours and others' in turn."""
    codes = [PACKAGE, MODEL, *(code for peer, code in PEERS.items() if bench.peers.has(peer))]
    found: dict[str, list[float]] = {code: [] for code in codes}
    for number in range(bench.rounds + 1):
        for code in codes:
            seconds = seconds_of_import(code)
            if number:
                found[code].append(seconds)
    yield Measure(PART, PACKAGE, "-", "s", found.pop(PACKAGE), bar=IMPORT_BAR, counted=COUNTED)
    model = found.pop(MODEL)
    for peer, others in found.items():
        yield Measure(PART, MODEL, "-", "s", model, peer, others, counted=COUNTED)


def memory(bench: Bench) -> Iterator[Measure]:
    """The peak of a fit at the shape of MovieLens 20M."""
    data = bench.large
    path = training_file(bench)
    read = f"import topnrank as tnr\ndata = tnr.read({str(path)!r})\n"
    small = "tnr.TopNRank.paper(epochs=1, iterations=None).fit(tnr.synthetic(200, 100, seed=0))\n"
    settings = "epochs=1, iterations=None, tolerance=0.0, learning_rate=1e-5, num_threads=1"
    ours = peak_memory(read + small, f"tnr.TopNRank.paper({settings}).fit(data)\n{KEEP}")[0] / 1e6
    if not bench.peers.has("implicit"):
        yield Measure(PART, "peak memory of a fit", data.name, "MB", [ours], counted=MEMORY)
        return
    matrix = (
        "import numpy as np\nfrom scipy.sparse import csr_matrix\nfrom implicit.bpr import BayesianPersonalizedRanking\n"
        "shape = (data.n_users, data.n_items)\n"
        "rows = csr_matrix((np.ones(len(data), np.float32), data.indices, data.indptr), shape=shape, copy=True)\ndel data\n"
    )
    fit = "BayesianPersonalizedRanking(factors=10, iterations=1, num_threads=1).fit(rows, show_progress=False)\n"
    other = peak_memory(read + matrix, f"{fit}{KEEP}")[0] / 1e6
    name, peer = "peak memory of a fit", "implicit BPR"
    yield Measure(PART, name, data.name, "MB", [ours], peer, [other], counted=MEMORY)


def training_file(bench: Bench) -> Path:
    """The training half of the large data as a file."""
    train = bench.large.train
    path = bench.folder / f"train-{train.n_users}-{len(train)}.parquet"
    if not path.exists():
        temporary = path.with_suffix(".part")
        pq.write_table(train.to_arrow(), temporary)
        temporary.replace(path)
    return path
