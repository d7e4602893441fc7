"""A search that kills its own process at a chosen visit of a batch: `python killed_search.py STUDY VISIT`."""

import os
import signal
import sys
from typing import Any
from unittest.mock import patch

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
    model = TopNRank(batch_size=30, num_threads=1, epochs=3)
    return tune(model, synthetic(60, 40, seed=5), trials=TRIALS, study=study, space=SPACE, seed=2)


def outcome(found: Tuned) -> list[Any]:
    """All that must not depend on a kill."""
    facts = [{name: value for name, value in trial.items() if name != "seconds"} for trial in found.trials]
    return [found.value, found.params, facts]


def main(study: str, report: int) -> None:
    """Searches and dies."""
    left = report
    real = CpuEngine.step

    def watched(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)

    with patch.object(CpuEngine, "step", watched):
        search(study)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
