"""`topnrank evaluate`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from topnrank.cli.files import require_writable
from topnrank.cli.options import MetricOptions, ModelFile, ReadOptions, option, with_options
from topnrank.cli.output import Output, list_table
from topnrank.errors import DataError
from topnrank.io.tables import table_format, write_table

if TYPE_CHECKING:
    from topnrank import Interactions, Model


@dataclass(frozen=True)
class EvaluateOptions:
    """Which items are ranked, and what else is written."""

    protocol: str = option(
        "auto",
        "rated: rank each user's own test items (the paper). catalog: rank all items not seen in training. "
        "auto: what the model was trained for.",
    )
    per_user: str | None = option(
        None, "Also write each user's values (.csv, .parquet or .jsonl).", metavar="FILE", show_default="none"
    )
    threads: int = option(0, "Threads; 0 for all cores. The result does not depend on it.")


@with_options
def evaluate(
    model_file: ModelFile,
    data: Annotated[str, typer.Argument(metavar="DATA", help="Rows that were held out of its training.")],
    options: EvaluateOptions,
    measured: MetricOptions,
    reading: ReadOptions,
    output: Output,
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
    import pyarrow as pa

    import topnrank as tnr
    from topnrank.evaluation.labels import relevance

    if options.per_user is not None:
        table_format(options.per_user)
        require_writable(options.per_user)
    model = tnr.load(model_file)
    test = model.weigh(reading.read(data, output))
    arguments = measured.arguments()
    relevant = relevance(test, arguments["relevant"], model.liked_rule_)
    if relevant.says_nothing and (model.task_ if options.protocol == "auto" else options.protocol) == "rated":
        raise DataError(f"{data}: {relevant.complaint('rated')}")
    result = tnr.evaluate(
        model,
        test,
        protocol=options.protocol,  # type: ignore[arg-type]  # checked there
        num_threads=options.threads,
        **arguments,
    )
    if seen := _seen_rows(model, test):
        output.note(f"{seen} of {len(test)} rows were in training; give rows that were held out of it")
    if options.per_user is not None:
        columns = {name: pa.array(values, from_pandas=True) for name, values in result.per_user.items()}
        write_table(options.per_user, pa.table({"user": pa.array(result.user_ids), **columns}))
    means = {"mean over users": result.values}
    if result.n_users_without_rows:
        means["over users with training rows"] = result.known
    rows = [[name, *(f"{values[name]:.4f}" for values in means.values())] for name in result.values]
    output.show(list_table(["metric", *means], rows), result.convention)
    output.result({"model": model_file, "data": data, **result.to_dict()})


def _seen_rows(model: "Model", test: "Interactions") -> int:
    """How many test rows the model was trained on; they flatter it."""
    import numpy as np

    users = model.user_map.index(test.users.ids)[test.user_index]
    items = model.item_map.index(test.items.ids)[test.indices]
    known, width = (users >= 0) & (items >= 0), len(model.item_map)
    owners = np.repeat(np.arange(len(model.user_map)), np.diff(model.seen_indptr))
    return int(np.isin((users * width + items)[known], owners * width + model.seen_indices).sum())
