"""A search that kills its own process at a chosen visit of a batch: `python killed_search.py STUDY VISIT`."""

import os
import sys
from typing import Any

from support.kill import dying
from topnrank import TopNRank, synthetic
from topnrank.engines.cpu import CpuEngine
from topnrank.experiments.tuning.tune import Tuned, tune
from topnrank.models.parameters import Choice, Range

SPACE = {
    "factors": Choice((2, 4)),
    "learning_rate": Range(0.01, 0.3, log=True),
    "n": Range(5, 50, log=True, whole=True),
    "epochs": Range(2, 4, whole=True),
}
TRIALS = 8


def search(study: str | os.PathLike[str] | None) -> Tuned:
    """Some quick trials."""
    model = TopNRank(task="rated", batch_size=30, num_threads=1, epochs=3)
    return tune(model, synthetic(60, 40, seed=5), trials=TRIALS, study=study, space=SPACE, seed=2)


def outcome(found: Tuned) -> list[Any]:
    """All that must not depend on a kill."""
    facts = [{name: value for name, value in trial.items() if name != "seconds"} for trial in found.trials]
    return [found.value, found.params, facts]


if __name__ == "__main__":
    with dying(int(sys.argv[2]), (CpuEngine, "step")):
        search(sys.argv[1])
