"""DataFrames of interactions: columns found, cast and checked inside Spark, with errors that count the bad rows."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as kinds

from topnrank.data.columns import EXACT_FLOAT_INTEGERS
from topnrank.data.frames import Columns, check_columns
from topnrank.errors import DataError
from topnrank.spark.session.session import require_classic

SOURCE = "DataFrame"
"""What error messages call the data."""
ORDER = "order"
"""The column of the row's position, for the rules about repeated rows that ask which came last."""
_INTEGERS = (kinds.ByteType, kinds.ShortType, kinds.IntegerType, kinds.LongType)
_FLOATS = (kinds.FloatType, kinds.DoubleType)
_BEYOND_FLOAT32 = 3.4028235677973366e38
"""Numbers from here on round to infinity."""
_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
_WHOLE_NUMBER = r"^\s*[+-]?[0-9]{1,18}\s*$"


@dataclass(frozen=True)
class ColumnReader:
    """How one column is read: its value, the condition of good values, and what to say of others."""

    value: Column
    good: Column
    rule: str
    remedy: str


@dataclass(frozen=True)
class CheckedRows:
    """Valid rows; the columns are named by their roles: user, item, rating, type, weight, timestamp."""

    frame: DataFrame
    n_rows: int
    cached: DataFrame
    """The persisted columns as they were given, behind `frame`"""

    def has(self, role: str) -> bool:
        """Whether there is such a column."""
        return role in self.frame.columns

    def unpersist(self) -> None:
        """Frees memory and disk in the cluster."""
        self.cached.unpersist()


def checked_rows(frame: DataFrame, columns: Columns, *, ordered: bool = False) -> CheckedRows:
    """The rows of `frame`, persisted; a DataError names the column, the rule, how many rows break it, and one of them.

    With `ordered` a column `order` has the position of each row, as `collect` would return them. Rows are read once, so that
    those that are used are those that were checked: a DataFrame may give others each time, such as `limit` or `sample`.
    """
    require_classic(frame.sparkSession)
    check_columns(frame.columns, asdict(columns), source=SOURCE)
    readings = readings_of(frame, columns)
    place = [sf.monotonically_increasing_id().alias(ORDER)] if ordered else []
    given = frame.select(*(column_of(getattr(columns, role)).alias(role) for role in readings), *place).persist()
    try:
        n_rows = _check(given, columns)
    except Exception:
        given.unpersist()
        raise
    values = [sf.when(reading.good, reading.value).alias(role) for role, reading in _by_role(given).items()]
    return CheckedRows(given.select(*values, *([ORDER] if ordered else [])), n_rows, given)


def readings_of(frame: DataFrame, columns: Columns) -> dict[str, ColumnReader]:
    """How each column is read, by role; a type that cannot be read is a DataError."""
    read: dict[str, Callable[[Column, Any], ColumnReader | None]] = {
        "user": _id, "item": _id, "rating": _number, "type": _name, "weight": _number, "timestamp": _time,
    }  # fmt: skip
    found = {}
    for role in (field.name for field in fields(columns)):
        name = getattr(columns, role)
        if name is None:
            continue
        kind = frame.schema[name].dataType
        reading = read[role](column_of(name), kind)
        if reading is None:
            raise DataError(
                f"{SOURCE}, column {name!r}: a column of {role}s must hold {_WANTED[role]}, not {kind.simpleString()}; "
                "cast it, or name another column"
            )
        found[role] = reading
    return found


def column_of(name: str) -> Column:
    """The column of that very name, dots and all."""
    return sf.col("`" + name.replace("`", "``") + "`")


def id_column(frame: DataFrame, name: str, *, integer: bool) -> Column:
    """The ids of a column as integers or text, whichever a model has; null where one cannot be read so."""
    reading = readings_of(frame, Columns(user=name, item=name))["user"]
    value = sf.when(reading.good, reading.value)
    is_text = isinstance(frame.schema[name].dataType, kinds.StringType)
    if integer and is_text:
        return sf.when(value.rlike(_WHOLE_NUMBER), sf.trim(value).cast("bigint"))
    return value if integer else value.cast("string")


_WANTED = {
    "user": "integers or text",
    "item": "integers or text",
    "rating": "numbers",
    "weight": "numbers",
    "type": "text",
    "timestamp": "integers (or text of integers), dates or timestamps",
}


