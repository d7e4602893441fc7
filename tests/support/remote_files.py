"""What must hold on every file system elsewhere: reading, writing and the commands work there as they do here."""

import gzip
import json
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import topnrank as tnr
from topnrank.cli import main
from topnrank.data.readers.files import list_files
from topnrank.io.atomic import write_atomically
from topnrank.io.paths import parse_path
from topnrank.io.tensors import read_file

KILLED_RUN = Path(__file__).with_name("killed_run.py")
DATA = tnr.synthetic(40, 30, seed=3)


class Store(Protocol):
    """Another client of the same file system, not the one that is tested."""

    address: str

    def write(self, path: str, content: bytes) -> None:
        """Makes a file."""

    def read(self, path: str) -> bytes:
        """All of a file."""

    def files(self, path: str) -> list[str]:
        """Ways from the folder to all files below it, sorted."""


class Folder:
    """A folder of its own for one test, with a twin on this machine."""

    def __init__(self, store: Store, twin: Path) -> None:
        self.store, self.twin = store, twin
        self.path = f"/tests/{secrets.token_hex(6)}"
        self.address = store.address + self.path

    def write(self, name: str, content: bytes | str) -> str:
        """The same file in both; its address."""
        content = content.encode() if isinstance(content, str) else content
        (self.twin / name).parent.mkdir(parents=True, exist_ok=True)
        (self.twin / name).write_bytes(content)
        self.store.write(f"{self.path}/{name}", content)
        return f"{self.address}/{name}"

    def read(self, name: str) -> bytes:
        return self.store.read(f"{self.path}/{name}")

    def files(self) -> list[str]:
        return self.store.files(self.path)


def assert_same(found: tnr.Interactions, wanted: tnr.Interactions) -> None:
    assert found.fingerprint() == wanted.fingerprint()
    assert found.to_arrow().equals(wanted.to_arrow())


def assert_same_error(folder: Folder, name: str, kind: type[Exception] = tnr.DataError) -> None:
    """The same sentence here and there, but for the place."""
    with pytest.raises(kind) as here:
        tnr.read(folder.twin / name)
    with pytest.raises(kind) as there:
        tnr.read(f"{folder.address}/{name}")
    assert str(there.value) == str(here.value).replace(str(folder.twin), folder.address)


def csv(first: int = 0, rows: int = 200, header: bool = True) -> str:
    lines = [f"u{row % 17},i{row},{1 + row % 5}\n" for row in range(first, first + rows)]
    return ("user,item,rating\n" if header else "") + "".join(lines)


