"""`topnrank events export`."""

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from topnrank.cli.options import STYLE, with_options
from topnrank.cli.output import Output
from topnrank.io.tables import table_format, write_batches

if TYPE_CHECKING:
    import asyncio

    import pyarrow as pa

events = typer.Typer(name="events", **STYLE)
PAGE = 20_000
"""Events that are held at a time."""


@events.callback(invoke_without_command=True)
def start(context: typer.Context) -> None:
    """Export the events that a server stores.

    \b
    Examples:
      topnrank events export events.db -o events.parquet
      topnrank events export postgresql://db/topnrank -o new.csv --after 48213
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@events.command("export")
@with_options
def export(
    where: Annotated[str, typer.Argument(metavar="WHERE", help="A file of events, or postgresql://...")],
    output: Output,
    file: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write .parquet, .csv or .jsonl.")],
    after: Annotated[int, typer.Option("--after", help="Only events with a higher number.")] = 0,
) -> None:
    """Write all events to a file: user, item, type, value, timestamp (seconds since 1970), id, recommendation, seq.

    \b
    Examples:
      topnrank events export events.db -o events.parquet
      topnrank events export postgresql://db/topnrank -o new.csv --after 48213
    """
    import asyncio

    import pyarrow as pa

    from topnrank.serve import require_packages

    require_packages()
    from topnrank.serve.store.base import for_commands

    table_format(file)
    schema = pa.schema(
        {
            "user": pa.string(),
            "item": pa.string(),
            "type": pa.string(),
            "value": pa.float64(),
            "timestamp": pa.float64(),
            "id": pa.string(),
            "recommendation": pa.string(),
            "seq": pa.int64(),
        }
    )
    rows = 0
    with (
        for_commands(where),
        asyncio.Runner() as runner,
        closing(_batches(runner, where, after, schema)) as batches,
    ):

        def counted() -> "Iterator[pa.RecordBatch]":
            nonlocal rows
            for batch in batches:
                rows += batch.num_rows
                yield batch

        write_batches(file, schema, counted())
    output.report(f"{rows} events written to {file}")
    output.result({"events": rows, "file": file})


def _batches(
    runner: "asyncio.Runner", where: str, after: int, schema: "pa.Schema"
) -> "Generator[pa.RecordBatch, None, None]":
    """The events, page by page; the store is read in an event loop of its own."""
    import pyarrow as pa

    from topnrank.serve.store.base import open_store

    store = runner.run(open_store(where, must_exist=True))
    try:
        while page := runner.run(store.since(after, PAGE)):
            after = page[-1].seq
            names = {name: "time" if name == "timestamp" else name for name in schema.names}
            rows = [{name: getattr(event, field) for name, field in names.items()} for event in page]
            yield pa.RecordBatch.from_pylist(rows, schema=schema)
    finally:
        runner.run(store.close())
