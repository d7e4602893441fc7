"""The methods of the catalog study: for each a search space, and how settings become a model.

To add one: a `Method` in the table of its kind of data. `make(settings, seed)` returns an object with `fit(train)` that
returns what `topnrank.evaluate` takes; all rows of `train` count as seen, whichever of them the model learns from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import topnrank as tnr
from catalog_peers import LikesAndDislikes, Peer, Restricted
from topnrank.data.feedback.policies import Feedback
from topnrank.evaluation.labels import Ranker
from topnrank.models.parameters import Choice, Range, Space

Settings = dict[str, Any]


class Search(NamedTuple):
    """What is tried when a method is tuned."""

    space: Space
    """Drawn from at random"""
    start: Settings
    """The first trial: what was known to be good on such data, or the defaults of our own models"""


NO_FROZEN_TERMS = Search({}, {})


class Fitter(Protocol):
    """A model that is not fitted yet."""

    def fit(self, train: tnr.Interactions, /) -> Ranker:
        """Learns from `train`."""


@dataclass(frozen=True)
class Method:
    """One row of the tables."""

    label: str
    make: Callable[[Settings, int], Fitter]
    search: Search
    """A method without a space is not tuned"""
    random: bool = True
    """Whether the seed changes the model"""


BOUGHT = tnr.EventWeights({"view": 0.0, "cart": 0.0, "buy": 1.0})
WEIGHTED = tnr.ConversionRate("buy")
"""The weights of events in every weighted model, ours and the peers': the share of pairs of a type that were bought, too."""
EVENT_WEIGHTS: Mapping[str, tuple[str, Feedback]] = {
    "": ("events weighted", WEIGHTED),
    "-buys": ("purchases only", BOUGHT),
    "-equal": ("all events equal", tnr.Unary()),
}


def methods(name: str, kind: str) -> dict[str, Method]:
    """All methods for a data set, by the name they have on the command line."""
    table, ours = controls(kind), OWN_SEARCHES[name]
    if kind == "events":
        return table | event_methods(SEARCHES[name], ours)
    table |= {
        "als": als("implicit ALS", SEARCHES[name]["als"]),
        "bpr": bpr("implicit BPR", SEARCHES[name]["bpr"]),
        "warp": warp("LightFM WARP", SEARCHES[name]["warp"]),
        "ease": ease("EASE", SEARCHES[name]["ease"]),
    }
    if kind == "ratings":
        searches = SEARCHES[name]
        table["als+dislikes"] = als("implicit ALS, dislikes as weak likes", searches["als+dislikes"])
        table["ease+dislikes"] = ease("EASE with dislikes as inputs", searches["ease+dislikes"])
        table["topnrank-paper"] = untuned("Top-N-Rank.ReLU as published", tnr.TopNRank.paper)
        table["topnrank-rated"] = untuned("TopNRank for rated items", tnr.TopNRank)
        table["topnrank-likes"] = own("TopNRank, likes only", ours["TopNRank"], "TopNRank", rows=LIKES)
    table["neighbor-ridge"] = own("NeighborRidge", ours["NeighborRidge"], "NeighborRidge")
    if kind == "unary":
        plain = without("recency", ours["NeighborRidge"])
        table["neighbor-ridge-plain"] = own("NeighborRidge without recency", plain, "NeighborRidge")
    table["topnrank-no-neighbors"] = own("TopNRank without neighbors", ours["TopNRank"], "TopNRank", neighbors=0)
    return table | {"topnrank": own("TopNRank", ours["TopNRank"], "TopNRank")}


def without(setting: str, search: Search) -> Search:
    """A search that leaves a setting as it comes."""
    return Search(*({name: part[name] for name in part if name != setting} for part in search))


