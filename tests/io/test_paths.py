"""Addresses: which place is meant, and what is refused."""

import subprocess
import sys
import threading
from pathlib import Path, PurePosixPath

import pytest

import topnrank as tnr
from topnrank.io._timeout import within
from topnrank.io.paths import RemotePath, local_path, parse_path


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("a/b.csv", Path("a/b.csv")),
        (Path("/a/b.csv"), Path("/a/b.csv")),
        ("~/b.csv", Path.home() / "b.csv"),
        ("file:///a/b%20c.csv", Path("/a/b%20c.csv")),
        ("file:/a/b.csv", Path("/a/b.csv")),
        ("file://localhost/a", Path("/a")),
        ("c:/a", Path("c:/a")),
        ("odd:/a", Path("odd:/a")),
        ("hdfs://name:8020/a/b.csv", RemotePath("hdfs", "name:8020", PurePosixPath("/a/b.csv"))),
        ("HDFS://service", RemotePath("hdfs", "service", PurePosixPath("/"))),
        ("hdfs:///a", RemotePath("hdfs", "", PurePosixPath("/a"))),
        ("s3://bucket/a b%20c?#", RemotePath("s3", "bucket", PurePosixPath("/a b%20c?#"))),
        ("s3a://bucket/a/", RemotePath("s3", "bucket", PurePosixPath("/a"))),
    ],
)
def test_what_is_meant(given, meant):
    assert parse_path(given) == meant


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("gs://bucket/a", r"^gs://bucket/a: addresses that begin with gs:// are not known; .* file://, hdfs://, s3://"),
        ("https://host/a.csv", "begin with https:// are not known"),
        ("s3:///key", "names no bucket"),
        ("file://a/b", "one slash too few"),
        (Path("hdfs://name/a"), "two slashes, hdfs://name/a; give it as text"),
        ("s3:/bucket/a", "two slashes, s3://bucket/a"),
    ],
)
def test_what_is_refused(given, words):
    for use in (parse_path, tnr.read, tnr.load, tnr.Popularity().fit(tnr.synthetic(5, 5, seed=0)).save):
        with pytest.raises(tnr.ParameterError, match=words):
            use(given)


def test_an_address_is_a_path():
    address = parse_path("hdfs://name:8020/a/b.tar.gz")
    assert str(address) == "hdfs://name:8020/a/b.tar.gz"
    assert str(address.parent / "c") == "hdfs://name:8020/a/c"
    assert (address.name, address.suffix) == ("b.tar.gz", ".gz")
    assert address.relative_to(address.parent.parent) == PurePosixPath("a/b.tar.gz")


def test_file_addresses_work_like_paths(tmp_path):
    (tmp_path / "ratings.csv").write_text("user,item,rating\na,x,1\na,y,2\n")
    address = f"file://{tmp_path}"
    data = tnr.read(f"{address}/ratings.csv")
    tnr.Popularity().fit(data).save(f"{address}/model.safetensors")
    assert tnr.load(f"{address}/model.safetensors").name == "popularity"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.safetensors", "ratings.csv"]


def test_what_must_lie_here():
    assert local_path("file:///a", "it") == Path("/a")
    with pytest.raises(tnr.ParameterError, match=r"^s3://b/a: it must lie on this machine"):
        local_path("s3://b/a", "it")


@pytest.mark.process
def test_nothing_is_imported_for_an_address_alone():
    script = (
        "import sys; from topnrank.io.paths import parse_path as p; p('hdfs://a:1/b') / 'c'; p('s3://a/b').parent;"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"pyarrow", "hdfs_native", "fsspec", "numpy"} & set(done.stdout.split())


def test_hdfs_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(tnr.ParameterError, match=r"needs the package hdfs-native; .*pip install 'topnrank\[remote\]'"):
        tnr.read("hdfs://not-asked-before:8020/a.csv")


def test_waiting_ends():
    never = threading.Event()
    with pytest.raises(TimeoutError, match="no answer within 0 seconds"):
        within(0.05, never.wait)
    never.set()
    assert within(60, lambda: 7) == 7
    with pytest.raises(KeyError, match="its own"):
        within(60, lambda: {}["its own"])
