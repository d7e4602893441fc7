"""Evaluation as Spark jobs: test rows are brought to the blocks of their users, and each task measures its users' lists.

The lists are ranked and measured by the code of one machine. Numbers of all test data (the highest grade, the training users
of an item) are computed first; numbers of all users are added up at the end, in the order of the users.
"""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
from pyspark import RDD, StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from topnrank._checks import one_of
from topnrank._typing import BoolArray, Float64Array, Int64Array, IntArray
from topnrank.data.duplicates import DUPLICATE_RULES
from topnrank.data.feedback.liked import LikedRule, Relevant, rule_for, rule_of
from topnrank.data.frames import Columns
from topnrank.data.interactions import Interactions
from topnrank.data.scale import RatingCounts
from topnrank.errors import DataError, TopNRankError
from topnrank.evaluation.beyond_accuracy import ItemCounts, needs_item_counts, training_users
from topnrank.evaluation.evaluate import check_rows_left, user_values
from topnrank.evaluation.labels import match, nothing_relevant, relevant_rows
from topnrank.evaluation.metrics import DEFAULT_METRICS, GRADED, Metric, parse_metrics
from topnrank.evaluation.protocols import PROTOCOLS, rank_catalog, rank_rated
from topnrank.evaluation.result import Evaluation
from topnrank.models.factor.run import rows_digest
from topnrank.spark.data.columns import SOURCE, CheckedRows, checked_rows, id_column
from topnrank.spark.data.interactions import (
    Layout,
    SparkInteractions,
    collect_ids,
    merge_rows,
    partition_coded_rows,
    type_names,
    with_type_codes,
)
from topnrank.spark.data.partition import Arrays, number_ids
from topnrank.spark.jobs.distributed_model import DistributedModel, ItemParameters, ModelBlock, block_model
from topnrank.spark.jobs.tables import is_integer, known_numbers, task_threads
from topnrank.spark.session.session import described


class EvaluationKeywords(TypedDict, total=False):
    """The fields of `EvaluationOptions`, for signatures."""

    protocol: Literal["auto", "rated", "catalog"]
    metrics: str | Sequence[str]
    relevant: Relevant
    exclude_seen: bool
    duplicates: str
    per_user: bool


@dataclass(frozen=True)
class EvaluationOptions:
    """The arguments of `topnrank.evaluate`."""

    protocol: Literal["auto", "rated", "catalog"] = "auto"
    metrics: str | Sequence[str] = DEFAULT_METRICS
    relevant: Relevant = "auto"
    exclude_seen: bool = True
    duplicates: str = "error"
    per_user: bool = False
    """Whether the result has the values of each user; they are then collected, with the users' ids."""

    def __post_init__(self) -> None:
        one_of("protocol", self.protocol, ("auto", *PROTOCOLS))
        one_of("duplicates", self.duplicates, DUPLICATE_RULES)
        parse_metrics(self.metrics)
        if not isinstance(self.relevant, str):
            rule_for(self.relevant, None, None)
        else:
            one_of("relevant", self.relevant, ("auto",))

    @property
    def wanted(self) -> tuple[Metric, ...]:
        """The metrics."""
        return parse_metrics(self.metrics)


