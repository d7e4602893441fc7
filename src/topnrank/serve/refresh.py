"""`topnrank refresh`: a model takes in the events since it was trained, in a process of its own, never in a web worker.

Two ways. Without data the model's `partial_fit` adds the new rows to those it holds: users and new items learn, old items
stay as they are. With the file it was trained on it is trained anew on those rows and all events. Either way what was
removed or forgotten leaves the file, the new file remembers the last event it knows, and servers swap to it.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from topnrank._typing import BoolArray
from topnrank.data.ids import IdMap
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, InputError, ParameterError
from topnrank.io.alone import alone
from topnrank.models.base import Fitted, Model, rows_belong_to
from topnrank.models.factor.fitted import VALUES
from topnrank.models.factor.model import FactorModel
from topnrank.models.persistence import load
from topnrank.serve.store.base import (
    Event,
    EventStore,
    RefreshRecord,
    StoreUnavailableError,
    for_commands,
    open_store,
)
from topnrank.serve.tastes import REMOVE, Values

PAGE = 20_000
"""Events that are read at a time."""
FORGOTTEN = "{} forgotten"
"""In a model's `events`: by store, the last time that somebody was forgotten which the file knows of."""


@dataclass(frozen=True)
class Request:
    """What to refresh, and how."""

    model: str
    events: str
    data: Interactions | None = None
    """What the model was trained on; None: add the new events by partial_fit"""
    epochs: int = 5
    output: str | None = None
    """Where the new model goes; None: in the place of the old one"""


class Told(NamedTuple):
    """What events say, as rows to train on and pairs to take away."""

    rows: list[Event]
    values: list[float]
    """What each row is rated or weighed"""
    removed: set[tuple[str, str]]
    skipped: int
    """Events whose type or ids mean nothing to the model"""


async def refresh(request: Request) -> RefreshRecord:
    """Refreshes the model and returns the line of the log, which also tells of a failure."""
    begin = time.time()
    with for_commands(request.events):
        store = await open_store(request.events, must_exist=True)
    try:
        lock = Path(f"{request.output or request.model}.lock")
        with alone(lock, f"{request.model}: another process refreshes this model"), for_commands(request.events):
            name = Path(request.model).name.removesuffix(".safetensors")
            try:
                record = await _refreshed(request, store, name, begin)
            except InputError as error:
                sentence = str(error).replace(request.model, "the model file")
                with suppress(StoreUnavailableError):  # what went wrong first is what is told
                    await store.log_refresh(RefreshRecord(begin, name, sentence, 0, time.time() - begin, None))
                raise
            await store.log_refresh(record)
            return record
    finally:
        await store.close()


async def _refreshed(request: Request, store: EventStore, name: str, begin: float) -> RefreshRecord:
    model = load(request.model)
    known = model.fitted.info.events or {}
    through, key = known.get(store.identity, 0), FORGOTTEN.format(store.identity)
    forgotten = await store.forgotten(0 if request.data is not None else known.get(key, 0))
    events = await _all_since(store, 0 if request.data is not None else through)
    last = max([through, *(event.seq for event in events)])
    if not events and not forgotten:
        return RefreshRecord(begin, name, "nothing new", 0, time.time() - begin, last)
    told = tell(model, events)
    if request.data is None:
        updated = _updated(model, told, set(forgotten), request.epochs)
    else:
        updated = _trained_anew(model, request.data, told, set(forgotten))
    marks = known | {store.identity: last, key: max([known.get(key, 0), *forgotten.values()])}
    updated._fitted = replace(updated.fitted, info=replace(updated.fitted.info, events=marks))
    updated.save(request.output or request.model)
    way = "updated" if request.data is None else "trained anew"
    return RefreshRecord(begin, name, way, len(told.rows), time.time() - begin, last)


async def _all_since(store: EventStore, after: int) -> list[Event]:
    events: list[Event] = []
    while page := await store.since(after, PAGE):
        events += page
        after = page[-1].seq
    return events


def tell(model: Model, events: Iterable[Event]) -> Told:
    """Of each pair the last word, of models with feedback types all of them; see `tastes`."""
    values, by_type = Values.of(model), bool(Values.of(model).types)
    integers = model.user_map.is_integer, model.item_map.is_integer
    rows: dict[tuple[str, str, str | None], tuple[Event, float]] = {}
    removed: set[tuple[str, str]] = set()
    skipped = 0
    for event in sorted(events, key=lambda one: (one.time, one.seq)):
        pair = (event.user, event.item)
        if not all(_readable(text, integer) for text, integer in zip(pair, integers, strict=True)):
            skipped += 1
            continue
        if event.type == REMOVE:
            removed.add(pair)
            rows = {key: row for key, row in rows.items() if key[:2] != pair}
            continue
        try:
            value = values.of_entry(event.value, event.type)
        except LookupError:
            skipped += 1
            continue
        if by_type and event.type not in values.types:
            skipped += 1
            continue
        removed.discard(pair)
        rows[*pair, event.type if by_type else None] = event, values.like if value is None else value
    return Told([event for event, _ in rows.values()], [value for _, value in rows.values()], removed, skipped)


def _readable(text: str, integer: bool) -> bool:
    """Whether an id can be one of the model's kind."""
    return not integer or (text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 19)


