"""The processes of `topnrank serve`: one worker for each core, kept alive by uvicorn's supervisor.

A worker is spawned, not forked, since a kernel that ran before a fork ends the child. It runs its kernels on one thread:
workers are the parallelism, and threads that wait for each other on a busy machine cost far more than they give.
"""

import json
import logging
import os
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from topnrank.errors import InputError, ParameterError
from topnrank.serve.settings import ENVIRONMENT, Settings

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

ONE_THREAD = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
DRAIN_SECONDS = 30
"""Requests that run when the server is told to stop have so long."""
KEEP_ALIVE_SECONDS = 75
"""Longer than proxies keep an idle connection, so that none sends into one that is being closed."""
HEALTH_SECONDS = 60
"""A worker that is silent for so long is replaced."""
CONCURRENT = 1000
"""Connections of a worker; what is beyond gets 503 at once."""
CANNOT_START = 4
"""Exit code of a worker that could not load what it shall serve."""
_REASON = "TOPNRANK_SERVE_REASON"
"""The environment variable that names the file in which such a worker says why."""
_FACTS = ("request_id", "method", "path", "status", "ms", "model", "version")


def run(settings: Settings, host: str, port: int) -> None:
    """Serves until SIGTERM or Ctrl-C; then running requests are answered, and waiting events stored.

    Raises an InputError if no worker could start. One that cannot start later, beside others or in the place of one that
    died, is tried again: the file may be whole again.
    """
    import uvicorn

    with tempfile.TemporaryDirectory(prefix="topnrank-serve-") as metrics:
        for name in ONE_THREAD:
            os.environ[name] = "1"
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics
        reason = Path(metrics, "reason")
        os.environ[_REASON] = str(reason)
        os.environ[ENVIRONMENT] = settings.to_json()
        listening = bound(host, port)
        config = uvicorn.Config(
            "topnrank.serve.workers:app",
            factory=True,
            host=host,
            port=port,
            workers=settings.workers,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            log_config=log_config(),
            limit_concurrency=CONCURRENT,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            timeout_worker_healthcheck=HEALTH_SECONDS,
            ws="none",
        )
        with listening:
            started = _supervise(config, listening)
        why = reason.read_text() if reason.exists() else "the lines above say why"
        shutil.rmtree(metrics, ignore_errors=True)
        if not started:
            raise InputError(f"the server cannot start: {why}")


def _supervise(config: "uvicorn.Config", listening: socket.socket) -> bool:
    """Keeps workers alive until the end; False where it ended because none of them could start."""
    from uvicorn.config import STARTUP_FAILURE
    from uvicorn.supervisors import Multiprocess
    from uvicorn.supervisors.multiprocess import Process

    class Supervisor(Multiprocess):  # type: ignore[misc]  # has no types
        """uvicorn's, which starts without end what cannot start at all, and ends all for one that cannot start later."""

        ready = failed = False

        def keep_subprocess_alive(self) -> None:
            """Until the first worker is ready, one that cannot start ends the server; then the dead are replaced."""
            self.ready = self.ready or any(process.is_ready(1) for process in self.processes)
            for place, process in enumerate(self.processes):
                if self.should_exit.is_set():
                    return
                if process.is_alive(HEALTH_SECONDS) if self.ready else process.exitcode is None:
                    continue
                if not self.ready and process.exitcode in (CANNOT_START, STARTUP_FAILURE):
                    self.failed = True
                    self.should_exit.set()
                    return
                process.kill()
                process.join()
                self.processes[place] = Process(self.config, self.sockets)
                self.processes[place].start()

    supervisor = Supervisor(config, sockets=[listening])
    supervisor.run()
    return not supervisor.failed


def app() -> "Starlette":
    """The application of a worker, by the settings in its environment."""
    from topnrank.serve.app import make_app

    try:
        made = make_app(Settings.from_json(os.environ[ENVIRONMENT]))
    except InputError as error:
        _end(error)
    opened = made.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: "Starlette") -> AsyncIterator[Any]:
        """Opens the event store."""
        entered = opened(app)
        try:
            state = await entered.__aenter__()
        except InputError as error:
            _end(error)
        try:
            yield state
        finally:
            await entered.__aexit__(None, None, None)

    made.router.lifespan_context = lifespan
    return made


def _end(error: InputError) -> NoReturn:
    """Ends this worker, which cannot start, with one sentence; nothing is open yet that would have to be closed."""
    logging.getLogger("topnrank.serve").error("this worker cannot start: %s", error)
    Path(os.environ[_REASON]).write_text(str(error))
    os._exit(CANNOT_START)


def bound(host: str, port: int) -> socket.socket:
    """A listening address that workers inherit."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except (OSError, OverflowError) as error:
        made.close()
        raise ParameterError(f"cannot listen at {host}, port {port} ({error}); give another with --port") from None
    made.set_inheritable(True)
    return made


class JsonLines(logging.Formatter):
    """A log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """See the class."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "process": record.process,
        }
        line |= {name: getattr(record, name) for name in _FACTS if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_config() -> dict[str, Any]:
    """Our messages and uvicorn's, as lines of JSON on standard error."""
    logger = {"handlers": ["lines"], "level": "INFO", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": "topnrank.serve.workers.JsonLines"}},
        "handlers": {"lines": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "loggers": {"uvicorn": logger, "topnrank.serve": logger},
    }


def wait_until_ready(host: str, port: int, seconds: float) -> bool:
    """Whether the server says within that time that it is ready."""
    import http.client

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            connection = http.client.HTTPConnection(host, port, timeout=5)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return True
        except OSError:
            pass
        time.sleep(0.2)
    return False
