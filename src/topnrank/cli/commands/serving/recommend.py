"""`topnrank recommend`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from topnrank.cli.files import (
    TABLES,
    read_columns,
    read_lines,
    require_writable,
    titled,
    titles_of,
)
from topnrank.cli.options import HISTORY, TITLE_COLUMNS, TITLES, ModelFile, option, with_options
from topnrank.cli.output import Output, list_table
from topnrank.cli.values import parse_history, split_list
from topnrank.errors import DataError, ParameterError
from topnrank.io.tables import table_format, write_table, write_tables

if TYPE_CHECKING:
    from topnrank import Model
    from topnrank._typing import IdArray
    from topnrank.models.serving.filters import RecommendOptions

UNKNOWN_USERS = {"skip": "are left out", "popular": "get the items with most training rows"}
"""What happens to users that the model does not know, by the values of --unknown that are not an error."""


@dataclass(frozen=True)
class TargetUsers:
    """For which users."""

    user: list[str] | None = option(None, "A user id; may be repeated.", "--user", "-u")
    users_file: str | None = option(None, "A text file with one user id on each line.", metavar="FILE")
    all: bool = option(False, "All users of the model; needs --output.", "--all")
    history: str | None = option(None, HISTORY, metavar="ITEM=RATING,...")
    histories: str | None = option(
        None, "Users never seen: a file of their interactions, with the columns user, item[, rating].", metavar="FILE"
    )

    def check(self) -> None:
        """An error unless exactly one of the options is given."""
        given = (bool(self.user), self.users_file, self.all, self.history, self.histories)
        count = sum(value not in (None, False) for value in given)
        if count != 1:
            raise ParameterError(
                f"give exactly one of --user, --users-file, --all, --history and --histories, got {count}; see --help"
            )

    def ids(self, model: "Model", unknown: str, output: Output) -> "IdArray | None":
        """The users' ids, None for all users or for histories; notes what happens to users the model does not know."""
        import numpy as np

        if self.all or self.histories is not None:
            return None
        asked = self.user or read_lines(str(self.users_file))
        if not asked:
            raise DataError(f"{self.users_file}: holds no user ids; write one on each line")
        numbers = model.user_map.index(asked)
        unknown_users = [name for name, number in zip(asked, numbers, strict=True) if number < 0]
        if unknown_users and unknown in UNKNOWN_USERS:
            more = f" and {len(unknown_users) - 5} more" if len(unknown_users) > 5 else ""
            output.note(f"users unknown to the model {UNKNOWN_USERS[unknown]}: {', '.join(unknown_users[:5])}{more}")
        if not unknown_users or unknown == "skip":
            return model.user_ids_[numbers[numbers >= 0]]
        try:  # ids of the model's type where all of them can be that, else text
            return (
                np.array([int(text) for text in asked], np.int64)
                if model.user_map.is_integer
                else np.array(asked, object)
            )
        except (ValueError, OverflowError):
            return np.array(asked, object)


