"""`topnrank update`."""

import time
from dataclasses import dataclass

from topnrank.cli.files import require_writable
from topnrank.cli.options import ModelFile, ReadOptions, argument, option, with_options
from topnrank.cli.output import Output, facts_table


@dataclass(frozen=True)
class UpdateOptions:
    """Which rows, and where the model goes."""

    data: str = argument("New rows, as for 'train': a file, folder or glob.", "DATA")
    file: str | None = option(
        None, "Where to save the model.", "--output", "-o", metavar="MODEL", show_default="in place of the old one"
    )
    epochs: int = option(5, "Passes over the users who have new items.")


@with_options
def update(model_file: ModelFile, options: UpdateOptions, reading: ReadOptions, output: Output) -> None:
    """Take new rows into a trained model.

    Without training anew: new events and new users count at once, and new items are trained. A row of a known user and
    item takes the place of the old one. What was trained before stays as it is, so train anew from time to time. For
    models that are trained in rounds.

    \b
    Examples:
      topnrank update movies.safetensors today.csv
      topnrank update movies.safetensors today.csv -o movies-new.safetensors --epochs 10
    """
    import topnrank as tnr
    from topnrank.models.factor.model import FactorModel

    path = options.file or model_file
    require_writable(path)
    model = tnr.load(model_file, mapped=False)  # the file may be replaced
    before = len(model.user_map), len(model.item_map), len(model.seen_indices)
    rows = reading.read(options.data, output)
    started = time.perf_counter()
    if isinstance(model, FactorModel):
        model.partial_fit(rows, epochs=options.epochs)
    else:
        model.partial_fit(rows)  # says that it cannot
    seconds = time.perf_counter() - started
    model.save(path)
    after = len(model.user_map), len(model.item_map), len(model.seen_indices)
    new = {f"new_{name}": now - then for name, now, then in zip(("users", "items", "rows"), after, before, strict=True)}
    facts = {"model": model.name, "file": path, "rows_read": len(rows), **new, "seconds": round(seconds, 3)}
    output.report(facts_table(facts))
    output.result(facts)
