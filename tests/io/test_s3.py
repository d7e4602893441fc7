"""Files on S3, by its real protocol."""

import gc
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import topnrank as tnr
from support.remote_files import DATA, Folder, RemoteTests, csv
from topnrank.io.paths import parse_path
from topnrank.io.s3 import _SILENT_SECONDS


@pytest.fixture
def folder(s3, tmp_path):
    return Folder(s3, tmp_path)


class TestOnS3(RemoteTests):
    """All that holds elsewhere."""

    kills = (10, 5, 7)  # before an upload, before it again, and in the round after it


def test_s3a_is_s3(folder):
    folder.write("ratings.csv", csv())
    assert len(tnr.read(f"{folder.address}/ratings.csv".replace("s3://", "s3a://"))) == 200


def test_a_bucket_that_does_not_exist(s3, tmp_path):
    with pytest.raises(tnr.DataError, match=r"s3://nowhere/ratings.csv: there is no such file; check the path"):
        tnr.read("s3://nowhere/ratings.csv")
    model = tnr.Popularity().fit(DATA)
    with pytest.raises(tnr.StorageError, match=r"s3://nowhere/m.safetensors: there is no such bucket"):
        model.save("s3://nowhere/m.safetensors")
    with pytest.raises(tnr.StorageError, match="s3://nowhere/run: there is no such bucket"):
        tnr.TopNRank(epochs=1).fit(DATA, checkpoint="s3://nowhere/run")


def test_a_store_that_is_not_there_is_one_sentence(s3, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        for use in (tnr.read, tnr.load, tnr.Popularity().fit(DATA).save):
            with pytest.raises(tnr.StorageError, match=r"^s3://tests/x.csv: the store cannot be reached \(.*\); check"):
                use("s3://tests/x.csv")


def test_a_store_that_says_nothing_is_given_up(s3, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(tnr.StorageError, match=f"cannot be reached .*{_SILENT_SECONDS} seconds"):
            tnr.read("s3://tests/x.csv")


@pytest.mark.parametrize("allowed", [1000, 12_000_000])
def test_an_upload_that_breaks_off_leaves_the_old_file(folder, tmp_path, monkeypatch, allowed):
    address = folder.write("model", b"old")
    source = tmp_path / "large"
    source.write_bytes(bytes(30_000_000))
    with _Between(folder.store.endpoint, allowed, cuts=True) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        with pytest.raises(tnr.StorageError, match=f"^{address}: the store cannot be reached"):
            parse_path(address).put(source)
        assert proxy.reached.is_set()
        proxy.left = 1 << 30  # what is left of the upload must not be completed now
        gc.collect()
    assert folder.read("model") == b"old"


@pytest.mark.parametrize("reached", [1, 12_000_000])
def test_an_interrupted_upload_leaves_the_old_file(folder, tmp_path, monkeypatch, reached):
    """Arrow alone would complete it with the part that has come so far."""
    address = folder.write("model", b"old")
    (tmp_path / "large").write_bytes(bytes(30_000_000))
    script = "import sys, topnrank.io.paths as p, pathlib; p.parse_path(sys.argv[1]).put(pathlib.Path(sys.argv[2]))"
    with _Between(folder.store.endpoint, reached, cuts=False) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        command = [sys.executable, "-c", script, address, tmp_path / "large"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
            assert proxy.reached.wait(60)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=600)
    assert b"KeyboardInterrupt" in said
    assert folder.read("model") == b"old"


class _Between:
    """Stands between client and store; notes when `allowed` bytes of requests have gone, then `cuts` all connections."""

    def __init__(self, endpoint: str, allowed: int, *, cuts: bool) -> None:
        host, _, port = endpoint.removeprefix("http://").partition(":")
        self.target, self.left, self.cuts, self.reached = (host, int(port)), allowed, cuts, threading.Event()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.server.getsockname()[1]}"

    def __enter__(self) -> "_Between":
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            store = socket.create_connection(self.target)
            for source, sink, counted in ((client, store, True), (store, client, False)):
                threading.Thread(target=self._pipe, args=(source, sink, counted), daemon=True).start()

    def _pipe(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        try:
            while piece := source.recv(1 << 16):
                self.left -= len(piece) if counted else 0
                if self.left < 0:
                    self.reached.set()
                    if self.cuts:
                        break
                sink.sendall(piece)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                end.close()


def test_nothing_is_left_by_the_trial_of_a_command(folder):
    parse_path(f"{folder.address}/new/model.safetensors").require_writable()
    assert folder.files() == []
    assert Path(folder.twin).exists()
