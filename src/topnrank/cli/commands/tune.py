"""`topnrank tune`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topnrank._checks import one_of
from topnrank.cli.files import require_writable
from topnrank.cli.options import Printing, Reading, parse_feedback, parse_settings, share, with_options
from topnrank.cli.output import Output, facts_table, list_table, shown
from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from topnrank import Interactions, Model
    from topnrank.experiments.tuning.tune import Tuned

SHOWN = 5
"""So many of the best trials are printed; --json has all."""


@dataclass(frozen=True)
class Searching:
    """What to search, and how."""

    model: Annotated[str, typer.Option("--model", "-m", help="Name of the model; 'topnrank models' lists them.")] = (
        "top-n-rank"
    )
    trials: Annotated[int, typer.Option(help="Settings to try, those already in the study file included.")] = 50
    metric: Annotated[str, typer.Option(help="What to maximize on the validation rows.")] = "ndcg@10"
    validation: Annotated[
        float, typer.Option(callback=share, metavar="SHARE", help="Share of each user's items to validate on.")
    ] = 0.25
    patience: Annotated[int, typer.Option(help="Rounds without a better value before a trial stops.")] = 12
    study: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Keep the trials there (SQLite); after a kill the same command goes on from it.",
            show_default="in memory",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A hyper-parameter to keep instead of searching; may be repeated."
        ),
    ] = None
    feedback: Annotated[
        str | None,
        typer.Option(help="How a row becomes a weight, as for 'topnrank train'.", show_default="by the data"),
    ] = None
    learn_weights: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="For events: search what the other feedback types are worth beside this one, instead of hyper-parameters.",
            show_default="none",
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Random numbers of --holdout, validation rows and search.")] = 0
    threads: Annotated[int, typer.Option(help="Threads; 0 for all cores. The result does not depend on it.")] = 0

    def options(self, known: tuple[str, ...]) -> dict[str, Any]:
        """The options of the library's `tune`, for a model with the parameters `known`."""
        fixed = parse_settings(self.settings or ())
        if self.feedback is not None:
            fixed["feedback"] = parse_feedback(self.feedback)
        if "num_threads" in known:
            fixed.setdefault("num_threads", self.threads)
        names = ("trials", "metric", "validation", "patience", "study", "seed")
        return {"fixed": fixed, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Material:
    """Which rows of which file."""

    data: Annotated[str, typer.Argument(metavar="DATA", help="Training data: a file, folder or glob, as for 'train'.")]
    holdout: Annotated[
        float | None,
        typer.Option(
            callback=share,
            metavar="SHARE",
            help="Never look at these rows: the same that 'train --holdout SHARE' with the same seed keeps for testing.",
        ),
    ] = None
    min_user_items: Annotated[int, typer.Option(help="Leave out users with fewer items.")] = 0
    min_item_users: Annotated[int, typer.Option(help="Leave out items with fewer users; done before the users.")] = 0

    def rows(self, reading: Reading, seed: int, output: Output) -> "Interactions":
        """What may be looked at."""
        import topnrank as tnr

        data = reading.read(self.data, output)
        if self.min_user_items or self.min_item_users:
            data = data.filter(min_user_items=self.min_user_items, min_item_users=self.min_item_users)
        return data if self.holdout is None else tnr.split_per_user(data, test=self.holdout, seed=seed)[0]


@with_options
def tune(
    material: Material,
    searching: Searching,
    reading: Reading,
    printing: Printing,
    save_params: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the best hyper-parameters there, for 'train --params'.")
    ] = None,
) -> None:
    """Search a model's hyper-parameters on validation data.

    Part of each user's items is held out of DATA and ranked by each trial (Optuna: pip install 'topnrank[tune]'). The
    first trial has the model's own settings, so the search never ends below them. The number of epochs is found within
    each trial by early stopping. DATA must not hold the rows you will test on; --holdout leaves them out.

    \b
    Examples:
      topnrank tune ratings.csv --holdout 0.5 --trials 50 --study study.db --save-params best.json
      topnrank train ratings.csv --holdout 0.5 --params best.json -o movies.safetensors
      topnrank evaluate movies.safetensors movies.test.parquet

    \b
      topnrank tune ratings.csv --model list-pmf --set users=factors --set factors=10 --metric map@10
      topnrank tune events.csv --model ease --learn-weights buy --trials 30 --save-params best.json
    """
    import topnrank as tnr
    from topnrank.experiments.tuning.tune import tune as search

    output = printing.output()
    kind = tnr.MODELS[one_of("--model", searching.model, tuple(tnr.MODELS))]
    options = searching.options(tuple(kind().get_params()))
    if save_params is not None:
        require_writable(save_params)
    rows = material.rows(reading, searching.seed, output)
    if searching.learn_weights is not None:
        return learn(kind, rows, searching, save_params, output)
    if searching.study is not None:
        output.note(f"after an interruption the same command goes on from {searching.study}")
    found = search(kind, rows, progress=not output.quiet, **options)
    if save_params is not None:
        found.save_params(save_params)
    return _report(found, rows, save_params, output)