def parquet(first: int = 0, rows: int = 200) -> bytes:
    numbers = np.arange(first, first + rows)
    table = pa.table({"user": numbers % 17, "item": numbers, "rating": 1.0 + numbers % 5, "other": numbers.astype(str)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=64)
    return sink.getvalue().to_pybytes()


def json_lines() -> str:
    return "".join(json.dumps({"user": f"u{row % 9}", "item": row, "rating": row % 5}) + "\n" for row in range(100))


FILES = {
    "ratings.csv": csv().encode(),
    "ratings.tsv": csv().replace(",", "\t").encode(),
    "ratings.dat": csv(header=False).replace(",", "::").encode(),
    "ratings.jsonl": json_lines().encode(),
    "ratings.parquet": parquet(),
    "ratings.csv.gz": gzip.compress(csv(rows=20_000).encode()),
    "ratings.csv.zst": pa.compress(csv().encode(), codec="zstd", asbytes=True),
    "ratings.jsonl.gz": gzip.compress(json_lines().encode()),
    "a name with %20, #, ; and é.csv": csv().encode(),
}
PARTS = [
    "logs/part-00000.csv",
    "logs/part-00001.csv",
    "logs/part-00010.csv",
    "logs/_SUCCESS",
    "logs/.part-00000.csv.crc",
    "logs/_temporary/0/part-00000.csv",
    "logs/day=1/part-00000.csv",
    "logs/day=1/_SUCCESS",
    "logs/day=2/hour=7/part-00000.csv",
    "logs/.hidden/part-00000.csv",
]
PATTERNS = [
    "logs",
    "logs/*",
    "logs/*.csv",
    "logs/part-0000[01].csv",
    "logs/part-000?0.csv",
    "logs/day=*",
    "logs/day=*/part-*",
    "logs/**/part-00000.csv",
    "logs/**",
    "**/*.csv",
    "*/day=2",
    "logs/*/hour=7/*.csv",
    "logs/part-00000.csv",
]


class RemoteTests:
    """To be subclassed by the tests of a file system, with a fixture `folder`."""

    kills: tuple[int, int, int]
    """Events of `killed_run` in the second round, the second round, and the third one."""

    @pytest.mark.parametrize("name", FILES)
    def test_a_file_is_read_as_its_twin_here(self, folder, name):
        assert_same(tnr.read(folder.write(name, FILES[name])), tnr.read(folder.twin / name))

    def test_globs_and_folders_mean_the_same_files(self, folder):
        for name in PARTS:
            folder.write(name, csv())
        for pattern in PATTERNS:
            _, here = list_files(parse_path(folder.twin / pattern))
            _, there = list_files(parse_path(f"{folder.address}/{pattern}"))
            ways = [str(path).removeprefix(folder.address) for path in there]
            assert ways == [str(path).removeprefix(str(folder.twin)) for path in here], pattern
            assert ways, pattern

    def test_a_folder_as_spark_writes_it_is_read_in_the_order_of_its_parts(self, folder):
        for part in range(12):
            folder.write(f"out/part-{part:05}-7f3a-c000.csv", csv(first=200 * part))
        folder.write("out/part-00012-7f3a-c000.csv", csv(rows=0))
        folder.write("out/part-00013-7f3a-c000.csv", "")
        folder.write("out/_SUCCESS", "")
        folder.write("out/_temporary/0/part-00000.csv", csv(first=99_000))
        data = tnr.read(f"{folder.address}/out")
        assert len(data) == 12 * 200
        assert_same(data, tnr.read(folder.twin / "out"))

    def test_columns_spelled_in_folders_and_parquet_parts(self, folder):
        for kind in ("buy", "a%20view"):
            for part in range(3):
                folder.write(
                    f"out/type={kind}/part-{part}.snappy.parquet", parquet(first=1000 * len(kind) + 200 * part)
                )
        data = tnr.read(f"{folder.address}/out")
        assert_same(data, tnr.read(folder.twin / "out"))
        assert sorted(data.type_names) == ["a view", "buy"]

    def test_errors_are_those_of_a_file_here(self, folder):
        folder.write("bad.csv", csv() + "u1,i900,five\n")
        folder.write("ragged.csv", csv() + "u1\n")
        folder.write("bad.jsonl", json_lines() + '{"user": 1}\n')
        folder.write("null.parquet", _with_null())
        folder.write("cut.parquet", parquet()[:-30])
        folder.write("cut.csv.gz", gzip.compress(csv().encode())[:-20])
        folder.write("not.csv.gz", csv())
        folder.write("empty.csv", "")
        folder.write("parts/part-0.csv", csv())
        folder.write("parts/part-1.csv", csv(first=900) + "u1,i5000,nan\n")
        folder.write("tools/_SUCCESS", "")
        for name in ("bad.csv", "ragged.csv", "bad.jsonl", "null.parquet", "cut.parquet", "cut.csv.gz", "not.csv.gz"):
            assert_same_error(folder, name)
        for name in ("empty.csv", "parts", "tools", "bda.csv", "nothing/at/all.csv", "no*.tsv", "no/*/x.csv"):
            assert_same_error(folder, name)

    def test_a_model_keeps_its_bits(self, folder):
        model = tnr.TopNRank(factors=4, epochs=2, num_threads=1).fit(DATA)
        folder.write("a", "")
        model.save(folder.twin / "model.safetensors")
        model.save(f"{folder.address}/model.safetensors")
        assert folder.read("model.safetensors") == (folder.twin / "model.safetensors").read_bytes()
        again = tnr.load(f"{folder.address}/model.safetensors")
        assert again.recommend(n=5).equals(model.recommend(n=5))
        tnr.Popularity().fit(DATA).save(f"{folder.address}/model.safetensors")
        assert tnr.load(f"{folder.address}/model.safetensors").name == "popularity"
        assert folder.files() == ["a", "model.safetensors"]

    def test_a_model_that_is_missing_damaged_or_a_folder(self, folder):
        folder.write("deep/cut.safetensors", b"\x10\0\0\0\0\0\0\0{")
        with pytest.raises(tnr.ModelFileError, match=rf"^{folder.address}/no.safetensors: there is no such model file"):
            tnr.load(f"{folder.address}/no.safetensors")
        with pytest.raises(tnr.ModelFileError, match=rf"^{folder.address}/deep/cut.safetensors: .*damaged or cut off"):
            tnr.load(f"{folder.address}/deep/cut.safetensors")
        with pytest.raises(tnr.ModelFileError, match="is a folder"):
            tnr.load(f"{folder.address}/deep")
        with pytest.raises(tnr.OutputError, match="is a folder"):
            tnr.Popularity().fit(DATA).save(f"{folder.address}/deep")

    def test_a_writer_that_fails_leaves_the_old_file(self, folder):
        address = folder.write("old", "old")

        def fails(temporary):
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_atomically(address, fails)
        assert folder.read("old") == b"old"
        assert folder.files() == ["old"]

    def test_a_file_of_several_pieces_arrives_whole(self, folder):
        folder.write("small", "")
        content = np.random.default_rng(0).bytes(23_000_001)
        write_atomically(f"{folder.address}/large", lambda temporary: temporary.write_bytes(content) and None)
        assert folder.read("large") == content
        assert parse_path(f"{folder.address}/large").read_bytes() == content

    def test_lists_for_all_users_are_written_there(self, folder):
        model = tnr.ItemMean().fit(DATA)
        folder.write("a", "")
        rows = model.recommend_to(f"{folder.address}/top.parquet", n=3)
        table = pq.read_table(pa.BufferReader(folder.read("top.parquet")))
        assert rows == table.num_rows
        assert table.equals(model.recommend(n=3))

    def test_a_killed_run_resumes_from_its_checkpoint_there(self, folder, tmp_path):
        wanted = _digest(tmp_path / "undisturbed")
        checkpoint = f"{folder.address}/run/1"
        done = []
        for event in self.kills:
            killed(checkpoint, event)
            done.append(read_file(f"{checkpoint}/checkpoint.safetensors", "checkpoint")[0]["rounds_done"])
        assert done == [1, 1, 2]
        assert _digest(checkpoint) == wanted

    def test_the_commands_take_addresses(self, folder, capsys):
        data = folder.write("data/ratings.csv", csv(rows=800))
        titles = folder.write("titles.csv", "item,title\ni1,One\n")
        model, top = f"{folder.address}/model.safetensors", f"{folder.address}/top.csv"
        quick = ("--set", "factors=4", "--set", "epochs=2", "--threads", "1")
        assert _json(capsys, "train", data, "-o", model, "--holdout", "0.3", *quick)["holdout"]["rows"] > 0
        held_out = f"{folder.address}/model.test.parquet"
        assert (
            _json(capsys, "evaluate", model, held_out, "--per-user", f"{folder.address}/users.parquet")["n_users"] == 17
        )
        assert _json(capsys, "recommend", model, "--all", "-n", "2", "--titles", titles, "-o", top)["rows"] == 34
        assert folder.read("top.csv").splitlines()[0] == b'"user","item","score","rank","title"'
        assert _json(capsys, "info", model)["model"] == "top-n-rank"
        assert _json(capsys, "info", f"{folder.address}/data")["rows"] == 800
        names = [
            "data/ratings.csv",
            "model.safetensors",
            "model.test.parquet",
            "titles.csv",
            "top.csv",
            "users.parquet",
        ]
        assert folder.files() == names

    def test_a_command_refuses_what_must_lie_here(self, folder, capsys):
        folder.write("ratings.csv", csv())
        address = f"{folder.address}/cells"
        code = main(["compare", f"{folder.address}/ratings.csv", "--models", "popularity", "--folder", address])
        assert code == 2
        assert "must lie on this machine" in capsys.readouterr().err
        assert folder.files() == ["ratings.csv"]


def _json(capsys, *arguments):
    capsys.readouterr()
    code = main([*arguments, "--json", "--quiet"])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    return json.loads(printed.out)


def killed(folder: str, event: int) -> None:
    """Trains with a checkpoint there, in a process that dies at its `event`-th event."""
    command = [sys.executable, KILLED_RUN, "history", folder, str(event)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == -signal.SIGKILL, done.stderr


def _digest(folder: object) -> str:
    """What a run with a checkpoint there ends with, in a process of its own."""
    script = "import sys, killed_run; print(killed_run.digest(killed_run.fit('history', sys.argv[1])))"
    command = [sys.executable, "-c", script, str(folder)]
    done = subprocess.run(command, cwd=KILLED_RUN.parent, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _with_null() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"user": ["a", None], "item": [1, 2], "rating": [1.0, 2.0]}), sink)
    return sink.getvalue().to_pybytes()
