"""The paper's experiments: its numbers, its settings, and both run again."""

from topnrank.experiments.paper.plan import Plan, make_plan
from topnrank.experiments.paper.published import TABLES
from topnrank.experiments.paper.reproduce import Reproduction, reproduce
from topnrank.experiments.tuning.grid import GridSearch

__all__ = ["TABLES", "GridSearch", "Plan", "Reproduction", "make_plan", "reproduce"]
