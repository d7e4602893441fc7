"""A reproduction as tables: cells for the terminal, and a Markdown page."""

import math
import statistics

from topnrank.experiments.paper.plan import MIN_USER_ITEMS, N
from topnrank.experiments.paper.published import CUTS
from topnrank.experiments.paper.reproduce import TESTED, Reproduction
from topnrank.experiments.report.formatting import TEST_HEADER, format_number, format_test, metric_label
from topnrank.experiments.report.markdown import escape, table
from topnrank.experiments.statistics import STAR_RULE
from topnrank.experiments.tuning.grid import GridSearch

PAPER = (
    "The paper's variants: k = 10, N = 20, C = 7, start values U(0, 2/(7k)^(1/4)), batches of 10 % of the users, 30 "
    "iterations or until the parameters move less than 0.1, weights +1 from 4 stars on and -1 below."
)
GIVEN = "Lambda is the paper's 0.1; the learning rate, which it does not give, is picked for each variant."
FAIR = (
    "Rate and lambda are picked for each arm: with ReLU the gate has height N, not 1, so that one rate and one lambda for "
    "all arms would compare step sizes. The arm whose N is larger than any list has the gate's shape and cuts next to "
    "nothing; with the sigmoid it would be the arm without truncation."
)
OTHERS = (
    "The other methods: 10 factors, free user vectors, else this library's settings (item biases, AdaGrad and more "
    "epochs, which the paper's variants do not have); first their rate is picked, then lambda at that rate. MF-ADG is a "
    "reconstruction."
)
CONVENTION = (
    "NDCG has gain 1 for ratings of 4 and more, ranks each user's own test items, and counts ties by their expected value. "
    "Our default Top-N-Rank has other settings throughout: 50 factors, users as histories, more epochs."
)
TESTS = f"Paired by user after averaging the repeats; p values Holm-corrected over all rows and cut-offs; {STAR_RULE}."
PAIR_HEADER = ("Pair", *TEST_HEADER[2:])


def score_cells(made: Reproduction) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the means, beside the paper's where it has them; of a row that failed, why."""
    both = " ours / paper" if made.plan.published else ""
    rows = []
    for row in made.rows:
        if math.isnan(made.mean(row)[0]):
            rows.append([row, *["failed"] * len(CUTS), made.comparison.error(row) or "-"])
            continue
        theirs = made.published(row)
        published = [f" / {value:.4f}" for value in theirs] if theirs else [" / -" if both else ""] * len(CUTS)
        cells = [f"{ours:.4f}{value}" for ours, value in zip(made.mean(row), published, strict=True)]
        rows.append([row, *cells, format_number(made.std(row)[CUTS.index(10)])])
    return ["method", *(f"NDCG@{cut}{both}" for cut in CUTS), "sd @10"], rows


def pair_cells(made: Reproduction) -> list[list[str]]:
    """Rows of the table of tests under `PAIR_HEADER`."""
    return [[f"{test.first} - {test.second}", *format_test(test)[2:]] for test in made.tests()]


def to_markdown(made: Reproduction) -> str:
    """The whole page: table, what the paper leaves out, tests, settings."""
    header, rows = score_cells(made)
    parts = [
        f"# {made.plan.title}, on {made.plan.name}",
        _data_facts(made),
        ""
        if made.plan.published
        else "These are not the paper's data, so there are no published numbers to compare with.",
        table(header, [list(map(escape, cells)) for cells in rows]),
        "## What the paper leaves out",
        *_details(made),
        f"## Differences per user, {metric_label(TESTED)}",
        escape(TESTS),
        table(PAIR_HEADER, [list(map(escape, cells)) for cells in pair_cells(made)]),
        "## How this was run",
        *_settings(made),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _data_facts(made: Reproduction) -> str:
    data, lengths, out, repeats = (
        made.plan.data,
        made.plan.train_lengths(),
        made.users_left_out(),
        made.comparison.repeats,
    )
    left_out = f"{min(out):,} to {max(out):,}" if out and min(out) != max(out) else f"{(out or [0])[0]:,}"
    return (
        f"{data.n_users:,} users with {MIN_USER_ITEMS} ratings or more, {data.n_items:,} items, {len(data):,} ratings; "
        f"{repeats} random {'half' if repeats == 1 else 'halves'}. Training lists: median {statistics.median(lengths):g}, "
        f"longest {int(lengths.max()):,} items; {(lengths > N).mean():.0%} of them are longer than N = {N}; only there can "
        f"a count of {N} cut. Users left out of the means, because no test item of theirs is relevant: {left_out}."
    )


def _details(made: Reproduction) -> list[str]:
    lines, edges = [], False
    for row in made.rows:
        detail = made.detail(row)
        edges = edges or bool(detail.at_edge)
        active = "-" if detail.effective_n is None else f"{detail.effective_n:.1f}"
        chosen = []
        for name in detail.chosen[0] if detail.chosen else ():
            edge = "†" if name in detail.at_edge else ""
            values = ", ".join(f"{point[name]:g}" for point in detail.chosen)
            chosen.append(f"{name.replace('_', ' ')}{edge} {values}")
        seconds = [format_number(value, 2) for value in (detail.seconds, detail.seconds_with_choice)]
        lines.append([escape(row), active, *seconds, "; ".join(chosen) or "-"])
    return [
        table(
            ["method", "effective N", "seconds of a fit", "with the choice", "chosen on validation data, by repeat"],
            lines,
        ),
        f"Effective N: items of a training list whose smooth rank is below N at the end of training, on average; N = {N} "
        "is meant to be the number of items that count.",
        "† an end of the grid was chosen in some repeat: a better value may lie beyond it." if edges else "",
    ]


def _settings(made: Reproduction) -> list[str]:
    grids = [
        f"* {row}: "
        + "; ".join(f"{name} from {', '.join(f'{v:g}' for v in tried)}" for name, tried in model.grid.items())
        for row, model in made.plan.rows.items()
        if isinstance(model, GridSearch)
    ]
    versions = made.comparison.settings.get("versions", {})
    where = ", ".join(f"{name} {version}" for name, version in versions.items())
    return [
        f"{PAPER} {FAIR if made.plan.fair else GIVEN}" + (f" {OTHERS}" if made.plan.table == "table4" else ""),
        CONVENTION,
        "Picked at each repeat by NDCG@10 on a quarter of each user's training half:",
        "\n".join(grids),
        f"Versions: {where}. Date: {made.comparison.settings.get('date', 'unknown')}." if where else "",
    ]
