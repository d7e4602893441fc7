"""A comparison that kills its own process at a chosen event: `python killed_comparison.py FOLDER LOG EVENT`.

Events are flushes of files and files put in place; counting them makes "killed at any moment" a test that can be repeated.
"""

import sys

from support.kill import FILES, dying
from support.rivals import Counted
from topnrank import BiasedMF, TopNRank, synthetic
from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.compare.run import compare

REPEATS = 3


def run(folder, log, *, jobs=1, slow_from=None) -> Comparison:
    """The comparison: two trained models, a competitor that logs its fits, and the controls."""
    models = {
        "top": TopNRank(task="rated", factors=4, epochs=2, num_threads=1),
        "counted": Counted(log, slow_from=slow_from),
        "mf": BiasedMF(factors=4, epochs=2, num_threads=1),
    }
    return compare(
        models, synthetic(40, 30, seed=3), repeats=REPEATS, folder=folder, jobs=jobs, metrics=("ndcg@5", "auc")
    )


if __name__ == "__main__":
    if sys.argv[3] == "slow":
        run(sys.argv[1], sys.argv[2], jobs=2, slow_from=3)
    else:
        with dying(int(sys.argv[3]), *FILES):
            run(sys.argv[1], sys.argv[2])
