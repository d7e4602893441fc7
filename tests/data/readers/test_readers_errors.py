"""Files that are wrong: one sentence that names the file, the place, the rule, the value and the remedy."""

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from topnrank.data.readers.read import read
from topnrank.errors import DataError, InputError, ParameterError

GOOD = "user,item,rating\n" + "".join(f"{user},{item},3\n" for user in range(40) for item in range(50))


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def message(path: Path | str, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


def assert_says(text: str, *parts: str) -> None:
    assert [part for part in parts if part not in text] == [], text


TEXTS: dict[str, tuple[str, str | bytes, tuple[str, ...]]] = {
    "empty": ("a.csv", "", ("a.csv", "is empty")),
    "blank": ("a.csv", "\n \n", ("is empty",)),
    "empty jsonl": ("a.jsonl", "", ("is empty",)),
    "header only": ("a.csv", "user,item,rating\n", ("a.csv", "no rows")),
    "header only without line end": ("a.csv", "user,item,rating", ("a.csv", "no rows")),
    "missing column": ("a.csv", "user,rating,when\n1,5,2\n", ("a.csv", "no item column", "'when'", "item='...'")),
    "missing key": ("a.jsonl", '{"user": 1, "stars": 2}\n', ("a.jsonl", "no item column", "'stars'")),
    "rating is text": ("a.csv", GOOD + "7,99,good\n", ("a.csv, line 2002", "'rating'", "finite number", "'good'")),
    "rating is nan": ("a.csv", "user,item,rating\n1,1,5\n1,2,nan\n", ("a.csv, line 3", "'rating'", "finite number")),
    "rating is infinite": ("a.csv", "user,item,rating\n1,1,5\n1,2,inf\n", ("line 3", "'rating'", "finite", "inf")),
    "rating is missing": ("a.csv", "user,item,rating\n1,1,5\n1,2,\n", ("line 3", "'rating'", "null")),
    "rating is too large": ("a.csv", "user,item,rating\n1,1,5\n1,2,1e300\n", ("line 3", "'rating'", "finite")),
    "rating with comma": ("a.csv", 'user;item;rating\n1;1;5\n1;2;"3,5"\n', ("line 3", "'rating'", "'3,5'")),
    "weight is text": ("a.csv", "user,item,count\n1,1,many\n", ("line 2", "'count'", "'many'")),
    "user is empty": ("a.csv", "user,item,rating\n1,1,5\n,2,4\n", ("line 3", "'user'", "empty", "remove the row")),
    "item is empty in quotes": ("a.csv", 'user,item,rating\n1,x,5\n1,"",4\n', ("line 3", "'item'", "empty")),
    "item is NULL": ("a.csv", "user,item,rating\n1,1,5\n1,NULL,4\n", ("line 3", "'item'", "empty")),
    "type is empty": ("a.csv", "user,item,event\n1,1,buy\n1,2,\n", ("line 3", "'event'", "empty")),
    "time is text": ("a.csv", "user,item,time\n1,1,5\n1,2,noon\n", ("line 3", "'time'", "'noon'")),
    "time is missing": ("a.csv", "user,item,time\n1,1,5\n1,2,\n", ("line 3", "'time'", "null")),
    "latin-1 id": ("a.csv", b"user,item\n1,up\n2,Am\xe9lie\n", ("a.csv, line 3", "0xe9", "save the file as UTF-8")),
    "latin-1 header": ("a.csv", b"user,item,pr\xe9nom\n1,2,3\n", ("a.csv, line 1", "0xe9", "UTF-8")),
    "latin-1 in ::": ("a.dat", b"1::2::3\n1::\xe9::3\n", ("a.dat, line 2", "0xe9", "UTF-8")),
    "latin-1 json": (
        "a.jsonl",
        b'{"user": "a", "item": 1}\n{"user": "\xe9", "item": 2}\n',
        ("line 2", "0xe9", "UTF-8"),
    ),
    "utf-16": ("a.csv", GOOD.encode("utf-16"), ("a.csv", "UTF-16", "UTF-8")),
    "field missing": ("a.csv", GOOD + "7,99\n", ("a.csv, line 2002", "3 fields", "got 2", "fix")),
    "field too many": ("a.csv", "user,item,rating\n1,1,5\n1,2,3,4\n", ("line 3", "3 fields", "got 4")),
    "field missing in ::": ("a.dat", "1::2::3\n1::3\n", ("a.dat, line 2", "3 fields", "'::'", "got 2")),
    "after quoted line end": ("a.csv", 'user,title,rating\n1,"a\nb",5\n\n1,c,bad\n', ("a.csv, line 5", "'bad'")),
    "quote not closed": ("a.csv", 'user,item,note\n1,1,x\n1,2,"y\n1,3,z\n', ("a.csv, line 3", "quoted field", "close")),
    "two quotes not closed": ("a.csv", 'user,item,note\n1,1,"x\n1,2,y\n1,3,"z\n', ("line 2", "quoted field", "close")),
    "quote of an id not closed": ("a.csv", 'user,item\n1,1\n1,"2\n', ("a.csv, line 3", "quoted field", "close")),
    "swallowed without last line end": (
        "a.csv",
        'user,item,note\n1,1,"x\n1,2,"z',
        ("line 2", "quoted field", "close"),
    ),
    "no separator": ("a.csv", "user item rating\n1 2 3\n", ("found one", "'user item rating'", "separator=' '")),
    "three texts": ("a.csv", "ann,up,good\nbob,up,bad\n", ("no user column", "'ann'")),
    "headerless pairs": ("a.csv", "1,2\n1,3\n", ("'1, 2'", "user=0, item=1", "header=True")),
    "headerless with time third": ("a.csv", "1,2,978300760\n", ("'1, 2, 978300760'", "user=0")),
    "headerless with five": ("a.csv", "1,2,3,978300760,5\n", ("user=0", "holds data")),
    "headerless with small time": ("a.csv", "1,2,3,4\n", ("user=0", "holds data")),
    "json array": ("a.json", '[{"user": 1, "item": 2}]\n', ("a.json, line 1", "object", "one object on each line")),
    "json number": ("a.jsonl", '{"user": 1, "item": 2}\n\n7\n', ("a.jsonl, line 3", "object", "'7'")),
    "json late": ("a.jsonl", '{"user": 1, "item": 2}\n' * 500 + "[1]\n", ("a.jsonl, line 501", "object", "'[1]'")),
    "json broken": ("a.jsonl", '{"user": 1, "item": 2}\n{"user": 1, "it\n', ("a.jsonl, line 2", "JSON object")),
    "json pretty": ("a.json", '{\n"user": 1, "item": 2\n}\n', ("a.json, line 1", "one object on each line")),
    "json id null": ("a.jsonl", '{"user": 1, "item": 2}\n{"user": null, "item": 2}\n', ("line 2", "'user'", "empty")),
    "json id left out": ("a.jsonl", '{"user": 1, "item": 2}\n{"item": 2}\n', ("line 2", "'user'", "empty")),
    "json id is bool": ("a.jsonl", '{"user": true, "item": 2}\n', ("line 1", "'user'", "text or a number", "true")),
    "json ids mixed": ("a.jsonl", '{"user": 1, "item": 2}\n{"user": "b", "item": 2}\n', ("line 2", "'user'", '"b"')),
    "json rating nan": ("a.jsonl", '{"user": 1, "item": 2, "rating": NaN}\n', ("line 1", "'rating'", "finite")),
    "json rating text": ("a.jsonl", '{"user": 1, "item": 2, "rating": "x"}\n', ("line 1", "'rating'", "'x'")),
    "text as parquet": ("a.parquet", GOOD, ("a.parquet", "Parquet", "fetch or write it again")),
    "zip": ("a.csv", b"PK\x03\x04abc", ("a.csv", "zip archive", "save the data as")),
    "binary": ("a.csv", b"user,item\n\0\0\n", ("a.csv", "binary")),
    "text named gz": ("a.csv.gz", GOOD, ("a.csv.gz", "gzip", "is not one")),
    "duplicate rows": (
        "a.csv",
        "user,item,rating\n1,2,3\n3,4,3\n1,2,3\n",
        ("a.csv, line 4", "a.csv, line 2", "duplicates="),
    ),
    "column twice": ("a.csv", "user,item,item\n1,2,3\n", ("a.csv", "2 columns are named 'item'")),
}


@pytest.mark.parametrize("case", TEXTS)
def test_bad_text(tmp_path: Path, case: str) -> None:
    name, content, parts = TEXTS[case]
    assert_says(message(write(tmp_path / name, content)), *parts)


@pytest.mark.parametrize("case", ["rating is text", "field missing", "latin-1 id", "quote not closed", "json late"])
def test_bad_text_in_gzip(tmp_path: Path, case: str) -> None:
    name, content, parts = TEXTS[case]
    packed = gzip.compress(content.encode() if isinstance(content, str) else content)
    assert_says(message(write(tmp_path / f"{name}.gz", packed)), *(part.replace(name, f"{name}.gz") for part in parts))


def test_missing_file_and_a_near_name(tmp_path: Path) -> None:
    write(tmp_path / "ratings.csv", GOOD)
    assert_says(message(tmp_path / "rating.csv"), "rating.csv", "no such file", "'ratings.csv'")
    assert_says(message(tmp_path / "nowhere" / "x.csv"), "no such file", "check the path")


def test_folder_without_data_and_glob_without_match(tmp_path: Path) -> None:
    write(tmp_path / "_SUCCESS", "")
    write(tmp_path / ".hidden.csv", GOOD)
    assert_says(message(tmp_path), str(tmp_path), "no data files")
    assert_says(message(tmp_path / "*.csv"), "*.csv", "no data file matches")


def test_folder_of_empty_files(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "")
    write(tmp_path / "b.csv", "")
    assert_says(message(tmp_path), str(tmp_path), "is empty")


def test_special_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert_says(message(tmp_path / "pipe"), "pipe: is not a regular file")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    assert_says(message(tmp_path / "parts"), "gone.csv: is not a regular file", "broken link")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may read every folder")
def test_folder_without_permission_among_parts(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", GOOD)
    (tmp_path / "closed").mkdir(mode=0)
    assert_says(message(tmp_path), "closed", "the folder cannot be read")


def test_path_of_another_type() -> None:
    with pytest.raises(ParameterError, match=r"path must be text .* got dict; use Interactions\.from_frame"):
        read({})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "content", "hint"),
    [(",", "user;item;rating\n1;2;3\n", "separator=';'"), ("\t", GOOD, "separator=','"), ("|", "1::2::3\n", "'::'")],
)
def test_wrong_separator(tmp_path: Path, asked: str, content: str, hint: str) -> None:
    first = content.partition("\n")[0]
    assert_says(message(write(tmp_path / "a.csv", content), separator=asked), "found one", repr(first), hint)


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", GOOD)
    assert_says(message(file, user="users"), "a.csv", "no column 'users'", "did you mean 'user'")
    assert_says(message(file, user=5, header=True), "a.csv", "user=5", "there are 3, counted from 0")
    assert_says(message(write(tmp_path / "b.csv", "1,2,3\n"), user="userId"), "'1, 2, 3'", "user=0")
    assert_says(message(write(tmp_path / "c.csv", "1,2,3\n"), user=0), "no item column")
    assert_says(message(write(tmp_path / "d.csv", "ann,up\nbob,up\n"), user=0, item=1), "header=True or header=False")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"format": "cvs"}, ("format", "'parquet'", "did you mean 'csv'?")),
        ({"separator": ""}, ("separator", "''")),
        ({"separator": '"'}, ("separator", "quotes")),
        ({"duplicates": "first"}, ("duplicates", "'last'")),
    ],
)
def test_unknown_options(tmp_path: Path, options: dict[str, str], parts: tuple[str, ...]) -> None:
    file = write(tmp_path / "a.csv", GOOD)
    with pytest.raises(ParameterError) as caught:
        read(file, **options)  # type: ignore[arg-type]
    assert_says(str(caught.value), *parts)