def event_methods(searches: dict[str, Search], ours: dict[str, Search]) -> dict[str, Method]:
    """ALS, EASE and ours with each way to weigh events; BPR takes no weights, so that two of the three are one."""
    table = {
        "bpr": bpr("implicit BPR, all events equal", searches["bpr"], tnr.Unary()),
        "bpr-buys": bpr("implicit BPR, purchases only", searches["bpr"], BOUGHT),
        "warp": warp("LightFM WARP, events weighted", searches["warp"], WEIGHTED),
        "neighbor-ridge": own("NeighborRidge", ours["NeighborRidge"], "NeighborRidge", feedback=WEIGHTED),
    }
    for suffix, (words, feedback) in EVENT_WEIGHTS.items():
        table[f"als{suffix}"] = als(f"implicit ALS, {words}", searches["als"], feedback)
        table[f"ease{suffix}"] = ease(f"EASE, {words}", searches["ease"], feedback)
    for name, kind in (("neighbor-ridge-plain", "NeighborRidge"), ("topnrank-plain", "TopNRank")):
        table[name] = own(f"{kind} without sessions", without("sessions", ours[kind]), kind, feedback=WEIGHTED)
    table["topnrank-buys"] = own("TopNRank, purchases only", ours["TopNRank"], "TopNRank", rows=BOUGHT)
    table["topnrank-equal"] = own("TopNRank, all events equal", ours["TopNRank"], "TopNRank", feedback=tnr.Unary())
    return table | {"topnrank": own("TopNRank", ours["TopNRank"], "TopNRank", feedback=WEIGHTED)}


LIKES = LikesAndDislikes(dislike=0.0)

# -- search spaces -------------------------------------------------------------------------------------------------------

_DENSE: dict[str, Space] = {
    "als": {"alpha": Range(3, 15, log=True), "regularization": Range(30, 150, log=True)},
    "bpr": {
        "learning_rate": Range(0.001, 0.02, log=True),
        "regularization": Range(0.001, 0.03, log=True),
        "iterations": Choice((50, 100, 150)),
    },
    "warp": {
        "learning_rate": Range(0.015, 0.06, log=True),
        "alpha": Range(1e-6, 1e-4, log=True),
        "epochs": Choice((20, 30, 40)),
        "max_sampled": Choice((10, 30)),
    },
    "ease": {"regularization": Range(100, 1500, log=True)},
}
_DENSE["als+dislikes"] = {**_DENSE["als"], "dislike_weight": Range(0.05, 0.3)}
_DENSE["ease+dislikes"] = {**_DENSE["ease"], "dislikes": Range(300, 4000, log=True)}
_SPARSE: dict[str, Space] = {
    "als": {
        "factors": Choice((64, 128, 256)),
        "alpha": Range(5, 80, log=True),
        "regularization": Range(10, 200, log=True),
    },
    "bpr": {
        "factors": Choice((63, 127, 255)),
        "learning_rate": Range(0.01, 0.1, log=True),
        "regularization": Range(0.001, 0.05, log=True),
        "iterations": Choice((50, 100, 200)),
    },
    "warp": {
        "factors": Choice((64, 128)),
        "learning_rate": Range(0.015, 0.06, log=True),
        "alpha": Range(1e-6, 1e-4, log=True),
        "epochs": Choice((20, 30, 40)),
        "max_sampled": Choice((10, 30, 100)),
    },
    "ease": {"regularization": Range(20, 500, log=True)},
}
_BPR = {"learning_rate": 0.003, "regularization": 0.003, "iterations": 100}
_WARP = {"learning_rate": 0.02, "alpha": 1e-5, "epochs": 40, "max_sampled": 30}


def _dense_starts(*, als: float, als_dislikes: float, ease: float, dislikes: float) -> dict[str, Settings]:
    """For ratings, by the regularization of each method, and of EASE's dislikes."""
    return {
        "als": {"alpha": 7.0, "regularization": als},
        "als+dislikes": {"alpha": 7.0, "regularization": als_dislikes, "dislike_weight": 0.15},
        "bpr": _BPR,
        "warp": _WARP,
        "ease": {"regularization": ease},
        "ease+dislikes": {"regularization": ease, "dislikes": dislikes},
    }


