"""A signal at any moment of a visit ends as an exception in Python, as Ctrl-C must, and leaves an engine that works."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import numba
import pytest

import topnrank

SCRIPT = """
import random, signal
import numpy as np
from topnrank import TopNRank, synthetic

class Rang(Exception):
    pass

def ring(*_):
    raise Rang

class Keep:
    def after_round(self, engine, round_):
        engines.append(engine)
        return True

engines, rings, draw = [], 0, random.Random(0)
data = synthetic(30, 12, seed=1)
for model in (TopNRank(factors=2, epochs=1, num_threads=1), TopNRank.paper(factors=2, iterations=2, num_threads=1)):
    model.fit(data, callbacks=[Keep()])
signal.signal(signal.SIGALRM, ring)
while rings < 3000:
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-4, 1e-3))
        while True:
            engines[rings % 2].step(np.arange(30))
    except Rang:
        rings += 1
print("rang", len(engines))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no interval timers there")
@pytest.mark.process
def test_a_signal_at_any_moment_is_an_exception_not_a_crash():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "rang 2\n"), done.stderr


def called_from_python():
    """The compiled functions that a module without kernels imports, or that plain functions of one with kernels call."""
    for name in sorted(module.name for module in pkgutil.walk_packages(topnrank.__path__, "topnrank.")):
        if name.endswith("__main__"):
            continue
        found = vars(importlib.import_module(name)).values()
        if not name.startswith("topnrank.kernels") and not re.search(r"\b_?(\w+_)?kernels?$", name):
            yield from (value for value in found if hasattr(value, "nopython_signatures"))
            continue
        for function in found:
            if inspect.isfunction(function) and function.__module__ == name:
                names = function.__code__.co_names
                yield from (function.__globals__[n] for n in names if hasattr(function.__globals__.get(n), "overloads"))


@pytest.mark.filterwarnings("ignore:this model learned to rank the items")
def test_kernels_hand_no_arrays_to_python():
    """Numba boxes arrays and tuples by Python calls that it does not check: a signal there ends the process."""
    data = topnrank.synthetic(40, 20, seed=3)
    for model in (topnrank.TopNRank(epochs=2), topnrank.TopNRank.paper(iterations=2)):
        model.fit(data).recommend(n=3)
        for protocol in ("rated", "catalog"):
            topnrank.evaluate(model, data, protocol=protocol, exclude_seen=False)
    kernels = {id(kernel): kernel for kernel in called_from_python()}.values()
    returned = {
        kernel.__name__: signature.return_type
        for kernel in kernels
        for signature in kernel.nopython_signatures
        if not isinstance(signature.return_type, numba.types.Number | numba.types.Boolean | numba.types.NoneType)
    }
    assert len([kernel for kernel in kernels if kernel.nopython_signatures]) > 15
    assert not returned
