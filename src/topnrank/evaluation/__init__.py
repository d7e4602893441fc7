"""How good a ranking is: splits, the metrics with exact expectations under ties, and the two protocols."""

from topnrank.evaluation.evaluate import evaluate
from topnrank.evaluation.folds import UserFolds
from topnrank.evaluation.labels import Ranker
from topnrank.evaluation.metrics import METRICS
from topnrank.evaluation.result import Evaluation
from topnrank.evaluation.splits import split_last, split_last_session, split_per_user, split_time

__all__ = [
    "METRICS",
    "Evaluation",
    "Ranker",
    "UserFolds",
    "evaluate",
    "split_last",
    "split_last_session",
    "split_per_user",
    "split_time",
]