_SPARSE_PAIRS = {
    "bpr": {"factors": 127, "learning_rate": 0.05, "regularization": 0.01, "iterations": 100},
    "warp": {"factors": 128, **_WARP, "learning_rate": 0.05},
}
_STARTS: dict[str, dict[str, Settings]] = {
    "ml-1m": _dense_starts(als=80.0, als_dislikes=70.0, ease=700.0, dislikes=1500.0),
    "ml-100k": _dense_starts(als=40.0, als_dislikes=40.0, ease=300.0, dislikes=700.0),
    "amazon-video-games": {
        "als": {"factors": 128, "alpha": 40.0, "regularization": 100.0},
        **_SPARSE_PAIRS,
        "ease": {"regularization": 100.0},
    },
    "retail-rocket": {
        "als": {"factors": 128, "alpha": 40.0, "regularization": 30.0},
        **_SPARSE_PAIRS,
        "ease": {"regularization": 50.0},
    },
}
_EVENTS = _SPARSE | {
    "als": {**_SPARSE["als"], "regularization": Range(1, 200, log=True)},
    "ease": {"regularization": Range(1, 500, log=True)},
}
_SPACES = {"ml-1m": _DENSE, "ml-100k": _DENSE, "amazon-video-games": _SPARSE, "retail-rocket": _EVENTS}
SEARCHES = {
    name: {method: Search(_SPACES[name][method], start) for method, start in starts.items()}
    for name, starts in _STARTS.items()
}
"""By data set and method. Where a space does not name them: 64 factors (with the bias for BPR), 15 iterations of ALS."""
_OWN_DENSE: dict[str, Search] = {
    "TopNRank": Search(
        {
            "learning_rate": Range(0.07, 0.16, log=True),
            "regularization": Range(0.006, 0.06, log=True),
            "neighbor_penalty": Range(100, 500, log=True),
            "epochs": Choice((15, 20, 25)),
        },
        {"learning_rate": 0.1, "regularization": 0.02, "neighbor_penalty": 200.0, "epochs": 20},
    ),
    "NeighborRidge": Search(
        {"neighbors": Choice((50, 100, 200)), "regularization": Range(50, 600, log=True)},
        {"neighbors": 100, "regularization": 200.0},
    ),
}
_OWN_SPARSE: dict[str, Search] = {
    "TopNRank": Search(
        {
            "recency": Choice((1.5, 2.0, 3.0, 4.0)),
            "learning_rate": Range(0.03, 0.1, log=True),
            "regularization": Range(0.2, 2.0, log=True),
            "neighbor_penalty": Range(40, 200, log=True),
            "epochs": Choice((3, 4, 6)),
        },
        {"recency": 2.0, "learning_rate": 0.1, "regularization": 1.0, "neighbor_penalty": 100.0, "epochs": 4},
    ),
    "NeighborRidge": Search(
        {"recency": Choice((1.5, 2.0, 3.0, 4.0)), "regularization": Range(20, 300, log=True)},
        {"recency": 2.0, "regularization": 100.0},
    ),
}
_OWN_EVENTS: dict[str, Search] = {
    "TopNRank": Search(
        {
            "sessions": Choice((30.0, 60.0, 300.0, 1800.0)),
            "recency": Choice((None, 32.0, 128.0)),
            "learning_rate": Range(0.01, 0.1, log=True),
            "regularization": Range(0.3, 3.0, log=True),
            "neighbor_penalty": Range(10, 100, log=True),
            "epochs": Choice((3, 4, 6)),
        },
        {
            "sessions": 60.0,
            "recency": None,
            "learning_rate": 0.02,
            "regularization": 1.0,
            "neighbor_penalty": 30.0,
            "epochs": 4,
        },
    ),
    "NeighborRidge": Search(
        {
            "sessions": Choice((30.0, 60.0, 300.0, 1800.0)),
            "recency": Choice((None, 32.0, 128.0)),
            "regularization": Range(10, 100, log=True),
        },
        {"sessions": 60.0, "recency": None, "regularization": 30.0},
    ),
}
"""Earlier searches, without sessions and on other validation data, were tested (NDCG@10 .075) before these were drawn."""
OWN_SEARCHES = {
    "ml-1m": _OWN_DENSE,
    "ml-100k": _OWN_DENSE,
    "amazon-video-games": _OWN_SPARSE,
    "retail-rocket": _OWN_EVENTS,
}
"""Of this library's models, by data set. Recency, the order of a user's events, is used where the last one is held out."""
OWN_SETTINGS: dict[str, Settings] = {"TopNRank": {"protocol": "catalog", "factors": 64}, "NeighborRidge": {}}

# -- how settings become models ------------------------------------------------------------------------------------------


