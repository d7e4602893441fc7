"""The figures of a comparison: curves over cut-offs, differences, single users, runtime, training, list lengths.

    for picture in pictures(comparison):
        picture.write(f"figures/{picture.name}.svg")

Needs Matplotlib (`pip install 'topnrank[report]'`); nothing is shown on a screen.
"""

import io
import math
import os
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from topnrank._checks import one_of
from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report.formatting import format_signed, metric_label, protocol_label, short_labels, shorten
from topnrank.experiments.report.plot_style import (
    GRID,
    INK,
    SOFT,
    VARIABLES,
    legend_below,
    log_axis,
    looks,
    sheet,
    style,
)
from topnrank.experiments.report.summary import USUAL_CUTS, Summary
from topnrank.experiments.statistics import PairedTest, per_user
from topnrank.io.atomic import write_atomically, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_PANELS = 8
"""More small panels than this would not be looked at one by one."""
_NOISE = 1e-12
"""Averages over repeats that differ by less are equal."""
MAX_POINTS = 400
"""Points of a line over users: enough for the eye, and few enough for a page."""


@final
class Picture(NamedTuple):
    """A figure with its title and description."""

    name: str
    """Short, for files and links."""
    title: str
    description: str
    """What it shows and how to read it; also the text for screen readers."""
    figure: "Figure"
    protocol: str | None = None
    """The protocol whose results it shows; None for training and data."""

    def svg(self) -> str:
        """An SVG document; the same figure gives the same text."""
        text = io.StringIO()
        with style():
            self.figure.savefig(text, format="svg", metadata={"Date": None, "Creator": "topnrank"})
        return text.getvalue()

    def inline(self) -> str:
        """An SVG element for a page: ids of its own, colors and font of the page, a text for screen readers."""
        document = self.svg()
        body = document[document.index("<svg") :]
        body = re.sub(
            r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", "", body, flags=re.DOTALL
        )  # of the whole page
        opening, content = body.split(">", 1)
        view = re.search(r'viewBox="[^"]+"', opening)
        content = re.sub(r'\bid="', f'id="{self.name}-', content)
        content = re.sub(r"(xlink:)?href=\"#", f'href="#{self.name}-', content)
        content = content.replace("url(#", f"url(#{self.name}-")
        content = content.replace("font-family: 'DejaVu Sans', sans-serif; ", "")
        for color, variable in VARIABLES.items():
            content = content.replace(color, f"var({variable})")
        label = escape(f"{self.title}. {self.description}")
        return f'<svg {view[0] if view else ""} role="img" aria-label="{label}">{content.rstrip()}'

    def _repr_html_(self) -> str:
        with style():
            text = self.svg()
        drawing = text[text.index("<svg") :]
        below = f"<figcaption>{escape(self.description)}</figcaption>"
        return f"<figure><b>{escape(self.title)}</b><br>{drawing}{below}</figure>"

    def __repr__(self) -> str:
        return f"Picture({self.title!r}: write(path) makes a .svg, .pdf or .png file, .figure is Matplotlib's)"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the figure; the ending says how: .svg, .pdf or .png."""
        kind = one_of("the ending of a figure's file", Path(path).suffix.lower().lstrip("."), ("svg", "pdf", "png"))
        if kind == "svg":
            write_text(path, self.svg())
            return
        with style():
            write_atomically(path, lambda temporary: self.figure.savefig(temporary, format=kind, dpi=200))


def pictures(comparison: Comparison | Summary, reference: str | None = None) -> list[Picture]:
    """All figures that the comparison has numbers for."""
    summary = Summary.of(comparison, reference)
    found: list[Picture | None] = []
    with style():
        for protocol in summary.comparison.protocols:
            found += [draw(summary, protocol) for draw in (curves, differences, runtime, user_differences)]
        found += [draw(summary) for draw in (objectives, validation, list_lengths)]
    return [picture for picture in found if picture is not None]


def _of_protocol(what: str, title: str, words: str, summary: Summary, protocol: str, figure: "Figure") -> Picture:
    """A figure of one protocol's results, which its title names if there are several."""
    title = f"{title}, {protocol_label(protocol)}" if len(summary.comparison.protocols) > 1 else title
    return Picture(f"{what}-{protocol}", title, words, figure, protocol)


# -- quality ------------------------------------------------------------------------------------------------------------


def curves(summary: Summary, protocol: str) -> Picture | None:
    """A metric over its cut-offs, with 95 % bands."""
    kind = summary.headline.partition("@")[0]
    cuts = sorted(int(m.partition("@")[2]) for m in summary.comparison.metrics if m.startswith(f"{kind}@"))
    rows = summary.measured(protocol)
    if len(cuts) < 2 or not rows:
        return None
    figure, (axes,) = sheet(2.9)
    drawn = looks(summary)
    for row in rows:
        scores = [row.scores[f"{kind}@{cut}"] for cut in cuts]
        look = drawn[row.model]
        low, high = zip(*(score.interval for score in scores), strict=True)
        axes.fill_between(cuts, low, high, color=look.color, alpha=0.13, linewidth=0)
        marked = [place for place, cut in enumerate(cuts) if len(cuts) <= 6 or str(cut) in USUAL_CUTS]
        axes.plot(cuts, [score.mean for score in scores], markevery=marked, **look.line())
    axes.set_xticks(cuts if len(cuts) <= 6 else [cuts[0], *(cut for cut in cuts if cut % 5 == 0)])
    axes.set(xlabel="cut-off k", ylabel=f"{metric_label(kind)}@k")
    legend_below(figure, axes)
    words = "Mean over users and repeats at each cut-off; the bands are 95 % bootstrap intervals over users."
    return _of_protocol("curves", f"{metric_label(kind)}@k", words, summary, protocol, figure)


