"""Splits that the caller of `compare` brings along: parts made elsewhere, or a function of the data."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from topnrank.data.interactions import Interactions, as_interactions
from topnrank.errors import DataError, ParameterError
from topnrank.evaluation.metrics import OWN, Metric
from topnrank.evaluation.splits import Split


def varies(split: Any) -> bool:
    """Whether each repeat has a split of its own."""
    return takes_seed(split) if callable(split) else len(split) > 1


def given_splits(splits: Any) -> tuple[Split, ...]:
    """Pairs (train, test) of Interactions or frames, checked."""
    pairs = list(splits) if isinstance(splits, tuple | list) else []
    if not pairs or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise ParameterError("splits must be a list of pairs (train, test)")
    made = [(as_interactions(train, "splits: train"), as_interactions(test, "splits: test")) for train, test in pairs]
    for train, test in made:
        if not (train.users.index(test.users.ids) >= 0).any():
            raise DataError(
                f"no user of the test rows is among the training rows, whose users are such as {train.users.ids.item(0)!r}; "
                "give parts with the same ids"
            )
    return tuple(made)


def all_rows(splits: Sequence[Split]) -> Interactions:
    """The rows of the first split, and the users of all of them."""
    tables = [part.to_arrow() for part in splits[0]]
    shared = [name for name in tables[0].column_names if all(name in table.column_names for table in tables)]
    users = pa.concat_arrays([pa.array(part.users.ids) for split in splits for part in split])
    rows = pa.concat_tables([table.select(shared) for table in tables])
    whole = Interactions.from_frame(rows, duplicates="last")
    missing = users.filter(pa.array(whole.users.index(users.to_numpy(zero_copy_only=False)) < 0))
    return whole.with_users(missing.unique().to_numpy(zero_copy_only=False)) if len(missing) else whole


def split_by(function: Callable[..., Any], data: Interactions, seed: int) -> Split:
    """What a function of the data makes of it: with the keyword `seed` where it takes one."""
    made = function(data, seed=seed) if takes_seed(function) else function(data)
    if not (isinstance(made, tuple | list) and len(made) == 2 and all(isinstance(part, Interactions) for part in made)):
        raise ParameterError("split: the function must return (train, test), two Interactions such as data.take(rows)")
    train, test = made
    return train, test


def takes_seed(function: Callable[..., Any]) -> bool:
    """Whether a function has the parameter `seed`."""
    return "seed" in inspect.signature(function).parameters


def name_of_split(split: Any) -> str:
    """A split of the caller in words, with a digest, so that another one is told from it."""
    if not callable(split):
        return "given: " + ", ".join(f"{train.fingerprint()[:8]}/{test.fingerprint()[:8]}" for train, test in split)
    inner = getattr(split, "func", split)  # of functools.partial
    name = str(getattr(inner, "__name__", type(split).__name__))
    settings = ", ".join(f"{key}={value!r}" for key, value in getattr(split, "keywords", {}).items())
    return Metric(f"{name}({settings})", OWN, 0, inner).identity()
