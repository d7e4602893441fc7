"""`topnrank similar`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from topnrank.cli.files import require_writable, titled, titles_of
from topnrank.cli.options import TITLE_COLUMNS, TITLES, ModelFile, option, with_options
from topnrank.cli.output import Output, list_table
from topnrank.io.tables import table_format, write_table


@dataclass(frozen=True)
class SimilarOptions:
    """How many, and where they go."""

    n: int = option(10, "Items for each item.", "-n", "--n")
    file: str | None = option(
        None, "Write .parquet, .csv or .jsonl.", "--output", "-o", metavar="FILE", show_default="print a table"
    )
    titles: str | None = option(None, TITLES, metavar="FILE")
    title_columns: str | None = option(None, TITLE_COLUMNS, metavar="ITEM,TITLE", show_default="by usual names")


@with_options
def similar(
    model_file: ModelFile,
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="Items of the model.")],
    options: SimilarOptions,
    output: Output,
) -> None:
    """Print or write the items most like some items.

    Two items are alike where the same users like them: by the vectors of the model and, where it has them, the weights of
    neighbors. Linear models go by their weights.

    \b
    Examples:
      topnrank similar movies.safetensors 318 --titles movies.csv
      topnrank similar movies.safetensors 318 858 -n 5 --titles items.tsv --title-columns movieId,name
      topnrank similar movies.safetensors 318 858 -o alike.csv
    """
    import topnrank as tnr

    if options.file is not None:
        table_format(options.file)
        require_writable(options.file)
    model = tnr.load(model_file)
    titles = titles_of(options.titles, model, options.title_columns)
    table = titled(model.similar_items(items, n=options.n), titles)
    if options.file is not None:
        write_table(options.file, table)
        output.report(f"{table.num_rows:,} rows written to {options.file}")
        output.result({"file": options.file, "rows": table.num_rows})
        return
    rows = table.to_pylist()
    names = [name for name in ("rank", "item", "title", "score") if name in table.column_names]
    for item in dict.fromkeys(row["of"] for row in rows):
        cells = [
            [f"{row[name]:.4f}" if name == "score" else str(row[name]) for name in names]
            for row in rows
            if row["of"] == item
        ]
        title = f" {titles[str(item)]}" if titles and str(item) in titles else ""
        output.show(list_table(names, cells, title=f"like {item}{title}"))
    output.result({"similar": rows})