def _headline_tests(summary: Summary, protocol: str) -> list[PairedTest]:
    """The reference against every other row at the headline, the strongest other row first."""
    tests = [t for t in summary.tests(protocol) if t.metric == summary.headline and math.isfinite(t.difference)]
    return sorted(tests, key=lambda test: test.difference)


def differences(summary: Summary, protocol: str) -> Picture | None:
    """The mean difference of the reference to every other row, with 95 % intervals."""
    tests = _headline_tests(summary, protocol)
    if not tests:
        return None
    figure, (axes,) = sheet(0.75 + 0.27 * len(tests))
    drawn = looks(summary)
    for place, test in enumerate(tests):
        look, (low, high) = drawn[test.second], test.interval
        axes.plot([low, high], [place, place], color=look.color, linewidth=2.2, solid_capstyle="round")
        axes.plot([test.difference], [place], color=look.color, marker=look.marker, markersize=6.5)
    axes.axvline(0.0, color=INK, linewidth=1.0)
    axes.set_yticks(range(len(tests)), list(short_labels([test.second for test in tests], 26).values()))
    axes.set(ylim=(len(tests) - 0.4, -0.6), xlabel=f"difference in {metric_label(summary.headline)}")
    axes.locator_params(axis="x", nbins=5)
    axes.grid(False, axis="y")
    name = shorten(summary.reference, 34)
    words = (
        f"Mean difference per user between {name} and each other row, with 95 % intervals; "
        f"right of zero {name} is better, an interval across zero leaves it open."
    )
    title = f"{name} against the others at {metric_label(summary.headline)}"
    return _of_protocol("differences", title, words, summary, protocol, figure)


def user_differences(summary: Summary, protocol: str) -> Picture | None:
    """For each other row, the differences of all users in order: who gains, who loses, and how much."""
    tests = _headline_tests(summary, protocol)
    if not tests:
        return None
    which = f"The {MAX_PANELS} strongest others; each" if len(tests) > MAX_PANELS else "Each"
    tests = tests[:MAX_PANELS]
    figure, panels = sheet(0.5, len(tests), 1.6, sharex=True)
    titles = short_labels([test.second for test in tests], 13)
    for axes, test in zip(panels, tests, strict=True):
        _draw_users(axes, summary, test)
        axes.set_title(f"against {titles[test.second]}", loc="left")
    figure.supxlabel("users, in order of their difference", fontsize=10)
    figure.supylabel(f"difference in {metric_label(summary.headline)}", fontsize=10)
    name = shorten(summary.reference, 34)
    words = (
        f"{which} panel: {metric_label(summary.headline)} of {name} minus that of the other row, for every user, in order. "
        "Above zero the reference is better for them. The line across is the mean, its band the interval; scales differ."
    )
    return _of_protocol("users", "Differences user by user", words, summary, protocol, figure)


def _draw_users(axes: "Axes", summary: Summary, test: PairedTest) -> None:
    """One panel: sorted differences, filled above and below zero, with the mean and its interval."""
    of_both = [summary.comparison.values(model, test.protocol, test.metric) for model in (test.first, test.second)]
    gaps, drawn = per_user(of_both[0] - of_both[1]), looks(summary)
    gaps = np.sort(gaps[~np.isnan(gaps)])
    shares = np.linspace(0.0, 1.0, min(MAX_POINTS, max(len(gaps), 2)))
    line = np.quantile(gaps, shares)
    for part, model in ((np.maximum(line, 0.0), test.first), (np.minimum(line, 0.0), test.second)):
        axes.fill_between(100 * shares, part, 0.0, color=drawn[model].color, alpha=0.55, linewidth=0)
    axes.axhline(0.0, color=SOFT, linewidth=0.8)
    axes.axhspan(*test.interval, color=INK, alpha=0.18, linewidth=0)
    axes.axhline(test.difference, color=INK, linewidth=0.8)
    better, worse = (round(100 * float(share)) for share in ((gaps > _NOISE).mean(), (gaps < -_NOISE).mean()))
    facts = f"mean {format_signed(test.difference)}\nbetter {better} %, worse {worse} %"
    axes.text(0.03, 0.97, facts, transform=axes.transAxes, va="top", fontsize=8.5, linespacing=1.3)
    axes.set_xticks([0, 50, 100], ["0 %", "50 %", "100 %"])
    axes.locator_params(axis="y", nbins=4)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.45 * (high - low))  # room for the words


