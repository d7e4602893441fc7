"""A reproduction as Markdown."""

import math
import statistics
from collections.abc import Iterable, Sequence

from topnrank.experiments.paper.plan import MIN_USER_ITEMS, N
from topnrank.experiments.paper.published import CUTS
from topnrank.experiments.paper.reproduce import TESTED, Reproduction
from topnrank.experiments.statistics import PairedTest
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


def to_markdown(made: Reproduction) -> str:
    """The whole page: table, what the paper leaves out, tests, settings."""
    parts = [
        f"# {made.plan.title}, on {made.plan.name}",
        _facts(made),
        *_scores(made),
        "## What the paper leaves out",
        *_details(made),
        f"## Differences per user, {TESTED.upper()}",
        *_tests(made.tests()),
        "## How this was run",
        *_settings(made),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(made: Reproduction) -> str:
    data, lengths, out = made.plan.data, made.plan.train_lengths(), made.users_left_out()
    left_out = f"{min(out):,} to {max(out):,}" if out and min(out) != max(out) else f"{(out or [0])[0]:,}"
    halves = _count(made.comparison.repeats, "random half", "random halves")
    return (
        f"{data.n_users:,} users with {MIN_USER_ITEMS} ratings or more, {data.n_items:,} items, {len(data):,} ratings; "
        f"{halves}. Training lists: median {statistics.median(lengths):g}, longest {int(lengths.max()):,} items; "
        f"{(lengths > N).mean():.0%} of them are longer than N = {N}; only there can a count of {N} cut. Users left "
        f"out of the means, because no test item of theirs is relevant: {left_out}."
    )


def _scores(made: Reproduction) -> list[str]:
    """Means, ours and the paper's."""
    both = bool(made.plan.published)
    lines = []
    for row in made.rows:
        if (error := made.comparison.error(row)) is not None and math.isnan(made.mean(row)[0]):
            lines.append([row, *["failed"] * len(CUTS), error.replace("|", "/")])
            continue
        theirs = made.published(row)
        cells = [
            f"{ours:.4f}" + (f" / {theirs[at]:.4f}" if theirs else " / -" if both else "")
            for at, ours in enumerate(made.mean(row))
        ]
        lines.append([row, *cells, _number(made.spread(row)[CUTS.index(10)])])
    heads = [f"NDCG@{cut}" + (" ours / paper" if both else "") for cut in CUTS]
    absent = "" if both else "These are not the paper's data, so no published numbers stand beside ours."
    return [absent, _table(["method", *heads, "sd @10"], lines)]


def _details(made: Reproduction) -> list[str]:
    lines, edges = [], False
    for row in made.rows:
        detail = made.detail(row)
        edges = edges or bool(detail.at_edge)
        active = "-" if detail.effective_n is None else f"{detail.effective_n:.1f}"
        chosen = _choices(detail.chosen, detail.at_edge)
        lines.append([row, active, _number(detail.seconds, 2), _number(detail.seconds_with_choice, 2), chosen])
    heads = ["method", "effective N", "seconds of a fit", "with the choice", "chosen on validation data, by repeat"]
    notes = [
        f"Effective N: items of a training list whose smooth rank is below N at the end of training, on average; N = {N} "
        "is meant to be the number of items that count.",
        "\\* an end of the grid was chosen in some repeat: a better value may lie beyond it." if edges else "",
    ]
    return [_table(heads, lines), *notes]


def _choices(chosen: Sequence[dict[str, float]], at_edge: Sequence[str]) -> str:
    names = list(chosen[0]) if chosen else []
    texts = []
    for name in names:
        star = "\\*" if name in at_edge else ""
        texts.append(f"{name.replace('_', ' ')}{star} " + ", ".join(f"{point[name]:g}" for point in chosen))
    return "; ".join(texts) or "-"


def _tests(tests: Iterable[PairedTest]) -> list[str]:
    lines = [
        [
            f"{test.first} - {test.second}",
            f"{test.difference:+.4f}",
            f"[{test.interval[0]:+.4f}, {test.interval[1]:+.4f}]",
            _p_value(test.t_holm),
            _p_value(test.wilcoxon_holm),
            f"{test.effect:+.2f}",
            test.note,
        ]
        for test in tests
    ]
    heads = ["pair", "difference", "95 % interval", "t-test, Holm", "Wilcoxon, Holm", "d", "note"]
    return [
        "Paired by user after averaging the repeats; p-values corrected over all rows and cut-offs.",
        _table(heads, lines),
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


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = "|" + "---|" * len(heads)
    return "\n".join(["| " + " | ".join(heads) + " |", rule, *("| " + " | ".join(line) + " |" for line in lines)])


def _number(value: float, digits: int = 4) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _p_value(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else _number(value)
