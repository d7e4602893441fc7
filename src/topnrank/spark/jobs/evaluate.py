"""Evaluation as a Spark job: test rows travel to the blocks of their users, each task measures its users' lists.

The lists are ranked and measured by the code of one machine. What is one number for all test data (the highest grade,
how many training users an item has) is found first; what is one number for all users is added up in the end, in the order
of the users, and of coverage each task tells which items its lists hold.
"""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from topnrank._checks import one_of
from topnrank._typing import BoolArray, Float64Array, Int64Array
from topnrank.data.duplicates import DUPLICATE_RULES
from topnrank.data.frames import Columns
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError
from topnrank.evaluation.beyond_accuracy import ItemCounts, needs_item_counts, training_users
from topnrank.evaluation.evaluate import check_rows_left, user_values
from topnrank.evaluation.labels import LIKED_FROM, match, nothing_relevant, relevant_rows
from topnrank.evaluation.metrics import DEFAULT_METRICS, GRADED, Metric, parse_metrics
from topnrank.evaluation.protocols import PROTOCOLS, rank_catalog, rank_rated
from topnrank.evaluation.result import Evaluation
from topnrank.spark.data.columns import SOURCE, CheckedRows, checked_rows, id_column
from topnrank.spark.data.interactions import Layout, collect_ids, dealt_rows, merge_dealt, type_names, with_type_codes
from topnrank.spark.data.partition import Arrays, Numbered, number_ids
from topnrank.spark.jobs.distributed_model import DistributedModel, Learned, ModelBlock, block_model
from topnrank.spark.jobs.tables import guarded, is_integer, known_numbers, task_threads, unguarded
from topnrank.spark.session.job_names import named


class QuestionOptions(TypedDict, total=False):
    """The fields of `Question`."""

    protocol: Literal["rated", "catalog"]
    metrics: str | Sequence[str]
    relevant: float | None
    exclude_seen: bool
    duplicates: str
    per_user: bool


@dataclass(frozen=True)
class Question:
    """What is measured, and how: the arguments of `topnrank.evaluate`."""

    protocol: Literal["rated", "catalog"] = "rated"
    metrics: str | Sequence[str] = DEFAULT_METRICS
    relevant: float | None = LIKED_FROM
    exclude_seen: bool = True
    duplicates: str = "error"
    per_user: bool = False
    """Whether the result tells the values of each user; they are then collected, with the users' ids."""

    def __post_init__(self) -> None:
        one_of("protocol", self.protocol, PROTOCOLS)
        one_of("duplicates", self.duplicates, DUPLICATE_RULES)
        parse_metrics(self.metrics)
        if self.relevant is not None and not np.isfinite(self.relevant):
            raise ParameterError(f"relevant must be a finite rating or None, got {self.relevant}")

    @property
    def wanted(self) -> tuple[Metric, ...]:
        """The metrics."""
        return parse_metrics(self.metrics)


@dataclass(frozen=True)
class _Plan:
    """What every task must know."""

    question: Question
    layout: Layout
    highest: float
    """The highest grade of all test rows"""
    item_counts: ItemCounts | None


class _Part(NamedTuple):
    """What a task found."""

    number: int
    totals: dict[str, tuple[float, int]]
    """Of each metric the sum over users, and over how many"""
    n_users: int
    n_excluded: int
    n_rows: int
    n_known: int
    """Of the rows, those whose items the model knows"""
    n_seen: int
    all_relevant: bool
    rule: str
    values: dict[str, Float64Array]
    """Of each user, where they are asked for"""
    users: Int64Array
    """Their numbers"""


class _Found(NamedTuple):
    """What some tasks found."""

    parts: tuple[_Part, ...]
    shown: dict[int, BoolArray]
    """Items in somebody's top k, by k"""
    error: tuple[str, str] | None = None

    def merge(self, other: "_Found") -> "_Found":
        """What both found."""
        shown = {k: self.shown[k] | other.shown[k] if k in self.shown else other.shown[k] for k in other.shown}
        return _Found(self.parts + other.parts, self.shown | shown, self.error or other.error)


