"""`topnrank evaluate`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from topnrank.cli.files import require_writable, table_format, write_table
from topnrank.cli.options import Printing, Reading, number, split_list, with_options
from topnrank.cli.output import list_table

if TYPE_CHECKING:
    import pyarrow as pa

    from topnrank import Evaluation, Interactions, Model

ALL_ROWS = "all"
"""What --relevant says when every row, or every row with a positive weight, is relevant."""


@dataclass(frozen=True)
class Measuring:
    """What to measure, and how."""

    protocol: Annotated[
        str | None,
        typer.Option(
            help="rated: rank each user's own test items (the paper). catalog: rank all items not seen in training.",
            show_default="what the model was trained for",
        ),
    ] = None
    metrics: Annotated[
        str,
        typer.Option(
            help="Separated by commas: ndcg, ndcg_graded, map, mrr, err, precision, recall, hit, auc, coverage, novelty, "
            "popularity; '@k' cuts."
        ),
    ] = "ndcg@1,ndcg@3,ndcg@5,ndcg@10,ndcg@20"
    relevant: Annotated[
        str,
        typer.Option(help=f"Lowest rating of a relevant item; '{ALL_ROWS}': every row, or weight > 0 with weights."),
    ] = "4"
    per_user: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Also write each user's values (.csv, .parquet or .jsonl).", show_default="none"
        ),
    ] = None
    threads: Annotated[int, typer.Option(help="Threads; 0 for all cores. The result does not depend on it.")] = 0

    def threshold(self) -> float | None:
        """The lowest relevant rating; None for all rows."""
        return None if self.relevant == ALL_ROWS else number("--relevant", self.relevant)


@with_options
def evaluate(
    model_file: Annotated[str, typer.Argument(metavar="MODEL", help="A file that 'topnrank train' saved.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="Rows that were held out of its training.")],
    measuring: Measuring,
    reading: Reading,
    printing: Printing,
) -> None:
    """Measure how well a model ranks rows it was not trained on.

    The numbers are means over users; the convention behind them (which items are ranked, what is relevant, who is left
    out) is printed below them. 'topnrank train DATA -o MODEL --holdout 0.5' makes the test file of the first example.

    \b
    Examples:
      topnrank evaluate movies.safetensors movies.test.parquet
      topnrank evaluate movies.safetensors test.csv --metrics ndcg@10,map@10,mrr --relevant 3.5
      topnrank evaluate shop.safetensors test.csv --protocol catalog --metrics recall@20 --relevant all
      topnrank evaluate shop.safetensors test.csv --protocol catalog --metrics ndcg@10,coverage@10,novelty@10
    """
    import topnrank as tnr

    output = printing.output()
    if measuring.per_user is not None:
        table_format(measuring.per_user)
        require_writable(measuring.per_user)
    model = tnr.load(model_file)
    test = model.weigh(reading.read(data, output))
    result = tnr.evaluate(
        model,
        test,
        protocol=measuring.protocol or model.fitted.info.task or "rated",  # type: ignore[arg-type]  # checked there
        metrics=split_list([measuring.metrics]),
        relevant=measuring.threshold(),
        num_threads=measuring.threads,
    )
    if seen := _seen_rows(model, test):
        output.note(f"{seen} of {len(test)} rows were in training; give rows that were held out of it")
    if measuring.per_user is not None:
        write_table(measuring.per_user, _per_user(result))
    rows = [[name, f"{value:.4f}"] for name, value in result.values.items()]
    output.show(list_table(["metric", "mean over users"], rows), result.convention)
    output.result({"model": model_file, "data": data, **result.to_dict()})


def _seen_rows(model: "Model", test: "Interactions") -> int:
    """How many test rows the model was trained on, which flatters it."""
    import numpy as np

    users = model.user_map.index(test.users.ids)[test.user_index]
    items = model.item_map.index(test.items.ids)[test.indices]
    known, width = (users >= 0) & (items >= 0), len(model.item_map)
    owners = np.repeat(np.arange(len(model.user_map)), np.diff(model.seen_indptr))
    return int(np.isin((users * width + items)[known], owners * width + model.seen_indices).sum())


def _per_user(result: "Evaluation") -> "pa.Table":
    """One row for each user; empty where the metric is not defined."""
    import pyarrow as pa

    columns = {name: pa.array(values, from_pandas=True) for name, values in result.per_user.items()}
    return pa.table({"user": pa.array(result.user_ids), **columns})
