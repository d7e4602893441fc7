"""Files on a real HDFS, without Java on our side."""

import os
import signal
import socket
from contextlib import contextmanager

import pyarrow as pa
import pytest

import topnrank as tnr
from support.remote_files import DATA, Folder, RemoteTests, assert_same, csv, killed
from topnrank.io import hdfs as places_hdfs
from topnrank.io.atomic import write_atomically
from topnrank.io.paths import parse_path

hdfs_native = pytest.importorskip("hdfs_native", reason="hdfs-native is not installed: pip install 'topnrank[remote]'")


class HdfsStore:
    """The file system by hdfs-native's own calls."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.client = hdfs_native.Client(address)

    def write(self, path: str, content: bytes) -> None:
        with self.client.create(path, hdfs_native.WriteOptions(overwrite=True, create_parent=True)) as file:
            file.write(content)

    def read(self, path: str) -> bytes:
        return self.client.read(path).read()

    def files(self, path: str) -> list[str]:
        listed = self.client.list_status(path, True)
        return sorted(status.path.removeprefix(path + "/") for status in listed if not status.isdir)


@pytest.fixture
def folder(hdfs, tmp_path):
    return Folder(HdfsStore(hdfs.address), tmp_path)


class TestOnHdfs(RemoteTests):
    """All that holds elsewhere."""

    kills = (21, 17, 19)  # before an upload is closed, before it is renamed, and in the round after it

    def test_a_kill_in_an_upload_leaves_a_hidden_part_only(self, folder):
        killed(f"{folder.address}/run", 11)
        (part,) = folder.files()
        assert part.startswith("run/.checkpoint.safetensors.")
        assert part.endswith(".part")


def test_what_spark_wrote_is_read_without_spark(spark, hdfs, tmp_path):
    rows = [(f"u{row % 17}", row, float(1 + row % 5), "buy" if row % 3 else "view") for row in range(3000)]
    frame = spark.createDataFrame(rows, "user string, item long, rating double, type string").repartition(5)
    names = ("user", "item", "rating", "type")
    wanted = tnr.Interactions.from_frame(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))))
    folder = f"{hdfs.address}/written"
    frame.write.parquet(f"{folder}/parquet")
    frame.write.partitionBy("type").parquet(f"{folder}/by_type")
    frame.write.option("header", True).option("compression", "gzip").csv(f"{folder}/csv")
    frame.write.json(f"{folder}/json")
    frame.write.option("header", True).csv(f"file://{tmp_path}/csv")
    for name in ("parquet", "by_type", "csv", "json"):
        assert_same(tnr.read(f"{folder}/{name}"), wanted)
    assert_same(tnr.read(tmp_path / "csv"), wanted)


def test_a_folder_that_is_not_there_is_told_before_the_work(folder):
    address = f"{folder.address}/no/such/model.safetensors"

    def work(temporary):
        raise AssertionError("the work was done for nothing")

    with pytest.raises(tnr.OutputError, match=f"^{address}: its folder does not exist; create it first"):
        write_atomically(address, work)
    with pytest.raises(tnr.OutputError, match="its folder does not exist"):
        parse_path(address).require_writable()


def test_a_file_in_the_way_of_a_checkpoint(folder):
    address = folder.write("file", "in the way")
    with pytest.raises(tnr.StorageError, match=r"HDFS refuses \(.*file"):
        tnr.TopNRank(epochs=1).fit(DATA, checkpoint=f"{address}/run")


def test_an_upload_that_breaks_off_leaves_the_old_file(hdfs, folder, monkeypatch, tmp_path):
    address = folder.write("model", b"old")
    (tmp_path / "new").write_bytes(bytes(20_000_000))
    monkeypatch.setattr(places_hdfs, "PATIENCE", 3.0)
    with _stopped(hdfs.data_node.process), pytest.raises(tnr.StorageError, match=f"^{address}: HDFS cannot be reached"):
        parse_path(address).put(tmp_path / "new")
    assert folder.read("model") == b"old"
    assert folder.files() == ["model"]


def test_a_name_node_that_says_nothing_is_given_up(hdfs, folder, monkeypatch):
    address = folder.write("ratings.csv", csv())
    monkeypatch.setattr(places_hdfs, "PATIENCE", 2.0)
    with _stopped(hdfs.name_node.process):
        for use in (tnr.read, tnr.load, tnr.Popularity().fit(DATA).save):
            with pytest.raises(tnr.StorageError, match=r"HDFS cannot be reached \(no answer within 2 seconds\); check"):
                use(address)
    assert len(tnr.read(address)) == 200


def test_a_name_node_that_is_not_there_is_one_sentence():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"hdfs://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(tnr.StorageError, match=rf"^{host}/x.csv: HDFS cannot be reached \(Connection refused"):
            tnr.read(f"{host}/x.csv")


@pytest.mark.parametrize("address", ["hdfs://service-nobody-knows/x", "hdfs:///x", "hdfs://host:port/x"])
def test_an_address_without_a_name_node(address, monkeypatch):
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(tnr.ParameterError, match="this does not name a NameNode"):
        tnr.read(address)


def test_the_configured_name_node(hdfs, folder, monkeypatch, tmp_path):
    folder.write("ratings.csv", csv())
    settings = f"<property><name>fs.defaultFS</name><value>{hdfs.address}</value></property>"
    (tmp_path / "core-site.xml").write_text(f"<configuration>{settings}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert len(tnr.read(f"hdfs://{folder.path}/ratings.csv")) == 200


@contextmanager
def _stopped(process):
    """A server that is there but says nothing."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)
