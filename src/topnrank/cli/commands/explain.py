"""`topnrank explain`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topnrank.cli.files import titled, titles_of
from topnrank.cli.options import Printing, parse_history, with_options
from topnrank.cli.output import Output, list_table
from topnrank.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from topnrank import Model


@dataclass(frozen=True)
class Question:
    """Whose score of what."""

    item: Annotated[str, typer.Option("--item", "-i", help="The item whose score is to be explained.")]
    user: Annotated[str | None, typer.Option("--user", "-u", help="A user of the model.")] = None
    history: Annotated[
        str | None,
        typer.Option(metavar="ITEM=RATING,...", help="A user never seen, by items and ratings (or items alone)."),
    ] = None
    n: Annotated[int, typer.Option("-n", "--n", help="Rows of the table; JSON has all of them.")] = 10
    titles: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="CSV, TSV or Parquet with the columns item and title; adds titles."),
    ] = None

    def answer(self, model: "Model") -> "pa.Table":
        """The parts of the score."""
        if (self.user is None) == (self.history is None):
            raise ParameterError("give exactly one of --user and --history; see --help")
        if self.n < 1:
            raise ParameterError(f"-n must be a whole number of at least 1, got {self.n}")
        if self.history is not None:
            return model.explain(history=parse_history(self.history), item=self.item)
        return model.explain(self.user, self.item)


@with_options
def explain(
    model_file: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'topnrank train' saved.")],
    question: Question,
    printing: Printing,
) -> None:
    """Tell which of a user's items pulled an item up or down.

    The score of an item is a sum: what each item of the user's history gives, and the item's bias, which is the same for
    everybody. The parts are exact and add up to the score. Works for models with users as histories (the default).

    \b
    Examples:
      topnrank explain movies.safetensors --user 42 --item 318 --titles movies.csv
      topnrank explain movies.safetensors --history "858=5,4896=1" --item 318 --json
    """
    import topnrank as tnr

    output = printing.output()
    model = tnr.load(model_file)
    table = question.answer(model).select(["part", "what", "because"])
    table = titled(table, titles_of(question.titles, model), "because")
    _print(table.to_pylist(), question, output)


def _print(rows: list[dict[str, Any]], question: Question, output: Output) -> None:
    """The largest parts, what the others come to, and their sum."""
    score = sum(row["part"] for row in rows)
    shown, others = rows[: question.n], rows[question.n :]
    names = list(shown[0]) if shown else ["part", "what", "because"]
    cells = [
        [f"{value:+.4f}" if name == "part" else str("" if value is None else value) for name, value in row.items()]
        for row in shown
    ]
    if others:
        rest = f"{sum(row['part'] for row in others):+.4f}"
        cells.append([rest, f"{len(others)} others", *[""] * (len(names) - 2)])
    who = "this history" if question.user is None else f"user {question.user}"
    output.show(f"item {question.item} for {who}: score {score:.4f}", list_table(names, cells))
    output.result({"user": question.user, "item": question.item, "score": score, "parts": rows})
