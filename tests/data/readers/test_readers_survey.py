"""Ids of a text file are integers exactly when all are written as they print, whichever way the file is read."""

from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from topnrank import DataError, read
from topnrank.data.readers import text as readers_survey
from topnrank.data.readers import text as readers_text

PLAIN = ["1,10,0.5,1000000000", "20,11,3,1000000001", "0,12,0,1000000002", "7,0,5,1000000003"]
ODD = [
    "007,10",
    "+7,10",
    "-7,10",
    "-0,10",
    " 7,10",
    "7 ,10",
    "0x1f,10",
    "00,10",
    "7,010",
    "7, 1",
    "7,1\t",
    "b,1",
    '"7",1',
]


def written(folder, lines, end="\n"):
    (folder / "r.csv").write_bytes(("user,item,rating,timestamp" + end + end.join(lines)).encode())
    return folder / "r.csv"


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 18])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("odd", ODD)
def test_one_odd_field_keeps_its_column_as_text_would(tmp_path, monkeypatch, odd, end, block):
    monkeypatch.setattr(readers_survey, "_BLOCK_BYTES", block)
    path = written(tmp_path, [*PLAIN, f"{odd},4,1000000004"], end)
    found = read(path)
    monkeypatch.setattr(readers_text.TextFile, "_parse_integer_ids", lambda *_: None)
    assert found.fingerprint() == read(path).fingerprint()


def test_plain_files_are_read_as_integers_at_once(tmp_path, monkeypatch):
    parsed = []
    parse = readers_text.TextFile._parse
    monkeypatch.setattr(readers_text.TextFile, "_parse", lambda *a, **k: parsed.append(1) or parse(*a, **k))
    assert read(written(tmp_path, PLAIN)).users.ids.tolist() == [0, 1, 7, 20]
    assert str(parse(*_source(tmp_path), has_quotes=False).schema.field("user").type) == "int64"
    assert len(parsed) == 1


def _source(folder):
    import pyarrow as pa

    from topnrank.data.readers.files import find_files
    from topnrank.data.readers.request import Request

    source = readers_text.open_text(find_files(folder / "r.csv", None, ExitStack())[0], Request({}))
    return source, {"user": "user", "item": "item"}, {"user": pa.int64(), "item": pa.int64()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fields=st.lists(
        st.tuples(st.text("0179+- x.", max_size=4), st.text("0179+- x.", max_size=4)), min_size=1, max_size=6
    )
)
def test_any_ids_are_what_they_would_be_as_text(tmp_path, fields):
    path = written(tmp_path, [f"{user},{item},3,1000000000" for user, item in fields])

    def outcome():
        try:
            return read(path, duplicates="last").fingerprint()
        except DataError as error:
            return str(error)

    found = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers_text.TextFile, "_parse_integer_ids", lambda *_: None)
        assert outcome() == found
