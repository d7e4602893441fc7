"""`topnrank data list`, `fetch` and `describe`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topnrank._checks import one_of
from topnrank.cli.files import require_writable
from topnrank.cli.options import STYLE, ReadOptions, argument, option, with_options
from topnrank.cli.output import Output, facts_table, list_table
from topnrank.cli.output import describe as facts_of
from topnrank.errors import OutputError, ParameterError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from topnrank import Interactions

FIGURE_FORMATS = (".png", ".svg")
BAR_WIDTH = 40
"""Columns of the longest bar."""

data = typer.Typer(name="data", **STYLE)


@data.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """List, fetch and describe public data sets.

    MovieLens, Amazon Video Games and RetailRocket, from the addresses of their owners, into your cache folder. Each has
    terms of use of its own, which 'topnrank data list' shows.

    \b
    Where data sets are looked for, in this order:
      TOPNRANK_DATA    a folder with official archives, unpacked archives or Parquet files
      TOPNRANK_CACHE   its folder 'data', or the user's cache folder: what was fetched before
      TOPNRANK_MIRROR  base address of a mirror, instead of the official addresses
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@data.command("list")
@with_options
def list_(output: Output) -> None:
    """List the data sets, and where they are on this machine.

    \b
    Examples:
      topnrank data list
      topnrank data list --json
    """
    from topnrank.data.datasets.fetch import find_dataset
    from topnrank.data.datasets.registry import DATASETS

    facts: list[dict[str, Any]] = []
    licenses: dict[str, list[str]] = {}
    for name, dataset in DATASETS.items():
        source = find_dataset(name)
        sizes = dict(zip(("rows", "users", "items"), dataset.counts, strict=True))
        described = {"titles": dataset.titles is not None, "address": dataset.address, "license": dataset.license}
        here = None if source is None else str(source.path)
        facts.append({"name": name, "summary": dataset.summary, **sizes, **described, "here": here})
        licenses.setdefault(dataset.license, []).append(name)
    cells = [[one["name"], *(f"{one[k]:,}" for k in ("rows", "users", "items")), one["summary"]] for one in facts]
    output.show(list_table(["name", "rows", "users", "items", "what it is"], cells), "")
    where = {one["name"]: one["here"] or "not on this machine" for one in facts}
    output.show(facts_table(where, title="Where they are"), "")
    terms = {", ".join(names): license for license, names in licenses.items()}
    output.show(facts_table(terms, title="Terms of use"), "", "fetch one: topnrank data fetch ml-latest-small")
    output.result({"datasets": facts})


@data.command()
@with_options
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Data sets; 'topnrank data list' names them.")],
    output: Output,
) -> None:
    """Fetch data sets into the cache folder.

    What is on this machine already is not fetched again. A download whose connection breaks is begun again. The archive
    is checked against the checksum that its owners publish.

    \b
    Examples:
      topnrank data fetch ml-latest-small
      topnrank data fetch ml-20m amazon-video-games
    """
    from topnrank.data.datasets.fetch import fetch_dataset
    from topnrank.data.datasets.registry import DATASETS

    for name in names:
        one_of("the data set", name, tuple(DATASETS))
    facts = []
    for name in names:
        fetched = fetch_dataset(name, progress=not output.quiet)
        path = str(fetched.source.path)
        checked = f"MD5 {fetched.md5} as published" if fetched.md5 else "no checksum is published"
        output.report(f"{name}: {path} ({checked})" if fetched.is_new else f"{name}: was on this machine, {path}")
        facts.append({"name": name, "path": path, "fetched": fetched.is_new, "md5": fetched.md5})
    output.result({"datasets": facts})


@dataclass(frozen=True)
class DescribeOptions:
    """What to describe, and how."""

    what: str = argument("A data set, or a file, folder or glob of your own.", "NAME_OR_FILE")
    min_user_items: int | None = option(
        None, "Leave out users with fewer items.", show_default="0; 10 for amazon-video-games"
    )
    plot: str | None = option(None, "Also draw a figure (.png or .svg).", metavar="FILE", show_default="none")


