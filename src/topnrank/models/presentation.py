"""How models and their training show themselves in a notebook."""

from typing import TYPE_CHECKING, Any

from topnrank._html import html_table
from topnrank.models.base import Model

if TYPE_CHECKING:
    from topnrank.experiments.report.plots import Picture


class TrainingHistory(list[dict[str, float]]):
    """One record per round of training."""

    def plot(self) -> "Picture":
        """The objective and, where there is one, the validation metric over the rounds."""
        from topnrank.experiments.report.quick_plots import training

        return training(self)

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for record in self for name in record))
        rows = [[f"{record[name]:.4g}" if name in record else "" for name in names] for record in self]
        return html_table(names, rows, title=f"{len(self)} rounds of training")


def html_of_model(model: Model) -> str:
    """What differs from the defaults, what was chosen on held-out rows, and on what the model was trained."""
    changed = [[name, repr(value)] for name, value in model.changed_params().items()]
    told = "" if changed else "All hyper-parameters have their defaults."
    return html_table(["parameter", "value"], changed, title=type(model).__name__, notes=[told, *_fitted(model)])


def _fitted(model: Model) -> list[str]:
    if model._fitted is None:
        return ["Not fitted."]
    info: Any = model.fitted.info
    facts = [f"Fitted on {info.rows:,} rows of {len(model.user_map):,} users and {len(model.item_map):,} items"]
    facts += [f"task: {info.task}"] if info.task else []
    facts += [f"liked: {model.liked_rule_}"] if model.liked_rule_ else []
    facts += [f"{info.rounds} rounds of training"] if info.rounds else []
    facts += [f"validation {name} {value:.4f}" for name, value in (info.validation or {}).items()]
    chosen = ", ".join(f"{name} {value}" for name, value in (info.chosen or {}).items())
    return ["; ".join(facts) + ".", f"Chosen on rows held out: {chosen}." if chosen else ""]
