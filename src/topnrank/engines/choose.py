"""From the name of an engine to the engine."""

import importlib.util
import warnings

from topnrank.engines.base import Engine, Problem, State
from topnrank.engines.reference import ReferenceEngine
from topnrank.errors import one_of

ENGINES = ("cpu", "reference")


def make_engine(name: str, problem: Problem, state: State, num_threads: int = 0) -> Engine:
    """The engine called `name`; without Numba the NumPy reference stands in for the CPU engine, with one warning."""
    if one_of("engine", name, ENGINES) == "cpu":
        if importlib.util.find_spec("numba") is not None:
            from topnrank.engines.cpu import CpuEngine

            return CpuEngine(problem, state, num_threads)
        warnings.warn("Numba is not installed: training with the slow NumPy reference engine", stacklevel=2)
    return ReferenceEngine(problem, state)
