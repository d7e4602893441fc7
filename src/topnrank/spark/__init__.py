"""topnrank on Apache Spark: DataFrames in, Estimators and Models of `pyspark.ml`, everything computed in the cluster.

    from topnrank.spark import TopNRank, get_session

    ratings = get_session().read.parquet("hdfs:///ratings")
    model = TopNRank(factors=20, userCol="userId", itemCol="movieId").fit(ratings)
    model.recommendForAllUsers(10).write.parquet("hdfs:///lists")

Each name is imported when first used; all but `get_session` need pyspark: pip install 'topnrank[spark]'.
"""

import importlib
from typing import Any

_HOMES = {
    "topnrank.spark.data.interactions": ("SparkInteractions", "UserBlock"),
    "topnrank.spark.ml.evaluator": ("RankingEvaluator",),
    "topnrank.spark.session.session": ("get_session",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def _home(name: str) -> str | None:
    """The module of a public name; Estimators have the names of the local classes, Models "Model" after them."""
    if name in _HOME:
        return _HOME[name]
    from topnrank.models.registry import SPARK_MODELS

    local = {kind.__name__ for kind in SPARK_MODELS.values()}
    if name in local:
        return "topnrank.spark.ml.estimators"
    return "topnrank.spark.ml.models" if name.removesuffix("Model") in local and name not in local else None


def __getattr__(name: str) -> Any:
    if name.startswith("_") or (home := _home(name)) is None:
        raise AttributeError(f"module 'topnrank.spark' has no attribute {name!r}")
    if home != "topnrank.spark.session.session":
        from topnrank.spark.session.session import require_pyspark

        require_pyspark()
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    from topnrank.models.registry import SPARK_MODELS

    local = [kind.__name__ for kind in SPARK_MODELS.values()]
    return sorted([*_HOME, *local, *(f"{name}Model" for name in local)])
