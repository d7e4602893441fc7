"""A real HDFS on loopback: one NameNode and one DataNode, from the parts that `fetch_hadoop` puts together."""

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from support.processes import Server, serving, tail
from topnrank.spark.session.java import Java

NEWEST_JAVA = 22
"""Servers of Hadoop 3.3 ask for a security manager, which newer ones refuse."""
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "sun.nio.ch", "java.nio")]
SETTINGS = {
    "dfs.replication": 1,
    "dfs.permissions.enabled": False,
    "dfs.heartbeat.interval": 1,
    "dfs.namenode.safemode.extension": 0,
    "dfs.namenode.datanode.registration.ip-hostname-check": False,
    "dfs.namenode.http-address": "127.0.0.1:0",
    "dfs.datanode.address": "127.0.0.1:0",
    "dfs.datanode.http.address": "127.0.0.1:0",
    "dfs.datanode.ipc.address": "127.0.0.1:0",
    "dfs.datanode.hostname": "127.0.0.1",
}


@dataclass
class Hdfs:
    """A running HDFS."""

    address: str
    """hdfs://127.0.0.1:port, without a slash at its end."""
    web: str
    """http://127.0.0.1:port of the NameNode: WebHDFS and facts about it."""
    folder: Path
    name_node: Server
    data_node: Server | None = None

    def logs(self) -> Iterator[tuple[str, str]]:
        """Name and end of both servers' logs."""
        for file in sorted(self.folder.glob("*.log")):
            yield f"HDFS {file.stem}", tail(file)


@contextmanager
def running(parts: Path, folder: Path, java: Java) -> Iterator[Hdfs]:
    """An empty HDFS in `folder` until the block ends; `parts` is what `hadoop_folder` gave."""
    started = _Launch(parts, folder, java)
    started.format("hdfs://127.0.0.1:0")
    with ExitStack() as stack:
        name = stack.enter_context(started.server("namenode", "hdfs://127.0.0.1:0"))
        port = name.wait_for("address", lambda: name.said(r"NameNode RPC up at: \S*:(\d+)"))
        web = name.wait_for("web page", lambda: name.said(r"Jetty bound to port (\d+)"))
        hdfs = Hdfs(f"hdfs://127.0.0.1:{port}", f"http://127.0.0.1:{web}", folder, name)
        hdfs.data_node = stack.enter_context(started.server("datanode", hdfs.address))
        hdfs.data_node.wait_for("registration with the NameNode", lambda: _ready(hdfs.web))
        yield hdfs


@dataclass(frozen=True)
class _Launch:
    """How the servers are started."""

    parts: Path
    folder: Path
    java: Java

    def command(self, role: str, address: str) -> list[str]:
        conf = self.folder / f"conf-{role}"
        shutil.rmtree(conf, ignore_errors=True)
        conf.mkdir()
        stores = {f"dfs.{kind}node.{kind}.dir": (self.folder / kind).as_uri() for kind in ("name", "data")}
        _write_settings(conf / "core-site.xml", {"fs.defaultFS": address, "hadoop.tmp.dir": self.folder / "tmp"})
        _write_settings(conf / "hdfs-site.xml", {**SETTINGS, **stores})
        (conf / "log4j.properties").write_text(LOGGING)
        class_path = os.pathsep.join([str(conf), str(self.parts), f"{self.parts / 'jars'}/*"])
        server = {"namenode": "namenode.NameNode", "datanode": "datanode.DataNode"}[role]
        return [
            str(self.java.home / "bin" / "java"),
            *OPENED,
            "-Xmx256m",
            "-cp",
            class_path,
            f"org.apache.hadoop.hdfs.server.{server}",
        ]

    def server(self, role: str, address: str) -> AbstractContextManager[Server]:
        return serving(role, self.command(role, address), self.folder, self.environment())

    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("HADOOP_")}
        return {**own, **self.java.environment()}

    def format(self, address: str) -> None:
        command = [*self.command("namenode", address), "-format", "-nonInteractive", "-force"]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            raise RuntimeError(f"the NameNode cannot be formatted\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


LOGGING = """
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""


def _write_settings(file: Path, settings: Mapping[str, object]) -> None:
    def text(value: object) -> str:
        return escape(str(value).lower() if isinstance(value, bool) else str(value))

    lines = (
        f"<property><name>{name}</name><value>{text(value)}</value></property>" for name, value in settings.items()
    )
    file.write_text("\n".join(["<configuration>", *lines, "</configuration>", ""]))


def _ready(web: str) -> bool | None:
    """True when the NameNode takes files and knows the DataNode."""
    try:
        with urllib.request.urlopen(
            f"{web}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState", timeout=60
        ) as answer:
            state = json.load(answer)["beans"][0]
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"the NameNode's web page fails: {error.read().decode(errors='replace')}") from error
    except (urllib.error.URLError, IndexError):  # not up yet
        return None
    return (state["FSState"] == "Operational" and state["NumLiveDataNodes"] == 1) or None
