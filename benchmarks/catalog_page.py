"""The page of the catalog study, docs/results/catalog.md, from the folder that benchmarks/catalog.py filled.

TOPNRANK_DATA=folder python benchmarks/catalog_page.py --folder results [--markdown docs/results/catalog.md]
"""

import argparse
import datetime
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from catalog import METRICS, read_test, read_trials
from catalog_data import DATA, Task, load
from catalog_methods import Method, methods
from common import environment
from topnrank.experiments.compare.result import Cell, Comparison
from topnrank.experiments.report.formatting import format_number, format_test, format_value, metric_label
from topnrank.experiments.report.markdown import table
from topnrank.experiments.statistics import PairedTest, bootstrap_intervals, paired_tests
from topnrank.io.atomic import write_atomically

INTRODUCTION = """# Ranking the whole catalog

Every item of the catalog is ranked for every user, never a sample of them. NDCG is binary with log2 discounts, its
ideal cut at the number of relevant items; recall is hits / relevant items; tied scores count with their expected
value.

Each method was tuned with the same number of trials, compared by NDCG@10 on validation rows: first a setting known to
be good (for this library's models their defaults), then settings drawn at random from the space shown. The known
settings and the defaults come from earlier work on the same data with other splits, which put more effort into this
library's models than into the others. Training time beside ALS: [catalog_time.md](catalog_time.md). Where there
are three splits, rows tested in the second and third were training or validation rows of the first, for all methods
alike. A method with more trials than the others was searched in another space, too; all of its trials are counted.

A mean is one over users after averaging each user's repeats; its interval is a 95 % bootstrap interval over users, as
are those of the differences. p values are Holm-corrected over all rows and metrics of a data set. CPU seconds are
those of one `fit` with the settings chosen, on one thread, the median of the repeats; those for tuning are of all
validation fits together. "Coverage" is the share of all items that stand in some user's top 10.
"""


@dataclass(frozen=True)
class Row:
    """What the folder holds of one method."""

    label: str
    space: str
    """What was searched, in words"""
    facts: list[dict[str, Any]]
    """One record for each repeat"""
    trials: list[dict[str, Any]]

    @property
    def settings(self) -> str:
        """The settings chosen, in words."""
        return format_value(self.facts[0]["settings"]) if self.facts[0]["settings"] else "-"


def read_rows(task: Task, folder: Path) -> list[Row]:
    """All methods whose test fits are complete, in the order of the table of methods."""
    found = []
    for key, method in methods(task.name, task.kind).items():
        facts = [read_test(folder / task.name / key / f"{split}-{seed}.npz") for split, seed in repeats(task, method)]
        complete = [record for record in facts if record is not None]
        if len(complete) == len(facts):
            space = "; ".join(
                f"{setting.replace('_', ' ')} {values}" for setting, values in method.search.space.items()
            )
            trials = read_trials(folder / task.name / key / "trials.jsonl")
            found.append(Row(method.label, space, complete, trials))
    return found


def repeats(task: Task, method: Method) -> list[tuple[int, int]]:
    """(split, seed) of each repeat; a model without random numbers is the same with every seed."""
    every = task.repeats(random=True)
    return every if method.random else [(split, seed if len(task.tests) > 1 else 0) for split, seed in every]


def compared(task: Task, rows: list[Row]) -> Comparison:
    """The values as the library's statistics take them."""
    cells = {
        (row.label, repeat): Cell(
            model=row.label,
            repeat=repeat,
            fit_seconds=facts["cpu_seconds"],
            evaluate_seconds=0.0,
            values={("catalog", metric): facts["values"][metric] for metric in METRICS},
            curve=[],
            error=None,
        )
        for row in rows
        for repeat, facts in enumerate(row.facts)
    }
    names = tuple(row.label for row in rows)
    shape = ("catalog",), METRICS, len(task.repeats(random=True)), task.data.users.ids
    return Comparison(names, *shape, settings={}, facts={}, cells=cells)


# -- tables --------------------------------------------------------------------------------------------------------------


def scores(comparison: Comparison, rows: list[Row]) -> list[str]:
    """Means, seconds and coverage; the best mean of each metric is bold."""
    means = {metric: [comparison.mean(row.label, "catalog", metric) for row in rows] for metric in METRICS}
    header = ["method", "NDCG@10", "95 % interval", *map(metric_label, METRICS[1:]), "coverage", "CPU s", "trials"]
    lines = []
    for place, row in enumerate(rows):
        shown = []
        for metric in METRICS:
            text = format_number(means[metric][place])
            shown.append(f"**{text}**" if means[metric][place] == max(means[metric]) else text)
        low, high = bootstrap_intervals([comparison.values(row.label, "catalog", METRICS[0])])[0]
        coverage = statistics.mean(facts["coverage"] for facts in row.facts)
        seconds = statistics.median(facts["cpu_seconds"] for facts in row.facts)
        last = [f"{coverage:.3f}", f"{seconds:.1f}", str(len(row.trials) or "-")]
        lines.append([row.label, shown[0], f"{format_number(low)} to {format_number(high)}", *shown[1:], *last])
    return [table(header, lines)]


