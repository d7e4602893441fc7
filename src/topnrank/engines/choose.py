"""From the name of an engine to the engine."""

import importlib.util

from topnrank.engines.adaptive import AdaptiveEngine
from topnrank.engines.base import Engine, Problem, State
from topnrank.engines.reference import ReferenceEngine
from topnrank.errors import one_of

ENGINES = ("cpu", "reference")


def make_engine(name: str, problem: Problem, state: State, num_threads: int = 0) -> Engine:
    """The engine called `name`; without Numba the NumPy reference does the CPU engine's work."""
    if one_of("engine", name, ENGINES) == "cpu" and importlib.util.find_spec("numba") is not None:
        from topnrank.engines.cpu import CpuEngine

        engine: Engine = CpuEngine(problem, state, num_threads)
    else:
        engine = ReferenceEngine(problem, state)
    return AdaptiveEngine(engine) if problem.adaptive else engine
