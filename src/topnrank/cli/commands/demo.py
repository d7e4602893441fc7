"""`topnrank demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topnrank.cli.commands.train import fit
from topnrank.cli.files import require_writable
from topnrank.cli.options import with_options
from topnrank.cli.output import Output, describe, facts_table, list_table

if TYPE_CHECKING:
    from rich.table import Table

    from topnrank import Interactions, Model

METRICS = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg@20")
READERS = (1, 2, 3)
"""Positions of the users whose lists are shown."""
FILE, TITLES_FILE = "demo.safetensors", "demo.items.csv"
SETTINGS = "Every model at its default settings, none tuned to these made-up data; tuning would help the trained ones."


@with_options
def demo(
    output: Output,
    folder: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help=f"Where to save the model, {FILE}.")
    ] = ".",
    serve: Annotated[
        bool, typer.Option("--serve", help="Then serve the model, with a page to try it on; needs 'topnrank[serve]'.")
    ] = False,
    port: Annotated[int, typer.Option("--port", help="Port of --serve.")] = 8000,
) -> None:
    """Train, compare and recommend on embedded data.

    It takes a minute and needs no file of your own. The data are 30,000 made-up ratings of 600 users for 300 films that
    do not exist. Half of each user's ratings train Top-N-Rank and its controls, and the films liked in the other half
    are to be found among all films; then lists with titles are shown and the model is saved.

    \b
    Examples:
      topnrank demo
      topnrank demo --output /tmp --json
      topnrank demo --serve
    """
    import topnrank as tnr

    if serve:
        from topnrank.serve import require_packages

        require_packages()
    path = str(Path(folder) / FILE)
    require_writable(path)
    data = tnr.demo_data()
    output.show(facts_table(describe(data), title="The data: made-up ratings of films that do not exist"), "")
    few = tnr.synthetic(20, 20, 200)
    with output.compiling_told():  # before the table, so that its seconds are seconds of training
        for model in _models().values():
            tnr.evaluate(model.fit(few), few, exclude_seen=False)
    results = _compare(data, output)
    output.show(_results_table(results), results[-1]["convention"], SETTINGS, "")
    model = _models()["Top-N-Rank (default)"]
    fit(model, data, {}, output)
    model.save(path)
    titles = _write_titles(Path(folder) / TITLES_FILE)
    lists = _lists(model, data)
    for one in lists:
        rows = [[str(row["rank"]), row["title"], f"{row['score']:.3f}"] for row in one["items"]]
        output.show(f"User {one['user']} liked: {'; '.join(one['liked'])}")
        output.show(list_table(["rank", "recommended", "score"], rows))
    output.show(
        f"\nThe model is saved in {path}. What to type next:",
        f"  topnrank recommend {path} --user {model.user_ids_[0]}",
        f"  topnrank info {path}",
        "  topnrank train YOUR-RATINGS.csv -o mine.safetensors --holdout 0.5",
        f"  topnrank serve {path} --items {titles}      (a page to try it on; or all at once: topnrank demo --serve)",
    )
    output.result({"data": describe(data), "results": results, "recommendations": lists, "file": path})
    if serve:
        _serve(path, titles, folder, port, output)


def _write_titles(path: Path) -> str:
    """The films' titles, years and genres as a file of items."""
    import csv
    import io

    import topnrank as tnr
    from topnrank.io.atomic import write_text

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["item", "title", "year", "group"])
    for item, whole in tnr.demo_titles().items():
        title, _, genre = whole.rpartition(", ")
        name, _, year = title.rpartition(" (")
        writer.writerow([item, name, year.rstrip(")"), genre])
    write_text(path, text.getvalue())
    return str(path)


def _serve(path: str, titles: str, folder: str, port: int, output: Output) -> None:
    """The page on the demo's films, with a control beside the model, until Ctrl-C."""
    import topnrank as tnr
    from topnrank.cli.commands.serve import ServeOptions
    from topnrank.cli.commands.serve import serve_models as start

    control = str(Path(folder) / "popularity.safetensors")
    tnr.Popularity().fit(tnr.demo_data()).save(control)
    events = str(Path(folder) / "demo.events.db")
    start([path, control], ServeOptions(items=titles, events=events, port=port, workers=1), output)


def _models() -> "dict[str, Model]":
    """The models that are compared."""
    import topnrank as tnr

    # One thread: the data are so small that handing out work would take longer than doing it.
    return {
        "Top-N-Rank (default)": tnr.TopNRank(num_threads=1),
        "NeighborRidge": tnr.NeighborRidge(),
        "EASE": tnr.EASE(),
        "Popularity": tnr.Popularity(),
        "Random": tnr.Random(),
    }


def _compare(data: "Interactions", output: Output) -> list[dict[str, Any]]:
    """Trains on one half of each user's ratings and tests on the other."""
    import topnrank as tnr

    train, test = tnr.split_per_user(data, test=0.5, seed=0)
    results = []
    for name, model in _models().items():
        seconds = fit(model, train, {}, output)
        result = tnr.evaluate(model, test, protocol="catalog", metrics=METRICS)
        results.append({"model": name, "seconds": round(seconds, 2), **result.to_dict()})
    return results


def _results_table(results: list[dict[str, Any]]) -> "Table":
    """One row for each model, the best value of each metric in bold."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        "model", title="Finding the liked films of each user's other half among all films", title_justify="left"
    )
    for name in (*METRICS, "seconds"):
        table.add_column(name, justify="right")
    best = {name: max(result["values"][name] for result in results) for name in METRICS}
    for result in results:
        values = result["values"]
        cells = [Text(f"{values[name]:.4f}", "bold" if values[name] == best[name] else "") for name in METRICS]
        table.add_row(result["model"], *cells, f"{result['seconds']:.1f}")
    return table


def _lists(model: "Model", data: "Interactions") -> list[dict[str, Any]]:
    """For some users: three titles they rated best, and their ten best new ones."""
    import topnrank as tnr

    titles = tnr.demo_titles()
    rated = data.to_arrow().sort_by([("rating", "descending"), ("item", "ascending")]).to_pylist()
    lists = []
    for user in model.user_ids_[list(READERS)].tolist():
        liked = [titles[row["item"]] for row in rated if row["user"] == user][:3]
        rows = [row | {"title": titles[row["item"]]} for row in model.recommend([user], n=10).to_pylist()]
        lists.append({"user": user, "liked": liked, "items": rows})
    return lists