def controls(kind: str) -> dict[str, Method]:
    """Methods without settings; means of ratings where there are ratings."""
    table = {
        "random": Method("random order", lambda _, seed: tnr.Random(seed=seed), NO_FROZEN_TERMS),
        "popularity": Method("popularity", lambda *_: tnr.Popularity(), NO_FROZEN_TERMS, random=False),
        "recent-popularity": Method(
            "recent popularity", lambda *_: tnr.RecentPopularity(), NO_FROZEN_TERMS, random=False
        ),
    }
    if kind == "ratings":
        liked = lambda *_: Restricted(tnr.Popularity(), LIKES)  # noqa: E731
        table["popularity-likes"] = Method("popularity, likes only", liked, NO_FROZEN_TERMS, random=False)
        table["item-mean"] = Method("item mean", lambda *_: tnr.ItemMean(), NO_FROZEN_TERMS, random=False)
    if kind == "events":
        bought = lambda *_: Restricted(tnr.Popularity(), BOUGHT)  # noqa: E731
        table["popularity-buys"] = Method("popularity, purchases only", bought, NO_FROZEN_TERMS, random=False)
    return table


def untuned(label: str, kind: Callable[..., tnr.Model]) -> Method:
    """A model of this library with its own settings."""
    return Method(label, lambda _, seed: kind(seed=seed), NO_FROZEN_TERMS)


def als(label: str, search: Search, feedback: Feedback | None = None) -> Method:
    """Alternating least squares of implicit; alpha times the weight is the confidence of a row."""

    def make(settings: Settings, seed: int) -> Fitter:
        from implicit.als import AlternatingLeastSquares

        settings = {"factors": 64, "iterations": 15} | settings
        dislike = settings.pop("dislike_weight", None)
        policy = feedback if dislike is None else LikesAndDislikes(dislike)
        model = AlternatingLeastSquares(**settings, random_state=seed, num_threads=1)
        return Peer(tnr.ImplicitModel(model, feedback=policy))

    return Method(label, make, search)


def bpr(label: str, search: Search, feedback: Feedback | None = None) -> Method:
    """BPR of implicit, which adds a factor for the bias and takes rows as they are, without weights."""

    def make(settings: Settings, seed: int) -> Fitter:
        from implicit.bpr import BayesianPersonalizedRanking

        model = BayesianPersonalizedRanking(**({"factors": 63} | settings), random_state=seed, num_threads=1)
        return Peer(tnr.ImplicitModel(model, feedback=feedback))

    return Method(label, make, search)


def warp(label: str, search: Search, feedback: Feedback | None = None) -> Method:
    """WARP of LightFM."""

    def make(settings: Settings, seed: int) -> Fitter:
        from lightfm import LightFM

        settings = {"factors": 64} | settings
        model = LightFM(
            no_components=settings["factors"],
            loss="warp",
            learning_rate=settings["learning_rate"],
            item_alpha=settings["alpha"],
            user_alpha=settings["alpha"],
            max_sampled=settings["max_sampled"],
            random_state=seed,
        )
        return Peer(tnr.LightFMModel(model, epochs=settings["epochs"], feedback=feedback))

    return Method(label, make, search)


def ease(label: str, search: Search, feedback: Feedback | None = None) -> Method:
    """EASE; `dislikes` is the penalty of the dislikes' columns."""

    def make(settings: Settings, seed: int) -> Fitter:
        chosen = dict(settings)
        if (penalty := chosen.pop("dislikes", None)) is not None:
            chosen |= {"dislikes": True, "dislike_regularization": penalty}
        return tnr.EASE(**chosen, feedback=feedback)

    return Method(label, make, search, random=False)


def own(label: str, search: Search, kind: str, rows: Feedback | None = None, **fixed: Any) -> Method:
    """A model of this library, fitted on all rows or on those to which `rows` gives a weight above 0."""

    def make(settings: Settings, seed: int) -> Fitter:
        model: tnr.Model = getattr(tnr, kind)(**(OWN_SETTINGS[kind] | settings | fixed))
        given = {"seed": seed, "num_threads": 1}
        model.set_params(**{key: value for key, value in given.items() if key in model.get_params()})
        return model if rows is None else Restricted(model, rows)

    return Method(label, make, search, random=kind != "NeighborRidge")
