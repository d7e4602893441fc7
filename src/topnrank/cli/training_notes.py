"""What is told at the end of a training, wherever it ran."""

from typing import TYPE_CHECKING, Any, final

from topnrank.cli.output import Output

if TYPE_CHECKING:
    from topnrank import Model

TASKS = {"rated": "the items a user has rated", "catalog": "all items"}


def log_training_notes(model: "Model", single: int, output: Output) -> None:
    """Notes on which task the data meant, and on `single` users with one row, from whom no order could be learned."""
    from topnrank.models.factor.model import FactorModel
    from topnrank.models.topnrank.model import TopNRank

    if isinstance(model, TopNRank) and model.task is None:
        output.note(f"by the data the model ranks {TASKS[model.task_]}; --task rated|catalog says otherwise")
    if single and isinstance(model, FactorModel) and not model.recipe_.selection.relevant_only:
        output.note(f"users with one row only, from whom no order was learned: {single}")


@final
class TrafficWatch:
    """A callback that sees how many bytes an iteration moves in a cluster."""

    def __init__(self) -> None:
        self._traffic: Any = None

    def after_round(self, engine: Any, round_: object) -> bool:
        """Notes the traffic of the latest visit, where the engine knows any."""
        self._traffic = getattr(getattr(engine, "driven", engine), "traffic", None)
        return False

    def tell(self, output: Output) -> None:
        """A note, if there was any."""
        if self._traffic is None:
            return
        whom = "in all to the executors that need them" if self._traffic.routed else "to each executor"
        down, up = _size(self._traffic.down), _size(self._traffic.up)
        output.note(f"an iteration moved {down} of item parameters {whom} and {up} of sums back")


def _size(count: int) -> str:
    """Bytes for people."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
