"""The paper's experiments: its numbers, its settings, and both run again."""

from topnrank.paper.picked import Picked
from topnrank.paper.plan import Plan, make_plan
from topnrank.paper.published import TABLES
from topnrank.paper.reproduce import Reproduction, reproduce

__all__ = ["TABLES", "Picked", "Plan", "Reproduction", "make_plan", "reproduce"]
