"""`topnrank info` and `topnrank models`."""

import json
from dataclasses import replace
from typing import Annotated, Any

import typer

from topnrank._checks import one_of
from topnrank.cli.options import ReadOptions, with_options
from topnrank.cli.output import Output, describe, facts_table, list_table, training_facts


@with_options
def info(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A model file or a file, folder or glob of data.")],
    reading: ReadOptions,
    output: Output,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare all numbers of a model file with their checksums.")
    ] = False,
) -> None:
    """Show what is in a model file or in a file of interactions.

    For a model: kind, hyper-parameters, users and items, training, versions. For data: users, items, rows, how ratings
    are distributed, how long the users' lists are, how dense the matrix is, the time it spans, and rows that repeat others.

    \b
    Examples:
      topnrank info movies.safetensors
      topnrank info movies.safetensors --verify
      topnrank info ratings.csv --user userId --item movieId
      topnrank info ratings.csv --json
    """
    facts = _model_facts(file, verify=verify) if _is_model(file) else _data_facts(file, reading, output)
    output.show(facts_table({"file": file, **facts}))
    output.result({"file": file, **facts})


@with_options
def models(
    output: Output,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Only this model, with its hyper-parameters.")
    ] = None,
) -> None:
    """List the models, or one's hyper-parameters.

    \b
    Examples:
      topnrank models
      topnrank models top-n-rank
    """
    import topnrank as tnr

    if name is None:
        summaries = {known: kind.summary for known, kind in tnr.MODELS.items()}
        output.show(list_table(["name", "what it is"], [list(row) for row in summaries.items()]))
        output.result({"models": summaries})
        return
    from topnrank.models.parameter_docs import parameter_docs

    kind = tnr.MODELS[one_of("the model", name, tuple(tnr.MODELS))]
    docs = parameter_docs(kind)
    output.show(f"{name}: {kind.summary}", "")
    for one in docs:
        facts = {"values": one.values, "worth trying": one.worth_trying}
        told = [f"  {what}: {text}" for what, text in facts.items() if text]
        output.show(
            f"--set {one.name}={json.dumps(one.default)}", *(f"  {line}" for line in one.meaning.splitlines()), *told
        )
    output.result(
        {
            "model": name,
            "summary": kind.summary,
            "parameters": {one.name: one.default for one in docs},
            "worth_trying": {one.name: one.worth_trying for one in docs},
            "meaning": {one.name: one.meaning for one in docs},
            "values": {one.name: one.values for one in docs},
        }
    )


def _data_facts(path: str, reading: ReadOptions, output: Output) -> dict[str, Any]:
    """The rows, with those that repeat a user and item counted instead of refused."""
    repeated = reading.duplicates == "error"
    rows = (replace(reading, duplicates="last") if repeated else reading).read_rows(path, Output(quiet=True))
    data = rows.data
    facts = {"kind": "data", **describe(data)}
    if rows.unused:
        facts["columns_not_used"] = list(rows.unused)
    if data.merged_rows and repeated:
        facts["repeated_rows"] = data.merged_rows
        output.note(
            f"{data.merged_rows} of {len(data) + data.merged_rows} rows repeat a user and item (and type) of another row; "
            "the facts are those of the last of each; 'train' asks for a rule: --duplicates last, sum, max or count"
        )
    elif data.merged_rows:
        reading.note_merged(path, data.merged_rows, output)
    return facts


def _is_model(path: str) -> bool:
    """Whether the file is a model, by its name or, whatever its name, by its first bytes."""
    from topnrank.data.readers.files import is_safetensors
    from topnrank.io.paths import RemotePath, parse_path

    file = parse_path(path)
    if file.suffix == ".safetensors" or not file.is_file():
        return file.suffix == ".safetensors"
    with file.open() if isinstance(file, RemotePath) else file.open("rb") as stream:
        return is_safetensors(stream.read(9))


def _model_facts(path: str, *, verify: bool) -> dict[str, Any]:
    import topnrank as tnr
    from topnrank.io.tensors import read_file

    model = tnr.load(path, verify=verify)
    stored, _ = read_file(path, "model", mapped=True)  # the file also has versions, and the parameters as JSON
    return {
        "kind": "model",
        "model": model.name,
        "summary": model.summary,
        "users": len(model.user_map),
        "items": len(model.item_map),
        "training_rows": len(model.seen_indices),
        **training_facts(model),
        "parameters": stored["parameters"],
        "data_fingerprint": stored["info"].get("fingerprint"),
        "versions": stored["versions"],
    }
