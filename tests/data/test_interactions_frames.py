import datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from topnrank.data.frames import Columns, resolve_columns
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError

DATA = {
    "userId": ["u2", "u1", "u2"],
    "movie_id": [30, 10, 10],
    "Rating": [4.5, 1.0, 3.0],
    "event": ["view", "buy", "view"],
    "plays": [1, 2, 3],
    "timestamp": [100, 200, 300],
}
DUCKDB = duckdb.connect()


def duck(data):
    return DUCKDB.from_arrow(pa.table(data))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        duck,
        lambda data: pa.table(data).to_reader(),
        lambda data: pd.DataFrame(data).astype({"userId": "category", "event": "category"}),
        lambda data: pl.DataFrame(data).with_columns(pl.col("userId", "event").cast(pl.Categorical)),
        lambda data: {name: np.array(values) for name, values in data.items()},
    ],
    ids=["pandas", "polars", "arrow", "duckdb", "reader", "pandas-category", "polars-category", "dict"],
)
def test_every_frame_gives_the_same(frame):
    data = Interactions.from_frame(frame(DATA))
    assert data.fingerprint() == Interactions.from_frame(DATA).fingerprint()
    assert data.to_arrow().to_pydict() == {
        "user": ["u1", "u2", "u2"],
        "item": [10, 10, 30],
        "rating": [1.0, 3.0, 4.5],
        "type": ["buy", "view", "view"],
        "weight": [2, 3, 1],
        "timestamp": [200, 300, 100],
    }


def test_usual_names_are_found_whatever_their_case_and_the_most_telling_wins():
    found = resolve_columns(["title", "Movie-ID", "User ID", "STARS", "date", "note"], {})
    assert found == Columns(user="User ID", item="Movie-ID", rating="STARS", timestamp="date")


def test_a_given_name_is_not_found_a_second_time():
    found = resolve_columns(["user", "event", "title"], {"item": "event"})
    assert found == Columns(user="user", item="event")


@pytest.mark.parametrize(
    ("names", "given", "message"),
    [
        (["user", "item", "Ratings"], {"rating": "rating"}, r"frame: no column 'rating' .*among .*mean 'Ratings'\?"),
        (["a", "b"], {"user": "zzz"}, r"no column 'zzz' \(given as user\) among 'a', 'b'; set user to one of them"),
        (["a", "item"], {}, r"no user column among 'a', 'item'; name it with user='...'"),
        (["user", "b"], {}, r"no item column among 'user', 'b'; name it with item='...'"),
        ([], {}, "no columns at all"),
        (["user", "item"], {"user": "item", "item": "item"}, "'item' is named both as user and as item"),
        (["user", "item", "item"], {}, "2 columns are named 'item'"),
    ],
)
def test_unclear_columns(names, given, message):
    with pytest.raises(DataError, match=message):
        resolve_columns(names, given)


def test_columns_leave_others_aside():
    data = Interactions.from_frame(DATA, columns=Columns(user="userId", item="movie_id"))
    assert data.ratings is None
    assert data.timestamps is None
    with pytest.raises(DataError, match="no column 'x'"):
        Interactions.from_frame(DATA, columns=Columns(user="userId", item="x"))
    with pytest.raises(ParameterError, match="but rating is given too; leave one of them out"):
        Interactions.from_frame(DATA, columns=Columns(user="userId", item="movie_id"), rating="plays")


def test_names_can_be_set():
    data = Interactions.from_frame(DATA, user="movie_id", item="userId", rating="plays")
    assert data.users.ids.tolist() == [10, 30]
    assert data.ratings.tolist() == [2, 3, 1]


def build(**columns):
    return Interactions.from_frame({"user": [1, 2], "item": [3, 4]} | columns)


@pytest.mark.parametrize("values", [["4.5", " 3 "], pa.array(["4.5", "3"], pa.string_view()), [4.5, 3]])
def test_text_that_reads_as_numbers_is_cast(values):
    assert build(rating=values).ratings.tolist() == [4.5, 3]


SECONDS = [1577836801, 1577923200]