@data.command()
@with_options
def describe(options: DescribeOptions, reading: ReadOptions, output: Output) -> None:
    """Describe a data set or a file of your own, and draw it.

    Users, items, rows, density, ratings, time span; how long the users' lists are; how much of everything the most
    popular items take. A data set that is not on this machine is fetched first.

    \b
    Examples:
      topnrank data describe ml-latest-small
      topnrank data describe ratings.csv --plot ratings.png
      topnrank data describe amazon-video-games --min-user-items 0 --json
    """
    from topnrank.data.summary import Distribution
    from topnrank.experiments.report.plot_style import style
    from topnrank.experiments.report.quick_plots import activity

    if options.plot is not None:
        if Path(options.plot).suffix.lower() not in FIGURE_FORMATS:
            formats = " or ".join(FIGURE_FORMATS)
            raise OutputError(f"{options.plot}: the name must end in {formats}, which gives the format; rename it")
        require_writable(options.plot)
        with style():
            pass  # tells of Matplotlib that is missing before the work
    rows, origin = _load(options, reading, output)
    lists, popularity = Distribution.over_users(rows), Distribution.over_items(rows)
    facts = origin | facts_of(rows)
    del facts["rows_per_user"]  # the list lengths have more detail
    shares = {"top 1 % of items": popularity.top_share(0.01), "top 10 % of items": popularity.top_share(0.1)}
    facts |= {"items_per_user": lists.quantiles(), "users_per_item": popularity.quantiles()}
    facts["popularity"] = {**shares, "gini": popularity.gini()}
    tenths = {f"{10 * k}-{10 * (k + 1)} %": share for k, share in enumerate(popularity.tenths().tolist())}
    output.show(facts_table(facts), "")
    output.show(_bars("List lengths: users by number of items", lists.bins(), ",.0f"), "")
    output.show(_bars("Popularity: fraction of rows by tenth of the items, most popular first", tenths, ".1%"))
    if options.plot is not None:
        activity(rows, Path(options.what).name).write(options.plot)
        output.report(f"\nfigure written to {options.plot}")
    charts = {"users_by_list_length": lists.bins(), "share_of_rows_by_tenth_of_items": tenths}
    output.result({**facts, **charts, "plot": options.plot})


def _load(options: DescribeOptions, reading: ReadOptions, output: Output) -> "tuple[Interactions, dict[str, Any]]":
    """The rows, and facts about their origin."""
    import topnrank as tnr
    from topnrank.data.datasets.fetch import fetch_dataset
    from topnrank.data.datasets.registry import DATASETS

    what, least = options.what, options.min_user_items
    if what not in DATASETS:
        is_path = Path(what).suffix or os.sep in what or set(what) & set("/*?[")
        if not is_path and not Path(what).expanduser().exists():
            one_of("the data set (there is no such file either)", what, tuple(DATASETS))
        rows = reading.read(what, output)
        return (rows.filter(min_user_items=least) if least else rows), {"data": what}
    if reading != ReadOptions():
        raise ParameterError(
            f"the format of {what} is known; leave out options such as --user, or write ./{what} if you mean a file or "
            "folder of that name"
        )
    source = fetch_dataset(what, progress=not output.quiet).source
    rows = tnr.load_dataset(what, min_user_items=least)
    dataset = DATASETS[what]
    if source.path.name in dataset.substitutes:
        output.note(
            f"{source.path.name} is an extract of {dataset.name}: rows, columns and types are not the official ones"
        )
    whole = dict(zip(("rows", "users", "items"), dataset.counts, strict=True))
    kept = dataset.min_user_items if least is None else least
    facts = {"data": what, "summary": dataset.summary, "file": str(source.path), "whole_set": whole}
    return rows, facts | {"min_user_items": kept, "merged_rows": rows.merged_rows}


def _bars(title: str, values: Mapping[str, float], form: str) -> "RenderableType":
    """One row for each value: its name, a bar, the value."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 1, 0, 0))
    for justify in ("right", "left", "right"):
        table.add_column(justify=justify)
    longest = max(values.values())
    for name, value in values.items():
        table.add_row(name, ProgressBar(total=longest, completed=value, width=BAR_WIDTH), format(value, form))
    return table
