"""Who executes a visit: engines know scorers and objectives, not models."""

from topnrank.engines.base import Engine, Moment, Problem, State, Visit
from topnrank.engines.choose import ENGINES, make_engine, on_one_machine

__all__ = ["ENGINES", "Engine", "Moment", "Problem", "State", "Visit", "make_engine", "on_one_machine"]