@pytest.mark.parametrize(
    "values",
    [
        SECONDS,
        [float(second) for second in SECONDS],
        [str(second) for second in SECONDS],
        ["2020-01-01 00:00:01", "2020-01-02"],
        ["2020-01-01T00:00:01.75", "2020-01-02T00:00:00"],
        ["2020-01-01T00:00:01Z", "2020-01-02T01:00:00+01:00"],
        np.array(SECONDS, dtype="M8[s]"),
        np.array(SECONDS, dtype="M8[s]").astype("M8[ns]"),
        pd.Series(SECONDS).astype("datetime64[s]").dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
    ],
)
def test_clocks_become_seconds(values):
    assert build(timestamp=values).timestamps.tolist() == SECONDS


def test_dates_become_seconds():
    dates = [datetime.date(1970, 1, 2), datetime.date(1969, 12, 31)]
    assert build(timestamp=dates).timestamps.tolist() == [86400, -86400]


def test_numbered_types_are_text():
    assert build(type=[2, 10]).type_names == ("10", "2")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"user": [1, None]}, "^frame, row 2, column 'user': must not be empty, got null; remove the row"),
        ({"item": [None, "a"]}, "^frame, row 1, column 'item': must not be empty, got null"),
        ({"rating": [1, None]}, "^frame, row 2, column 'rating': must be a finite number, got null; remove or fix"),
        ({"rating": ["4", "four"]}, "row 2, column 'rating': must be a finite number, got 'four'"),
        ({"rating": [np.nan, 1]}, "row 1, column 'rating': must be a finite number, got nan"),
        ({"rating": [1, np.inf]}, "row 2, .* got inf"),
        ({"rating": ["1", "nan"]}, "row 2, .* got 'nan'"),
        ({"weight": [1, -1e300]}, "row 2, column 'weight': must be a finite number, got -1e[+]300"),
        ({"weight": [[1], [2]]}, r"row 1, column 'weight': must be a finite number, got \[1\]"),
        ({"rating": [datetime.date(2020, 1, 1)] * 2}, "row 1, column 'rating': must be a finite number"),
        (
            {"timestamp": [1, None]},
            "row 2, column 'timestamp': must be an integer, a date or an ISO 8601 text, got null",
        ),
        ({"timestamp": [1.5, 2]}, "row 1, column 'timestamp': must be an integer number of seconds, got 1.5"),
        ({"timestamp": [1, np.inf]}, "row 2, column 'timestamp': must be an integer"),
        ({"timestamp": ["2020-01-01", "May"]}, "row 2, column 'timestamp': .* got 'May'"),
        ({"timestamp": [True, False]}, "row 1, column 'timestamp': .* got True"),
        ({"timestamp": np.array([1, 2**63], dtype=np.uint64)}, "row 2, .* must fit a 64-bit integer"),
        ({"type": ["view", None]}, "row 2, column 'type': must not be empty, got null"),
        ({"rating": [1]}, "same number of rows, got 'user' 2, 'item' 2, 'rating' 1"),
        ({"user": [1, "a"]}, "column 'user': the values must be of one type"),
        ({"user": np.ones((2, 2))}, "column 'user': the values must be of one type in one dimension"),
        ({"user": [], "item": []}, "frame: no rows"),
    ],
)
def test_bad_values_are_named(columns, message):
    with pytest.raises(DataError, match=message):
        build(**columns)


def test_the_first_of_many_bad_numbers_is_found():
    ratings = ["1"] * 1000
    ratings[700] = ratings[900] = "bad"
    with pytest.raises(DataError, match=r"row 701, .* got 'bad'"):
        Interactions.from_arrays(range(1000), range(1000), ratings=ratings)


def test_a_reader_says_where_a_row_stands():
    table = pa.table({"user": [1, 2], "item": [3, 4], "rating": [1, np.nan]})
    columns = Columns("user", "item", "rating")
    with pytest.raises(DataError, match=r"^ratings.csv, row 2, column 'rating'"):
        Interactions.from_table(table, columns, source="ratings.csv")
    with pytest.raises(DataError, match=r"^part-7.csv, line 12, column 'rating'"):
        Interactions.from_table(table, columns, locate=lambda row: f"part-7.csv, line {row + 11}")


def test_other_things_are_no_frames():
    with pytest.raises(DataError, match="got list"):
        Interactions.from_frame([1, 2])
