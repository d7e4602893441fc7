"""The page of the out-of-the-box study from the results that benchmarks/out_of_the_box.py keeps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from out_of_the_box_methods import (
    FACTORS,
    GRIDS,
    SOURCES,
    Unit,
    default_units,
    each_protocol,
    protocols,
    trials,
    tuned_units,
)
from topnrank.experiments.report.formatting import format_number, format_signed, format_value
from topnrank.experiments.report.markdown import escape, table
from topnrank.experiments.statistics import bootstrap_intervals

METRIC = "ndcg@10"
VIEWS = {
    ("fifth", "all"): "A random fifth of each user's rows",
    ("half", "all"): "A random half of each user's rows",
    ("time", "all"): "The latest fifth of all rows, all test users",
    ("time", "known"): "The latest fifth of all rows, users with training rows",
}
"""By protocol and users, in the order of the page."""
OURS = ("TopNRank", "NeighborRidge")
COLUMNS = {
    **{kind: kind for kind in OURS},
    "EASE": "EASE",
    "ALS": "implicit ALS",
    "BPR": "implicit BPR",
    "WARP": "LightFM WARP",
    "Popularity": "Popularity",
    "RecentPopularity": "RecentPopularity",
}
"""Of the summaries, by kind of method."""
INTRODUCTION = """# Out of the box

What `TopNRank().fit(data)` gives on data that nobody has tuned for, beside other methods as their libraries come. Written by

    TOPNRANK_DATA=folder python benchmarks/out_of_the_box.py [--sets ...] [--tuned]

The tables hold the sets that were measured when the page was written; the command knows eleven.

NDCG@10 over the whole catalog: all items are ranked but those of the user's training rows, never a sample of them. Rows
of one user and item are merged into one, the latest, before the split, so that no held-out item is known from another
row. What counts as liked is the library's reading of the data; the conventions below each set name the rule. Held out
are a random fifth of each user's rows (`split_per_user`, seed 0), on MovieLens also half of them, and where there are
times the latest fifth of all rows (`split_time`). There users without training rows are told apart: in "all test users"
they count with what the method gives them, of implicit and LightFM a random order.

Settings: TopNRank and the controls have none set. NeighborRidge stands at its defaults and at other numbers, of which the
summaries show the best; EASE at lambda 50, 200 and 1000; ALS at 64 and 128 factors as implicit comes, at 64 factors, alpha
7 and lambda 50, which suits dense data, and at 128, 40 and 100, which suits sparse data. The best of several is chosen on
the test rows, in favor of the other method. BPR is implicit's default, WARP LightFM's with 10 epochs (its own default is
one). All seeds are 0.