@dataclass(frozen=True)
class HeldOutRows:
    """Test rows in the cluster, by the blocks of a model's or of training users; persisted until `unpersist`."""

    blocks: RDD[Any]
    """Arrays user_codes, item_codes, ratings, ..., one element in each partition; of known users only"""
    options: EvaluationOptions
    layout: Layout
    highest: float
    """The highest grade of all test rows"""
    n_unknown_users: int
    n_unknown_items: int
    """Items after those of the catalog"""
    n_rows: int
    """All test rows"""
    rule: str
    """Which rows are relevant, in words"""
    liked: LikedRule | None
    """The rule for ratings"""
    all_relevant: bool
    """Whether all are, as far as it is known before rows with feedback types have weights"""
    digest: str

    @classmethod
    def of(
        cls,
        known: DistributedModel | SparkInteractions,
        test: DataFrame,
        columns: Columns,
        options: EvaluationOptions,
    ) -> "HeldOutRows":
        """The rows of a DataFrame for the users and items of `known`; a DataError where none of them is."""
        with ExitStack() as persisted:
            rows = checked_rows(test, columns, ordered=options.duplicates != "error")
            persisted.callback(rows.unpersist)
            liked = _liked_rule(rows, options, known)
            grades, names = _grades(rows, options, liked), type_names(rows)
            kinds = (("user", known.users), ("item", known.items))
            ids = {name: id_column(rows.frame, name, integer=is_integer(frame)) for name, frame in kinds}
            numbered = known_numbers(rows.frame.withColumns(ids), "user", known.users, "user_number").persist()
            persisted.callback(numbered.unpersist)
            n_unknown_users = _count_unknown_users(numbered, known.users)
            # items that are not known are numbered after the catalog
            rows_of_users = numbered.where(sf.col("user_number").isNotNull())
            of_users = known_numbers(rows_of_users, "item", known.items, "known_number")
            unknown = of_users.where(sf.col("known_number").isNull()).select(sf.col("item").alias("id")).distinct()
            others = number_ids(unknown, "item", start=known.n_items)
            persisted.callback(others.cached.unpersist)
            other_numbers = others.frame.select(sf.col("id").alias("item"), sf.col("number").alias("other_number"))
            number = sf.coalesce("known_number", "other_number").alias("item_number")
            kept = [sf.col(name) for name in numbered.columns if name not in ("user", "item")]
            complete = of_users.join(other_numbers, "item", "left").select(*kept, number)
            coded = partition_coded_rows(with_type_codes(complete, names), known.n_blocks)
            blocks = coded.persist(StorageLevel.MEMORY_AND_DISK)
            n_items = known.n_items

            def known_rows(part: Arrays) -> tuple[int, int]:
                users, items = part["user_codes"], part["item_codes"]
                columns = (part.get(name) for name in ("ratings", "types", "weights", "timestamps"))
                return int((items < n_items).sum()), rows_digest(users, items, *columns)

            counts, digests = zip(*blocks.map(known_rows).collect(), strict=True)
            if not sum(counts):
                blocks.unpersist()
                raise _no_overlap("item", others.frame.agg(sf.min("id")).first()[0], known.items)
            layout = Layout(tuple(known.firsts.tolist()), n_items + others.count, names, options.duplicates)
            return cls(
                blocks,
                options,
                layout,
                grades.highest,
                n_unknown_users,
                others.count,
                rows.n_rows,
                grades.rule,
                liked,
                grades.all_relevant,
                f"{sum(digests) % 2**64:016x}",
            )

    def unpersist(self) -> None:
        """Frees memory and disk in the cluster."""
        self.blocks.unpersist()


@dataclass(frozen=True)
class _Measuring:
    """What every task needs to measure its block."""

    options: EvaluationOptions
    protocol: str
    liked: LikedRule | None
    layout: Layout
    highest: float
    counts: ItemCounts | None


class _BlockValues(NamedTuple):
    """Of the users of one block."""

    number: int
    """Index of the block"""
    totals: dict[str, tuple[float, int]]
    """Of each metric the sum over users, and over how many"""
    known: dict[str, tuple[float, int]]
    """`totals` of the users with training rows alone"""
    n_users: int
    n_without_rows: int
    """Users in the means without a training row"""
    n_excluded: int
    n_rows: int
    n_seen: int
    all_relevant: bool
    rule: str
    values: dict[str, Float64Array]
    """Of each user, where they are asked for"""
    users: Int64Array
    """Indices of these users"""


class _Measured(NamedTuple):
    """Result of some tasks."""

    parts: tuple[_BlockValues, ...]
    recommended: dict[int, BoolArray]
    """Items in somebody's top k, by k"""
    items: dict[str, BoolArray]
    """"tested" and "trained": (n_items,) whether an item is in some test row, and in some training row"""
    error: TopNRankError | None = None
    """Raised on the driver: from inside a task Spark would wrap it"""

    def merge(self, other: "_Measured") -> "_Measured":
        """The results of both."""
        mine, theirs = self.recommended, other.recommended
        either = {k: mine[k] | theirs[k] if k in mine else theirs[k] for k in theirs}
        items = {name: self.items[name] | other.items[name] for name in self.items} or other.items
        return _Measured(self.parts + other.parts, mine | either, items, self.error or other.error)


def evaluate_blocks(
    distributed: DistributedModel, test: DataFrame, columns: Columns, options: EvaluationOptions | None = None
) -> Evaluation:
    """How well a model in the cluster ranks the held-out rows of a DataFrame: the numbers of `topnrank.evaluate`.

    Rows with feedback types have the weights of training. Ids and values of single users stay in the cluster, unless they
    are asked for with per_user=True: else `per_user` and `user_ids` of the result are empty.
    """
    rows = HeldOutRows.of(distributed, test, columns, options or EvaluationOptions())
    try:
        return evaluate_rows(distributed, rows)
    finally:
        rows.unpersist()


