"""The models whose files the campaigns damage and serve; made once in each process."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


@cache
def data() -> Any:
    """Training rows that the models share: integer ids, ratings, times."""
    import topnrank as tnr

    made = tnr.synthetic(30, 20, 250, seed=3)
    times = np.random.default_rng(3).permutation(len(made)) * 3600
    users, items = made.users.ids[made.user_index], made.items.ids[made.indices]
    return tnr.Interactions.from_arrays(users, items, ratings=made.ratings, timestamps=times)


@cache
def models() -> dict[str, Any]:
    """Fitted models of every form of file."""
    import topnrank as tnr

    kinds, named = tnr.MODELS, _with_names()
    quick = {"factors": 3, "epochs": 1}
    rows = {
        "popularity": (tnr.Popularity(), named),
        "recent": (kinds["recent-popularity"](), data()),
        "random": (kinds["random"](), data()),
        "item ids": (kinds["item-id-order"](), data()),
        "history": (tnr.TopNRank(task="rated", **quick), data()),
        "factors": (tnr.BiasedMF(**quick), named),
        "catalog": (tnr.TopNRank(**quick, task="catalog", neighbors=4, recency=5.0), data()),
        "chosen": (tnr.TopNRank(**quick, task="catalog"), data()),
        "ordered": (tnr.TopNRank(**quick, task="catalog", order="counts"), data()),
        "ridge": (tnr.NeighborRidge(neighbors=4, recency=3.0), data()),
        "ease": (tnr.EASE(dislikes=True), data()),
        "ease of users": (tnr.EASE(), data().filter(min_user_items=9)),
        "transitions": (kinds["transitions"](), data()),
        "next item": (kinds["next-item-ridge"](neighbors=5), data()),
        "next item alone": (kinds["next-item-ridge"](neighbors=5, transitions=0, decays=[0, 0.5]), data()),
    }
    return {name: model.fit(its) for name, (model, its) in rows.items()}


@cache
def _with_names() -> Any:
    """The same rows with ids that are text."""
    import topnrank as tnr

    users, items = (np.array([f"{what}{number}" for number in range(40)], object) for what in ("ü", "i"))
    return tnr.Interactions.from_arrays(users[data().user_index], items[data().indices], ratings=data().ratings)


@cache
def model_files() -> dict[str, bytes]:
    """The models' files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models().items():
            model.save(Path(folder, name))
        return {name: Path(folder, name).read_bytes() for name in models()}


@cache
def answers(name: str) -> Any:
    """The lists of all users."""
    return models()[name].recommend(n=5)