Intervals are 95 % bootstrap intervals over users. CPU seconds are user and system time of one `fit`, of all its threads,
after a fit on at most 10,000 rows that compiles. Bold: the best of ours (TopNRank and its part), the best of the others.
"Ratio" is TopNRank by the best of all other methods, "difference" TopNRank minus that one, user by user.
"""


@dataclass(frozen=True)
class Row:
    """A method on a set."""

    unit: Unit
    record: dict[str, Any]

    def mean(self, users: str) -> float:
        """NDCG@10 over "all" users or the "known" ones; NaN where it failed."""
        return float(self.record.get(users, np.nan))

    @property
    def seconds(self) -> float:
        """CPU seconds of the fit; NaN where it failed."""
        return float(self.record.get("cpu_seconds", np.nan))

    def values(self, users: str) -> NDArray[np.float64]:
        """The same for each user, NaN for those who do not count."""
        values = np.array(self.record.get("values", []), np.float64)
        if users == "known":
            values[self.record.get("strangers", [])] = np.nan
        return values


def rows_of(units: Iterable[Unit]) -> list[Row]:
    """Those that have been measured."""
    return [Row(unit, record) for unit in units if (record := unit.read()) is not None]


def rows_with_tuned(name: str, protocol: str) -> list[Row]:
    """The methods of a set, tuned where they have a grid; none where nothing was tuned."""
    found = rows_of(tuned_units(name, protocol))
    return [row for row in rows_of(default_units(name, protocol)) if row.unit.kind not in GRIDS and found] + found


def cells(rows: Sequence[Row], users: str) -> dict[str, str]:
    """Means with intervals, by label."""
    good = [row for row in rows if "error" not in row.record]
    found = dict.fromkeys((row.unit.label for row in rows), "failed")
    for row, interval in zip(good, bootstrap_intervals([row.values(users) for row in good]), strict=True):
        low, high = map(format_number, interval)
        found[row.unit.label] = f"{format_number(row.mean(users))} ({low} to {high})"
    return found


# -- summaries -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lead:
    """TopNRank against the best of all others on one set."""

    best: Row
    ratio: float
    difference: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, rows: Sequence[Row], users: str) -> "Lead | None":
        """None where there is nothing to compare."""
        rows = [row for row in rows if np.isfinite(row.mean(users))]
        ours, others = ([row for row in rows if (row.unit.kind == "TopNRank") == mine] for mine in (True, False))
        if not ours or not others:
            return None
        best = max(others, key=lambda row: row.mean(users))
        mine, theirs = ours[0].mean(users), best.mean(users)
        interval = bootstrap_intervals([ours[0].values(users) - best.values(users)])[0]
        return cls(best, mine / max(theirs, 1e-12), mine - theirs, interval)

    def cells(self) -> list[str]:
        """Ratio, difference, and which method is the best of the others."""
        low, high = map(format_signed, self.interval)
        difference = f"{format_signed(self.difference)} ({low} to {high})"
        return [f"{self.ratio:.3f}", difference, escape(self.best.unit.label)]


def summary(by_set: dict[str, list[Row]], users: str) -> list[str]:
    """A table of sets and kinds of methods, and how often TopNRank leads."""
    lines, leads = [], []
    for name, rows in by_set.items():
        lead = Lead.of(rows, users)
        leads += [lead] if lead is not None else []
        means = [(row.unit.kind, row.mean(users)) for row in rows if np.isfinite(row.mean(users))]
        best = {kind: max((mean for other, mean in means if other == kind), default=-1.0) for kind in COLUMNS}
        bold = {
            max((kind for kind in COLUMNS if (kind in OURS) == ours), key=best.__getitem__) for ours in (True, False)
        }
        shown = {kind: format_number(mean) if mean >= 0 else "-" for kind, mean in best.items()}
        texts = [f"**{text}**" if kind in bold else text for kind, text in shown.items()]
        lines.append([name, *texts, *(lead.cells() if lead is not None else ["-"] * 3)])
    near = sum(lead.ratio >= 0.995 for lead in leads)
    above, below = sum(lead.interval[0] > 0 for lead in leads), sum(lead.interval[1] < 0 for lead in leads)
    verdict = (
        f"Sets: {len(leads)}. TopNRank at most 0.5 % below the best of all others: {near}. Interval of the difference above "
        f"0: {above}, below 0: {below}."
    )
    header = ["set", *COLUMNS.values(), "ratio", "difference", "against"]
    return [table(header, lines), "", verdict, ""]


def cpu_seconds(sets: Sequence[str]) -> list[str]:
    """CPU seconds of one fit."""
    labels = ["TopNRank", "NeighborRidge", "EASE, regularization 200", "implicit ALS, factors 64"]
    labels += ["implicit BPR", "lightfm WARP", "RecentPopularity"]
    lines = []
    for name in sets:
        found = {row.unit.label: row.seconds for row in rows_of(default_units(name, "fifth"))}
        seconds = [found.get(label, np.nan) for label in labels]
        lines.append([name, *(format_number(one, 1) for one in seconds), format_number(seconds[0] / seconds[3], 1)])
    header = table(["set", *labels, "TopNRank by ALS"], lines)
    return ["## CPU seconds of one fit", "", "A random fifth held out.", "", header, ""]


def rated(sets: Sequence[str]) -> list[str]:
    """Rated items, with the ratings multiplied."""
    lines, notes = [], []
    for name in (name for name in sets if SOURCES[name].rated):
        by_factor = [rows_of(default_units(name, f"rated x {factor:g}")) for factor in FACTORS]
        lines += by_label(name, [cells(rows, "all") for rows in by_factor])
        notes += [note for rows in by_factor for note in conventions(rows)]
    words = (
        "Users with at least 10 ratings; half of each user's ratings are held out at random (seed 0), and only these are "
        "ranked. All ratings, of training and test, are multiplied by the factor."
    )
    header = ["set", "method", *(f"ratings x {factor:g}" for factor in FACTORS)]
    return ["## Rated items", "", words, "", table(header, lines), "", *notes, ""] if lines else []


def tuned(sets: Sequence[str]) -> list[str]:
    """The summaries with tuned peers, what was tried and what was chosen."""
    lines, chosen = [], []
    for (protocol, users), title in VIEWS.items():
        by_set = {
            name: rows for name in sets if protocol in protocols(name) and (rows := rows_with_tuned(name, protocol))
        }
        lines += [f"### Tuned: {title[0].lower()}{title[1:]}", "", *summary(by_set, users)] if by_set else []
        for name, rows in by_set.items() if users == "all" else ():
            settings = {row.unit.kind: format_value(row.unit.settings) for row in rows if row.unit.kind in GRIDS}
            chosen.append([name, protocol, *(settings.get(kind, "-") for kind in GRIDS)])
    if not lines:
        return []
    grids = "; ".join(
        f"{kind}: {format_value({key: list(one) for key, one in grid.items()})}" for kind, grid in GRIDS.items()
    )
    words = (
        "A fifth of the training rows was held out for validation, by time where the split is. Each setting of a grid was "
        "fitted to the others; that of the best NDCG@10 over users with training rows was fitted anew on all training rows. "
        f"TopNRank, NeighborRidge and the controls are as above. The grids are {grids}."
    )
    table_chosen = table(["set", "protocol", *GRIDS], chosen)
    return ["## The same with peers tuned", "", words, "", *lines, "### Settings chosen", "", table_chosen, ""]


# -- the page ------------------------------------------------------------------------------------------------------------


def conventions(rows: Sequence[Row]) -> list[str]:
    """How the numbers of one protocol were made, and what failed."""
    said = [row.record["convention"] for row in rows if "convention" in row.record][:1]
    failed = [f"{row.unit.label} failed: {row.record['error']}" for row in rows if "error" in row.record]
    return [f"- {rows[0].unit.data}, {rows[0].unit.protocol}: {escape(text)}" for text in [*said, *failed]]


def by_label(first: str, columns: Sequence[dict[str, str]]) -> list[list[str]]:
    """A line of a table for each label: `first`, the label, and a cell of each column."""
    labels = dict.fromkeys(label for column in columns for label in column)
    return [[first, escape(label), *(column.get(label, "-") for column in columns)] for label in labels]


def details(name: str) -> list[str]:
    """All methods of a set at their defaults."""
    views = [view for view in VIEWS if view[0] in protocols(name)]
    found = {protocol: rows_of(default_units(name, protocol)) for protocol, _ in views}
    rows = [row for rows in found.values() for row in rows]
    if not rows:
        return []
    columns = [cells(found[protocol], users) for protocol, users in views]
    columns.append({row.unit.label: format_number(row.seconds, 1) for row in found["fifth"]})
    lines = [line[1:] for line in by_label("", columns)]
    size = "{users:,} users, {items:,} items, {rows:,} rows".format(**rows[0].record)
    header = ["method", *(VIEWS[view] for view in views), "CPU s, first column"]
    notes = [note for same in found.values() for note in conventions(same)]
    return [f"### {name}: {size}", "", f"{SOURCES[name].words}.", "", table(header, lines), "", *notes, ""]


def measured_on(units: Sequence[Unit]) -> list[str]:
    """Where the results come from, and which are missing."""
    records = [row.record for row in rows_of(units)]
    places = sorted({f"{record['environment']}; threads of each method: {record['threads']}" for record in records})
    missing = [f"{unit.label} ({unit.data}, {unit.protocol})" for unit in units if not unit.path.exists()]
    told = "; ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    return [*(f"Measured on {place}." for place in places), *([f"Not measured: {told}."] if missing else []), ""]


def page(sets: Sequence[str]) -> str:
    """The whole page."""
    pairs = each_protocol(sets)
    units = [unit for pair in pairs for unit in default_units(*pair)]
    tried = [unit for pair in pairs for kind in GRIDS for unit in trials(*pair, kind)]
    lines = [INTRODUCTION, *measured_on(units + [unit for unit in tried if unit.path.exists()])]
    for (protocol, users), title in VIEWS.items():
        by_set = {name: rows_of(default_units(name, protocol)) for name in sets if protocol in protocols(name)}
        lines += [f"## {title}", "", *summary(by_set, users)] if by_set else []
    lines += [*cpu_seconds(sets), *rated(sets), *tuned(sets), "## Set by set", ""]
    return "\n".join([*lines, *(line for name in sets for line in details(name))]).rstrip() + "\n"