def evaluate_rows(distributed: DistributedModel, test: HeldOutRows) -> Evaluation:
    """`evaluate_blocks` of rows that are in their blocks already; one job: results are merged on the way to the driver."""
    options, context = test.options, distributed.session.sparkContext
    counts = _item_counts(distributed) if needs_item_counts(options.wanted) else None
    shared = distributed.shared
    own = distributed.item_parameters.info.task or "catalog"
    protocol = own if options.protocol == "auto" else options.protocol
    measuring = context.broadcast(_Measuring(options, protocol, test.liked, test.layout, test.highest, counts))

    def measure(pair: tuple[ModelBlock, Arrays]) -> _Measured:
        with task_threads():
            try:
                return measure_block(shared.value, measuring.value, *pair)
            except TopNRankError as error:
                return _Measured((), {}, {}, error)

    with described(context, "evaluate"):
        found: _Measured = distributed.blocks.zip(test.blocks).map(measure).treeReduce(lambda a, b: a.merge(b))
    measuring.unpersist()
    if found.error is not None:
        raise found.error
    return _evaluation(distributed, test, found, protocol)


class _Grades(NamedTuple):
    """Of all test rows."""

    highest: float
    rule: str
    all_relevant: bool


def _liked_rule(
    rows: CheckedRows, options: EvaluationOptions, known: DistributedModel | SparkInteractions
) -> LikedRule | None:
    """The rule asked for; "auto": of the model, else of the scale of the test ratings."""
    if options.relevant != "auto" or not rows.has("rating"):
        return rule_for(options.relevant, None, None)
    own = known.item_parameters.info.liked if isinstance(known, DistributedModel) else None
    if own is not None:
        return own
    table = rows.frame.groupBy("rating").count().collect()
    counted = sorted((float(row["rating"]), int(row["count"])) for row in table)
    values, counts = zip(*counted, strict=True)
    return rule_of(RatingCounts(np.array(values), np.array(counts, np.int64)))


def _grades(rows: CheckedRows, options: EvaluationOptions, liked: LikedRule | None) -> _Grades:
    """The highest grade, and whether all rows are relevant; an error if none is."""
    by_rating = rows.has("rating") and liked is not None
    value = "rating" if by_rating else "weight" if rows.has("weight") else None
    wanted = [sf.max("rating")] if rows.has("rating") else [sf.lit(1.0)]
    wanted += [sf.min(value), sf.max(value)] if value else []
    found = rows.frame.agg(*wanted).first()
    assert found is not None
    if value is None:
        return _Grades(float(found[0]), "every test row", options.relevant is None or not rows.has("type"))
    least, most = float(found[1]), float(found[2])
    ends = np.array([least, most])
    lowest_is, highest_is = liked.flags(ends) if by_rating and liked is not None else ends > 0
    rule = str(liked) if by_rating else "weight > 0"
    if not highest_is:
        raise nothing_relevant(rule, least, most)
    return _Grades(float(found[0]), rule, bool(lowest_is))


def _count_unknown_users(numbered: DataFrame, known: DataFrame) -> int:
    """How many test users are not known; an error if none is."""
    by_user = numbered.groupBy("user").agg(sf.first("user_number").alias("number"))
    counts = by_user.agg(sf.count(sf.lit(1)), sf.count("number"), sf.min("user")).first()
    assert counts is not None
    if counts[1] == 0:
        raise _no_overlap("user", counts[2], known)
    return int(counts[0] - counts[1])


def _no_overlap(kind: str, example: Any, known: DataFrame) -> DataError:
    first = known.where(sf.col("number") == 0).first()
    return DataError(
        f"no {kind} of the test data is known to the model: the test data have {kind}s such as {example!r}, the model "
        f"{kind}s such as {first['id'] if first else 'none at all'!r}; use data with the ids the model was trained on"
    )


def _item_counts(distributed: DistributedModel) -> ItemCounts:
    """Training users of each item, added up over the blocks."""
    if distributed.item_parameters.whole is not None:
        return training_users(distributed.item_parameters.whole)
    shared = distributed.shared
    counts = distributed.blocks.map(lambda block: training_users(block_model(shared.value, block)))
    total: ItemCounts = counts.treeReduce(lambda a, b: ItemCounts(a.by_item + b.by_item, a.users + b.users))
    return total