def _report(found: "Tuned", rows: "Interactions", path: str | None, output: Output) -> None:
    from topnrank.models.persistence import encode

    states = [trial["state"] for trial in found.trials]
    facts: dict[str, Any] = {
        "model": found.model.name,
        found.metric: found.value,
        "trials": {state: states.count(state) for state in ("complete", "pruned", "diverged")},
        "rows": len(rows),
    }
    searched = [*found.trials[0]["settings"], *(["epochs"] if found.trials[0]["epochs"] else [])]
    best = {name: encode(found.params[name]) for name in searched}
    complete = [trial for trial in found.trials if trial["state"] == "complete"]
    table = [_row(trial, found.metric) for trial in sorted(complete, key=lambda one: -one[found.metric])[:SHOWN]]
    output.show(facts_table({**facts, **best}, title="Best on validation data"), "")
    output.show(list_table(["trial", found.metric, "epochs", "seconds", "settings"], table, title="The best trials"))
    if path is not None:
        output.show(f"\nuse them: topnrank train DATA -o MODEL --params {path}")
    trials = [{**trial, "settings": {k: encode(v) for k, v in trial["settings"].items()}} for trial in found.trials]
    output.result({**facts, "best": best, "records": trials, "file": path})


def learn(kind: "type[Model]", rows: "Interactions", searching: Searching, path: str | None, output: Output) -> None:
    """Searches event weights instead of hyper-parameters, and reports them."""
    from topnrank.experiments.tuning.event_weights import learn_event_weights
    from topnrank.models.persistence import write_params

    if searching.feedback is not None or searching.study is not None:
        other = "--feedback" if searching.feedback is not None else "--study"
        raise ParameterError(f"{other} does not go with --learn-weights; leave one out")
    model = kind().set_params(**searching.options(tuple(kind().get_params()))["fixed"])
    names = {"trials": searching.trials, "metric": searching.metric, "seed": searching.seed}
    found = learn_event_weights(
        model,
        rows,
        target=str(searching.learn_weights),
        progress=not output.quiet,
        **names,  # type: ignore[arg-type]
    )
    if path is not None:
        facts = {"metric": found.metric, "validation_value": found.value, "trials": len(found.trials)}
        write_params(path, model.set_params(feedback=found.feedback), **facts)
    facts = {"model": model.name, found.metric: found.value, "trials": len(found.trials), "rows": len(rows)}
    weights = {name: round(weight, 4) for name, weight in found.feedback.weights.items()}
    output.show(facts_table({**facts, **weights}, title="Best weights on validation data"), "")
    text = ",".join(f"{name}={weight:g}" for name, weight in weights.items())
    output.show(f"use them: topnrank train DATA -o MODEL --model {model.name} --feedback events:{text}")
    output.result({**facts, "weights": dict(found.feedback.weights), "records": found.trials, "file": path})


def _row(trial: dict[str, Any], metric: str) -> list[str]:
    settings = " · ".join(f"{name} {shown(value)}" for name, value in trial["settings"].items())
    return [str(trial["trial"]), f"{trial[metric]:.4f}", shown(trial["epochs"]), f"{trial['seconds']:.1f}", settings]
