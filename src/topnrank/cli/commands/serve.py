"""`topnrank serve`."""

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from topnrank.cli.options import option, with_options
from topnrank.cli.output import Output
from topnrank.errors import ModelFileError, ParameterError

if TYPE_CHECKING:
    from topnrank.serve.settings import Settings


@dataclass(frozen=True)
class ServeOptions:
    """How to serve."""

    items: str | None = option(
        None,
        "Titles and facts of items: CSV, TSV, JSON lines or Parquet with the columns item, title, group, ...",
        metavar="FILE",
    )
    events: str | None = option(
        None, "Where events are kept: a file (SQLite, made if missing) or postgresql://...", metavar="WHERE"
    )
    durability: str = option(
        "full",
        "full: stored events survive a loss of power; normal: they survive the end of the server, and cost less.",
    )
    host: str = option("127.0.0.1", "Address to listen at; beyond this machine only with keys.")
    port: int = option(8000, "Port to listen at.")
    workers: int = option(0, "Processes; 0 for one on each core.")
    api_keys: str | None = option(
        None,
        "File of keys, a name, scopes (read,write,admin) and a key on each line; else TOPNRANK_API_KEYS.",
        metavar="FILE",
    )
    no_auth: bool = option(False, "Listen beyond this machine without keys: everybody may do everything.", "--no-auth")
    no_page: bool = option(False, "Leave out the page for people at /.", "--no-page")
    cors: list[str] | None = option(
        None, "An origin whose pages may call the server; may be repeated.", metavar="ORIGIN"
    )
    no_reload: bool = option(False, "Do not look for a new model file every second.", "--no-reload")
    refresh: float = option(0.0, "Minutes from one refresh of the model by new events to the next; 0 for never.")
    batch_window: float = option(
        0.0, "Milliseconds a request may wait for others, to be computed together; for catalogs beyond 30,000 items."
    )
    log_requests: bool = option(False, "Write a line for each request.", "--log-requests")


@with_options
def serve(
    output: Output,
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Files that 'topnrank train' saved; the first is the default."),
    ],
    options: ServeOptions,
) -> None:
    """Serve models over HTTP, with a page where people see them work.

    Open http://127.0.0.1:8000 for the page; /openapi.json describes all requests. A new file that is renamed to MODEL is
    taken in within a second, without a failed request. Ctrl-C or SIGTERM answers what runs, and stops.

    \b
    Examples:
      topnrank serve movies.safetensors --items movies.csv
      topnrank serve movies.safetensors --events events.db --refresh 15
      topnrank serve movies.safetensors --host 0.0.0.0 --api-keys keys.txt --events postgresql://db/topnrank
      curl -s localhost:8000/v1/recommend -H 'Content-Type: application/json' -d '{"history": [1193, 661], "n": 5}'
    """
    serve_models(models, options, output)


def serve_models(models: list[str], options: ServeOptions, output: Output) -> None:
    """Serves until it is told to stop."""
    from topnrank.serve import require_packages

    require_packages()
    from topnrank.serve import workers

    settings = settings_of(models, options)
    check_models(settings)
    where = f"http://{f'[{options.host}]' if ':' in options.host else options.host}:{options.port}"
    output.progress(
        f"starting {settings.workers} worker{'s' * (settings.workers > 1)} for {', '.join(settings.models)} ..."
    )

    def announce() -> None:
        if workers.wait_until_ready(options.host, options.port, 600):
            output.progress(f"ready at {where}  (Ctrl-C stops)")

    threading.Thread(target=announce, daemon=True).start()
    if options.refresh:
        start_refresher(settings, options.refresh, output)
    workers.run(settings, options.host, options.port)


def settings_of(models: list[str], options: ServeOptions) -> "Settings":
    """The options as settings; an error where strangers could reach the server without a key."""
    from topnrank.serve.keys import Keys
    from topnrank.serve.models import names_of
    from topnrank.serve.settings import LOOPBACK, Settings

    keys, local = bool(Keys.read(options.api_keys)), options.host in LOOPBACK
    if not keys and not local and not options.no_auth:
        raise ParameterError(
            f"--host {options.host} is reached by others, and there are no keys; give --api-keys FILE, set "
            "TOPNRANK_API_KEYS, or take --no-auth if something in front checks who calls"
        )
    if not 1 <= options.port <= 65535:
        raise ParameterError(f"--port must be from 1 to 65535, got {options.port}")
    if options.refresh < 0 or options.workers < 0:
        raise ParameterError("--refresh and --workers must be 0 or more")
    if options.refresh and options.events is None:
        raise ParameterError("--refresh learns from events; give --events, too")
    return Settings(
        models=names_of(models),
        items=options.items,
        events=options.events,
        durability=options.durability,
        api_keys=options.api_keys,
        page=not options.no_page,
        cors=tuple(options.cors or ()),
        hosts=LOOPBACK if local and not keys else (),
        watch_seconds=0.0 if options.no_reload else 1.0,
        batch_window_ms=options.batch_window,
        workers=options.workers or os.cpu_count() or 1,
        log_requests=options.log_requests,
    )


def check_models(settings: "Settings") -> None:
    """An error now, and not in every worker, where a file is missing or no model."""
    from topnrank.io.tensors import read_file
    from topnrank.serve.catalog import Facts

    for path in settings.models.values():
        if "://" in path:
            raise ModelFileError(f"{path}: serving maps files of this machine; copy the model here first")
        read_file(path, "model", mapped=True)
    Facts.read(settings.items)


def start_refresher(settings: "Settings", minutes: float, output: Output) -> None:
    """Runs `topnrank refresh` in a process of its own every so many minutes, for the first model."""
    import subprocess
    import sys
    import time

    command = [sys.executable, "-m", "topnrank", "refresh", next(iter(settings.models.values()))]
    command += ["--events", str(settings.events), "--quiet"]

    def repeat() -> None:
        while True:
            time.sleep(60 * minutes)
            ended = subprocess.run(command, check=False, stdin=subprocess.DEVNULL)
            if ended.returncode:
                output.progress(f"note: the refresh ended with code {ended.returncode}; the old model goes on")

    threading.Thread(target=repeat, daemon=True).start()
