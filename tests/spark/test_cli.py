"""`topnrank train --engine spark`: executors read the files, and the model is that of one machine."""

import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import topnrank as tnr
from support.frames_for_tests import ratings
from support.same_model import assert_same_model
from topnrank.cli import main

SMALL = ["--set", "factors=4", "--set", "epochs=2", "--set", "batch_size=20"]
ON_SPARK = ["--engine", "spark"]
BY_EXECUTORS = "rows are read by the executors"


def train(data, output, *options):
    return main(["train", str(data), "-o", str(output), "--json", *SMALL, *map(str, options)])


@pytest.fixture
def no_local_reader(monkeypatch):
    """The local reader, which fails; what is returned gives it back."""

    def fail(*_, **__):
        raise AssertionError("the driver has read the rows")

    monkeypatch.setattr(tnr, "read", fail)
    return monkeypatch.undo


def both(data, folder, give_back, *options, on_spark=()):
    """The model trained by the command on Spark, which must not read on the driver, and the one of this machine."""
    assert train(data, folder / "ours.safetensors", *ON_SPARK, *options, *on_spark) == 0
    give_back()
    assert train(data, folder / "theirs.safetensors", *options) == 0
    return [tnr.load(folder / f"{name}.safetensors") for name in ("ours", "theirs")]


def assert_alike(ours, theirs):
    assert ours.user_ids_.tolist() == theirs.user_ids_.tolist()
    assert ours.item_ids_.tolist() == theirs.item_ids_.tolist()
    assert_same_model(ours, theirs)


def parts(folder, write, suffix):
    """The ratings as a folder of part files, as Spark leaves it."""
    folder.mkdir()
    table = pa.Table.from_pandas(ratings(), preserve_index=False)
    for number in range(3):
        write(table.slice(200 * number, 200), folder / f"part-{number}.{suffix}")
    (folder / "_SUCCESS").touch()
    return folder


def test_a_folder_of_parquet_gives_the_model_of_one_machine(spark, tmp_path, no_local_reader, capsys):
    data = parts(tmp_path / "ratings", pq.write_table, "parquet")
    assert_alike(*both(data, tmp_path, no_local_reader, "--seed", 3, on_spark=["--checkpoint", tmp_path / "run"]))
    ours = json.loads(capsys.readouterr().out.splitlines()[0])
    assert ours["data"] == {"rows": 600, "users": 40, "items": 30}
    assert any(BY_EXECUTORS in note for note in ours["notes"])
    assert any(note.startswith("an iteration moved ") and "to each executor" in note for note in ours["notes"])


def test_a_folder_of_csv_with_text_ids_gives_the_model_of_one_machine(spark, tmp_path, no_local_reader):
    assert_alike(*both(parts(tmp_path / "ratings [1]", pa_csv.write_csv, "csv"), tmp_path, no_local_reader))


def test_ids_are_those_of_the_local_reader(spark, tmp_path, no_local_reader):
    """One "007" keeps all users text; items are integers; quotes, long names and a header of another case."""
    lines = ["UserId;note;Movie_ID;Rating", '007;"a;""b""";1;5', "7;x;2;1", "07;;1;2.5", '"7";y;3; 4', "8;z;-1;1e0"]
    (tmp_path / "ratings.csv").write_text("\n".join([*lines, "007;;3;1", "07;;-1;3"]) + "\n")
    ours, theirs = both(tmp_path / "ratings.csv", tmp_path, no_local_reader)
    assert ours.user_ids_.tolist() == ["007", "07", "7", "8"]
    assert ours.item_ids_.tolist() == [-1, 1, 2, 3]
    assert_alike(ours, theirs)


def test_movielens_files_without_a_header(spark, tmp_path, no_local_reader):
    rows = [
        f"{user}::{item}::{1 + (user * item) % 5}::978300760"
        for user in range(1, 9)
        for item in range(1, 7)
        if user != item
    ]
    (tmp_path / "ratings.dat").write_text("\n".join(rows) + "\n")
    assert_alike(*both(tmp_path / "ratings.dat", tmp_path, no_local_reader))


BAD = {
    "abc": ("u1,i1,5\nu1,i2,abc\n", "column 'rating': must be a finite number, but 1 of 2 rows break that"),
    "short": ("u1,i1,5\nu1,i2\n", "Spark cannot read it"),
    "no id": ("u1,i1,5\n,i2,3\n", "column 'user': ids must not be empty"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_named_and_not_dropped(spark, tmp_path, capsys, no_local_reader, case):
    rows, problem = BAD[case]
    (tmp_path / "ratings.csv").write_text("user,item,rating\n" + rows)
    assert train(tmp_path / "ratings.csv", tmp_path / "model.safetensors", *ON_SPARK) != 0
    said = capsys.readouterr().err
    assert f"{tmp_path}/ratings.csv" in said
    assert problem in said
    assert not (tmp_path / "model.safetensors").exists()


def test_what_needs_the_rows_on_the_driver_says_so(spark, tmp_path, capsys):
    data = parts(tmp_path / "ratings", pq.write_table, "parquet")
    assert train(data, tmp_path / "model.safetensors", *ON_SPARK, "--holdout", 0.3) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert "--holdout: rows are read on the driver" in notes
    assert any(note.startswith("an iteration moved ") for note in notes)


def test_from_hdfs_to_hdfs(spark, hdfs, tmp_path, no_local_reader):
    pytest.importorskip("hdfs_native", reason="hdfs-native is not installed: pip install 'topnrank[remote]'")
    address = f"{hdfs.address}/cli_on_spark"
    local = parts(tmp_path / "ratings", pa_csv.write_csv, "csv")
    frame = spark.read.option("header", True).csv(f"file://{local}")
    frame.write.option("header", True).option("compression", "gzip").csv(f"{address}/ratings")
    assert train(f"{address}/ratings", f"{address}/ours.safetensors", *ON_SPARK) == 0
    no_local_reader()
    assert train(local, tmp_path / "theirs.safetensors") == 0
    assert_alike(tnr.load(f"{address}/ours.safetensors"), tnr.load(tmp_path / "theirs.safetensors"))
