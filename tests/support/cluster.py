"""A real standalone Spark cluster on loopback, started from the pip package: one master, two workers.

Each worker offers two slots of one core: one for the session that all tests share, one for a test's own driver, so
that neither waits for the other. Any driver started with `Cluster.environment` finds what it needs in the cluster's
`spark-defaults.conf` and takes one slot on each worker.
"""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

import topnrank
from support.processes import Server, commands, serving, tail
from topnrank.spark.session.java import find_java

TESTS = Path(__file__).parents[1]
WORKERS = 2
DEFAULTS = {
    "spark.cores.max": str(WORKERS),
    "spark.executor.cores": "1",
    "spark.executor.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.port": "0",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.topnrank.ship": "never",
}
"""Settings of every driver: small, on loopback, one executor on each worker, which has the package, and with it the kernels
that this machine has compiled already."""


@dataclass
class Cluster:
    """A running cluster."""

    master: str
    """Its address, spark://127.0.0.1:port."""
    web: str
    folder: Path
    """Logs of master and workers; `work` in it holds those of the executors."""
    environment: Mapping[str, str]
    """What a driver's process needs: give it to `subprocess`."""
    workers: tuple[Server, ...] = ()
    drivers: list[subprocess.Popen[str]] = field(default_factory=list)
    """Drivers that tests started; what is left of them ends with the cluster."""

    def state(self) -> dict[str, object]:
        """What the master says of its workers and applications."""
        with urllib.request.urlopen(f"{self.web}/json/", timeout=60) as answer:
            return json.load(answer)

    def executor_pids(self, application: str | None = None) -> list[int]:
        """The executors' processes, all or those of one application (its id), in the order of their workers."""
        workers = [worker.process.pid for worker in self.workers]
        return [
            pid
            for worker in workers
            for pid, (parent, command) in sorted(commands().items())
            if parent == worker and application in (None, _value_after("--app-id", command))
        ]

    def kill_executor(self, application: str | None = None, number: int = 0) -> int:
        """Kills one executor's process, as a crash of its machine would, and says which."""
        pid = self.executor_pids(application)[number]
        os.kill(pid, signal.SIGKILL)
        return pid

    def driver(self, command: Sequence[str | os.PathLike[str]], **variables: str) -> subprocess.Popen[str]:
        """Starts a driver of a test's own; `command` without the interpreter: a script and its arguments."""
        driver = subprocess.Popen(
            [sys.executable, *map(os.fspath, command)],
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.drivers.append(driver)
        return driver

    def stop_drivers(self) -> None:
        """Ends the drivers that a failed test left; their Java ends with them."""
        for driver in self.drivers:
            driver.kill()
            driver.communicate()

    def logs(self) -> Iterator[tuple[str, str]]:
        """Name and end of every log: master, workers, and what the executors said last."""
        for file in sorted(self.folder.glob("*.log")):
            yield f"Spark {file.stem}", tail(file)
        executors = sorted(self.folder.glob("work/*/*/*/stderr"), key=lambda file: file.stat().st_mtime)
        for file in executors[-WORKERS:]:
            yield f"Spark executor {file.relative_to(self.folder / 'work')}", tail(file)


def _value_after(option: str, command: Sequence[str]) -> str | None:
    return command[command.index(option) + 1] if option in command[:-1] else None


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster with its logs in `folder` until the block ends."""
    environment = _environment(folder)
    with ExitStack() as stack:
        master = stack.enter_context(serving("master", _class("master.Master", "--port", "0"), folder, environment))
        address = master.wait_for("address", lambda: master.said(r"Starting Spark master at (spark://\S+)"))
        web = master.wait_for("web page", lambda: master.said(r"MasterWebUI .*started at (http://[\w.:]+)"))
        cluster = Cluster(address, web, folder, environment)
        stack.callback(cluster.stop_drivers)
        cluster.workers = tuple(
            stack.enter_context(serving(f"worker-{number}", _worker(address, folder, number), folder, environment))
            for number in range(WORKERS)
        )
        master.wait_for("workers", lambda: _all_registered(cluster))
        yield cluster


def _worker(master: str, folder: Path, number: int) -> list[str]:
    work = folder / "work" / str(number)
    return _class("worker.Worker", "--cores", "2", "--memory", "2g", "--work-dir", str(work), master)


def _class(name: str, *arguments: str) -> list[str]:
    """Command line of a server of Spark; `spark-class` becomes the JVM itself, so the process is the server."""
    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    return [
        "bash",
        str(script),
        f"org.apache.spark.deploy.{name}",
        "--host",
        "127.0.0.1",
        "--webui-port",
        "0",
        *arguments,
    ]


def _environment(folder: Path) -> dict[str, str]:
    """This process's environment, with Spark's settings replaced by the cluster's."""
    conf = folder / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in DEFAULTS.items()))
    # functions of test files are pickled by name: executors import them from here, and the package from where it lies
    paths = [str(Path(topnrank.__file__).parents[1]), str(TESTS), os.environ.get("PYTHONPATH", "")]
    foreign = ("SPARK_", "PYSPARK_", "HADOOP_")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(foreign)},
        **find_java(os.environ).environment(),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }


def _all_registered(cluster: Cluster) -> bool | None:
    for worker in cluster.workers:
        if worker.process.poll() is not None:
            raise RuntimeError(f"{worker.name} ended with {worker.process.returncode}\n{tail(worker.log)}")
    workers = cluster.state()["workers"]
    return len([worker for worker in workers if worker["state"] == "ALIVE"]) == WORKERS or None