def evaluate_blocks(
    served: DistributedModel, test: DataFrame, columns: Columns, question: Question | None = None
) -> Evaluation:
    """How well a model in the cluster ranks the held-out rows of a DataFrame: the numbers of `topnrank.evaluate`.

    Rows with feedback types weigh what they weighted in training. Ids and values of single users stay in the cluster,
    unless the question asks for them with per_user=True: else `per_user` and `user_ids` of the result are empty.
    """
    question = question or Question()
    with ExitStack() as held:
        rows = checked_rows(test, columns, ordered=question.duplicates != "error")
        held.callback(rows.unpersist)
        highest, names = _highest(rows, question), type_names(rows)
        matched = _match(served, rows, held)
        n_items = served.n_items + matched.unknown_users.count
        layout = Layout(tuple(served.firsts.tolist()), n_items, names, question.duplicates)
        plan = _Plan(question, layout, highest, _item_counts(served) if needs_item_counts(question.wanted) else None)
        found = _measured(served, with_type_codes(matched.rows, names), plan)
        if not any(part.n_known for part in found.parts):
            raise _no_overlap("item", matched.unknown_users.frame.agg(sf.min("id")).first()[0], served.items)
        return _evaluation(served, found, question, matched)


class _Matched(NamedTuple):
    """Test rows of the users that the model knows."""

    rows: DataFrame
    """With user_number, block and item_number"""
    unknown_users: Numbered
    """Items that the model does not know, numbered after the catalog"""
    n_unknown_users: int


def _match(served: DistributedModel, rows: CheckedRows, held: ExitStack) -> _Matched:
    """Numbers in place of ids; what is persisted for it is let go with `held`."""
    known = (("user", served.users), ("item", served.items))
    ids = {name: id_column(rows.frame, name, integer=is_integer(frame)) for name, frame in known}
    numbered = known_numbers(rows.frame.withColumns(ids), "user", served.users, "user_number").persist()
    held.callback(numbered.unpersist)
    n_unknown = _unknown_users(numbered, served)
    complete, unknown_users = _with_items(numbered.where(sf.col("user_number").isNotNull()), served)
    held.callback(unknown_users.cached.unpersist)
    return _Matched(complete, unknown_users, n_unknown)


def _highest(rows: CheckedRows, question: Question) -> float:
    """The highest grade; an error if no row is relevant, or if rows have types whose weight nobody could know."""
    by_rating = rows.has("rating") and question.relevant is not None
    value = "rating" if by_rating else "weight" if rows.has("weight") else None
    wanted = [sf.max("rating")] if rows.has("rating") else [sf.lit(1.0)]
    wanted += [sf.min(value), sf.max(value)] if value else []
    found = rows.frame.agg(*wanted).first()
    assert found is not None
    if value is not None:
        rule = f"rating >= {question.relevant:g}" if by_rating else "weight > 0"
        least, most = float(found[1]), float(found[2])
        if not (most >= (question.relevant or 0.0) if by_rating else most > 0):
            raise nothing_relevant(rule, least, most)
    return float(found[0])


def _unknown_users(numbered: DataFrame, served: DistributedModel) -> int:
    """How many test users the model does not know; an error if it knows none."""
    by_user = numbered.groupBy("user").agg(sf.first("user_number").alias("number"))
    counts = by_user.agg(sf.count(sf.lit(1)), sf.count("number"), sf.min("user")).first()
    assert counts is not None
    if counts[1] == 0:
        raise _no_overlap("user", counts[2], served.users)
    return int(counts[0] - counts[1])


def _with_items(rows: DataFrame, served: DistributedModel) -> tuple[DataFrame, Numbered]:
    """Rows with the numbers of their items; those the model does not know are numbered after the catalog."""
    known = known_numbers(rows, "item", served.items, "known_number")
    unknown = known.where(sf.col("known_number").isNull()).select(sf.col("item").alias("id")).distinct()
    unknown_users = number_ids(unknown, "item", start=served.n_items)
    others = unknown_users.frame.select(sf.col("id").alias("item"), sf.col("number").alias("other_number"))
    number = sf.coalesce("known_number", "other_number").alias("item_number")
    kept = [sf.col(name) for name in rows.columns if name not in ("user", "item")]
    return known.join(others, "item", "left").select(*kept, number), unknown_users


def _no_overlap(kind: str, example: Any, known: DataFrame) -> DataError:
    mine = known.where(sf.col("number") == 0).first()
    return DataError(
        f"no {kind} of the test data is known to the model: the test data have {kind}s such as {example!r}, the model "
        f"{kind}s such as {mine['id'] if mine else 'none at all'!r}; use data with the ids the model was trained on"
    )


def _item_counts(served: DistributedModel) -> ItemCounts:
    """Training users of each item, added up over the blocks."""
    shared = served.shared
    if served.learned.whole is not None:
        return training_users(served.learned.whole)
    counts = served.blocks.map(lambda block: training_users(block_model(shared.value, block)))
    total: ItemCounts = counts.treeReduce(
        lambda one, other: ItemCounts(one.by_item + other.by_item, one.users + other.users)
    )
    return total


