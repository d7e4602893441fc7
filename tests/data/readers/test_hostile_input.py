"""Input that once crashed, or was read as something else than it says."""

import csv
import datetime
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy
import scipy.sparse

from topnrank import DataError, Interactions, ParameterError, Popularity, read
from topnrank.data.readers import files


def write(folder, name, content):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name


def ids(data):
    return data.users.ids.tolist(), data.items.ids.tolist()


def test_a_column_without_a_name_as_pandas_writes_its_index(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"user": [1, 1, 2, 2], "item": [10, 11, 10, 12], "rating": [5, 3, 4, 1]})
    data = read(write(tmp_path, "index.csv", frame.to_csv()))
    assert ids(data) == ([1, 2], [10, 11, 12])


@pytest.mark.parametrize(
    ("content", "users", "items"),
    [
        ("user,item\n0xDEADBEEF,1\n7,2\n", ["0xDEADBEEF", "7"], [1, 2]),
        ("user,item\n0x7FFFFFFFFFFFFFFF,1\n07,2\n", ["07", "0x7FFFFFFFFFFFFFFF"], [1, 2]),
        ("user,item,rating\r7,007,5\r", [7], ["007"]),
        ("user,item,rating\r7,007,5\r\n8,9,1\n", [7, 8], ["007", "9"]),
        (b"\xef\xbb\xbf01,2,5\n3,4,1\n", ["01", "3"], [2, 4]),
        (b"\xef\xbb\xbfuser,item,rating\n01,2,5\n3,4,1\n", ["01", "3"], [2, 4]),
    ],
)
def test_ids_are_what_is_written(tmp_path, content, users, items):
    assert ids(read(write(tmp_path, "ids.csv", content))) == (users, items)


def test_a_time_in_hexadecimal_is_none(tmp_path):
    with pytest.raises(DataError, match="must be an integer, a date"):
        read(write(tmp_path, "hex.csv", "user,item,timestamp\n1,1,a\n2,1,0x10\n"))


def test_a_float_that_may_be_two_integers_is_no_id(tmp_path):
    with pytest.raises(DataError, match="ids must be integers or text"):
        read(write(tmp_path, "big.jsonl", '{"user": 9007199254740993, "item": 1}\n{"user": 1.0, "item": 2}\n'))


def test_a_control_character_that_would_cut_a_field_is_refused_with_its_line(tmp_path):
    with pytest.raises(DataError, match="line 2: holds the control character 0x1f; remove it"):
        read(write(tmp_path, "ratings.dat", "12::3::4::978300760\n13:\x1f:39::4::978300760\n"))


def test_a_json_column_that_begins_late_is_not_passed_over(tmp_path):
    plain = "".join(f'{{"user": {n}, "item": 1}}\n' for n in range(150))
    rated = "".join(f'{{"user": {n}, "item": 1, "rating": 4}}\n' for n in range(150, 300))
    with pytest.raises(DataError, match="column 'rating': must be a finite number, got null"):
        read(write(tmp_path, "late.jsonl", plain + rated))
    nested = plain + '{"user": 999, "item": 1, "more": {"rating": 4}}\n'
    assert read(write(tmp_path, "nested.jsonl", nested)).ratings is None


def test_long_fields_and_long_headers_are_read(tmp_path):
    review = "x" * 200_000
    assert len(read(write(tmp_path, "a.csv", f"user,item,rating,review\n1,2,3,{review}\n2,3,4,y\n"))) == 2
    assert len(read(write(tmp_path, "b.csv", f'user,item,rating,review\n1,2,3,"{review}\nb"\n2,3,4,y\n'))) == 2
    names = ",".join(f"column{n:06}" for n in range(9000))
    data = read(write(tmp_path, "c.csv", f"{names},user,item,rating\n" + "0," * 9000 + "1,2,3\n"))
    assert ids(data) == ([1], [2])
    assert csv.field_size_limit() >= 2**31 - 1


def test_json_nested_without_end_is_one_sentence(tmp_path):
    deep = '{"user": 1, "item": 2, "x": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
    with pytest.raises(DataError, match="line 1: is nested too deeply"):
        read(write(tmp_path, "deep.jsonl", deep))


@pytest.mark.parametrize("column", ["user", "item", "type", "rating", "timestamp"])
def test_text_in_parquet_that_is_not_utf8_is_one_sentence(tmp_path, column):
    offsets = pa.array([0, 4, 8], pa.int32()).buffers()[1]
    bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"caf\xe9caf\xe8")])
    columns = {"user": pa.array([1, 2]), "item": pa.array([1, 2]), "rating": pa.array([1.0, 2.0]), column: bad}
    pq.write_table(pa.table(columns), tmp_path / "bad.parquet")
    with pytest.raises(DataError, match=f"column '{column}': holds bytes that are not UTF-8 text"):
        read(tmp_path / "bad.parquet")


