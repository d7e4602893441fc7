"""From the name of an engine to the engine."""

import importlib.util

from topnrank._checks import one_of
from topnrank.engines.adaptive import AdaptiveEngine
from topnrank.engines.base import Engine, Problem, State
from topnrank.engines.reference import ReferenceEngine

ENGINES = ("cpu", "reference", "spark")


def make_engine(name: str, problem: Problem, state: State, num_threads: int = 0) -> Engine:
    """The engine called `name`; without Numba the NumPy reference does the CPU engine's work."""
    if one_of("engine", name, ENGINES) == "spark":
        from topnrank.spark.engine.engine import SparkEngine
        from topnrank.spark.session.session import get_session
        from topnrank.spark.session.shipping import ship_package

        session = get_session()
        ship_package(session)
        engine: Engine = SparkEngine.of_rows(problem, state, session)
    elif name == "cpu" and importlib.util.find_spec("numba") is not None:
        from topnrank.engines.cpu import CpuEngine

        engine = CpuEngine(problem, state, num_threads)
    else:
        engine = ReferenceEngine(problem, state)
    return AdaptiveEngine(engine) if problem.adaptive else engine


def on_one_machine(name: str) -> str:
    """The engine for small work of a model that is trained by the engine `name`: a cluster would only slow it down."""
    return "cpu" if name == "spark" else name
