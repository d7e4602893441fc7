"""The models that are served: loaded, made ready, and swapped while requests go on.

The live model is one tuple in an attribute of an instance. It must not be an attribute of a class: replacing that while
another thread reads it ends a process of CPython 3.11 and 3.12 (python/cpython#118492), and it would not be one step.
"""

import asyncio
import os
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from topnrank._typing import Float32Array, Float64Array, Int64Array
from topnrank.errors import InputError, ModelFileError, ParameterError, UnknownIdError
from topnrank.io.tensors import fingerprint_of_head
from topnrank.models.base import Model
from topnrank.models.linear.neighbors import NEIGHBORS, WEIGHTS
from topnrank.models.persistence import load
from topnrank.models.serving.explain import OneHistory
from topnrank.models.serving.filters import Request
from topnrank.models.serving.histories import Histories
from topnrank.models.serving.recommend import history_scores, user_scores
from topnrank.serve.catalog import Catalog, Facts
from topnrank.serve.tastes import Values

ON_MAP = 4000
"""Items on the map, those with most training rows."""
ANCHORS = 400
"""Items that place the others on the map where items have no vectors: those with most training rows."""


class Identity(NamedTuple):
    """Tells one file from the next; inodes are used again, so the time and the head count, too."""

    inode: int
    modified_ns: int
    size: int

    @classmethod
    def of(cls, path: str) -> "Identity | None":
        """Of the file that stands there now; None where there is none."""
        try:
            found = os.stat(path)
        except OSError:
            return None
        return cls(found.st_ino, found.st_mtime_ns, found.st_size)


@dataclass(frozen=True, eq=False)
class Served:
    """A loaded model with what serving needs beside it; never changes."""

    name: str
    model: Model
    version: str
    identity: Identity
    catalog: Catalog
    values: Values
    loaded: float = field(default_factory=time.time)

    @classmethod
    def load(cls, name: str, path: str, facts: Facts) -> "Served":
        """Loads the file and answers a request with it, so that the first user does not wait."""
        for _ in range(5):
            identity, version = Identity.of(path), fingerprint_of_head(path)
            model = load(path)
            if identity is not None and identity == Identity.of(path):  # else it was replaced while it was read
                return cls.of(name, model, version, identity, facts)
        raise ModelFileError(f"{path}: is being replaced all the time; write it less often")

    @classmethod
    def of(cls, name: str, model: Model, version: str, identity: Identity, facts: Facts) -> "Served":
        """A model that is in memory already."""
        counts = np.bincount(model.fitted.indices, minlength=len(model.item_map))
        served = cls(name, model, version, identity, Catalog(model.item_map, facts, counts), Values.of(model))
        served.warm_up()
        return served

    def warm_up(self) -> None:
        """Runs the kernels of both ways of recommending."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            request = Request(1)
            few = np.arange(min(2, len(self.model.item_map)), dtype=np.int64)
            values = None if self.values.kind is None else np.array([self.values.like, self.values.dislike])[: few.size]
            request.best(self.scores_of_history(few, values, seen_too=True))
            for user in (-1, 0)[: 1 + min(1, len(self.model.user_map))]:
                request.best(self.scores_of_user(user, seen_too=False))
            _ = self.explains

    def scores_of_history(self, items: Int64Array, values: Float64Array | None, *, seen_too: bool) -> Float32Array:
        """(1, n_items) scores; NaN for the history itself unless `seen_too`."""
        given = np.full(items.size, np.nan) if values is None else values
        histories = Histories(None, np.array([0, items.size]), items, given)
        return history_scores(self.model, histories, Request(1, exclude_seen=not seen_too))

    def scores_of_user(self, number: int, *, seen_too: bool) -> Float32Array:
        """(1, n_items) scores of a known user, or of nobody known (-1): the items' training rows."""
        return user_scores(self.model, np.array([number]), Request(1, exclude_seen=not seen_too))

    @property
    def events_through(self) -> Mapping[str, int]:
        """By event store, the last event that the model was trained on."""
        return self.model.fitted.info.events or {}

    @property
    def folds_in(self) -> bool:
        """Whether a history becomes a user vector by training."""
        return getattr(self.model, "user_representation", None) == "factors"

    @cached_property
    def explains(self) -> bool:
        """Whether scores are sums over the items of a history."""
        try:
            self.model.contributions(OneHistory(np.zeros(1, np.int64), self.values.plain(1)), np.zeros(1, np.int64))
        except (ParameterError, IndexError):
            return False
        return True

    @cached_property
    def finds_similar(self) -> bool:
        """Whether the model knows which items are alike."""
        if "item_factors" in self.model.fitted.arrays:
            return True
        return self.model.item_similarity(np.empty(0, np.int64)) is not None

    def vectors_of(self, items: Int64Array, anchors: Int64Array) -> Float64Array:
        """(n, k) vectors that are alike where items are: the items' own, else what ties each of them to the anchors."""
        arrays = self.model.fitted.arrays
        factors = arrays.get("item_factors")
        if factors is not None and np.any(factors[items]):
            return np.asarray(factors[items], np.float64)
        if NEIGHBORS in arrays:
            place = np.full(len(self.catalog), -1, np.int64)
            place[anchors] = np.arange(anchors.size)
            vectors = np.zeros((items.size, anchors.size + 1))
            columns = place[arrays[NEIGHBORS][items]]  # the last column takes what ties to other items
            np.add.at(vectors, (np.arange(items.size)[:, None], columns), arrays[WEIGHTS][items])
            own = place[items]
            vectors[own >= 0, own[own >= 0]] += vectors.max(initial=1e-12)
            return np.asarray(vectors[:, :-1])
        similar = self.model.item_similarity(anchors)
        if similar is None:
            raise ParameterError(f"the model {self.name!r} does not know which items are alike")
        return np.nan_to_num(similar.astype(np.float64))[:, items].T

    @cached_property
    def known(self) -> Float32Array:
        """(n_items,) how well known each item is: the logarithm of its training rows, mean 0 and deviation 1."""
        logs = np.log1p(self.catalog.counts.astype(np.float64))
        return np.asarray((logs - logs.mean()) / (logs.std() or 1.0), np.float32)

    @cached_property
    def map(self) -> "ItemPlane":
        """The best-known items in the plane of the two main components."""
        return ItemPlane.of(self)


