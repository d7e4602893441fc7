"""The commands, put together."""

from typing import Annotated

import typer

from topnrank import __version__
from topnrank.cli.commands.compare import compare
from topnrank.cli.commands.data import data
from topnrank.cli.commands.demo import demo
from topnrank.cli.commands.evaluate import evaluate
from topnrank.cli.commands.explain import explain
from topnrank.cli.commands.info import info, models
from topnrank.cli.commands.recommend import recommend
from topnrank.cli.commands.reproduce import reproduce
from topnrank.cli.commands.train import train
from topnrank.cli.commands.tune import tune

app = typer.Typer(
    name="topnrank",
    add_completion=False,
    rich_markup_mode=None,  # plain help: the same with every version of Typer, and it can be piped
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
for command in (demo, train, tune, evaluate, compare, recommend, explain, info, models, reproduce):
    app.command()(command)
app.add_typer(data)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"topnrank {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
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
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