def _updated(model: Model, told: Told, forgotten: set[str], epochs: int) -> Model:
    """The model with the new rows, without what was removed."""
    if not isinstance(model, FactorModel):
        raise ParameterError(
            f"refresh: {type(model).__name__} cannot take in rows; give the file it was trained on with --data"
        )
    own, gone = told.rows, _gone(model, told.removed, forgotten)
    if gone.any():
        model._fitted = without_rows(model.fitted, gone)
    if not own and not gone.any():
        return model
    if not own:  # one row again as it is, so that what is derived from the rows is made anew
        again, values = _first_row(model)
        return model.partial_fit(_rows(model, again, values), epochs=0)
    return model.partial_fit(_rows(model, own, told.values), epochs=epochs)


def _gone(model: Model, removed: set[tuple[str, str]], forgotten: set[str]) -> BoolArray:
    """(n_rows,) training rows that were removed one by one, or whose user is forgotten."""
    fitted = model.fitted
    gone = np.zeros(len(fitted.indices), np.bool_)
    for number in fitted.users.index(list(forgotten)).tolist() if forgotten else []:
        if number >= 0:
            gone[fitted.indptr[number] : fitted.indptr[number + 1]] = True
    pairs = sorted(removed)
    users = fitted.users.index([user for user, _ in pairs]).tolist() if pairs else []
    items = fitted.items.index([item for _, item in pairs]).tolist() if pairs else []
    for user, item in zip(users, items, strict=True):
        if user >= 0 and item >= 0:
            rows = slice(int(fitted.indptr[user]), int(fitted.indptr[user + 1]))
            gone[rows] |= fitted.indices[rows] == item
    return gone


def without_rows(fitted: Fitted, gone: BoolArray) -> Fitted:
    """The fitted state without some training rows; users, items and what was learned from them stay."""
    if gone.all():
        raise DataError("refresh: no training row would be left; train a new model")
    kept = ~gone
    sizes = np.concatenate([[0], np.cumsum(kept)])
    arrays = {name: array[kept] if rows_belong_to(name) == "seen" else array for name, array in fitted.arrays.items()}
    info = replace(fitted.info, rows=int(kept.sum()))
    return Fitted(fitted.users, fitted.items, sizes[fitted.indptr].astype(np.int64), fitted.indices[kept], arrays, info)


def _first_row(model: Model) -> tuple[list[Event], list[float]]:
    fitted = model.fitted
    user = int(np.flatnonzero(np.diff(fitted.indptr))[0])
    event = Event(str(fitted.users.ids[user]), str(fitted.items.ids[fitted.indices[fitted.indptr[user]]]), time.time())
    value = fitted.arrays.get(VALUES)
    return [event], [1.0 if value is None else float(value[fitted.indptr[user]])]


def _rows(model: Model, events: list[Event], values: list[float]) -> Interactions:
    """Events as interactions of the model's kind."""
    users, items = (
        _ids(known, texts)
        for known, texts in (
            (model.user_map, [event.user for event in events]),
            (model.item_map, [event.item for event in events]),
        )
    )
    meaning = Values.of(model)
    if meaning.kind == "ratings":
        column: dict[str, Any] = {"ratings": values}
    elif meaning.types and all(event.type in meaning.types for event in events):
        column = {"types": [event.type for event in events]}
    else:
        column = {"weights": values}
    times = np.array([int(event.time) for event in events], np.int64)
    return Interactions.from_arrays(users, items, **column, timestamps=times, duplicates="last")


def _ids(known: IdMap, texts: list[str]) -> Any:
    return np.array(list(map(int, texts)), np.int64) if known.is_integer else np.array(texts, object)


def _trained_anew(model: Model, data: Interactions, told: Told, forgotten: set[str]) -> Model:
    """A model with the same hyper-parameters, trained on the rows of `data` and of all events, the last of a pair."""
    import pyarrow as pa

    table = data.to_arrow()
    gone = {(event.user, event.item) for event in told.rows} | told.removed
    pairs = zip(map(str, table["user"].to_pylist()), map(str, table["item"].to_pylist()), strict=True)
    kept = [user not in forgotten and ((user, item) not in gone or data.types is not None) for user, item in pairs]
    columns = {name: table.filter(pa.array(kept))[name].to_pylist() for name in table.column_names}
    meaning = Values.of(model)
    new: dict[str, list[Any]] = {
        "user": _ids(data.users, [event.user for event in told.rows]).tolist(),
        "item": _ids(data.items, [event.item for event in told.rows]).tolist(),
        "rating": told.values,
        "weight": told.values,
        "type": [event.type for event in told.rows],
        "timestamp": [int(event.time) for event in told.rows],
    }
    if "type" in columns and not meaning.types:
        raise DataError(
            "refresh: the data have feedback types and the model knows none; give the file it was trained on"
        )
    whole = {name: values + new[name] for name, values in columns.items()}
    arrays = {name if name in ("user", "item") else f"{name}s": values for name, values in whole.items()}
    users, items = arrays.pop("user"), arrays.pop("item")
    anew = type(model)(**model.get_params())
    return anew.fit(Interactions.from_arrays(users, items, **arrays))
