"""`topnrank refresh`."""

from typing import Annotated

import typer

from topnrank.cli.files import require_writable
from topnrank.cli.options import ModelFile, ReadOptions, with_options
from topnrank.cli.output import Output, facts_table

EVENTS = "Where the events are: a file of 'topnrank serve --events', or postgresql://..."


@with_options
def refresh(
    file: ModelFile,
    reading: ReadOptions,
    output: Output,
    events: Annotated[str, typer.Option("--events", metavar="WHERE", help=EVENTS)],
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="FILE", help="What the model was trained on: train anew on it and all events."),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", help="Without --data: passes over users with new items.")] = 5,
    save_as: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, and leave MODEL as it is.")
    ] = None,
) -> None:
    """Take new events into a model; servers swap to it.

    The events are those since the model was trained; servers swap to the new file without a failed request.

    Without --data the new rows are added (partial_fit): users and new items learn, old items stay as they are. With --data
    the model is trained anew with the same settings. What users removed, and users who were forgotten, leave the file.
    Run it by a timer, or by 'topnrank serve --refresh MINUTES'.

    \b
    Examples:
      topnrank refresh movies.safetensors --events events.db
      topnrank refresh movies.safetensors --events postgresql://db/topnrank --data ratings.csv
    """
    import asyncio

    from topnrank.serve import require_packages

    require_packages()
    from topnrank.serve.refresh import Request
    from topnrank.serve.refresh import refresh as run

    require_writable(save_as or file)
    known = None if data is None else reading.read(data, output)
    record = asyncio.run(run(Request(file, events, known, epochs, save_as)))
    told = ("model", "result", "events", "seconds", "through")
    facts = {name: getattr(record, name) for name in told} | {"file": save_as or file}
    output.report(facts_table(facts))
    output.result(facts)
