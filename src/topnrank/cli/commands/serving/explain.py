"""`topnrank explain`."""

from dataclasses import dataclass
from typing import Any

from topnrank.cli.files import titled, titles_of
from topnrank.cli.options import HISTORY, TITLE_COLUMNS, TITLES, ModelFile, option, with_options
from topnrank.cli.output import Output, list_table
from topnrank.cli.values import parse_history
from topnrank.errors import ParameterError


@dataclass(frozen=True)
class ExplainOptions:
    """Which item, for which user."""

    item: str = option(..., "The item whose score is to be explained.", "--item", "-i")
    user: str | None = option(None, "A user of the model.", "--user", "-u")
    history: str | None = option(None, HISTORY, metavar="ITEM=RATING,...")
    n: int = option(10, "Rows of the table; JSON has all of them.", "-n", "--n")
    titles: str | None = option(None, TITLES, metavar="FILE")
    title_columns: str | None = option(None, TITLE_COLUMNS, metavar="ITEM,TITLE", show_default="by usual names")


@with_options
def explain(model_file: ModelFile, options: ExplainOptions, output: Output) -> None:
    """Show which of a user's items pulled an item up or down.

    The score of an item is a sum: what each item of the user's history gives, and the item's bias, which is the same for
    everybody. The parts are exact and add up to the score. Works for models with users as histories (the default).

    \b
    Examples:
      topnrank explain movies.safetensors --user 42 --item 318 --titles movies.csv
      topnrank explain movies.safetensors --history "858=5,4896=1" --item 318 --json
    """
    import topnrank as tnr

    if (options.user is None) == (options.history is None):
        raise ParameterError("give exactly one of --user and --history; see --help")
    if options.n < 1:
        raise ParameterError(f"-n must be an integer of at least 1, got {options.n}")
    model = tnr.load(model_file)
    history = None if options.history is None else parse_history(options.history, model.item_map)
    table = model.explain(options.user, options.item, history=history).select(["part", "what", "because"])
    rows = titled(table, titles_of(options.titles, model, options.title_columns), "because").to_pylist()
    score = sum(row["part"] for row in rows)
    _show(rows, score, options, output)
    output.result({"user": options.user, "item": options.item, "score": score, "parts": rows})


def _show(rows: list[dict[str, Any]], score: float, options: ExplainOptions, output: Output) -> None:
    """Prints the score, its largest parts, and the sum of the others."""
    largest, others = rows[: options.n], rows[options.n :]
    names = list(rows[0]) if rows else ["part", "what", "because"]
    cells = [
        [f"{value:+.4f}" if name == "part" else "" if value is None else str(value) for name, value in row.items()]
        for row in largest
    ]
    if others:
        rest = f"{sum(row['part'] for row in others):+.4f}"
        cells.append([rest, f"{len(others)} others", *[""] * (len(names) - 2)])
    who = "this history" if options.user is None else f"user {options.user}"
    output.show(f"item {options.item} for {who}: score {score:.4f}", list_table(names, cells))