class ItemPlane(NamedTuple):
    """Items in a plane."""

    items: Int64Array
    places: Float64Array
    """(n, 2) each within -1 and 1"""

    @classmethod
    def of(cls, served: Served) -> "ItemPlane":
        """Principal components of the items' vectors at length 1."""
        items = np.sort(served.catalog.by_popularity[:ON_MAP])
        rows = served.vectors_of(items, served.catalog.by_popularity[:ANCHORS])
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        rows = rows - rows.mean(axis=0)
        _, axes = np.linalg.eigh(rows.T @ rows)
        axes = axes[:, ::-1][:, :2]
        places = rows @ (axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]))
        if places.shape[1] < 2:
            places = np.pad(places, ((0, 0), (0, 2 - places.shape[1])))
        return cls(items, places / max(np.abs(places).max(), 1e-12))


class LiveModel:
    """A model file and the model that is served from it."""

    def __init__(self, name: str, path: str, facts: Facts) -> None:
        self.name, self.path, self.facts = name, path, facts
        self.current = Served.load(name, path, facts)
        self.refused: str | None = None
        """Why the newest file is not served"""
        self.failures = 0
        self._tried: Identity | None = self.current.identity
        self._lock = threading.Lock()

    def changed(self) -> bool:
        """Whether another file stands at the path than the one that was last looked at."""
        found = Identity.of(self.path)
        return found is not None and found != self._tried

    def reload(self, *, force: bool = False) -> bool:
        """Takes in the file if it is a new one; raises an InputError, and serves the old model, if it is not fit."""
        with self._lock:
            identity = Identity.of(self.path)
            if identity == self.current.identity and self.refused is None:
                return False
            self._tried = identity
            try:
                new = Served.load(self.name, self.path, self.facts)
                if not force:
                    require_successor(self.current.model, new.model)
            except InputError as error:
                self.failures += 1
                self.refused = str(error).replace(self.path, f"the file of model {self.name!r}")
                raise type(error)(self.refused) from None
            except Exception as error:
                self.failures += 1
                self.refused = f"the file of model {self.name!r}: cannot be used; make it again"
                raise ModelFileError(self.refused) from error
            self._tried = new.identity
            before, self.current = self.current, new  # `before` lives until after the assignment
            self.refused = None
            return before.version != new.version


def require_successor(old: Model, new: Model) -> None:
    """An error unless the new model knows all items of the old one, with ids of the same kind."""
    if old.item_map.is_integer != new.item_map.is_integer:
        raise ModelFileError(
            "the new model file has item ids of another kind (numbers or text); serve it under another name, or reload "
            "with force"
        )
    gone = old.item_ids_[new.item_map.index(old.item_ids_) < 0]
    if gone.size:
        raise ModelFileError(
            f"the new model file lacks {gone.size} of the {len(old.item_map)} items of the model that is served, such as "
            f"{gone.tolist()[0]!r}; train it on all rows, or reload with force"
        )


class Models:
    """All models by name, watched for new files."""

    def __init__(self, paths: Mapping[str, str], facts: Facts) -> None:
        self.live = {name: LiveModel(name, path, facts) for name, path in paths.items()}
        self.first = next(iter(self.live))
        self._watcher: asyncio.Task[None] | None = None

    def get(self, name: str | None) -> Served:
        """The model of that name as it is now, the first one for None; UnknownIdError where there is none."""
        return self.holder(name).current

    def holder(self, name: str | None) -> LiveModel:
        """See `get`."""
        found = self.live.get(self.first if name is None else name)
        if found is None:
            raise UnknownIdError(f"there is no model {name!r}; the models: {', '.join(self.live)}")
        return found

    def watch(self, seconds: float, changed: Any = None) -> None:
        """Looks for new files from time to time; `changed(live, error)` is told what was done."""
        self._watcher = asyncio.create_task(self._watch(seconds, changed))

    async def _watch(self, seconds: float, changed: Any) -> None:
        while True:
            await asyncio.sleep(seconds)
            for live in self.live.values():
                if not live.changed():
                    continue
                error: Exception | None = None
                try:
                    await asyncio.to_thread(live.reload)
                except InputError as refused:
                    error = refused
                if changed is not None:
                    changed(live, error)

    async def close(self) -> None:
        """Stops watching."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)


def names_of(paths: list[str]) -> dict[str, str]:
    """Models by the names of their files without the ending; ParameterError where two have one name."""
    from pathlib import Path

    named: dict[str, str] = {}
    for path in paths:
        name = Path(path).name.removesuffix(".safetensors")
        if name in named:
            raise ParameterError(f"two models are called {name!r}: {named[name]} and {path}; rename one of the files")
        named[name] = path
    return named
