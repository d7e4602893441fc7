"""The program `topnrank`: its commands, each imported when it is asked for."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from topnrank import __version__
from topnrank.cli.options import STYLE

COMMANDS = {
    "demo": ("demo", "Train, compare and recommend on embedded data."),
    "train": ("train", "Train a model on a file and save it."),
    "tune": ("tune", "Search a model's hyper-parameters on validation data."),
    "evaluate": ("evaluate", "Measure how well a model ranks rows it was not trained on."),
    "compare": ("compare", "Compare models on the same splits of a file, with tests."),
    "update": ("update", "Take new rows into a trained model."),
    "recommend": ("serving.recommend", "Print or write the N best items for users."),
    "similar": ("serving.similar", "Print or write the items most like some items."),
    "explain": ("serving.explain", "Show which of a user's items pulled an item up or down."),
    "serve": ("serve", "Serve models over HTTP, with a page where people see them work."),
    "warmup": ("warmup", "Compile the kernels now, for containers and new machines."),
    "refresh": ("refresh", "Take new events into a model; servers swap to it."),
    "events": ("events", "Export the events that a server stores."),
    "info": ("info", "Show what is in a model file or in a file of interactions."),
    "models": ("info", "List the models, or one's hyper-parameters."),
    "reproduce": ("reproduce", "Run a table of the paper again, beside its published numbers."),
    "data": ("data", "List, fetch and describe public data sets."),
}
"""The module below `cli.commands` that has a function or Typer app of the command's name, and its line in the list."""


class LazyGroup(TyperGroup):
    """A group that imports the module of a command when the command runs; its help imports none."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes | {"commands": dict.fromkeys(COMMANDS)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The Click command of that name; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"topnrank.cli.commands.{COMMANDS[cmd_name][0]}"), cmd_name)
        if not isinstance(command, typer.Typer):
            single = typer.Typer(**STYLE)
            single.command(cmd_name)(command)
            command = single
        return typer.main.get_command(command)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands in the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


app = typer.Typer(name="topnrank", cls=LazyGroup, pretty_exceptions_enable=False, **STYLE)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """List-wise top-N recommendation: from a file of ratings to the N best items for each user.

    New here? 'topnrank demo' trains, compares and recommends on embedded data within a minute. Then, with a file of your
    own:

    \b
      topnrank train ratings.csv -o movies.safetensors --holdout 0.5
      topnrank evaluate movies.safetensors movies.test.parquet
      topnrank recommend movies.safetensors --user 42

    Every command explains itself with --help and prints JSON with --json. Exit codes: 0 fine, 2 bad usage or input, 1
    failure, 130 interrupted.
    """
    if version:
        typer.echo(f"topnrank {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
