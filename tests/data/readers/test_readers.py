"""Files that are right: every format, packing and layout gives the same interactions."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topnrank.data.interactions import Interactions
from topnrank.data.readers.read import read
from topnrank.data.readers.text import _Replacing

ROWS = [(1, 10, 5.0, 978300760), (1, 20, 3.5, 978300761), (2, 10, 1.0, 978300762), (12, 30, 4.0, 978300763)]
HEADER = ("userId", "movieId", "rating", "timestamp")
HEADER_LINE = ",".join(HEADER) + "\n"


def expected() -> Interactions:
    users, items, ratings, timestamps = zip(*ROWS, strict=True)
    return Interactions.from_arrays(users, items, ratings=ratings, timestamps=timestamps)


def lines(separator: str = ",", *, header: bool = True, end: str = "\n") -> str:
    rows = [HEADER, *ROWS] if header else ROWS
    return "".join(separator.join(map(str, row)) + end for row in rows)


def jsonl() -> str:
    return "".join(json.dumps(dict(zip(HEADER, row, strict=True))) + "\n" for row in ROWS)


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def write_parquet(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def assert_same(found: Interactions, wanted: Interactions | None = None) -> None:
    assert found.fingerprint() == (expected() if wanted is None else wanted).fingerprint()


TEXTS = {
    "a.csv": lines(),
    "a.tsv": lines("\t"),
    "semicolon.csv": lines(";"),
    "bar.txt": lines("|"),
    "tab.csv": lines("\t"),
    "ratings.dat": lines("::", header=False),
    "u.data": lines("\t", header=False),
    "none.csv": lines(header=False),
    "a.jsonl": jsonl(),
    "a.json": jsonl(),
    "part-00000": lines(),
    "part-00001": jsonl(),
    "windows.csv": lines(end="\r\n"),
    "windows.dat": lines("::", header=False, end="\r\n"),
    "bom.csv": "\ufeff" + lines(),
    "bom.dat": "\ufeff" + lines("::", header=False),
    "bom.jsonl": "\ufeff" + jsonl(),
    "blank.csv": "\n" + lines().replace("\n", "\n\n"),
    "quoted.csv": "".join('"' + line.replace(",", '","') + '"\n' for line in lines().splitlines()),
    "no_end.csv": lines().rstrip("\n"),
}


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("name", TEXTS)
def test_every_text_format_and_packing(tmp_path: Path, name: str, packing: str) -> None:
    content = TEXTS[name].encode()
    packed = {
        "": content,
        ".gz": gzip.compress(content),
        ".zst": pa.compress(content, codec="zstd", asbytes=True),
    }
    assert_same(read(write(tmp_path / (name + packing), packed[packing])))


def test_packing_is_told_by_content_when_the_name_is_silent(tmp_path: Path) -> None:
    assert_same(read(write(tmp_path / "ratings.csv", gzip.compress(lines().encode()))))


def test_parquet_with_and_without_the_usual_name(tmp_path: Path) -> None:
    columns = dict(zip(HEADER, zip(*ROWS, strict=True), strict=True))
    arrays = {name: list(values) for name, values in columns.items()}
    assert_same(read(write_parquet(tmp_path / "a.parquet", **arrays)))
    assert_same(read(write_parquet(tmp_path / "a.bin", **arrays)))


def test_paths_are_text_or_path_and_the_home_folder_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = write(tmp_path / "a.csv", lines())
    for path in (file, str(file), "~/a.csv", Path("~/a.csv")):
        assert_same(read(path))


def test_format_and_separator_override_the_name(tmp_path: Path) -> None:
    assert_same(read(write(tmp_path / "a.csv", jsonl()), format="jsonl"))
    assert_same(read(write(tmp_path / "a.jsonl", lines(" ")), format="csv", separator=" "))
    assert_same(read(write(tmp_path / "b.txt", lines("=>")), separator="=>"))
    assert_same(read(write(tmp_path / "c.txt", lines("§")), separator="§"))


def test_columns_by_name(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", lines().replace("userId", "who").replace("movieId", "what"))
    assert_same(read(file, user="who", item="what"))


@pytest.mark.parametrize("positions", [(3, 0, 1), ("3", "0", "1")])
def test_columns_by_position_without_a_header(tmp_path: Path, positions: tuple[str | int, ...]) -> None:
    file = write(tmp_path / "a.csv", "".join(f"{i},{r},x,{u},{t}\n" for u, i, r, t in ROWS))
    user, item, rating = positions
    found = read(file, user=user, item=item, rating=rating)
    assert found.timestamps is None
    users, items, ratings, _ = zip(*ROWS, strict=True)
    assert_same(found, Interactions.from_arrays(users, items, ratings=ratings))


def test_columns_by_position_with_a_header(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", lines().replace("userId", "a").replace("movieId", "b"))
    assert_same(read(file, user=0, item=1, header=True))
    known = write(tmp_path / "b.csv", lines())
    assert_same(read(known, user=0, item=1))


def test_header_can_be_forced_either_way(tmp_path: Path) -> None:
    pairs = write(tmp_path / "a.csv", "ann,matrix\nbob,up\n")
    found = read(pairs, header=False)
    assert found.users.ids.tolist() == ["ann", "bob"]
    found = read(pairs, header=True, user="ann", item="matrix")
    assert found.users.ids.tolist() == ["bob"]


def test_ids_with_leading_zeros_stay_text(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "user,asin,rating\n1,0700026398,5\n2,1700026398,4\n")
    found = read(file)
    assert found.items.ids.tolist() == ["0700026398", "1700026398"]
    assert found.users.ids.tolist() == [1, 2]


@given(
    ids=st.lists(st.one_of(st.integers(), st.sampled_from(["007", "-0", "+1", "0x1F", "1.0", "1e3", "x"])), min_size=1)
)
@settings(max_examples=60, deadline=None)
def test_ids_are_integers_exactly_when_all_are_written_so(
    tmp_path_factory: pytest.TempPathFactory, ids: list[object]
) -> None:
    texts = [str(value) for value in ids]
    file = write(
        tmp_path_factory.mktemp("ids") / "a.csv", "user,item\n" + "".join(f"{t},{n}\n" for n, t in enumerate(texts))
    )
    integers = all(isinstance(value, int) and -(2**63) < value < 2**63 for value in ids)
    wanted = {int(t) for t in texts} if integers else set(texts)
    assert set(read(file).users.ids.tolist()) == wanted


def test_json_and_parquet_ids_keep_their_type(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"user": "1", "item": 2}\n{"user": "2", "item": 3}\n')
    assert read(file).users.ids.tolist() == ["1", "2"]
    assert read(file).items.ids.tolist() == [2, 3]
    assert read(write_parquet(tmp_path / "a.parquet", user=["1"], item=[2])).users.ids.tolist() == ["1"]


def test_json_text_that_looks_like_a_date_stays_an_id(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"user": "2020-01-01", "item": 2, "date": "1970-01-02"}\n')
    found = read(file)
    assert found.users.ids.tolist() == ["2020-01-01"]
    assert found.timestamps is not None
    assert found.timestamps.tolist() == [86400]


def test_quoted_fields_with_separators_quotes_and_line_ends(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", 'user,title,rating\n"a, ""b""","Up\nand away",5\nc,5" disc,4\n')
    found = read(file)
    assert found.users.ids.tolist() == ['a, "b"', "c"]
    assert found.items.ids.tolist() == ['5" disc', "Up\nand away"]


