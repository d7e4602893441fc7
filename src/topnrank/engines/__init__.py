"""Engines run one training step on a batch of users. They depend on scorers and objectives, never on models."""

from topnrank._checks import one_of
from topnrank.engines.base import Engine, Problem, State, StepReport, TrainingTime
from topnrank.engines.cpu import CpuEngine
from topnrank.engines.reference import ReferenceEngine

ENGINES = ("cpu", "reference", "spark")


def make_engine(name: str, problem: Problem, state: State, num_threads: int = 0) -> Engine:
    """The engine of that name; "spark" takes the active session, or starts one."""
    if one_of("engine", name, ENGINES) == "spark":
        from topnrank.spark.engine.engine import SparkEngine
        from topnrank.spark.session.session import get_session

        return SparkEngine.of_rows(problem, state, get_session())
    return CpuEngine(problem, state, num_threads) if name == "cpu" else ReferenceEngine(problem, state)


def on_one_machine(name: str) -> str:
    """The engine for small work of a model that is trained by the engine `name`: a cluster would only slow it down."""
    return "cpu" if name == "spark" else name


__all__ = ["ENGINES", "Engine", "Problem", "State", "StepReport", "TrainingTime", "make_engine", "on_one_machine"]
