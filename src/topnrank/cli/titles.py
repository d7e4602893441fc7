"""Titles of items beside their ids."""

from typing import TYPE_CHECKING

from topnrank.cli.files import read_titles
from topnrank.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from topnrank import Model


def titles_of(path: str | None, model: "Model") -> dict[str, str] | None:
    """Titles by item id; an error when they are those of other items."""
    if path is None:
        return None
    titles = read_titles(path)
    if not any(str(item) in titles for item in model.item_ids_):
        raise DataError(
            f"{path}: has no title for any item of the model, whose items are such as {model.item_ids_[0]!r}; "
            "give the titles of the items it was trained on"
        )
    return titles


def titled(table: "pa.Table", titles: dict[str, str] | None, of: str = "item") -> "pa.Table":
    """With a column title of the items in the column `of`; empty where there is none."""
    import pyarrow as pa

    if titles is None:
        return table
    column = pa.array([titles.get(str(item), "") for item in table[of].to_pylist()], pa.string())
    return table.append_column("title", column)
