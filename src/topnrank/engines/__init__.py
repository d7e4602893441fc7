"""Who executes a visit: engines know scorers and objectives, not models."""

from topnrank.engines.base import Engine, Problem, State, StepReport, TrainingTime
from topnrank.engines.choose import ENGINES, make_engine, on_one_machine

__all__ = ["ENGINES", "Engine", "TrainingTime", "Problem", "State", "StepReport", "make_engine", "on_one_machine"]