def measure_block(
    item_parameters: ItemParameters, measuring: _Measuring, block: ModelBlock, columns: Arrays
) -> _Measured:
    """Inside a task: the values of the users of one block who have test rows."""
    n_items = item_parameters.n_items
    trained = _among(n_items, block.indices)
    if not len(columns["user_codes"]):
        return _Measured((), {}, {"tested": np.zeros(n_items, np.bool_), "trained": trained})
    model, options = block_model(item_parameters, block), measuring.options
    test = model.weigh(_test_interactions(measuring.layout, block, columns))
    if test.types is not None and test.ratings is None and test.weights is None and options.relevant is not None:
        raise DataError(
            f"the test rows have feedback types, for which {type(model).__name__} has no weights; give the evaluation "
            "ratings or weights, or relevant=None if all rows are meant"
        )
    relevant = relevant_rows(test, measuring.liked)
    graded = any(metric.kind in GRADED for metric in options.wanted)
    labels = match(model, test, relevant.flags, graded=graded, highest=measuring.highest).labels
    if measuring.protocol == "rated":
        ranking = rank_rated(model, labels, options.wanted, item_counts=measuring.counts)
    else:
        exclude = options.exclude_seen
        ranking = rank_catalog(model, labels, options.wanted, exclude_seen=exclude, item_counts=measuring.counts)
    counted, values = user_values(ranking, options.wanted)
    defined = {name: column[~np.isnan(column)] for name, column in values.items()}
    users = model.user_map.ids[labels.users]
    has_rows = np.diff(model.seen_indptr)[labels.users] > 0
    of_known = {name: column[has_rows & ~np.isnan(column)] for name, column in values.items()}
    part = _BlockValues(
        block.number,
        {name: (float(column.sum()), len(column)) for name, column in defined.items()},
        {name: (float(column.sum()), len(column)) for name, column in of_known.items()},
        int(counted.sum()),
        int((counted & ~has_rows).sum()),
        int((~counted).sum()),
        len(labels.items),
        ranking.n_seen,
        bool(labels.relevant.all()),
        relevant.rule,
        values if options.per_user else {},
        users if options.per_user else users[:0],
    )
    tested = _among(n_items, labels.items[labels.items >= 0])
    return _Measured((part,), ranking.top.shown, {"tested": tested, "trained": trained})


def _among(n_items: int, items: IntArray) -> BoolArray:
    """(n_items,) which items are among `items`."""
    found = np.zeros(n_items, np.bool_)
    found[items] = True
    return found


def _test_interactions(layout: Layout, block: ModelBlock, columns: Arrays) -> Interactions:
    """The test rows of a block's users, repeated ones merged."""
    rows, merged = merge_rows(columns, block.first, block.first + block.n_users, layout)
    if merged.problem:
        raise DataError(merged.problem)
    if merged.rows and layout.duplicates == "error":
        raise DataError(
            f"{SOURCE}: each test row of a user and an item (and a type) must occur once, but {merged.rows} rows of a block "
            "repeat others; remove the repeats or choose a rule with duplicates='last', 'sum' or 'max'"
        )
    indptr = np.searchsorted(rows.user_codes, np.arange(block.n_users + 1))
    names = ("ratings", "types", "weights", "timestamps")
    values = {name: getattr(rows, name) for name in names}
    return Interactions(rows.users, rows.items, indptr, rows.item_codes, type_names=rows.type_names, **values)


def _evaluation(distributed: DistributedModel, test: HeldOutRows, found: _Measured, protocol: str) -> Evaluation:
    """The results of all blocks, in the order of the users."""
    parts, options = sorted(found.parts, key=lambda part: part.number), test.options
    n_users, n_seen = sum(part.n_users for part in parts), sum(part.n_seen for part in parts)
    check_rows_left(sum(part.n_rows for part in parts), n_seen)
    totals = {name: _mean([part.totals[name] for part in parts]) for name in parts[0].totals}
    known = {name: _mean([part.known[name] for part in parts])[0] for name in parts[0].known}
    users = np.concatenate([part.users for part in parts])
    coverage = {
        metric.name: float(found.recommended[metric.cut].mean())
        for metric in options.wanted
        if metric.kind == "coverage"
    }
    means = coverage | {name: mean for name, (mean, _) in totals.items()}
    return Evaluation(
        values={metric.name: means[metric.name] for metric in options.wanted},
        per_user={name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values},
        user_ids=collect_ids(distributed.users)[users] if options.per_user else np.empty(0, np.int64),
        protocol=protocol,
        exclude_seen=options.exclude_seen,
        rule=parts[0].rule,
        all_relevant=all(part.all_relevant for part in parts),
        n_users=n_users,
        n_excluded=sum(part.n_excluded for part in parts),
        n_unknown_users=test.n_unknown_users,
        n_unknown_items=test.n_unknown_items,
        n_users_without_rows=sum(part.n_without_rows for part in parts),
        n_items_without_rows=int((found.items["tested"] & ~found.items["trained"]).sum()),
        known=known | coverage,
        n_seen=n_seen,
        undefined={name: n_users - defined for name, (_, defined) in totals.items() if defined < n_users},
    )


def _mean(parts: list[tuple[float, int]]) -> tuple[float, int]:
    """The mean over the users for whom a metric is defined, and their number."""
    defined = sum(count for _, count in parts)
    return (math.fsum(value for value, _ in parts) / defined if defined else math.nan), defined
