"""`topnrank data list`, `fetch` and `describe`."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topnrank._checks import one_of
from topnrank.cli.charts import bars, draw, require_figure
from topnrank.cli.facts import describe as facts_of
from topnrank.cli.files import require_writable
from topnrank.cli.options import Printing, Reading, with_options
from topnrank.cli.output import Output, facts_table, list_table
from topnrank.errors import ParameterError

if TYPE_CHECKING:
    from topnrank import Interactions
    from topnrank.data.summary import Distribution

data = typer.Typer(
    name="data",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


@data.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """List, fetch and describe public data sets.

    MovieLens, Amazon Video Games and RetailRocket, from the addresses of their owners, into your cache folder. Each has
    terms of use of its own; 'topnrank data list' tells them.

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
def list_(printing: Printing) -> None:
    """List the data sets, and where they are on this machine.

    \b
    Examples:
      topnrank data list
      topnrank data list --json
    """
    from topnrank.data.datasets.registry import DATASETS

    output = printing.output()
    facts = [_facts_of_set(name) for name in DATASETS]
    cells = [[one["name"], *(f"{one[k]:,}" for k in ("rows", "users", "items")), one["summary"]] for one in facts]
    output.show(list_table(["name", "rows", "users", "items", "what it is"], cells))
    _show_places(facts, output)
    output.result({"datasets": facts})


def _facts_of_set(name: str) -> dict[str, Any]:
    from topnrank.data.datasets.fetch import find_dataset
    from topnrank.data.datasets.registry import DATASETS

    dataset, source = DATASETS[name], find_dataset(name)
    return {
        "name": name,
        "summary": dataset.summary,
        **dict(zip(("rows", "users", "items"), dataset.counts, strict=True)),
        "titles": dataset.titles is not None,
        "address": dataset.address,
        "license": dataset.license,
        "here": None if source is None else str(source.path),
    }


def _show_places(facts: list[dict[str, Any]], output: Output) -> None:
    places = {one["name"]: one["here"] or "not on this machine" for one in facts}
    output.show("", facts_table(places, title="Where they are"))
    licenses: dict[str, list[str]] = {}
    for one in facts:
        licenses.setdefault(one["license"], []).append(one["name"])
    terms = {", ".join(names): license for license, names in licenses.items()}
    output.show("", facts_table(terms, title="Terms of use"), "", "fetch one: topnrank data fetch ml-latest-small")


@data.command()
@with_options
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Data sets; 'topnrank data list' names them.")],
    printing: Printing,
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

    output = printing.output()
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
class Describing:
    """What to describe, and how."""

    what: Annotated[
        str, typer.Argument(metavar="NAME_OR_FILE", help="A data set, or a file, folder or glob of your own.")
    ]
    min_user_items: Annotated[
        int | None,
        typer.Option(help="Leave out users with fewer items.", show_default="0; 10 for amazon-video-games"),
    ] = None
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also draw a figure (.png or .svg).", show_default="none")
    ] = None

    def is_dataset(self) -> bool:
        """Whether `what` names a data set; an error if it names nothing."""
        from topnrank.data.datasets.registry import DATASETS

        if self.what in DATASETS:
            return True
        is_path = Path(self.what).suffix or os.sep in self.what or set(self.what) & set("/*?[")
        if not is_path and not Path(self.what).expanduser().exists():
            one_of("the data set (there is no such file either)", self.what, tuple(DATASETS))
        return False


@data.command()
@with_options
def describe(describing: Describing, reading: Reading, printing: Printing) -> None:
    """Tell what a data set or a file of your own is like, and draw it.

    Users, items, rows, density, ratings, time span; how long the users' lists are; how much of everything the most
    popular items take. A data set that is not on this machine is fetched first.

    \b
    Examples:
      topnrank data describe ml-latest-small
      topnrank data describe ratings.csv --plot ratings.png
      topnrank data describe amazon-video-games --min-user-items 0 --json
    """
    from topnrank.data.summary import Distribution

    output = printing.output()
    if describing.plot is not None:
        require_figure(describing.plot)
        require_writable(describing.plot)
    rows, origin = _load(describing, reading, output)
    lists, popularity = Distribution.over_users(rows), Distribution.over_items(rows)
    facts = origin | _facts_of_rows(rows, lists, popularity)
    tenths = {f"{10 * k}-{10 * (k + 1)} %": share for k, share in enumerate(popularity.tenths().tolist())}
    output.show(facts_table(facts), "")
    output.show(bars("List lengths: users by number of items", lists.bins()), "")
    output.show(bars("Popularity: share of rows by tenth of the items, most popular first", tenths, ".1%"))
    if describing.plot is not None:
        draw(describing.plot, Path(describing.what).name, lists, popularity)
        output.report(f"\nfigure written to {describing.plot}")
    charts = {"users_by_list_length": lists.bins(), "share_of_rows_by_tenth_of_items": tenths}
    output.result({**facts, **charts, "plot": describing.plot})


def _facts_of_rows(rows: "Interactions", lists: "Distribution", popularity: "Distribution") -> dict[str, Any]:
    facts = facts_of(rows)
    del facts["rows_per_user"]  # told in more detail by the list lengths
    shares = {"top 1 % of items": popularity.top_share(0.01), "top 10 % of items": popularity.top_share(0.1)}
    return {
        **facts,
        "items_per_user": lists.quantiles(),
        "users_per_item": popularity.quantiles(),
        "popularity": {**shares, "gini": popularity.gini()},
    }


def _load(describing: Describing, reading: Reading, output: Output) -> "tuple[Interactions, dict[str, Any]]":
    """The rows, and where they come from."""
    import topnrank as tnr
    from topnrank.data.datasets.fetch import fetch_dataset
    from topnrank.data.datasets.registry import DATASETS

    least = describing.min_user_items
    if not describing.is_dataset():
        rows = reading.read(describing.what, output)
        return (rows.filter(min_user_items=least) if least else rows), {"data": describing.what}
    if reading != Reading():
        raise ParameterError(
            f"how {describing.what} is written is known; leave out options such as --user, or write"
            f" ./{describing.what} if you mean a file or folder of that name"
        )
    source = fetch_dataset(describing.what, progress=not output.quiet).source
    rows = tnr.load_dataset(describing.what, min_user_items=least)
    dataset = DATASETS[describing.what]
    if source.path.name in dataset.substitutes:
        output.note(
            f"{source.path.name} is an extract of {dataset.name}: rows, columns and types are not the official ones"
        )
    whole = dict(zip(("rows", "users", "items"), dataset.counts, strict=True))
    kept = dataset.min_user_items if least is None else least
    facts = {"data": describing.what, "summary": dataset.summary, "file": str(source.path), "whole_set": whole}
    return rows, facts | {"min_user_items": kept, "merged_rows": rows.merged_rows}
