"""How figures look and how they become SVG: one style, colors by model, text that stays text.

A figure is drawn in the light colors below. Inside a page, `inline_svg` turns each of them into a CSS variable, so that the
page chooses the light or the dark one; a file keeps them as they are.
"""

import io
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from topnrank.errors import ParameterError
from topnrank.experiments.report.formatting import short_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.5
"""Inches: 324 points, so that text of 10 points has 10 pixels on a phone, and the figure fits a column in print."""
INK, SOFT, GRID, PAPER = "#1c2128", "#59636e", "#d8dee4", "#ffffff"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#7a3e9d", "#b07d00", "#cc79a7", "#2f9bdb")
"""After Okabe and Ito, safe for the color-blind; darkened or left out where they are too pale on white."""
CONTROL = ("#3d4450", "#6a737d", "#959da5")
"""Grays, so that the simple controls are less prominent."""
MAX_LONG_LABELS = 6
"""A legend of more entries shortens them, to fit two columns."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_CONTROL_MARKERS = ("d", "p", "x")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (4, 1.2, 1, 1.2)))
_CONTROL_DASHES: tuple[Any, ...] = ((0, (6, 2)), (0, (3, 1.5)), (0, (1, 1.5)))
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
@dataclass(frozen=True)
class Look:
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


def looks(models: Sequence[str], controls: Collection[str]) -> dict[str, Look]:
    """A look for each model: colors in order, other markers and dashes where they repeat; greys for the controls."""
    found, colored, gray = {}, 0, 0
    for model in models:
        label = f"\u200b{model}" if model.startswith("_") else model  # Matplotlib would keep "_x" out of legends
        if model in controls and gray < len(CONTROL):
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
        import matplotlib
    except ImportError as error:
        raise ParameterError("figures need Matplotlib; install it with: pip install 'topnrank[report]'") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user's own settings are, and without a change to them
        matplotlib.rcParams.update(_STYLE)
        yield


def sheet(height: float, rows: int = 1, columns: int = 1, **options: Any) -> "tuple[Figure, list[Axes]]":
    """An empty figure of the usual width, without pyplot and so without a window or a backend."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.flat)


def hide_empty(panels: "Sequence[Axes]", used: int, columns: int) -> None:
    """Hides the panels after the last used one; the panels above them show the labels of their x axis."""
    for axes in panels[used:]:
        axes.set_visible(False)
    for axes in panels[max(used - columns, 0) : used]:
        axes.tick_params(labelbottom=True)


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


def svg_text(figure: "Figure") -> str:
    """The figure as an SVG document; the same figure gives the same text."""
    text = io.StringIO()
    with style():
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": "topnrank"})
    return text.getvalue()


def inline_svg(document: str, name: str, label: str) -> str:
    """An SVG document as an element of a page: ids of its own, colors and font of the page, `label` for screen readers."""
    body = document[document.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*|<style.*?</style>\s*", "", body, flags=re.DOTALL)  # of the whole page
    opening, content = body.split(">", 1)
    view = re.search(r'viewBox="[^"]+"', opening)
    content = re.sub(r'\bid="', f'id="{name}-', content)
    content = re.sub(r"(xlink:)?href=\"#", f'href="#{name}-', content)
    content = content.replace("url(#", f"url(#{name}-")
    content = content.replace("font-family: 'DejaVu Sans', sans-serif; ", "")
    for color, variable in VARIABLES.items():
        content = content.replace(color, f"var({variable})")
    return f'<svg {view[0] if view else ""} role="img" aria-label="{label}">{content.rstrip()}'
