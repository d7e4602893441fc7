"""SequenceRank on a GPU, its parts, and what each of them is worth. Writes docs/results/sequence.md.

    TOPNRANK_DATA=folder python benchmarks/sequence.py [--numbers FILE] [--only WORD] [--page-only]

The protocol is that of [the next item](order.md): of each user the last item by time is asked for, among all items but
those of the user's training rows; every row counts; on MovieLens 1M items of one moment are in random order, drawn anew
for each of three splits, and "file order" takes them as the file has them. Seeds of training go with the splits; Video
Games has one split, so that its three runs differ by the seed alone. Passes and the weight of z are chosen on last
items of the training rows, which are then put back and trained on anew; the settings of z are those chosen on the first
split. "Attention alone" and "z alone" are the two parts of the same fitted sum, z alone with the same settings as a
model of its own.

The table of variants holds no test values: NDCG@10 of the last items of 2,500 users held out of the training rows,
first split, seed 0, at the best pass.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import topnrank as tnr
from common import environment
from order import METRIC, TITLES, splits_of, value
from topnrank._progress import ProgressBar
from topnrank.models.attention.run import _chosen, _order, _Watch
from topnrank.models.sequence.choice import HeldOutNext
from topnrank.models.sequence.timeline import Pauses, Timeline

PAGE = Path(__file__).parent.parent / "docs" / "results" / "sequence.md"
MOVIES, GAMES = "ml-1m", "amazon-video-games"
Z: dict[tuple[str, str], dict[str, Any]] = {
    (MOVIES, "last"): {
        "distance_power": 1.0,
        "smoothing": 0.1,
        "popularity": -0.4,
        "head_share": 0.8,
        "head_decay": 0.6,
        "undirected": 0.022,
        "recency": 128.0,
        "recent_popularity": 0.00067,
        "neighbors": 100,
        "decays": [0.0, 0.8, 0.97],
        "regularization": 3000.0,
        "transitions": 0.01,
    },
    (GAMES, "last"): {
        "distance_power": 0.5,
        "smoothing": 3.0,
        "popularity": -0.02,
        "head_share": 0.95,
        "head_decay": 0.6,
        "undirected": 0.087,
        "recency": 8.0,
        "recent_popularity": 0.0,
        "neighbors": 100,
        "decays": [0.0, 0.8, 0.97],
        "regularization": 300.0,
        "transitions": 0.16,
    },
    (MOVIES, "file"): {
        "distance_power": 1.0,
        "smoothing": 1.0,
        "popularity": -0.1,
        "head_share": 0.8,
        "head_decay": 0.6,
        "undirected": 0.084,
        "recency": 128.0,
        "recent_popularity": 0.0,
        "neighbors": 100,
        "decays": [0.0, 0.8, 0.97],
        "regularization": 300.0,
        "transitions": 0.04,
    },
}
"""Settings of z that `NextItemRidge` chose on held-out last items of the training rows of the first split."""
USUAL: dict[str, dict[str, Any]] = {
    MOVIES: {"width": 128, "length": 200, "dropout": 0.2, "patience": 6, "max_epochs": 60},
    GAMES: {"width": 256, "length": 50, "dropout": 0.5, "batch_size": 512, "patience": 5, "max_epochs": 40},
}
WHOLE: list[tuple[str, str, int, dict[str, Any]]] = [
    *[(MOVIES, "last", seed, {}) for seed in range(3)],
    *[(GAMES, "last", seed, {}) for seed in range(3)],
    (MOVIES, "file", 0, {"time_gaps": True}),
]
VARIANTS: dict[str, dict[str, Any]] = {
    "as above": {},
    "list-wise loss": {"loss": "listwise"},
    "SL@20": {"loss": "sl@k"},
    "z learned jointly, list-wise loss": {"joint": True, "loss": "listwise"},
    "z learned jointly, softmax": {"joint": True},
    "gaps of time": {"time_gaps": True},
    "width 64": {"width": 64},
    "width 256": {"width": 256},
    "one block": {"blocks": 1},
}


class Clock:
    """Seconds of the rounds of both trainings."""

    def __init__(self) -> None:
        self.moments = [time.perf_counter()]

    def after_round(self, engine: object, round_: object) -> bool:
        """Notes the moment."""
        self.moments.append(time.perf_counter())
        return False

    @property
    def usual(self) -> float:
        """Median seconds of a pass, with the validation in it where there was one."""
        return float(np.median(np.diff(self.moments)))


def model_of(name: str, protocol: str, seed: int, changed: dict[str, Any]) -> tnr.SequenceRank:
    """The model of a run."""
    settings = {**USUAL[name], **changed}
    return tnr.SequenceRank(feedback="unary", seed=seed, term_settings=Z[name, protocol], **settings)


def measure(name: str, protocol: str, seed: int, changed: dict[str, Any]) -> dict[str, Any]:
    """Test values of the sum and of its parts."""
    splits = splits_of(name, protocol)[2]
    train, test = splits[min(seed, len(splits) - 1)]
    clock = Clock()
    model = model_of(name, protocol, seed, changed).fit(train, callbacks=[clock])
    z = tnr.NextItemRidge(feedback="unary", **Z[name, protocol]).fit(train)
    found = {"test": value(model, test)[METRIC], "z_alone": value(z, test)[METRIC]}
    model._fitted = attention_alone(model, z)
    found["attention_alone"] = value(model, test)[METRIC]
    facts = {"settings": model.settings_, "validation": model.fitted.info.validation, "epoch": clock.usual}
    seconds = clock.moments[-1] - clock.moments[0]
    return {"job": "full", "data": name, "protocol": protocol, "seed": seed, **found, **facts, "seconds": seconds}


def attention_alone(model: tnr.SequenceRank, z: tnr.Model) -> Any:
    """The fitted state without what z counts."""
    fitted, weight = model.fitted, model.fitted.arrays["network_term_weights"][0]
    parts = ("item_link_counts", "link_targets", "link_values", "seen_past", "item_next_bias")
    arrays = {name: array for name, array in fitted.arrays.items() if name not in parts}
    arrays["item_bias"] = (arrays["item_bias"] - weight * z.fitted.arrays["item_bias"]).astype(np.float32)
    return replace(fitted, arrays=arrays, _cache={})


def judge(name: str, label: str, changed: dict[str, Any]) -> dict[str, Any]:
    """NDCG@10 on held-out last items of the training rows."""
    model, clock = model_of(name, "last", 0, changed), Clock()
    weighted, info = model.weighted(splits_of(name, "last")[2][0][0])
    timeline = Timeline.of(weighted, 0.0, Pauses(None, 1.0), "SequenceRank")
    held_out = HeldOutNext.last(timeline)
    order = _order(model, held_out)
    model, info = _chosen(model, order, held_out, info, _Watch(None, ProgressBar(), [clock], name))
    facts = {"epochs": model.epochs, "term_weight": model.term_weight, "epoch": clock.usual}
    return {"job": "choose", "data": name, "label": label, "validation": info.validation, **facts}


def page(numbers: list[dict[str, Any]], where: str) -> str:
    """The page."""
    words = "\n".join((__doc__ or "").split("\n\n")[2:])
    lines = ["# SequenceRank", "", *words.splitlines(), "", f"{where}.", ""]
    for name, protocol, title in (
        (MOVIES, "last", "ties at random"),
        (MOVIES, "file", "file order"),
        (GAMES, "last", ""),
    ):
        runs = [one for one in numbers if (one["job"], one["data"], one.get("protocol")) == ("full", name, protocol)]
        if runs:
            lines += [f"## {TITLES[name]}{', ' + title if title else ''}", "", *_whole(runs), ""]
    for name in (MOVIES, GAMES):
        runs = [one for one in numbers if (one["job"], one["data"]) == ("choose", name)]
        if runs:
            lines += [f"## Variants, {TITLES[name]}", "", *_variants(runs), ""]
    return "\n".join(lines)


def _whole(runs: list[dict[str, Any]]) -> list[str]:
    rows = {"SequenceRank": "test", "attention alone": "attention_alone", "z alone (NextItemRidge)": "z_alone"}
    lines = ["| | NDCG@10 | runs |", "|---|---|---|"]
    for label, key in rows.items():
        values = [run[key] for run in runs]
        lines.append(f"| {label} | {np.mean(values):.4f} | {', '.join(f'{one:.4f}' for one in values)} |")
    chosen = "; ".join(f"{run['settings']['epochs']} passes, z {run['settings']['term_weight']:g}" for run in runs)
    seconds, epoch = (np.mean([run[key] for run in runs]) for key in ("seconds", "epoch"))
    return [*lines, "", f"Chosen: {chosen}. A fit took {seconds:.0f} s, a pass {epoch:.2f} s."]


def _variants(runs: list[dict[str, Any]]) -> list[str]:
    lines = ["| | NDCG@10, held-out | passes | weight of z | s a pass |", "|---|---|---|---|---|"]
    for run in runs:
        weight = run["term_weight"]
        shown = f"{weight:g}" if isinstance(weight, int | float) else "-"
        lines.append(
            f"| {run['label']} | {run['validation'][METRIC]:.4f} | {run['epochs']} | {shown} | {run['epoch']:.2f} |"
        )
    return lines


def main() -> None:
    """Measures, and writes the page and its numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--numbers", type=Path, default=Path("sequence-numbers.json"), help="kept between calls")
    parser.add_argument("--only", default="", help="a data set")
    parser.add_argument("--page-only", action="store_true", help="write the page from the numbers measured before")
    arguments = parser.parse_args()
    known: dict[str, Any] = json.loads(arguments.numbers.read_text()) if arguments.numbers.exists() else {}
    numbers, where = known.get("runs", []), known.get("where", environment())
    jobs: list[Any] = [(measure, one) for one in WHOLE]
    jobs += [(judge, (name, label, changed)) for name in USUAL for label, changed in VARIANTS.items()]
    for job, given in [] if arguments.page_only else jobs:
        if given[0].startswith(arguments.only):
            numbers.append(job(*given))
            print(numbers[-1], flush=True)
            arguments.numbers.write_text(json.dumps({"where": where, "runs": numbers}, indent=1, default=float) + "\n")
    PAGE.write_text(page(numbers, where), encoding="utf-8")


if __name__ == "__main__":
    main()
