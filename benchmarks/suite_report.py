"""The report of the benchmark suite: one dictionary, written as JSON and as Markdown."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suite_measure import Measure
from topnrank.io.atomic import write_atomically

_HOW = (
    "Ours and the peer take turns in one process, round by round, after a round that warms up and does not count. A ratio "
    "is the median over the rounds of ours divided by the peer's of the same round; in brackets the quartiles. The smaller, "
    "the better, unless it says *times faster*. CPU is the time of all threads of the process together, wall that of the "
    "clock. Numbers of one machine and one run: read ratios, not seconds."
)


def as_report(measures: Sequence[Measure], environment: Mapping[str, Any]) -> dict[str, Any]:
    """All there is to write; `environment` holds hardware, versions, peers, parts and settings."""
    return {**environment, "measures": [measure.to_dict() for measure in measures]}


def write(report: Mapping[str, Any], folder: Path) -> tuple[Path, Path]:
    """Writes bench.md and bench.json to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    page, numbers = folder / "bench.md", folder / "bench.json"
    write_atomically(page, lambda path: path.write_text(to_markdown(report), encoding="utf-8"))
    text = json.dumps(report, indent=1, default=float)
    write_atomically(numbers, lambda path: path.write_text(text + "\n", encoding="utf-8"))
    return page, numbers


def to_markdown(report: Mapping[str, Any]) -> str:
    """The page."""
    measures = report["measures"]
    held = [one for one in measures if one["bar"] is not None]
    lines = ["# Benchmarks", "", _HOW, "", *_surroundings(report), "", *_missing(report), ""]
    if held:
        lines += ["## Against the bars", "", *_table(held, with_part=True), "", _count(held), ""]
    for part, note in report["parts"].items():
        rows = [one for one in measures if one["part"] == part]
        lines += [f"## {part.capitalize()} ({note['seconds']:.0f} s)", ""]
        if note.get("left out"):
            lines += [f"Left out: {note['left out']}.", ""]
        if note.get("error"):
            lines += [f"**This part ended early: {note['error']}**", ""]
        if rows:
            lines += [*_table(rows, with_part=False), "", *_notes(rows)]
    return "\n".join(lines).rstrip() + "\n"


def _surroundings(report: Mapping[str, Any]) -> list[str]:
    hardware, settings = report["hardware"], report["settings"]
    memory = f", {hardware['memory_gib']} GiB" if "memory_gib" in hardware else ""
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    seconds = sum(note["seconds"] for note in report["parts"].values())
    kind = "quick, tiny sizes: only to see that it runs" if settings.get("quick") else "the whole suite"
    return [
        f"- {hardware['processor']}, {hardware['cores']} cores{memory}; {hardware['system']}",
        f"- {versions}",
        f"- {report['date']}; {seconds / 60:.1f} minutes; {settings['rounds']} rounds; {kind}",
    ]


def _missing(report: Mapping[str, Any]) -> list[str]:
    """Peers that are not in the tables, by name."""
    lines = []
    for name, note in report["peers"].items():
        if "missing" in note:
            lines.append(f"- **{name}** is missing: {_cell(note['missing'])}")
        for other, why in note.get("instead of", {}).items():
            lines.append(f"- **{other}** did not install ({_cell(why)}); measured is {note['installed']}")
    return ["Peers:", "", *lines] if lines else ["All peers are installed."]


def _count(held: Sequence[Mapping[str, Any]]) -> str:
    words = ("meets the goal", "meets the bar", "misses the bar")
    counts = {verdict: sum(one["verdict"] == verdict for one in held) for verdict in words}
    return "; ".join(f"{verdict}: {count}" for verdict, count in counts.items()) + "."


def _table(rows: Sequence[Mapping[str, Any]], *, with_part: bool) -> list[str]:
    heads = ["measure", "data", "ours", "peer", "ratio", "bar", "goal", "verdict"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for one in rows:
        name = f"{one['part']}: {one['name']}" if with_part else one["name"]
        peer = "-" if one["peer"] is None else f"{one['peer']}: {_value(one['others'], one['unit'])}"
        cells = [name, one["data"], _value(one["ours"], one["unit"]), peer, _ratio(one), *_limits(one)]
        lines.append("| " + " | ".join(_cell(cell) for cell in [*cells, one["verdict"] or "-"]) + " |")
    return lines


def _notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is counted, once for each text, and the further facts."""
    notes = dict.fromkeys(one["counted"] for one in rows if one["counted"])
    lines = [f"- {note}" for note in notes]
    for one in rows:
        if one["facts"]:
            facts = ", ".join(f"{name} {_number(value)}" for name, value in one["facts"].items())
            lines.append(f"- {one['name']}, {one['data']}: {facts}")
    return [*lines, ""] if lines else []


def _value(values: Mapping[str, Any], unit: str) -> str:
    return f"{_number(values['median'])} {unit} ({_number(values['low'])}-{_number(values['high'])})"


def _ratio(one: Mapping[str, Any]) -> str:
    ratio = one["ratio"]
    if ratio is None:
        return "-"
    words = " times faster" if one["faster"] else ""
    return f"**{ratio['median']:.2f}**{words} ({ratio['low']:.2f}-{ratio['high']:.2f})"


def _limits(one: Mapping[str, Any]) -> list[str]:
    if one["bar"] is None:
        return ["-", "-"]
    words = "at least" if one["bar"]["at_least"] else "at most"
    unit = f" {one['unit']}" if one["ratio"] is None else ""
    goal = one["bar"]["goal"]
    return [f"{words} {one['bar']['bar']:g}{unit}", "-" if goal is None else f"{goal:g}{unit}"]


def _number(value: Any) -> str:
    if not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _cell(text: str) -> str:
    """Text that does not end a cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|")
