"""The training loop, its schedule and optimizers, and the callbacks that follow it."""

from topnrank.training.callbacks import Callback, EarlyStopping, Progress, Recorder, Tolerance
from topnrank.training.checkpoint import Checkpoint
from topnrank.training.loop import Round, train
from topnrank.training.optimizers import SGD, AdaGrad, Optimizer, make_optimizer
from topnrank.training.schedule import Schedule

__all__ = [
    "SGD",
    "AdaGrad",
    "Callback",
    "Checkpoint",
    "EarlyStopping",
    "Optimizer",
    "Progress",
    "Recorder",
    "Round",
    "Schedule",
    "Tolerance",
    "make_optimizer",
    "train",
]
