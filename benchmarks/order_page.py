"""The page of benchmarks/order.py, from its files."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from order import METHODS
from order_data import NOTES, PROTOCOLS, TITLES

PAGE = Path(__file__).parent.parent / "docs" / "results" / "order.md"
WORDS = """\
Of each user the last item by time is asked for, among all items but those of the user's training rows (nothing is
sampled). Every row counts, whatever its rating; a user and item with several rows count once, by the latest. Items of
one moment are in random order, on MovieLens drawn anew for each of three splits: means of these, and the range. "File
order": ties in the order of the file, as published numbers have it (`keep_order=True`, `ties="file"`). "Global time":
the latest fifth of the rows is asked for, of users with training rows. "Items again": of logs in which items come again
the last event, whose item may be one that the user had before (`exclude_seen=False`).

Settings: those that are "auto" are resolved by `fit` on rows held out of its training rows, last items, or by global
time the latest fifth. Recency of NeighborRidge and the weight of repetition are chosen by fits to a part of the
training rows in the same way. Where there are several splits, all is chosen on the training rows of the first, some of
which are test rows of the others. The test rows are used once. "-" is a model without settings, or one whose settings
are given. By LRURec's protocol and where histories are shuffled a model is fitted twice. Each row was measured by a
process of its own on one thread, so many at a time as there are cores: CPU seconds are those of a busy machine.

By global time the rows "Transitions with parts" and "NextItemRidge" of all but MovieTweetings and MovieLens 100K are of an
earlier rule for the weight of recent popularity (the largest within one standard error of the best); those of the two, and
"own items again" and repeats of rows that count by their events, are of the present rule and of the smaller of the two
machines. Of RetailRocket some rows were not reached."""


def write(folder: Path) -> None:
    """The page of all that was measured so far."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for file in sorted(folder.glob("*.json")):
        name, protocol, key = file.stem.split(".")
        found.setdefault((name, protocol), {})[key] = json.loads(file.read_text())
    environments = sorted({one["environment"] for methods in found.values() for one in methods.values()})
    lines = ["# The next item", "", *WORDS.splitlines(), "", *(f"{one}." for one in environments), ""]
    lines += ["    python benchmarks/order.py FOLDER --processes 16 && python benchmarks/order.py FOLDER --page", ""]
    for name, title in TITLES.items():
        measured = {one: found[name, one] for one in PROTOCOLS if (name, one) in found}
        if not measured:
            continue
        lines += [f"## {title}", "", NOTES[name], ""]
        for protocol, methods in measured.items():
            first = next(iter(methods.values()))
            if protocol in ("last", "again"):
                lines += [f"{first['rows']}. {first['facts']}", ""]
            lines += [*table(protocol, methods), ""]
    PAGE.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def table(protocol: str, methods: dict[str, Any]) -> list[str]:
    """One table."""
    lines = [f"| {PROTOCOLS[protocol]} | NDCG@10 | CPU s, settings given | CPU s of choosing | chosen |"]
    lines += ["|---|---|---|---|---|"]
    for key in [key for key in METHODS if key in methods]:
        runs = methods[key]["runs"]
        ndcg = np.array([run["ndcg"] for run in runs])
        spread = f" ({ndcg.min():.4f} to {ndcg.max():.4f})" if len(runs) > 1 else ""
        given, choosing = np.mean([run["fitting"] for run in runs]), methods[key]["choosing"]
        settings = ", ".join(f"{name} {told(one)}" for name, one in methods[key]["settings"].items()) or "-"
        lines.append(
            f"| {METHODS[key].label} | {ndcg.mean():.4f}{spread} | {given:.1f} | {choosing:.1f} | {settings} |"
        )
    users = runs[0]["users"]
    return [*lines, "", f"{users:,} users; the standard error of a value is about {0.27 / np.sqrt(users):.4f}."]


def told(setting: Any) -> str:
    """A setting in few digits."""
    return f"{setting:.3g}" if isinstance(setting, float) else str(setting)