def test_the_name_of_a_column_in_parquet_that_is_not_utf8_is_one_sentence(tmp_path):
    pq.write_table(pa.table({"user": [1], "item": [2]}), tmp_path / "bad.parquet", store_schema=False)
    content = (tmp_path / "bad.parquet").read_bytes()
    (tmp_path / "bad.parquet").write_bytes(content.replace(b"item", b"i\xf4em"))
    with pytest.raises(DataError, match="is not a Parquet file, or a truncated or damaged one"):
        read(tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"user": pa.array([9007199254740993]), "item": [1]}, {"user": pa.array([1.0]), "item": [2]}),
        ({"user": pa.array([1]), "item": [1]}, {"user": pa.array([2**63 + 1], pa.uint64()), "item": [2]}),
        (
            {"user": [1], "item": [1], "timestamp": pa.array([2**40], pa.timestamp("s"))},
            {"user": [2], "item": [1], "timestamp": pa.array([5], pa.timestamp("ns"))},
        ),
    ],
    ids=["float", "unsigned", "time"],
)
def test_parts_whose_values_fit_no_common_type_are_one_sentence(tmp_path, first, second):
    pq.write_table(pa.table(first), tmp_path / "1.parquet")
    pq.write_table(pa.table(second), tmp_path / "2.parquet")
    with pytest.raises(DataError, match="values of some part files do not fit the types of the others"):
        read(tmp_path)


def test_parts_with_and_without_dictionaries_and_with_dates_and_times_are_read(tmp_path):
    pq.write_table(pa.table({"user": ["a"], "item": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"user": pa.array(["b"]).dictionary_encode(), "item": [2]}), tmp_path / "2.parquet")
    assert ids(read(tmp_path)) == (["a", "b"], [1, 2])
    folder = tmp_path / "text"
    folder.mkdir()
    write(folder, "1.csv", "user,item,timestamp\n1,2,2020-01-01\n")
    write(folder, "2.csv", "user,item,timestamp\n2,2,2020-01-01 00:00:10\n")
    assert np.diff(read(folder).timestamps).tolist() == [10]


def test_times_before_1970_are_rounded_down_and_far_ones_refused(tmp_path):
    times = read(write(tmp_path, "early.csv", "user,item,timestamp\n1,2,1960-01-01 00:00:00.5\n")).timestamps
    assert times.tolist() == [int(datetime.datetime(1960, 1, 1, tzinfo=datetime.UTC).timestamp())]
    with pytest.raises(DataError, match="must be an integer, a date or an ISO 8601 text"):
        read(write(tmp_path, "late.csv", "user,item,timestamp\n1,2,3000-01-01 00:00:00.123456789\n"))


def test_links_that_lead_round_are_refused(tmp_path):
    write(tmp_path, "a.csv", "user,item\n1,2\n")
    for name in ("l1", "l2"):
        (tmp_path / name).symlink_to(".")
    with pytest.raises(DataError, match="is a link to a folder that it lies in"):
        read(tmp_path)


def test_a_link_to_another_folder_is_followed(tmp_path):
    for name in ("data", "more"):
        (tmp_path / name).mkdir()
    write(tmp_path / "data", "a.csv", "user,item\n1,2\n")
    write(tmp_path / "more", "b.csv", "user,item\n2,2\n")
    (tmp_path / "data" / "more").symlink_to(tmp_path / "more")
    assert len(read(tmp_path / "data")) == 2


def test_an_empty_path_is_not_the_current_folder():
    with pytest.raises(ParameterError, match="path is empty"):
        read("")


def test_integers_of_19_digits_are_known_as_text(tmp_path):
    big = 1234567890123456789
    model = Popularity().fit(Interactions.from_arrays([big, 2], [1, 2]))
    assert model.recommend([str(big)], n=1).to_pylist() == model.recommend([big], n=1).to_pylist()
    for stranger in ("9223372036854775808", "9999999999999999999", 1e19, 2**70, -(2**63) - 1, float("inf")):
        assert model.user_map.index([stranger]).tolist() == [-1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Interactions.from_arrays([2**70, 1], [1, 2]), "integers must fit 64 bits"),
        (lambda: Interactions.from_arrays([[1], [2, 3]], [1, 2]), "ids must be integers or text"),
        (lambda: Interactions.from_arrays(["\udc80", "b"], [1, 2]), "no Unicode"),
        (lambda: Interactions.from_scipy(scipy.sparse.csr_matrix(np.array([[1j, 0]]))), "real numbers in two dim"),
        pytest.param(
            lambda: Interactions.from_scipy(scipy.sparse.coo_array(np.array([1, 0, 2]))),
            "real numbers in two dim",
            marks=pytest.mark.skipif(scipy.__version__ < "1.13", reason="SciPy itself refuses one dimension"),
        ),
    ],
)
def test_arrays_that_are_no_columns_are_one_sentence(make, words):
    with pytest.raises(DataError, match=words):
        make()


def test_a_column_of_numbers_and_text_is_one_sentence():
    pd = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="the values of a column must be of one type"):
        Interactions.from_frame(pd.DataFrame({"user": [1, "a"], "item": [1, 2]}))


def test_ids_in_lists_of_different_lengths_are_one_sentence():
    model = Popularity().fit(Interactions.from_arrays([1, 2], [1, 2]))
    with pytest.raises(ParameterError, match="lists of different lengths"):
        model.recommend([[1], [2, 3]])


def test_numbers_too_large_for_a_float_are_one_sentence():
    model = Popularity().fit(Interactions.from_arrays([1, 2], [1, 2]))
    with pytest.raises(ParameterError, match="min_score must be a number"):
        model.recommend([1], min_score=10**400)


def test_the_first_line_is_read_as_a_whole_but_not_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_LONGEST_LINE", 1 << 17)
    path = write(tmp_path, "endless.csv", b"a" * (1 << 20))
    with pytest.raises(DataError):
        read(path)
    assert os.path.getsize(path) == 1 << 20
