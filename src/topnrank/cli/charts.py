"""How activity is spread over users and items: bars in the terminal, and a figure."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topnrank.errors import OutputError, ParameterError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from topnrank.data.summary import Distribution

WIDTH = 40
"""Letters of the longest bar."""
FIGURE_FORMATS = (".png", ".svg")


def bars(title: str, values: Mapping[str, float], shown: str = ",.0f") -> "RenderableType":
    """One row for each value: its name, a bar, the value."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 1, 0, 0))
    table.add_column(justify="right")
    table.add_column(min_width=WIDTH)
    table.add_column(justify="right")
    longest = max(values.values())
    for name, value in values.items():
        table.add_row(name, _bar(value / longest), format(value, shown))
    return table


def _bar(share: float) -> str:
    """As many letters as the share says, one at least unless it is zero."""
    letter = "█" if _can_show("█") else "#"
    return letter * max(round(WIDTH * share), 1 if share else 0)


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def require_figure(path: str) -> None:
    """Fails now rather than after the work when no figure can be drawn to `path`."""
    if Path(path).suffix.lower() not in FIGURE_FORMATS:
        raise OutputError(
            f"{path}: the name must end in {' or '.join(FIGURE_FORMATS)}, which tells the format; rename it"
        )
    _figure_class()


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ParameterError("a figure needs Matplotlib; install it with: pip install 'topnrank[report]'") from None
    return Figure


def draw(path: str, title: str, lists: "Distribution", popularity: "Distribution") -> None:
    """List lengths on the left, popularity by rank on the right, as a PNG or SVG file."""
    import numpy as np

    from topnrank.io.atomic import write_atomically

    figure = _figure_class()(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    figure.suptitle(title)
    shortest, longest = int(lists.counts.min()), int(lists.counts.max())
    left.hist(lists.counts, bins=np.geomspace(shortest, longest + 1, 30), color="#33658a")
    left.set(xscale="log", xlabel="items of a user", ylabel="users", title="List lengths")
    ordered = np.sort(popularity.counts)[::-1]
    right.plot(np.arange(1, len(ordered) + 1), ordered, color="#b5482a")
    right.set(xscale="log", yscale="log", xlabel="rank of the item", ylabel="users of the item", title="Popularity")
    first, tenth = (f"{100 * popularity.top_share(share):.0f} %" for share in (0.01, 0.1))
    note = f"top 1 % of the items: {first} of rows, top 10 %: {tenth}"
    right.annotate(note, (0.03, 0.05), xycoords="axes fraction")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    kind = Path(path).suffix.lower().removeprefix(".")
    metadata = {"Date": None} if kind == "svg" else None  # the same data give the same file
    write_atomically(path, lambda temporary: figure.savefig(temporary, format=kind, dpi=150, metadata=metadata))
