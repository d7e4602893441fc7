"""Figures of one thing, as its `plot()` gives them: a comparison, a training, some data."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from topnrank.data.interactions import Interactions
from topnrank.data.summary import Distribution
from topnrank.errors import ParameterError
from topnrank.experiments.compare.result import Comparison
from topnrank.experiments.report.formatting import metric_label
from topnrank.experiments.report.plot_style import INK, SERIES, log_axis, sheet, style
from topnrank.experiments.report.plots import NOT_METRICS, Picture, pictures
from topnrank.experiments.report.summary import Summary


def of_comparison(comparison: Comparison | Summary, what: str) -> Picture:
    """The first figure whose name begins with `what`, such as "differences"."""
    drawn = pictures(comparison)
    found = next((picture for picture in drawn if picture.name.startswith(what)), None)
    if found is None:
        names = ", ".join(dict.fromkeys(picture.name.partition("-")[0] for picture in drawn)) or "none at all"
        raise ParameterError(f"plot: there is no figure {what!r} of this comparison; there are: {names}")
    return found


def training(history: Sequence[Mapping[str, float]]) -> Picture:
    """The objective over the rounds, and each validation metric beside it."""
    names = ["objective", *dict.fromkeys(name for record in history for name in record if name not in NOT_METRICS)]
    if not history:
        raise ParameterError("plot: this model was not trained in rounds; there is nothing to draw")
    with style():
        figure, panels = sheet(0.4, len(names), 2.0)
        for axes, name, color in zip(panels, names, SERIES, strict=False):
            points = [(record["round"], record[name]) for record in history if name in record]
            axes.plot(*zip(*points, strict=True), color=color, marker="o", markersize=3)
            axes.set_title(name if name == "objective" else f"validation {metric_label(name)}", loc="left")
            axes.locator_params(axis="x", integer=True)
        figure.supxlabel("round", fontsize=10)
    return Picture("training", "Training", "Objective and validation metrics after each round.", figure)


def activity(data: Interactions, title: str = "The data") -> Picture:
    """List lengths on the left, popularity by rank on the right."""
    lists, popularity = Distribution.over_users(data), Distribution.over_items(data)
    with style():
        figure, (left, right) = sheet(0.2, 2, 2.6)
        longest = int(lists.counts.max())
        left.hist(lists.counts, bins=np.geomspace(int(lists.counts.min()), longest + 1, 30).tolist(), color=SERIES[0])
        ordered = np.sort(popularity.counts)[::-1]
        right.plot(np.arange(1, len(ordered) + 1), ordered, color=SERIES[1])
        for axes in (left, right):
            log_axis(axes, lambda value: f"{value:,.0f}")
        right.set_yscale("log")
        left.set(xlabel="items of a user", ylabel="users")
        right.set(xlabel="rank of the item", ylabel="users of the item")
        left.set_title("List lengths", loc="left")
        right.set_title("Popularity", loc="left")
        middle = float(np.median(lists.counts))
        left.axvline(middle, color=INK, linewidth=1.2)
    shares = ", ".join(f"top {share:.0%} of the items: {popularity.top_share(share):.0%}" for share in (0.01, 0.1))
    words = f"Median {math.floor(middle):,} items of a user (the line). Share of all rows: {shares}."
    return Picture("activity", title, words, figure)
