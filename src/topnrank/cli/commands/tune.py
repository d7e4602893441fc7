"""`topnrank tune`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from topnrank._checks import one_of
from topnrank.cli.files import require_writable
from topnrank.cli.options import Filters, ReadOptions, argument, fraction, option, with_options
from topnrank.cli.output import Output, facts_table, format_value, list_table
from topnrank.cli.values import ALL_ROWS, RELEVANT, make_model, parse_feedback, parse_settings, relevant_of
from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from topnrank import Interactions, Model
    from topnrank.experiments.tuning.tune import Tuned

MAX_SHOWN = 5
"""So many of the best trials are printed; --json has all."""


@dataclass(frozen=True)
class SearchOptions:
    """What to search, and how."""

    model: str = option("top-n-rank", "Name of the model; 'topnrank models' lists them.", "--model", "-m")
    trials: int = option(50, "Settings to try, those already in the study file included.")
    metric: str = option("ndcg@10", "What to maximize on the validation rows.")
    validation: float = fraction(0.25, "Fraction of each user's items to validate on.")
    relevant: str = option("auto", f"{RELEVANT}; 'auto': by the scale of the ratings; '{ALL_ROWS}': every row.")
    patience: int = option(12, "Rounds without a better value before a trial stops.")
    study: str | None = option(
        None,
        "Keep the trials there (SQLite); after a kill the same command goes on from it.",
        metavar="FILE",
        show_default="in memory",
    )
    settings: list[str] | None = option(
        None, "A hyper-parameter to keep instead of searching; may be repeated.", "--set", metavar="NAME=VALUE"
    )
    feedback: str | None = option(
        None, "How a row becomes a weight, as for 'topnrank train'.", show_default="by the data"
    )
    learn_weights: str | None = option(
        None,
        "For events: search what the other feedback types are worth beside this one, instead of hyper-parameters.",
        metavar="TYPE",
        show_default="none",
    )
    seed: int = option(0, "Random numbers of --holdout, validation rows and search.")
    threads: int = option(0, "Threads; 0 for all cores. The result does not depend on it.")

    def arguments(self, known: tuple[str, ...]) -> dict[str, Any]:
        """The arguments of the library's `tune`, for a model with the parameters `known`."""
        fixed = parse_settings(self.settings or ())
        if self.feedback is not None:
            fixed["feedback"] = parse_feedback(self.feedback)
        if "num_threads" in known:
            fixed.setdefault("num_threads", self.threads)
        names = ("trials", "metric", "validation", "patience", "study", "seed")
        given = {name: getattr(self, name) for name in names}
        return {"fixed": fixed, "relevant": relevant_of(self.relevant), **given}


@dataclass(frozen=True)
class TuneOptions:
    """Which rows of which file may be looked at, and where the result goes."""

    data: str = argument("Training data: a file, folder or glob, as for 'train'.", "DATA")
    holdout: float | None = fraction(
        None, "Never look at these rows: the same that 'train --holdout FRACTION' with the same seed keeps for testing."
    )
    save_params: str | None = option(
        None, "Write the best hyper-parameters there, for 'train --params'.", metavar="FILE"
    )


@with_options
def tune(
    options: TuneOptions, searching: SearchOptions, filters: Filters, reading: ReadOptions, output: Output
) -> None:
    """Search a model's hyper-parameters on validation data.

    Part of each user's items is held out of DATA and ranked by each trial (Optuna: pip install 'topnrank[tune]'). The
    first trial has the model's own settings, so on validation rows the search never ends below them; whether it helps is
    for test rows to say. The number of epochs is found within
    each trial by early stopping. DATA must not hold the rows you will test on; --holdout leaves them out.

    \b
    Examples:
      topnrank tune ratings.csv --holdout 0.5 --trials 50 --study study.db --save-params best.json
      topnrank train ratings.csv --holdout 0.5 --params best.json -o movies.safetensors
      topnrank evaluate movies.safetensors movies.test.parquet

    \b
      topnrank tune ratings.csv --model list-pmf --set user_representation=factors --set factors=10 --metric map@10
      topnrank tune events.csv --model ease --learn-weights buy --trials 30 --save-params best.json
    """
    import topnrank as tnr
    from topnrank.experiments.tuning.tune import tune as search

    kind = tnr.MODELS[one_of("--model", searching.model, tuple(tnr.MODELS))]
    arguments = searching.arguments(tuple(kind().get_params()))
    if options.save_params is not None:
        require_writable(options.save_params)
    rows = filters.apply(reading.read(options.data, output), output)
    if options.holdout is not None:
        rows, _ = tnr.split_per_user(rows, test=options.holdout, seed=searching.seed)
    if searching.learn_weights is not None:
        return _learn_event_weights(make_model(kind, arguments["fixed"]), rows, searching, options.save_params, output)
    if searching.study is not None:
        output.note(f"after an interruption the same command goes on from {searching.study}")
    found = search(kind, rows, progress=not output.quiet, **arguments)
    if options.save_params is not None:
        found.save_params(options.save_params)
    return _report(found, rows, options.save_params, output)


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
    table = []
    for trial in sorted(complete, key=lambda one: -one[found.metric])[:MAX_SHOWN]:
        settings = " · ".join(f"{name} {format_value(value)}" for name, value in trial["settings"].items())
        numbers = [f"{trial[found.metric]:.4f}", format_value(trial["epochs"]), f"{trial['seconds']:.1f}"]
        table.append([str(trial["trial"]), *numbers, settings])
    output.show(facts_table({**facts, **best}, title="Best on validation data"), "")
    output.show(list_table(["trial", found.metric, "epochs", "seconds", "settings"], table, title="The best trials"))
    if path is not None:
        output.show(f"\nuse them: topnrank train DATA -o MODEL --params {path}")
    trials = [{**trial, "settings": {k: encode(v) for k, v in trial["settings"].items()}} for trial in found.trials]
    output.result({**facts, "best": best, "records": trials, "file": path})


def _learn_event_weights(
    model: "Model", rows: "Interactions", searching: SearchOptions, path: str | None, output: Output
) -> None:
    """Searches event weights instead of hyper-parameters, and reports them."""
    from topnrank.experiments.tuning.event_weights import learn_event_weights
    from topnrank.models.persistence import write_params

    if searching.feedback is not None or searching.study is not None:
        other = "--feedback" if searching.feedback is not None else "--study"
        raise ParameterError(f"{other} does not go with --learn-weights; leave one out")
    found = learn_event_weights(
        model,
        rows,
        target=str(searching.learn_weights),
        trials=searching.trials,
        metric=searching.metric,
        seed=searching.seed,
        progress=not output.quiet,
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
