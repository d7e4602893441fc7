"""The tables of `topnrank compare`, for people and machines."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from topnrank.cli.output import Output
    from topnrank.experiments.compare.result import Comparison
    from topnrank.experiments.statistics import PairedTest

LEVELS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""A corrected p-value below a level earns its stars."""
DISAGREES = "°"
LEGEND = (
    "Difference to {reference}: reference minus row, mean over users after averaging the repeats. p: Student's t, paired, "
    "Holm-corrected over all rows and metrics of a protocol; * p < .05, ** p < .01, *** p < .001; "
    f"{DISAGREES}: Wilcoxon's test is on the other side of .05."
)


def show(comparison: "Comparison", tests: "Sequence[PairedTest]", output: "Output") -> None:
    """Means, then tests, then how they were made."""
    output.show(_means(comparison))
    for name in comparison.models:
        if (why := comparison.error(name)) is not None:
            output.show(f"{name} failed: {why}")
    output.show(_legend(comparison))
    if tests:
        output.show("", _differences(comparison, tests))
        output.show(LEGEND.format(reference=tests[0].first))
        for note in dict.fromkeys(f"{test.second}: {test.note}" for test in tests if test.note and test.users):
            output.show(note)
    for convention in comparison.facts.get("conventions", {}).values():
        output.show("", convention)


def stars(p: float) -> str:
    """*, ** or *** for a small corrected p-value."""
    return next((mark for level, mark in LEVELS if p < level), "")


def _table(comparison: "Comparison", title: str, extra: Sequence[str] = ()) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model", overflow="fold", max_width=24)
    for name in (*comparison.metrics, *extra):
        table.add_column(name, justify="right" if extra else "left", no_wrap=True)
    return table


def _means(comparison: "Comparison") -> "Table":
    """One row for each model and protocol: mean over repeats, below it the standard deviation."""
    from rich.text import Text

    from topnrank.experiments.report.formatting import is_better_higher

    last = comparison.metrics[-1]
    extra = (f"95 % {last}", "fit s")
    table = _table(comparison, f"Mean over {comparison.repeats} repeats, ± standard deviation over repeats", extra)
    for protocol in comparison.protocols:
        _section(table, comparison, protocol)
        ranked = [metric for metric in comparison.metrics if is_better_higher(metric)]
        best = {m: max(_mean(comparison, n, protocol, m) for n in comparison.models) for m in ranked}
        for name in comparison.models:
            cells = []
            for metric in comparison.metrics:
                value = _mean(comparison, name, protocol, metric)
                text = Text(_number(value), "bold" if value == best.get(metric) else "")
                spread = comparison.spread(name, protocol, metric)
                cells.append(text.append("" if math.isnan(spread) else f"\n±{_number(spread)}", "dim not bold"))
            failed = comparison.error(name) is not None and math.isinf(_mean(comparison, name, protocol, last))
            interval = "failed" if failed else _interval(comparison, name, protocol, last)
            table.add_row(name, *cells, interval, _seconds(comparison.seconds(name)))
    return table


def _differences(comparison: "Comparison", tests: "Sequence[PairedTest]") -> "Table":
    """One row for each model and protocol: the difference with stars, below it the corrected p-value."""
    found = {(test.protocol, test.second, test.metric): test for test in tests}
    table = _table(comparison, f"Against {tests[0].first}")
    for protocol in comparison.protocols:
        _section(table, comparison, protocol)
        for name in comparison.models:
            if name != tests[0].first:
                cells = [found[protocol, name, metric] for metric in comparison.metrics]
                table.add_row(name, *(f"{_difference(test)}\n{_p(test)}" for test in cells))
    return table


def _section(table: "Table", comparison: "Comparison", protocol: str) -> None:
    """A line with the name of the protocol, where there are two."""
    if len(comparison.protocols) > 1:
        from rich.text import Text

        table.add_section()
        table.add_row(Text(f"protocol {protocol}", "italic"))


def _difference(test: "PairedTest") -> str:
    return "-" if math.isnan(test.difference) else f"{test.difference:+.4f} {stars(test.t_holm)}"


def _p(test: "PairedTest") -> str:
    if math.isnan(test.t_holm):
        return ""
    disagrees = (test.t_holm < 0.05) != (test.wilcoxon_holm < 0.05)
    shown = f"{test.t_holm:.3f}" if test.t_holm >= 0.001 else f"{test.t_holm:.0e}"
    return f"p {shown}{DISAGREES if disagrees else ''}"


def _legend(comparison: "Comparison") -> str:
    last = comparison.metrics[-1]
    text = f"95 %: bootstrap interval over users for {last}. fit s: mean seconds of training."
    reached = comparison.facts.get("effective_n", {}).get("rated", {}).get(last)
    if reached is not None and (cut := last.partition("@")[2]) and reached < int(cut):
        text += f" Some users' rated lists are shorter than {cut}: {last} sees {reached:.1f} items on average."
    return text


def _mean(comparison: "Comparison", model: str, protocol: str, metric: str) -> float:
    """The mean, minus infinity where there is none, so that it is never the best."""
    value = comparison.mean(model, protocol, metric)
    return -math.inf if math.isnan(value) else value


def _number(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "-"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if math.isfinite(value) else "-"


def _interval(comparison: "Comparison", model: str, protocol: str, metric: str) -> str:
    from topnrank.experiments.statistics import bootstrap_interval

    low, high = bootstrap_interval(comparison.values(model, protocol, metric))
    return f"{_number(low)}\n{_number(high)}"


def as_json(comparison: "Comparison", tests: "Sequence[PairedTest]") -> dict[str, Any]:
    """Everything but the values per user."""
    return {
        "models": list(comparison.models),
        "protocols": list(comparison.protocols),
        "metrics": list(comparison.metrics),
        "repeats": comparison.repeats,
        "results": [_result(comparison, name, p) for p in comparison.protocols for name in comparison.models],
        "tests": [asdict(test) for test in tests],
        "settings": comparison.settings,
        "facts": comparison.facts,
    }


def _result(comparison: "Comparison", model: str, protocol: str) -> dict[str, Any]:
    from topnrank.experiments.statistics import bootstrap_interval

    values = {
        metric: {
            "mean": comparison.mean(model, protocol, metric),
            "spread": comparison.spread(model, protocol, metric),
            "interval": bootstrap_interval(comparison.values(model, protocol, metric)),
        }
        for metric in comparison.metrics
    }
    facts = {"fit_seconds": comparison.seconds(model), "error": comparison.error(model)}
    return {"model": model, "protocol": protocol, "values": values, **facts}
