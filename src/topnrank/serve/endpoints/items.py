"""Items: searching, facts, similar ones, and the map."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import UNSET, Meta, Struct, field

from topnrank.serve import lists
from topnrank.serve.endpoints.base import Call, Route
from topnrank.serve.models import Served
from topnrank.serve.problems import ProblemError
from topnrank.serve.tastes import numbers_of
from topnrank.serve.wire import Item, ItemList, ItemMap, Listed, ModelName, N, Point, SimilarList, Word

if TYPE_CHECKING:
    from topnrank.serve.app import Server


class ItemsQuery(Struct, forbid_unknown_fields=True):
    """Words of a title; without any, the items with most training rows."""

    q: Annotated[str, Meta(max_length=200)] = ""
    n: N = 20
    model: ModelName | None = None
    fields: Annotated[list[Word], Meta(max_length=20)] = field(default_factory=list)


class ModelQuery(Struct, forbid_unknown_fields=True):
    """Which model."""

    model: ModelName | None = None


class SimilarQuery(Struct, forbid_unknown_fields=True):
    """How many, of which model."""

    n: N = 10
    model: ModelName | None = None
    fields: Annotated[list[Word], Meta(max_length=20)] = field(default_factory=list)


class MapQuery(Struct, forbid_unknown_fields=True):
    """How many items, the best known first."""

    n: Annotated[int, Meta(ge=1, le=4000)] = 4000
    model: ModelName | None = None


async def search(server: "Server", call: Call) -> ItemList:
    """Items whose title or id holds all words; the best known first."""
    query: ItemsQuery = call.query
    served = server.models.get(query.model)
    found = served.catalog.search(query.q)
    return ItemList(served.name, [_item(served, k, query.fields) for k in found[: query.n].tolist()], len(found))


async def item(server: "Server", call: Call) -> Item:
    """All that is known of an item."""
    served = server.models.get(call.query.model)
    return _item(served, _number(served, call.path["item"]), None)


async def similar(server: "Server", call: Call) -> SimilarList:
    """The nearest items, as `model.similar_items`."""
    query: SimilarQuery = call.query
    served = server.models.get(query.model)
    number = _number(served, call.path["item"])
    table = served.model.similar_items(call.path["item"], n=query.n)
    scores = table["score"].to_numpy()
    near = np.array(numbers_of(served.model, table["item"].to_pylist()), np.int64)
    rows: list[Listed] = lists.listed(served, near, scores, query.fields or None)
    return SimilarList(served.name, served.version, served.model.item_ids_[number : number + 1].tolist()[0], rows)


async def item_map(server: "Server", call: Call) -> ItemMap:
    """The best-known items in a plane; near ones are alike."""
    query: MapQuery = call.query
    served = server.models.get(query.model)
    plane, counts = served.map, served.catalog.counts
    order = np.argsort(-counts[plane.items], kind="stable")[: query.n]
    ids = served.model.item_ids_[plane.items[order]].tolist()
    points = []
    for one, place in zip(ids, order.tolist(), strict=True):
        facts = served.catalog.of(int(plane.items[place]))
        x, y = plane.places[place].tolist()
        points.append(Point(one, round(x, 4), round(y, 4), facts.get("title"), _text(facts.get("group"))))
    return ItemMap(served.name, served.version, points, len(served.catalog))


def _item(served: Served, number: int, fields: list[str] | None) -> Item:
    """An item with its facts: all for None, else those that are named, besides title and group."""
    facts = served.catalog.of(number)
    more: dict[str, Any] = {
        name: value
        for name, value in facts.items()
        if name not in ("title", "group") and (fields is None or name in fields)
    }
    return Item(
        served.model.item_ids_[number : number + 1].tolist()[0],
        facts.get("title"),
        _text(facts.get("group")),
        more or UNSET,
        int(served.catalog.counts[number]),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(served: Served, item: str) -> int:
    (number,) = numbers_of(served.model, [item])
    if number < 0:
        raise ProblemError(404, f"the model {served.name!r} does not know item {item!r}")
    return number


ROUTES = [
    Route("GET", "/v1/items", "read", search, ItemList, query=ItemsQuery, tag="items"),
    Route("GET", "/v1/items/{item}/similar", "read", similar, SimilarList, query=SimilarQuery, tag="items"),
    Route("GET", "/v1/items/{item}", "read", item, Item, query=ModelQuery, tag="items"),
    Route("GET", "/v1/map", "read", item_map, ItemMap, query=MapQuery, tag="items"),
]