def differences(comparison: Comparison, reference: str) -> list[str]:
    """The reference against every other row."""
    tests: list[PairedTest] = sorted(paired_tests(comparison, reference), key=lambda test: METRICS.index(test.metric))
    header = [
        "metric",
        "against",
        "difference",
        "95 % interval",
        "p, Student's t",
        "p, Wilcoxon",
        "effect size",
        "users",
    ]
    return [table(header, [format_test(test) for test in tests])]


def chosen(rows: list[Row]) -> list[str]:
    """Settings, validation values and the effort of tuning."""
    lines = []
    for row in rows:
        if row.trials:
            values = sorted((trial["value"] for trial in row.trials), reverse=True)
            seconds = sum(trial["cpu_seconds"] for trial in row.trials)
            spread = f"{format_number(values[0])} (median {format_number(float(np.median(values)))})"
            lines.append([row.label, row.space, row.settings, spread, f"{seconds:.0f}"])
    header = ["method", "space", "settings chosen", "validation NDCG@10 of the best trial", "CPU s of all trials"]
    return [table(header, lines)]


NOTES = {
    "ml-1m": """
Shares were first rounded down; after ALS came out below what earlier work had found, they were rounded to the
nearest whole number and everything was run again, and each search begins with a setting known to be good. WARP
is capped at 40 epochs and would gain a little from more. "TopNRank, likes only" has what ALS, EASE, WARP and
BPR have. Trained for rated items, as published or with our defaults, Top-N-Rank ranks the catalog below
popularity.
""",
    "ml-100k": """
BPR was searched in a second space after its test; the first one had the better trial on validation data and
stays.
""",
    "amazon-video-games": """
TopNRank and NeighborRidge use the order of a user's items (recency), which the others do not take.
NeighborRidge without it is level with EASE: the lead is the order's, and TopNRank adds nothing to its
neighbor term at NDCG@10.
""",
    "retail-rocket": """
What leads is the sessions: events of a user less than a minute or so apart. NeighborRidge and TopNRank count items
together by them, the others do not know them; without sessions our models are behind EASE and ALS with all events
equal. EASE on sessions would be NeighborRidge with all items as neighbors; it was not run. Weights by conversion bring
nothing here: all events equal are as good or better, for ours as for ALS and EASE; purchases alone are too few.

The file holds out pairs, not a time: what a user looked at just before and after the purchase is training data, for all
methods alike, and who knows sessions makes the most of it. Without the half hour before the purchase the lead is smaller,
without the day before it there is none: [sessions.md](sessions.md).

This is the second study of these data. In the first, our models, without sessions, lost the test (TopNRank 0.0752, EASE
0.0872) after they had won on validation data. Those held out the last purchase of everybody, so that most users had none
left, while everybody tested has one. Now validation users have one, too; on such data EASE led as in the test, and there
sessions were found and the spaces drawn up. All methods were tuned anew.
""",
}
"""What must be said beside the numbers of a data set."""


def section(name: str, folder: Path, reference: str) -> list[str]:
    """All of one data set; nothing where no method is complete."""
    task = load(name)
    rows = read_rows(task, folder)
    if not rows:
        return []
    comparison = compared(task, rows)
    size = f"{task.data.n_users:,} users, {task.data.n_items:,} items, {len(task.data):,} rows"
    lines = [f"## {name}: {size}", "", task.words, "", *scores(comparison, rows), "", NOTES[name].strip(), ""]
    if reference in comparison.models:
        lines += [f"### {reference} against the others", "", *differences(comparison, reference), ""]
    return [*lines, "### Settings", "", *chosen(rows), ""]


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--reference", default="TopNRank", help="the row that the others are tested against")
    parser.add_argument("--markdown", type=Path, help="write the page to this file instead of printing it")
    arguments = parser.parse_args()
    lines = [INTRODUCTION, f"{environment()}; {datetime.date.today().isoformat()}.", ""]
    for name in DATA:
        if (arguments.folder / name).exists():
            lines += section(name, arguments.folder, arguments.reference)
    text = "\n".join(lines).rstrip() + "\n"
    if arguments.markdown is None:
        print(text)
        return

    def write(temporary: Path) -> None:
        temporary.write_text(text)

    write_atomically(arguments.markdown, write)


if __name__ == "__main__":
    main()
