"""How figures look: one style, colors by model, text that stays text.

A figure is drawn in the light colors below. Inside a page each of them is a CSS variable, so that the page chooses the light
or the dark one; a file keeps them as they are.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, final

from topnrank.errors import ParameterError
from topnrank.experiments.report.formatting import short_labels
from topnrank.experiments.report.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.5
"""Inches: 324 points, so that text of 10 points has 10 pixels on a phone, and the figure fits a column in print."""
INK, SOFT, GRID, PAPER = "#1c2128", "#59636e", "#d8dee4", "#ffffff"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#7a3e9d", "#b07d00", "#cc79a7", "#2f9bdb")
"""After Okabe and Ito, safe for the color-blind; darkened or left out where they are too pale on white."""
CONTROL = ("#3d4450", "#5f6772", "#7b838c", "#959da5")
"""Grays, so that the simple controls are less prominent."""
MAX_LONG_LABELS = 6
"""A legend of more entries shortens them, to fit two columns."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_CONTROL_MARKERS = ("d", "p", "h", "x")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (4, 1.2, 1, 1.2)))
_CONTROL_DASHES: tuple[Any, ...] = ((0, (6, 2)), (0, (3, 1.5)), (0, (5, 1, 1, 1)), (0, (1, 1.5)))
VARIABLES = {
    INK: "--ink",
    SOFT: "--soft",
    GRID: "--grid",
    PAPER: "--paper",
    **{color: f"--series-{place}" for place, color in enumerate(SERIES, 1)},
    **{color: f"--control-{place}" for place, color in enumerate(CONTROL, 1)},
}
"""The CSS variable of each color."""


@final
class Look(NamedTuple):
    """How one model is drawn, everywhere the same."""

    color: str
    marker: str
    dashes: Any
    label: str

    def line(self) -> dict[str, Any]:
        """Keywords of a line with markers."""
        return {
            "color": self.color,
            "linestyle": self.dashes,
            "marker": self.marker,
            "markersize": 4.5,
            "label": self.label,
        }


def looks(summary: Summary) -> dict[str, Look]:
    """A look for each model: colors in order, other markers and dashes where they repeat; grays for the controls.

    Models without numbers come last, so that the others get the first colors.
    """
    measured = {row.model for rows in summary.rows.values() for row in rows if row.scores}
    found, colored, gray = {}, 0, 0
    for model in sorted(summary.comparison.models, key=lambda model: model not in measured):
        label = f"\u200b{model}" if model.startswith("_") else model  # Matplotlib would keep "_x" out of legends
        if model in summary.controls and gray < len(CONTROL):
            found[model] = Look(CONTROL[gray], _CONTROL_MARKERS[gray], _CONTROL_DASHES[gray], label)
            gray += 1
        else:
            turn, place = divmod(colored, len(SERIES))
            marker = _MARKERS[(place + turn) % len(_MARKERS)]
            found[model] = Look(SERIES[place], marker, _DASHES[turn % len(_DASHES)], label)
            colored += 1
    return found


_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with Matplotlib and is wide: what fits with it fits with a page's font
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.edgecolor": SOFT,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.6,
    "text.parse_math": False,  # a dollar in the name of a model is a dollar
    "axes.unicode_minus": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "topnrank",
    "figure.constrained_layout.use": True,
}


@contextmanager
def style() -> Iterator[None]:
    """The style of all figures, for drawing and for writing."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise ParameterError("figures need Matplotlib; install it with: pip install 'topnrank[report]'") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user's own settings are, and without a change to them
        matplotlib.rcParams.update(_STYLE)
        yield


def sheet(height: float, n_panels: int = 1, panel_height: float = 0.0, **options: Any) -> "tuple[Figure, list[Axes]]":
    """An empty figure of the usual width, its panels in one or two columns, without pyplot and so without a window.

    `height` is that of the figure without its panels, or of all where `panel_height` is 0, in inches.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(2, n_panels)
    lines = -(-n_panels // columns)
    figure = Figure(figsize=(WIDTH, height + panel_height * lines))
    FigureCanvasAgg(figure)
    panels = list(figure.subplots(lines, columns, squeeze=False, **options).flat)
    for axes in panels[n_panels:]:
        axes.set_visible(False)
    for axes in panels[max(n_panels - columns, 0) : n_panels]:  # also above a hidden one
        axes.tick_params(labelbottom=True)
    return figure, panels[:n_panels]


def legend_below(figure: "Figure", axes: "Axes") -> None:
    """The legend under the plot, in as many columns as the names leave room for; the figure grows by its height."""
    handles, labels = axes.get_legend_handles_labels()
    labels = list(short_labels(labels, 19 if len(labels) > MAX_LONG_LABELS else 34).values())
    longest = max(map(len, labels), default=0)
    columns = 3 if longest <= 11 else 2 if longest <= 19 else 1
    lines = -(-len(labels) // columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.2 * lines)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, columnspacing=1.2, handletextpad=0.5)


def log_axis(axes: "Axes", text: Callable[[float], str]) -> None:
    """A logarithmic x axis whose ticks are words, as many as the range needs."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    decades = math.log10(high / low)
    steps = (1.0,) if decades >= 2 else (1.0, 3.0) if decades >= 1 else (1.0, 2.0, 3.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(subs=steps, numticks=7))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