def runtime(summary: Summary, protocol: str) -> Picture | None:
    """Quality against the time of a fit."""
    rows = [row for row in summary.measured(protocol) if math.isfinite(row.fit_seconds)]
    if len(rows) < 2:
        return None
    figure, (axes,) = sheet(2.7)
    drawn = looks(summary)
    for row in rows:
        score, look, at = row.scores[summary.headline], drawn[row.model], max(row.fit_seconds, 1e-4)
        axes.plot([at, at], score.interval, color=look.color, linewidth=1.4, alpha=0.7)
        axes.plot([at], [score.mean], **(look.line() | {"linestyle": "none", "markersize": 7}))
    axes.margins(x=0.08)
    log_axis(axes, lambda seconds: f"{seconds:,.0f} s" if seconds >= 1 else f"{1000 * seconds:g} ms")
    axes.set(xlabel="time to fit (log scale)", ylabel=metric_label(summary.headline))
    legend_below(figure, axes)
    words = "Mean time of one fit against the metric, with 95 % intervals over users; up and to the left is better."
    return _of_protocol("runtime", "Quality against runtime", words, summary, protocol, figure)


# -- training and data --------------------------------------------------------------------------------------------------


def _histories(comparison: Comparison, key: str) -> dict[str, list[tuple[list[float], list[float]]]]:
    """(rounds, values) of each repeat of every model whose training recorded `key`."""
    found: dict[str, list[tuple[list[float], list[float]]]] = {}
    for model in comparison.models:
        for cell in comparison.cells_of(model):
            records = [record for record in cell.curve if math.isfinite(record.get(key, math.nan))]
            if len(records) > 1:
                rounds = [record.get("round", place) for place, record in enumerate(records, 1)]
                found.setdefault(model, []).append((rounds, [record[key] for record in records]))
    return found


def objectives(summary: Summary) -> Picture | None:
    """The objective over the rounds of training, a panel for each model."""
    found = _histories(summary.comparison, "objective")
    models = list(found)[:MAX_PANELS]
    if not models:
        return None
    figure, panels = sheet(0.4, len(models), 1.45)
    drawn, titles = looks(summary), short_labels(models, 22)
    for axes, model in zip(panels, models, strict=True):
        for rounds, values in found[model]:
            axes.plot(rounds, values, color=drawn[model].color, linewidth=1.2, alpha=0.8)
        axes.set_title(titles[model], loc="left")
        axes.locator_params(axis="x", integer=True, nbins=4)
        axes.locator_params(axis="y", nbins=4)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}")
    figure.supxlabel("round", fontsize=10)
    figure.supylabel("objective", fontsize=10)
    words = (
        "Mean loss of the lists visited in each round, one line per repeat. Each model minimizes an objective of its own, "
        "so heights are not comparable between panels."
    )
    return Picture("objective", "Training: objective", words, figure)


NOT_METRICS = {"round", "iteration", "objective", "effective_n", "moved"}


def validation(summary: Summary) -> Picture | None:
    """The validation metric over the rounds, of the models that were trained with one."""
    records = [record for cell in summary.comparison.cells.values() for record in cell.curve]
    metric = next((key for record in records for key in record if key not in NOT_METRICS), "")
    found = _histories(summary.comparison, metric)
    if not found:
        return None
    figure, (axes,) = sheet(2.6)
    drawn = looks(summary)
    for model, runs in found.items():
        for place, (rounds, values) in enumerate(runs):
            look = {"color": drawn[model].color, "linestyle": drawn[model].dashes, "linewidth": 1.3}
            axes.plot(rounds, values, **look, label=drawn[model].label if place == 0 else None)
    axes.locator_params(axis="x", integer=True)
    axes.set(xlabel="round", ylabel=f"validation {metric_label(metric)}")
    legend_below(figure, axes)
    words = "Measured after each round on rows held out of the training part, one line per repeat."
    return Picture("validation", "Training: validation metric", words, figure)


def list_lengths(summary: Summary) -> Picture | None:
    """How long the users' lists are."""
    counts: dict[str, int] = summary.comparison.facts.get("list_length_counts", {})
    if sum(counts.values()) < 2:
        return None
    lengths = np.repeat(np.array(list(counts), np.float64), list(counts.values()))
    figure, (axes,) = sheet(2.2)
    spread = lengths.max() / max(float(np.median(lengths)), 1.0) > 8
    bins = np.geomspace(max(lengths.min(), 1), lengths.max() + 1, 31) if spread else np.histogram_bin_edges(lengths, 30)
    axes.hist(lengths, bins=bins.tolist(), color=SOFT, alpha=0.75, edgecolor=GRID, linewidth=0.4)
    middle = float(np.median(lengths))
    axes.axvline(middle, color=INK, linewidth=1.2)
    where: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points"}
    axes.annotate(f"median {middle:,.0f}", (middle, 1.0), (4, 0), va="top", fontsize=9.5, **where)
    if spread:
        log_axis(axes, lambda length: f"{length:,.0f}")
    axes.set(xlabel="rows of a user" + (" (log scale)" if spread else ""), ylabel="users")
    return Picture("lengths", "List lengths", "How many users have lists of which length, in the whole data.", figure)
