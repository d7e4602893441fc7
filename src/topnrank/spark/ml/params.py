"""Parameters of Estimators and Models: the hyper-parameters of the local class, and the names of columns.

Hyper-parameters keep the names, defaults and rules of the local class (`topnrank.TopNRank` and the others); they are
checked by it, when they are set and again before anything is computed.
"""

import dataclasses
from typing import Any, ClassVar, Self

from pyspark.ml.param import Param, Params, TypeConverters

from topnrank._checks import one_of
from topnrank.data.frames import Columns
from topnrank.errors import ParameterError
from topnrank.models.base import Model

COLD_START = ("nan", "drop")
SHARED: dict[str, tuple[Any, str]] = {
    "userCol": ("user", "column of user ids: integers or text"),
    "itemCol": ("item", "column of item ids: integers or text"),
    "ratingCol": (
        "rating",
        "column of ratings; unless it is set, it is used if it is there and neither eventCol nor weightCol is set",
    ),
    "eventCol": (None, "column of feedback types, such as view, cart, buy"),
    "weightCol": (None, "column of weights"),
    "timestampCol": (None, "column of times: integers, dates or timestamps"),
    "predictionCol": ("prediction", "column that transform adds: the scores"),
    "duplicates": ("error", "what to do with rows of one user and item: 'error', 'last', 'sum' or 'max'"),
    "numBlocks": (None, "blocks of users; None: one per core, and one per 2 million rows"),
    "checkpointDir": (None, "folder on a file system that all machines share: an interrupted fit resumes from it"),
    "validationIndicatorCol": (None, "column of booleans: rows that are held out of training, for early stopping"),
    "validationMetric": ("ndcg@10", "metric on the held-out rows, of which the best round is kept"),
    "patience": (10, "rounds without a better validationMetric after which training stops"),
    "coldStartStrategy": ("nan", "rows of unknown users or items in transform: 'nan' or 'drop'"),
}
"""Names, defaults and meanings of the parameters that the local classes do not have."""
NOT_ON_SPARK = ("engine",)
"""Fields of the local classes that have no meaning here."""


def shared_params() -> dict[str, Param[Any]]:
    """The parameters of `SHARED`, as attributes of a class."""
    return {name: _param(name, meaning) for name, (_, meaning) in SHARED.items()}


def local_params(kind: type[Model]) -> dict[str, Param[Any]]:
    """The hyper-parameters of a local class, as attributes of a class."""
    return {name: _param(name, f"see topnrank.{kind.__name__}.{name}") for name in local_defaults(kind)}


def local_defaults(kind: type[Model]) -> dict[str, Any]:
    """Hyper-parameters of a local class and their defaults."""
    values = kind().get_params()
    return {field.name: values[field.name] for field in dataclasses.fields(kind) if field.name not in NOT_ON_SPARK}  # type: ignore[arg-type]


def _param(name: str, meaning: str) -> Param[Any]:
    return Param(Params._dummy(), name, meaning, typeConverter=TypeConverters.identity)


class LocalParams(Params):  # type: ignore[misc]
    """Parameters of Estimators and Models; `local_class` is the class of the library that they run."""

    local_class: ClassVar[type[Model]]

    def __init__(self) -> None:
        super().__init__()
        shared = {name: default for name, (default, _) in SHARED.items()}
        self._setDefault(**local_defaults(self.local_class), **shared)

    def setParams(self, **values: Any) -> Self:  # noqa: N802 (Spark's name)
        """Sets parameters by name."""
        return self.set_checked(values)

    def set_checked(self, values: dict[str, Any]) -> Self:
        """Sets parameters, once all of them keep their rules."""
        known = [param.name for param in self.params]
        for name in values:
            if name not in known:
                raise ParameterError(
                    f"{type(self).__name__} has no parameter {name!r}; its parameters: {', '.join(known)}"
                )
        self.local_class(**{**self.local_values(), **{k: v for k, v in values.items() if k in self.local_names()}})
        one_of("coldStartStrategy", values.get("coldStartStrategy", "nan"), COLD_START)
        self._set(**values)
        return self

    def local_names(self) -> tuple[str, ...]:
        """Names of the hyper-parameters."""
        return tuple(local_defaults(self.local_class))

    def local_values(self) -> dict[str, Any]:
        """Hyper-parameters by name."""
        return {name: self.getOrDefault(name) for name in self.local_names()}

    def local_model(self) -> Model:
        """The model of the library with these hyper-parameters, not fitted."""
        return self.local_class(**self.local_values())

    def columns(self, present: list[str]) -> Columns:
        """The columns to use of a DataFrame."""
        named = {role: self.getOrDefault(name) for role, name in _ROLES.items()}
        other = named["type"] is not None or named["weight"] is not None
        if not self.isSet("ratingCol") and (other or named["rating"] not in present):
            named["rating"] = None
        return Columns(**named)


_ROLES = {
    "user": "userCol",
    "item": "itemCol",
    "rating": "ratingCol",
    "type": "eventCol",
    "weight": "weightCol",
    "timestamp": "timestampCol",
}


def accessors(names: list[str]) -> dict[str, Any]:
    """setUserCol, getUserCol, ...: what users of Spark's own classes look for."""
    found: dict[str, Any] = {}
    for name in names:
        title = name[0].upper() + name[1:]

        def setter(self: LocalParams, value: Any, name: str = name) -> LocalParams:
            return self.set_checked({name: value})

        def getter(self: LocalParams, name: str = name) -> Any:
            return self.getOrDefault(name)

        setter.__doc__, getter.__doc__ = f"Sets `{name}`.", f"The value of `{name}`."
        found |= {f"set{title}": setter, f"get{title}": getter}
    return found