def _packed(content: bytes, codec: str) -> bytes:
    return gzip.compress(content) if codec == "gzip" else bytes(pa.compress(content, codec=codec, asbytes=True))


@pytest.mark.parametrize(("codec", "suffix"), [("gzip", ".gz"), ("zstd", ".zst")])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_truncated_packing(tmp_path: Path, codec: str, suffix: str, share: float, name: str) -> None:
    row = '{{"user": {0}, "item": 2}}\n' if name == "a.jsonl" else "{0},2,3\n"
    text = "".join(row.format(k * k % 999_983) for k in range(50_000))
    packed = _packed(text.encode(), codec)
    file = write(tmp_path / (name + suffix), packed[: int(share * len(packed))])
    assert_says(message(file), name + suffix, f"the {codec} file is truncated or damaged", "fetch or pack it again")


def test_damaged_gzip(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(GOOD.encode()))
    packed[-6] ^= 255  # in the checksum
    assert_says(message(write(tmp_path / "a.csv.gz", bytes(packed))), "a.csv.gz", "truncated or damaged")


def parquet(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def test_truncated_or_damaged_parquet(tmp_path: Path) -> None:
    whole = parquet(tmp_path / "a.parquet", user=list(range(999)), item=list(range(999))).read_bytes()
    for name, content in (
        ("cut.parquet", whole[:-100]),
        ("half.bin", whole[: len(whole) // 2]),
        ("tiny.pq", whole[:5]),
    ):
        assert_says(message(write(tmp_path / name, content)), name, "truncated or damaged", "write it again")
    damaged = whole[:20] + bytes(2000) + whole[2020:]
    assert_says(message(write(tmp_path / "bad.parquet", damaged)), "bad.parquet", "damaged")


def test_packed_parquet(tmp_path: Path) -> None:
    whole = parquet(tmp_path / "a.parquet", user=[1], item=[1]).read_bytes()
    assert_says(message(write(tmp_path / "a.parquet.gz", gzip.compress(whole))), "a.parquet.gz", "unpack it first")


def test_bad_values_in_parquet_are_told_by_row(tmp_path: Path) -> None:
    file = parquet(tmp_path / "a.parquet", user=[1, 2, None], item=[1, 2, 3])
    assert_says(message(file), "a.parquet, row 3", "'user'", "empty")
    file = parquet(tmp_path / "b.parquet", user=[1, 2], item=[1, 2], rating=[1.0, float("nan")])
    assert_says(message(file), "b.parquet, row 2", "'rating'", "finite")
    file = parquet(tmp_path / "c.parquet", user=pa.array([], pa.int64()), item=pa.array([], pa.int64()))
    assert_says(message(file), "c.parquet", "no rows")
    assert_says(message(parquet(tmp_path / "d.parquet", user=[1], thing=[1])), "d.parquet", "no item column", "'thing'")


def test_part_files_that_differ(tmp_path: Path) -> None:
    write(tmp_path / "names" / "a.csv", "user,item\n1,1\n")
    write(tmp_path / "names" / "b.csv", "userId,item\n1,2\n")
    assert_says(message(tmp_path / "names"), "b.csv: the columns must be those of", "a.csv", "'userId'", "glob")
    parquet(tmp_path / "types" / "a.parquet", user=[1], item=[1])
    parquet(tmp_path / "types" / "b.parquet", user=["x"], item=[1])
    assert_says(message(tmp_path / "types"), "b.parquet: the columns must have the types", "a.parquet", "user")
    write(tmp_path / "other" / "movies.csv", "movieId,genres\n1,2\n")
    write(tmp_path / "other" / "ratings.csv", "userId,movieId\n1,2\n")
    assert_says(message(tmp_path / "other"), "movies.csv", "no user column")


def test_rows_of_part_files_are_told_by_file_and_line(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "user,item,rating\n1,1,5\n1,2,5\n")
    write(tmp_path / "b.csv", "user,item,rating\n")
    write(tmp_path / "c.csv", "user,item,rating\n2,1,5\n2,2,oops\n")
    text = message(str(tmp_path / "?.csv"))
    assert_says(text, "c.csv, line 3", "'oops'")


def test_model_file(tmp_path: Path) -> None:
    save_file({"weights": np.zeros(3)}, tmp_path / "movies.safetensors")
    assert_says(message(tmp_path / "movies.safetensors"), "movies.safetensors", "model file", "topnrank.load")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may read every file")
def test_file_without_permission(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", GOOD)
    file.chmod(0)
    assert_says(message(file), "a.csv", "may not be read")


def test_errors_are_input_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(tmp_path / "none.csv")