def _id(column: Column, kind: Any) -> ColumnReader | None:
    remedy = "remove such rows or give them an id"
    if isinstance(kind, kinds.StringType):
        text = column.cast("string")
        return ColumnReader(text, text != "", "ids must not be empty", remedy)
    if isinstance(kind, _INTEGERS):
        return ColumnReader(column.cast("bigint"), column.isNotNull(), "ids must not be empty", remedy)
    if isinstance(kind, _FLOATS):
        return ColumnReader(column.cast("bigint"), _is_whole(column), "ids must be integers or text", remedy)
    return None


def _number(column: Column, kind: Any) -> ColumnReader | None:
    rule, remedy = "must be a finite number", "remove or fix such rows"
    if isinstance(kind, kinds.StringType):
        number = sf.when(column.rlike(_NUMBER), sf.trim(column)).cast("double")
    elif isinstance(kind, kinds.NumericType | kinds.BooleanType):
        number = column.cast("double")
    else:
        return None
    return ColumnReader(
        number.cast("float"), sf.abs(number) < _BEYOND_FLOAT32, rule, remedy
    )  # NaN is above all numbers


def _name(column: Column, kind: Any) -> ColumnReader | None:
    if not isinstance(kind, kinds.StringType | kinds.NumericType | kinds.BooleanType):
        return None
    text = column.cast("string")
    return ColumnReader(text, text != "", "must not be empty", "remove such rows or give them a type")


def _time(column: Column, kind: Any) -> ColumnReader | None:
    rule, remedy = "must be an integer number of seconds, a date or a timestamp", "remove or fix such rows"
    if isinstance(kind, _INTEGERS):
        return ColumnReader(column.cast("bigint"), column.isNotNull(), rule, remedy)
    if isinstance(kind, _FLOATS):
        return ColumnReader(column.cast("bigint"), _is_whole(column), rule, remedy)
    if isinstance(kind, kinds.StringType):
        remedy = "fix such rows, or turn the column into timestamps with to_timestamp"
        return ColumnReader(sf.trim(column).cast("bigint"), column.rlike(_WHOLE_NUMBER), rule, remedy)
    if isinstance(kind, kinds.DateType):
        seconds = _days(column)
    elif isinstance(kind, kinds.TimestampNTZType):  # without a zone, which is read as UTC
        clock = sf.hour(column) * 3600 + sf.minute(column) * 60 + sf.second(column)
        seconds = _days(column.cast("date")) + clock
    elif isinstance(kind, kinds.TimestampType):
        seconds = column.cast("bigint")  # rounds down, also before 1970
    else:
        return None
    return ColumnReader(seconds, column.isNotNull(), rule, remedy)


def _days(column: Column) -> Column:
    """Seconds from 1970 to a date."""
    return sf.datediff(column, sf.lit("1970-01-01").cast("date")).cast("bigint") * 86_400


def _is_whole(column: Column) -> Column:
    number = column.cast("double")
    return (sf.abs(number) <= EXACT_FLOAT_INTEGERS) & (sf.floor(number) == number)


def _by_role(given: DataFrame) -> dict[str, ColumnReader]:
    """How columns that have the names of their roles are read."""
    roles = {role: role for role in given.columns if role != ORDER}
    return readings_of(given, Columns(**roles))


def _check(given: DataFrame, columns: Columns) -> int:
    """The number of rows; a DataError for the first column with bad ones. One job for all columns."""
    readings = _by_role(given)
    wanted = [sf.count(sf.lit(1)).alias("rows")]
    for role, reading in readings.items():
        bad = ~sf.coalesce(reading.good, sf.lit(False))
        shown = [
            sf.col(one).cast("string").alias(name) for one, name in zip(("user", "item", role), "uiv", strict=True)
        ]
        wanted.append(sf.count(sf.when(bad, 1)).alias(f"{role}_count"))
        wanted.append(sf.min(sf.when(bad, sf.struct(*shown))).alias(f"{role}_example"))
    found = given.agg(*wanted).first()
    assert found is not None
    if found["rows"] == 0:
        raise DataError(f"{SOURCE}: no rows; at least one interaction is needed")
    for role, reading in readings.items():
        if count := found[f"{role}_count"]:
            user, item, value = ("null" if part is None else repr(part) for part in found[f"{role}_example"])
            raise DataError(
                f"{SOURCE}, column {getattr(columns, role)!r}: {reading.rule}, but {count} of {found['rows']} rows break "
                f"that, for example {value} of user {user} and item {item}; {reading.remedy}"
            )
    return int(found["rows"])
