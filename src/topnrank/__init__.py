"""topnrank: list-wise top-N recommendation.

    import topnrank as tnr

    data = tnr.read("ratings.csv")
    train, test = tnr.split_per_user(data, test=0.5, seed=0)
    model = tnr.TopNRank().fit(train)
    print(tnr.evaluate(model, test))
    print(model.recommend(["u1"], n=10).to_pandas())

The names below are the public ones; each is imported when first used, so that `import topnrank` is quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "topnrank.experiments.tuning.event_weights": ("learn_event_weights",),
    "topnrank.experiments.tuning.tune": ("tune",),
    "topnrank.experiments.compare": ("Comparison", "Competitor", "ImplicitModel", "LightFMModel", "compare"),
    "topnrank.data": (
        "Centered",
        "ConversionRate",
        "EventWeights",
        "Grades",
        "Interactions",
        "ItemCount",
        "Recency",
        "Relevance",
        "Threshold",
        "Unary",
        "WeightColumn",
        "demo_data",
        "demo_titles",
        "load_dataset",
        "load_titles",
        "read",
        "synthetic",
    ),
    "topnrank.errors": (
        "DataError",
        "DivergenceError",
        "InputError",
        "ModelFileError",
        "NotFittedError",
        "OutputError",
        "ParameterError",
        "StorageError",
        "TopNRankError",
        "UnknownIdError",
    ),
    "topnrank.evaluation": ("Evaluation", "evaluate", "split_last", "split_per_user", "split_time"),
    "topnrank.models": (
        "BPR",
        "EASE",
        "MFADG",
        "MODELS",
        "TFMAP",
        "WARP",
        "BiasedMF",
        "CLiMF",
        "GaussianRank",
        "ItemMean",
        "ListPMF",
        "ListRank",
        "Model",
        "NeighborRidge",
        "Popularity",
        "Random",
        "TopNRank",
        "XCLiMF",
        "load",
    ),
    "topnrank.losses": ("Laplace", "Ramp", "ReLU", "Sigmoid"),
    "topnrank.training": ("SGD", "AdaGrad"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # spelled out, because type checkers do not read a computed one
    "BPR",
    "EASE",
    "MFADG",
    "MODELS",
    "SGD",
    "TFMAP",
    "WARP",
    "AdaGrad",
    "BiasedMF",
    "CLiMF",
    "Centered",
    "Comparison",
    "Competitor",
    "ConversionRate",
    "DataError",
    "DivergenceError",
    "Evaluation",
    "EventWeights",
    "GaussianRank",
    "Grades",
    "ImplicitModel",
    "InputError",
    "Interactions",
    "ItemCount",
    "ItemMean",
    "Laplace",
    "LightFMModel",
    "ListPMF",
    "ListRank",
    "Model",
    "ModelFileError",
    "NeighborRidge",
    "NotFittedError",
    "OutputError",
    "ParameterError",
    "StorageError",
    "Popularity",
    "Ramp",
    "Random",
    "ReLU",
    "Recency",
    "Relevance",
    "Sigmoid",
    "Threshold",
    "TopNRank",
    "TopNRankError",
    "Unary",
    "UnknownIdError",
    "WeightColumn",
    "XCLiMF",
    "__version__",
    "compare",
    "demo_data",
    "demo_titles",
    "evaluate",
    "learn_event_weights",
    "load",
    "load_dataset",
    "load_titles",
    "read",
    "split_last",
    "split_per_user",
    "split_time",
    "synthetic",
    "tune",
]

if TYPE_CHECKING:
    from topnrank.data import (
        Centered,
        ConversionRate,
        EventWeights,
        Grades,
        Interactions,
        ItemCount,
        Recency,
        Relevance,
        Threshold,
        Unary,
        WeightColumn,
        demo_data,
        demo_titles,
        load_dataset,
        load_titles,
        read,
        synthetic,
    )
    from topnrank.errors import (
        DataError,
        DivergenceError,
        InputError,
        ModelFileError,
        NotFittedError,
        OutputError,
        ParameterError,
        StorageError,
        TopNRankError,
        UnknownIdError,
    )
    from topnrank.evaluation import Evaluation, evaluate, split_last, split_per_user, split_time
    from topnrank.experiments.compare.competitors import Competitor, ImplicitModel, LightFMModel
    from topnrank.experiments.compare.result import Comparison
    from topnrank.experiments.compare.run import compare
    from topnrank.experiments.tuning.event_weights import learn_event_weights
    from topnrank.experiments.tuning.tune import tune
    from topnrank.losses.steps import Laplace, Ramp, ReLU, Sigmoid
    from topnrank.models.base import Model
    from topnrank.models.controls import BiasedMF, ItemMean, Popularity, Random
    from topnrank.models.linear.ease import EASE
    from topnrank.models.linear.neighbor_ridge import NeighborRidge
    from topnrank.models.listwise import MFADG, TFMAP, CLiMF, GaussianRank, ListPMF, ListRank, XCLiMF
    from topnrank.models.pairwise import BPR, WARP
    from topnrank.models.persistence import load
    from topnrank.models.registry import MODELS
    from topnrank.models.topnrank.model import TopNRank
    from topnrank.training import SGD, AdaGrad


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'topnrank' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