@dataclass(frozen=True)
class ListOptions:
    """How many items, where the lists go, and how unknown users and seen items are treated."""

    n: int = option(10, "Items for each user.", "-n", "--n")
    file: str | None = option(
        None,
        "Write .parquet, .csv or .jsonl.",
        "--output",
        "-o",
        metavar="FILE",
        show_default="print a table",
    )
    titles: str | None = option(None, TITLES, metavar="FILE")
    title_columns: str | None = option(None, TITLE_COLUMNS, metavar="ITEM,TITLE", show_default="by usual names")
    keep_seen: bool = option(False, "Also recommend items the user was trained on.", "--keep-seen")
    unknown: str = option(
        "error", "Users the model does not know: error, popular (items with most training rows) or skip."
    )

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Model.recommend`."""
        return {"n": self.n, "exclude_seen": not self.keep_seen, "unknown": self.unknown}


def _items_file(what: str) -> Any:
    text = f"{what}: text with one item on each line, or a table with the column item (and user)."
    return option(None, text, metavar="FILE")


@dataclass(frozen=True)
class ItemFilters:
    """Which items may be in the lists."""

    allow: list[str] | None = option(None, "Only these items.", metavar="ITEM,...", show_default="all")
    allow_file: str | None = _items_file("Only the items in it")
    exclude: list[str] | None = option(None, "Never these items.", metavar="ITEM,...")
    exclude_file: str | None = _items_file("Never the items in it")
    min_score: float | None = option(None, "Leave out items with a lower score.")
    groups: str | None = option(None, "CSV, TSV or Parquet with the columns item and group.", metavar="FILE")
    max_per_group: int | None = option(None, "At most so many items of a group in each list.")
    unknown_items: str = option("error", "Items of a history that the model does not know: error or skip.")

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Model.recommend`."""
        return {
            "items": _items("allow", self.allow, self.allow_file),
            "exclude": _items("exclude", self.exclude, self.exclude_file),
            "min_score": self.min_score,
            "groups": None if self.groups is None else _groups(self.groups),
            "max_per_group": self.max_per_group,
            "unknown_items": self.unknown_items,
        }


def _items(name: str, listed: list[str] | None, path: str | None) -> list[str] | dict[str, list[str]] | None:
    """Items from the command line and from a file; those of a file with a column user belong to that user."""
    if path is None:
        return split_list(listed) if listed else None
    if Path(path).suffix.lower() not in TABLES:
        return split_list(listed or []) + read_lines(path)
    header, rows = read_columns(path, ("item",), optional=("user",))
    if "user" not in header:
        return split_list(listed or []) + [item for (item,) in rows]
    if listed:
        raise ParameterError(f"{path}: gives items by user and cannot be combined with --{name}; give one of the two")
    by_user: dict[str, list[str]] = {}
    for item, user in rows:
        by_user.setdefault(user, []).append(item)
    return by_user


def _groups(path: str) -> dict[str, str | None]:
    """Groups by item; None where the group is blank."""
    groups: dict[str, str | None] = {}
    _, rows = read_columns(path, ("item", "group"))
    for item, group in rows:
        if groups.setdefault(item, group or None) != (group or None):
            raise DataError(f"{path}: item {item!r} is in two groups; give each item one group")
    return groups


@with_options
def recommend(
    model_file: ModelFile,
    target: TargetUsers,
    options: ListOptions,
    filters: ItemFilters,
    output: Output,
) -> None:
    """Print or write the N best items for users.

    For some users, for all users, or for users never seen. Items a user was trained on are left out unless --keep-seen
    is given. Scores can be compared within a user only.

    \b
    Examples:
      topnrank recommend movies.safetensors --user 42 --titles movies.csv
      topnrank recommend movies.safetensors --history "318=5,858=4,4896=1"
      topnrank recommend movies.safetensors --histories new_users.csv -o new.parquet
      topnrank recommend movies.safetensors --all -n 20 -o top20.parquet
      topnrank recommend movies.safetensors --all --groups genres.csv --max-per-group 3 -o mixed.parquet
    """
    import topnrank as tnr

    target.check()
    if options.file is not None:
        table_format(options.file)
        require_writable(options.file)
    elif target.all:
        raise ParameterError("--all writes to a file: add --output FILE.parquet (or .csv, .jsonl)")
    model = tnr.load(model_file)
    titles = titles_of(options.titles, model, options.title_columns)
    arguments = options.arguments() | filters.arguments()
    if target.history is not None:
        users, arguments["history"] = None, parse_history(target.history, model.item_map)
    else:
        if target.histories is not None:
            arguments["histories"] = tnr.read(target.histories)
            _note_skipped(model, arguments, output)
        users = target.ids(model, options.unknown, output)
        # An id that is not of the model's type has no column in a streamed file: such lists are made in memory.
        if options.file is not None and (users is None or users.dtype == model.user_ids_.dtype):
            rows = _stream(model, users, titles, options.file, arguments)
            _report_file(rows, options.file, output)
            return
    table = titled(model.recommend(users, **arguments), titles)
    if options.file is not None:
        write_table(options.file, table)
        _report_file(table.num_rows, options.file, output)
    else:
        _show(table.to_pylist(), output)


def _note_skipped(model: "Model", arguments: dict[str, Any], output: Output) -> None:
    """Notes how many rows of the histories are left out because the model does not know their items."""
    data = arguments["histories"]
    unknown = model.item_map.index(data.items.ids) < 0
    if arguments["unknown_items"] == "skip" and unknown.any():
        rows = int(unknown[data.indices].sum())
        names = ", ".join(map(str, data.items.ids[unknown][:5]))
        output.note(
            f"{rows} of {len(data)} rows of the histories are of items the model does not know, such as {names}"
        )


def _stream(model: "Model", users: Any, titles: dict[str, str] | None, path: str, arguments: dict[str, Any]) -> int:
    """Writes the lists block by block; returns the number of rows."""
    from topnrank.models.serving.recommend import recommend_blocks

    options = {name: value for name, value in arguments.items() if name != "n"}
    blocks = recommend_blocks(model, users, arguments["n"], cast("RecommendOptions", options))
    return write_tables(path, (titled(table, titles) for table in blocks))


def _report_file(rows: int, path: str, output: Output) -> None:
    output.report(f"{rows:,} rows written to {path}")
    output.result({"file": path, "rows": rows})


def _show(rows: list[dict[str, Any]], output: Output) -> None:
    """Prints one list for each user."""
    lists: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        lists.setdefault(row.get("user"), []).append(row)
    for user, chosen in lists.items():
        names = [name for name in ("rank", "item", "title", "score") if name in chosen[0]]
        cells = [[f"{row[name]:.4f}" if name == "score" else str(row[name]) for name in names] for row in chosen]
        output.show(list_table(names, cells, title="for this history" if user is None else f"user {user}"))
    if not rows:
        output.note(
            "there is nothing to recommend: no user is left, or every item is excluded, seen or below the score"
        )
    output.result({"recommendations": rows})