def test_quoted_line_ends_across_blocks_of_the_parser(tmp_path: Path) -> None:
    n = 60_000
    text = "user,item,comment\n" + "".join(f'{k},{k % 7},"{"line one" * 3}\nline, two"\n' for k in range(n))
    assert len(read(write(tmp_path / "a.csv", text))) == n


def test_double_colons_across_blocks(tmp_path: Path) -> None:
    n = 150_000
    text = "".join(f"{k}::{k % 1000}::{k % 5 + 1}::{978300760 + k}\n" for k in range(n))
    found = read(write(tmp_path / "ratings.dat", text))
    assert len(text) > 3 << 20  # several blocks
    assert found.users.ids.tolist() == list(range(n))
    assert found.timestamps is not None
    assert found.timestamps.tolist() == list(range(978300760, 978300760 + n))


@given(text=st.text(":a\n"), size=st.integers(1, 5))
def test_replacing_a_separator_does_not_depend_on_the_blocks(text: str, size: int) -> None:
    stream = _Replacing(pa.BufferReader(text.encode()), b"::")
    pieces = list(iter(lambda: stream.read(size), b""))
    assert b"".join(pieces) == text.encode().replace(b"::", b"\x1f")


def test_foreign_bytes_in_columns_that_are_not_used_do_not_matter(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", b"user,item,rating,name\n1,2,3,Am\xe9lie\n")
    assert len(read(file)) == 1


def test_folders_of_part_files_with_files_of_tools(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    write(folder / "part-1.csv", HEADER_LINE + "1,10,5.0,978300760\n1,20,3.5,978300761\n")
    write(folder / "sub" / "part-2.csv", HEADER_LINE + "2,10,1.0,978300762\n12,30,4.0,978300763\n")
    write(folder / "part-3.csv", "")
    write(folder / "part-4.csv", HEADER_LINE)
    write(folder / "_SUCCESS", "")
    write(folder / "_temporary" / "part-9.csv", "garbage")
    write(folder / ".part-1.csv.crc", b"crc\0")
    assert_same(read(folder))
    assert_same(read(str(folder / "**" / "*.csv")))
    assert_same(read(str(tmp_path / "par*")))


def test_part_files_are_read_in_sorted_order(tmp_path: Path) -> None:
    for name, rating in (("b", 2), ("c", 3), ("a", 1)):
        write(tmp_path / f"{name}.csv", f"user,item,rating\n1,1,{rating}\n")
    found = read(tmp_path, duplicates="last")
    assert found.ratings is not None
    assert found.ratings.tolist() == [3.0]
    assert found.merged_rows == 2


def test_ids_are_judged_over_all_part_files(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "user,item\n1,1\n")
    write(tmp_path / "b.csv", "user,item\nx,2\n")
    assert read(tmp_path).users.ids.tolist() == ["1", "x"]
    assert read(tmp_path).items.ids.tolist() == [1, 2]


def test_hive_folders_add_a_column(tmp_path: Path) -> None:
    write_parquet(tmp_path / "type=buy" / "a.parquet", user=[1], item=[1])
    write_parquet(tmp_path / "type=view%20all" / "a.parquet", user=[1, 2], item=[1, 1])
    found = read(tmp_path)
    assert found.type_names == ("buy", "view all")
    assert len(found) == 3
    assert read(tmp_path / "type=buy" / "a.parquet").types is None


def test_part_files_may_differ_in_the_width_of_numbers(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", user=pa.array([1], pa.int32()), item=["x"], rating=[1.0])
    write_parquet(tmp_path / "b.parquet", user=pa.array([2], pa.int64()), item=["y"], rating=pa.array([2], pa.int8()))
    found = read(tmp_path)
    assert found.ratings is not None
    assert found.ratings.tolist() == [1.0, 2.0]


@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 10)), min_size=1, unique_by=lambda row: row[:2]
    ),
    st.sampled_from([",", ";", "\t", "|", "::"]),
)
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, ...]], sep: str
) -> None:
    text = sep.join(("user", "item", "rating")) + "\n" + "".join(sep.join(map(str, row)) + "\n" for row in rows)
    users, items, ratings = zip(*rows, strict=True)
    found = read(write(tmp_path_factory.mktemp("any") / "a.csv", text))
    assert_same(found, Interactions.from_arrays(users, items, ratings=ratings))


@pytest.mark.realdata
def test_movielens_as_text_equals_movielens_as_parquet(tmp_path: Path) -> None:
    folder = os.environ.get("TOPNRANK_DATA")
    if not folder:
        pytest.skip("TOPNRANK_DATA is not set")
    table = pq.read_table(Path(folder) / "ml-100k.parquet", columns=["user", "item", "rating", "timestamp"])
    wanted = read(Path(folder) / "ml-100k.parquet")
    rows = list(zip(*(np.asarray(table[name]).tolist() for name in table.column_names), strict=True))
    for name, separator in (("u.data", "\t"), ("ratings.dat", "::")):
        text = "".join(
            separator.join(f"{value:g}" if k == 2 else str(value) for k, value in enumerate(row)) + "\n" for row in rows
        )
        assert_same(read(write(tmp_path / name, text)), wanted)
