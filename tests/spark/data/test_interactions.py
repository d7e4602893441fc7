"""User blocks made by Spark hold what `Interactions` of the same rows hold; bad rows are refused before any training."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.frames_for_tests import EVENTS, RATED, events, ratings
from topnrank import DataError, Interactions, ParameterError
from topnrank.data.frames import Columns
from topnrank.spark.data.columns import checked_rows
from topnrank.spark.data.interactions import SparkInteractions
from topnrank.spark.data.partition import even_boundaries

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
PAIRS = Columns(user="user", item="item")


def same(found: SparkInteractions, frame: pd.DataFrame, columns: Columns, duplicates="error") -> bool:
    expected = Interactions.from_frame(frame, columns=columns, duplicates=duplicates)
    collected = found.collect()
    found.unpersist()
    assert (found.n_rows, found.n_users, found.n_items) == (len(expected), expected.n_users, expected.n_items)
    assert collected.merged_rows == expected.merged_rows
    return collected.fingerprint() == expected.fingerprint()


@pytest.mark.parametrize("blocks", [None, 1, 7, 1000])
def test_blocks_hold_the_rows_of_interactions(spark, blocks):
    frame = ratings()
    found = SparkInteractions.from_frame(spark.createDataFrame(frame).repartition(3), RATED, blocks=blocks)
    assert found.n_blocks == (2 if blocks is None else min(blocks, 40))
    assert found.blocks.getNumPartitions() == found.n_blocks
    assert same(found, frame, RATED)


def test_a_block_is_a_range_of_users_with_all_items(spark):
    frame = ratings()
    found = SparkInteractions.from_frame(spark.createDataFrame(frame), RATED, blocks=3)
    expected = Interactions.from_frame(frame, columns=RATED)
    numbers = {row["id"]: (row["number"], row["block"]) for row in found.users.collect()}
    assert sorted(numbers) == expected.users.ids.tolist()
    for place, block in enumerate(found.blocks.collect()):
        rows = block.interactions(found.n_items)
        assert (block.number, block.first, block.n_users) == (place, found.firsts[place], np.diff(found.firsts)[place])
        assert (rows.n_items, len(rows)) == (expected.n_items, found.sizes[place])
        for user, number in zip(expected.users.ids[rows.users.ids], rows.users.ids, strict=True):
            assert numbers[user] == (number, place)
    found.unpersist()


def test_types_weights_and_whole_float_ids(spark):
    frame = events()
    frame["weight"] = np.random.default_rng(2).random(len(frame))
    frame["item"] = frame["item"].astype(float)
    columns = Columns(user="user", item="item", type="type", weight="weight", timestamp="timestamp")
    again = frame.assign(type="view")
    frame = pd.concat([frame[frame["type"] != "view"], again], ignore_index=True)
    assert same(SparkInteractions.from_frame(spark.createDataFrame(frame), columns), frame, columns)


@pytest.mark.parametrize("rule", ["last", "sum", "max"])
@pytest.mark.parametrize("columns", [RATED, Columns(user="user", item="item", weight="rating")])
def test_repeated_rows_follow_the_rule(spark, rule, columns):
    frame = ratings(n_users=6, n_items=5, n_rows=30)
    frame = pd.concat([frame, frame.assign(rating=frame["rating"][::-1].to_numpy()), frame.head(7)], ignore_index=True)
    found = SparkInteractions.from_frame(spark.createDataFrame(frame), columns, duplicates=rule, blocks=3)
    assert same(found, frame, columns, rule)


def test_repeated_rows_are_an_error_that_names_one(spark):
    frame = pd.concat([ratings(), ratings().iloc[[17]]])
    user, item = frame.iloc[17][["user", "item"]]
    with pytest.raises(DataError, match=f"1 rows repeat others, for example one of user '{user}' and item {item};"):
        SparkInteractions.from_frame(spark.createDataFrame(frame), RATED)
    with pytest.raises(DataError, match="needs a rating or weight column"):
        SparkInteractions.from_frame(spark.createDataFrame(frame), PAIRS, duplicates="sum")


def test_sums_beyond_float32_are_an_error(spark):
    frame = pd.DataFrame({"user": [1, 1], "item": [1, 1], "rating": [3e38, 3e38], "timestamp": [1, 2]})
    with pytest.raises(DataError, match="add up beyond the range of float32"):
        SparkInteractions.from_frame(spark.createDataFrame(frame), RATED, duplicates="sum")


def test_one_user_with_very_many_items_beside_small_ones(spark):
    many = 100_000
    frame = pd.DataFrame({"user": np.r_[np.zeros(many), 1:11].astype(int), "item": np.r_[0:many, 0:10]})
    found = SparkInteractions.from_frame(spark.createDataFrame(frame), PAIRS, blocks=4)
    assert found.sizes.max() == many
    assert (found.sizes > 0).all()
    assert same(found, frame, PAIRS)


def test_times_of_every_kind_are_seconds(spark):
    times = pd.to_datetime(["1969-12-31 23:59:58.5", "2020-02-29 12:30:00.25", "2026-11-15 21:00:00"], format="ISO8601")
    frame = pd.DataFrame({"user": [1, 2, 3], "item": [1, 1, 1], "timestamp": times.tz_localize("UTC")})
    columns = Columns(user="user", item="item", timestamp="timestamp")
    assert same(SparkInteractions.from_frame(spark.createDataFrame(frame), columns), frame, columns)
    sql = "SELECT 1 user, 1 item, {} timestamp UNION ALL SELECT 2, 1, {}"
    kinds = {
        ("TIMESTAMP_NTZ '2020-02-29 12:30:00'", "TIMESTAMP_NTZ '1970-01-02 00:00:01'"): [1582979400, 86401],
        ("DATE '2020-02-29'", "DATE '1969-12-31'"): [1582934400, -86400],
        ("' 12'", "'-3'"): [12, -3],
        ("12.0D", "-3.0D"): [12, -3],
    }
    for texts, seconds in kinds.items():
        rows = checked_rows(spark.sql(sql.format(*texts)), columns).frame
        assert [row["timestamp"] for row in rows.sort("user").collect()] == seconds


def test_ratings_may_be_text_decimals_or_integers(spark):
    for text in ("'4.5', ' -2e0 '", "4.5BD, -2BD", "4.5F, -2F"):
        high, low = text.split(", ")
        rows = spark.sql(f"SELECT 1 user, 1 item, {high} rating UNION ALL SELECT 1, 2, {low}")
        read = checked_rows(rows, Columns(user="user", item="item", rating="rating")).frame
        assert [row["rating"] for row in read.sort("item").collect()] == [4.5, -2.0]


BAD = {
    "SELECT 'a' u, 1 i, 3D r UNION ALL SELECT NULL, 2, 4D": (
        r"column 'u': ids must not be empty, but 1 of 2 rows .* null of user null and item '2'"
    ),
    "SELECT 'a' u, 1 i, 3D r UNION ALL SELECT '', 2, 4D": "column 'u': ids must not be empty, but 1 of 2 rows",
    "SELECT 'a' u, 1 i, 3D r UNION ALL SELECT 'b', NULL, 4D": (
        r"column 'i': ids must not be empty, .* of user 'b' and item null"
    ),
    "SELECT 'a' u, 1.5D i, 3D r": r"column 'i': ids must be integers or text, but 1 of 1 rows",
    "SELECT 'a' u, double('nan') i, 3D r": r"column 'i': ids must be integers",
    "SELECT 'a' u, 1 i, double('nan') r UNION ALL SELECT 'b', 1, double('nan')": (
        r"column 'r': must be a finite number, but 2 of 2 rows .* 'NaN' of user 'a' and item '1'"
    ),
    "SELECT 'a' u, 1 i, double('-inf') r": r"column 'r': must be a finite number, .* '-Infinity'",
    "SELECT 'a' u, 1 i, 1e39D r": r"column 'r': must be a finite number",
    "SELECT 'a' u, 1 i, CAST(NULL AS INT) r": r"column 'r': must be a finite number, .* null of user 'a' and item '1'",
    "SELECT 'a' u, 1 i, 'four' r": r"column 'r': must be a finite number, .* 'four'",
    "SELECT 'a' u, 1 i, '4d' r": r"column 'r': must be a finite number, .* '4d'",
    "SELECT 'a' u, 1 i, array(1) r": r"column 'r': a column of ratings must hold numbers, not array<int>",
    "SELECT 'a' u, map(1, 2) i, 3D r": r"column 'i': a column of items must hold integers or text, not map<int,int>",
    "SELECT true u, 1 i, 3D r": r"column 'u': a column of users must hold integers or text, not boolean",
    "SELECT 'a' u, 1 i": r"no column 'r' \(given as rating\) among 'u', 'i'",
    "SELECT 'a' u, 1 i, 3D r WHERE 1 = 0": "no rows; at least one interaction is needed",
}


@pytest.mark.parametrize(("query", "message"), BAD.items())
def test_bad_rows_are_named_and_counted(spark, query, message):
    with pytest.raises(DataError, match=message):
        SparkInteractions.from_frame(spark.sql(query), Columns(user="u", item="i", rating="r"))


def test_bad_times_and_types_are_named(spark):
    rows = spark.sql("SELECT 'a' user, 1 item, '2020-01-01' timestamp, CAST(NULL AS STRING) type")
    with pytest.raises(DataError, match=r"column 'type': must not be empty, but 1 of 1 rows"):
        SparkInteractions.from_frame(rows, EVENTS)
    with pytest.raises(DataError, match=r"column 'timestamp': .* '2020-01-01' .* to_timestamp"):
        SparkInteractions.from_frame(rows, Columns(user="user", item="item", timestamp="timestamp"))


@pytest.mark.parametrize("blocks", [0, -1, 2.0, True])
def test_the_number_of_blocks_is_checked(spark, blocks):
    with pytest.raises(ParameterError, match="blocks must be an integer of at least 1"):
        SparkInteractions.from_frame(spark.createDataFrame(ratings()), RATED, blocks=blocks)


def test_a_column_name_may_hold_dots_and_backticks(spark):
    frame = spark.sql("SELECT 1 AS `a.b`, 2 AS `c``d`")
    found = SparkInteractions.from_frame(frame, Columns(user="a.b", item="c`d"))
    assert found.collect().items.ids.tolist() == [2]
    found.unpersist()


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 40))
def test_cuts_leave_no_part_empty_and_none_much_larger_than_the_mean(counts, n_parts):
    n_parts = min(n_parts, len(counts))
    cuts = even_boundaries(np.array(counts), n_parts)
    assert (cuts[0], cuts[-1]) == (0, len(counts))
    assert (np.diff(cuts) > 0).all()
    largest = max(np.add.reduceat(counts, cuts[:-1]))
    assert largest <= sum(counts) / n_parts + 2 * max(counts)
