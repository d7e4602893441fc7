"""The options of `topnrank recommend`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topnrank.cli.files import TABLES, read_columns, read_lines
from topnrank.cli.options import split_list
from topnrank.cli.output import Output
from topnrank.errors import DataError, ParameterError

if TYPE_CHECKING:
    from topnrank import Model
    from topnrank._typing import IdArray


@dataclass(frozen=True)
class TargetUsers:
    """For whom."""

    user: Annotated[list[str] | None, typer.Option("--user", "-u", help="A user id; may be repeated.")] = None
    users_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A text file with one user id on each line.")
    ] = None
    all: Annotated[bool, typer.Option("--all", help="All users of the model; needs --output.")] = False
    history: Annotated[
        str | None,
        typer.Option(metavar="ITEM=RATING,...", help="A user never seen, by items and ratings (or items alone)."),
    ] = None
    histories: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Users never seen: a file of their interactions, with the columns user, item[, rating].",
        ),
    ] = None

    def check(self) -> None:
        """Exactly one way to say for whom."""
        given = (bool(self.user), self.users_file, self.all, self.history, self.histories)
        count = sum(value not in (None, False) for value in given)
        if count != 1:
            raise ParameterError(
                f"give exactly one of --user, --users-file, --all, --history and --histories, got {count}; see --help"
            )

    def ids(self, model: "Model", unknown: str, output: Output) -> "IdArray | None":
        """The users' ids, None for all or for histories; tells what happens to users the model does not know."""
        if self.all or self.histories is not None:
            return None
        asked = self.user or read_lines(str(self.users_file))
        if not asked:
            raise DataError(f"{self.users_file}: holds no user ids; write one on each line")
        numbers = model.user_map.index(asked)
        unknown_users = [name for name, number in zip(asked, numbers, strict=True) if number < 0]
        if unknown_users and unknown in _FATES:
            more = f" and {len(unknown_users) - 5} more" if len(unknown_users) > 5 else ""
            output.note(f"users unknown to the model {_FATES[unknown]}: {', '.join(unknown_users[:5])}{more}")
        if unknown_users and unknown != "skip":
            return _typed(asked, integers=model.user_map.is_integer)
        return model.user_ids_[numbers[numbers >= 0]]


_FATES = {"skip": "are left out", "popular": "get the items with most training rows"}
"""What happens to users the model does not know."""


def _typed(ids: list[str], *, integers: bool) -> "IdArray":
    """Ids as the model's type where all of them can be that, else as text."""
    import numpy as np

    try:
        return np.array([int(text) for text in ids], np.int64) if integers else np.array(ids, object)
    except (ValueError, OverflowError):
        return np.array(ids, object)


@dataclass(frozen=True)
class OutputOptions:
    """Which items, how many, and where to."""

    n: Annotated[int, typer.Option("-n", "--n", help="Items for each user.")] = 10
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write .parquet, .csv or .jsonl.", show_default="print a table"
        ),
    ] = None
    titles: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="CSV, TSV or Parquet with the columns item and title (or these first); adds titles to the lists.",
        ),
    ] = None
    keep_seen: Annotated[bool, typer.Option("--keep-seen", help="Also recommend items the user was trained on.")] = (
        False
    )
    unknown: Annotated[
        str,
        typer.Option(help="Users the model does not know: error, popular (items with most training rows) or skip."),
    ] = "error"

    def arguments(self) -> dict[str, Any]:
        """As `Model.recommend` names them."""
        return {"n": self.n, "exclude_seen": not self.keep_seen, "unknown": self.unknown}


def _items_file(what: str) -> Any:
    return typer.Option(
        metavar="FILE", help=f"{what}: text with one item on each line, or a table with the column item (and user)."
    )


@dataclass(frozen=True)
class ItemFilters:
    """What may stand in the lists."""

    allow: Annotated[
        list[str] | None, typer.Option(metavar="ITEM,...", help="Only these items.", show_default="all")
    ] = None
    allow_file: Annotated[str | None, _items_file("Only the items in it")] = None
    exclude: Annotated[list[str] | None, typer.Option(metavar="ITEM,...", help="Never these items.")] = None
    exclude_file: Annotated[str | None, _items_file("Never the items in it")] = None
    min_score: Annotated[float | None, typer.Option(help="Leave out items with a lower score.")] = None
    groups: Annotated[
        str | None, typer.Option(metavar="FILE", help="CSV, TSV or Parquet with the columns item and group.")
    ] = None
    max_per_group: Annotated[int | None, typer.Option(help="At most so many items of a group in each list.")] = None
    unknown_items: Annotated[
        str, typer.Option(help="Items of a history that the model does not know: error or skip.")
    ] = "error"

    def arguments(self) -> dict[str, Any]:
        """As `Model.recommend` names them."""
        return {
            "items": _items("allow", self.allow, self.allow_file),
            "exclude": _items("exclude", self.exclude, self.exclude_file),
            "min_score": self.min_score,
            "groups": None if self.groups is None else _groups(self.groups),
            "max_per_group": self.max_per_group,
            "unknown_items": self.unknown_items,
        }


def _items(option: str, listed: list[str] | None, path: str | None) -> list[str] | dict[str, list[str]] | None:
    """Items from the command line and from a file; those of a file with a column user belong to that user."""
    if path is None:
        return split_list(listed) if listed else None
    if Path(path).suffix.lower() not in TABLES:
        return split_list(listed or []) + read_lines(path)
    header, rows = read_columns(path, ("item",), optional=("user",))
    if "user" not in header:
        return split_list(listed or []) + [item for (item,) in rows]
    if listed:
        raise ParameterError(f"{path}: gives items by user, so --{option} has no place beside it; give one of the two")
    by_user: dict[str, list[str]] = {}
    for item, user in rows:
        by_user.setdefault(user, []).append(item)
    return by_user


def _groups(path: str) -> dict[str, str | None]:
    """Groups by item; a blank one is none."""
    groups: dict[str, str | None] = {}
    _, rows = read_columns(path, ("item", "group"))
    for item, group in rows:
        if groups.setdefault(item, group or None) != (group or None):
            raise DataError(f"{path}: item {item!r} stands in two groups; give each item one group")
    return groups