def _measured(served: DistributedModel, rows: DataFrame, plan: _Plan) -> _Found:
    """One job: all tasks measure, what they found is merged on the way to the driver."""
    context = served.session.sparkContext
    shared, sent = served.shared, context.broadcast(plan)
    pairs = served.blocks.zip(dealt_rows(rows, served.n_blocks))
    with named(context, "evaluate"):
        found: _Found = pairs.map(_Task(shared, sent)).treeReduce(lambda one, other: one.merge(other))
    sent.unpersist()
    if found.error is not None:
        raise unguarded(found.error)
    return found


@dataclass(frozen=True)
class _Task:
    """Measures the users of one block."""

    learned: "Broadcast[Learned]"
    plan: "Broadcast[_Plan]"

    def __call__(self, pair: tuple[ModelBlock, Arrays]) -> _Found:
        with task_threads():
            found, error = guarded(lambda both: measure_block(self.learned.value, self.plan.value, both))(pair)
        return _Found((), {}, error) if error else found


def measure_block(learned: Learned, plan: _Plan, pair: tuple[ModelBlock, Arrays]) -> _Found:
    """Inside a task: the values of the users of one block who have test rows."""
    block, balanced_order = pair
    if not len(balanced_order["user_codes"]):
        return _Found((), {})
    model, question = block_model(learned, block), plan.question
    test = model.weigh(_test_rows(plan.layout, block, balanced_order))
    if test.types is not None and test.ratings is None and test.weights is None and question.relevant is not None:
        raise DataError(
            f"the test rows have feedback types, for which {type(model).__name__} has no weights; give the evaluation "
            "ratings or weights, or relevant=None if all rows are meant"
        )
    flags, rule, _ = relevant_rows(test, question.relevant)
    graded = any(metric.kind in GRADED for metric in question.wanted)
    labels = match(model, test, flags, graded=graded, highest=plan.highest).labels
    if question.protocol == "rated":
        ranking = rank_rated(model, labels, question.wanted, item_counts=plan.item_counts)
    else:
        exclude = question.exclude_seen
        ranking = rank_catalog(model, labels, question.wanted, exclude_seen=exclude, item_counts=plan.item_counts)
    counted, values = user_values(ranking, question.wanted)
    defined = {name: column[~np.isnan(column)] for name, column in values.items()}
    users = model.user_map.ids[labels.users]
    part = _Part(
        number=block.number,
        totals={name: (float(column.sum()), len(column)) for name, column in defined.items()},
        n_users=int(counted.sum()),
        n_excluded=int((~counted).sum()),
        n_rows=len(labels.items),
        n_known=int((labels.items >= 0).sum()),
        n_seen=ranking.n_seen,
        all_relevant=bool(labels.relevant.all()),
        rule=rule,
        values=values if question.per_user else {},
        users=users if question.per_user else users[:0],
    )
    return _Found((part,), ranking.top.shown)


def _test_rows(layout: Layout, block: ModelBlock, balanced_order: Arrays) -> Interactions:
    """The test rows of a block's users, repeated ones merged."""
    rows, merged = merge_dealt(balanced_order, (block.first, block.first + block.n_users), layout)
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


def _evaluation(served: DistributedModel, found: _Found, question: Question, matched: _Matched) -> Evaluation:
    """The parts put together in the order of the users."""
    parts = sorted(found.parts, key=lambda part: part.number)
    n_users, n_seen = sum(part.n_users for part in parts), sum(part.n_seen for part in parts)
    check_rows_left(sum(part.n_rows for part in parts), n_seen)
    totals = {name: _total([part.totals[name] for part in parts]) for name in parts[0].totals}
    per_user = {name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values}
    users = np.concatenate([part.users for part in parts])
    return Evaluation(
        values={
            metric.name: float(found.shown[metric.cut].mean()) if metric.kind == "coverage" else totals[metric.name][0]
            for metric in question.wanted
        },
        per_user=per_user,
        user_ids=collect_ids(served.users)[users] if question.per_user else np.empty(0, np.int64),
        protocol=question.protocol,
        exclude_seen=question.exclude_seen,
        rule=parts[0].rule,
        all_relevant=all(part.all_relevant for part in parts),
        n_users=n_users,
        n_excluded=sum(part.n_excluded for part in parts),
        n_unknown_users=matched.n_unknown_users,
        n_unknown_items=matched.unknown_users.count,
        n_seen=n_seen,
        undefined={name: n_users - defined for name, (_, defined) in totals.items() if defined < n_users},
    )


def _total(parts: list[tuple[float, int]]) -> tuple[float, int]:
    """The mean over the users for whom a metric is defined, and their number."""
    defined = sum(count for _, count in parts)
    return (math.fsum(value for value, _ in parts) / defined if defined else math.nan), defined
