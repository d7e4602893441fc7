"""A peer that lives in an environment of its own, measured in turn with the others: a process that waits for its turn.

    python suite_worker.py FOLDER CUT ...   a line on its input is a turn; it answers with CPU and wall seconds

The process reads relevant.csv and recommended.csv (columns user, item, rank) and computes RecTools' NDCG.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suite_data import Bench

CUTS = ("1", "3", "5", "10", "20")


class Worker:
    """RecTools in its own process, as a side of a comparison."""

    def __init__(self, python: str, folder: tempfile.TemporaryDirectory[str]) -> None:
        self._folder = folder
        command = [python, __file__, folder.name, *CUTS]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._answer() != "ready":
            raise RuntimeError("its process ended before it was ready")

    @classmethod
    def start(cls, bench: "Bench", relevant: Any, recommended: Any) -> "Worker | None":
        """The process with its lists; None where the peer is missing or fails, which is noted."""
        from pyarrow import csv

        if not bench.peers.has("rectools"):
            return None
        folder = tempfile.TemporaryDirectory()
        csv.write_csv(relevant, Path(folder.name) / "relevant.csv")
        csv.write_csv(recommended.select(["user", "item", "rank"]), Path(folder.name) / "recommended.csv")
        try:
            return cls(bench.peers.notes["rectools"]["python"], folder)
        except (OSError, RuntimeError) as error:
            bench.peers.lose("rectools", str(error))
            return None

    def __call__(self) -> Any:
        """One turn."""
        from suite_measure import Taken

        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Taken(*json.loads(self._answer()))

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def stop(self) -> None:
        """Ends the process."""
        self._process.communicate("")
        self._folder.cleanup()


def main() -> None:
    """Runs in the environment of the peer."""
    import pandas
    from rectools.metrics import NDCG, calc_metrics

    names = {"user": "user_id", "item": "item_id"}
    folder, cuts = Path(sys.argv[1]), [int(cut) for cut in sys.argv[2:]]
    relevant, recommended = (
        pandas.read_csv(folder / f"{name}.csv").rename(columns=names) for name in ("relevant", "recommended")
    )
    metrics = {f"ndcg@{cut}": NDCG(k=cut) for cut in cuts}
    print("ready", flush=True)
    for _ in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        calc_metrics(metrics, reco=recommended, interactions=relevant)
        print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]), flush=True)


if __name__ == "__main__":
    main()
