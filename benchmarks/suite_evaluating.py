"""Evaluating: both protocols at five cut-offs, against implicit's metrics and against metrics of top lists."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

import topnrank as tnr
from suite_data import Bench, Named
from suite_measure import Bar, Measure, Side, in_turn, per, timed
from suite_serving import N, on_threads, said, twins
from suite_worker import Worker

PART = "evaluating"
CUTS = (1, 3, 5, 10, 20)
METRICS = [f"ndcg@{cut}" for cut in CUTS]
BAR = Bar(0.5, 0.2)
USERS = 1_000
"""Users of the large data, and of the lists, that are evaluated."""
SAME = 0.002
"""How far our catalog NDCG@10 and implicit's may be apart: what near ties make."""
COUNTED = (
    f"Milliseconds for all test users. Ours: protocol rated and protocol catalog, NDCG at {', '.join(map(str, CUTS))}, "
    "one call each, added up. implicit: `ranking_metrics_at_k` with K = each cut-off, one call each, added up; it gives "
    "precision, MAP, NDCG and AUC at one K. The same factors, training items left out, relevant from four stars on; "
    "NDCG@10 agrees."
)
ON_LISTS = (
    "Milliseconds of CPU. Ours: protocol catalog, which scores and ranks all items as well. The peers: NDCG at the same "
    f"five cut-offs from ready top-{N} lists in a frame, without the time to make them."
)


def run(bench: Bench) -> Iterator[Measure]:
    """Against implicit, then against the libraries that take lists."""
    for data in (bench.medium, some_users(bench.large)):
        for threads in (1, 2):
            bench.tell(f"evaluating, {data.name}, {said(threads)}")
            yield from against_implicit(bench, data, threads)
    bench.tell("evaluating lists")
    yield from against_lists(bench, some_users(bench.medium))


def some_users(data: Named) -> Named:
    """The test rows of the first users; all training rows."""
    return replace(data, test=data.test.take(data.test.user_index < USERS), tested=f", {USERS:,} users")


def against_implicit(bench: Bench, data: Named, threads: int) -> Iterator[Measure]:
    """Both protocols against five calls."""
    both, metrics = twins(bench, data, threads), bench.peers.use("implicit", "implicit.evaluation")
    if both is None or metrics is None:
        return
    (ours, other), train, test = both, data.matrix(), data.test_likes()
    found: dict[str, Any] = {}

    def our_turn() -> None:
        with on_threads(threads):
            for protocol in ("rated", "catalog"):
                found[protocol] = tnr.evaluate(ours, data.test, protocol=protocol, metrics=METRICS, num_threads=threads)

    def their_turn() -> None:
        options = {"show_progress": False, "num_threads": threads}
        with on_threads(1):
            found["theirs"] = {k: metrics.ranking_metrics_at_k(other, train, test, K=k, **options) for k in CUTS}

    taken = in_turn({"ours": timed(our_turn), "theirs": timed(their_turn)}, bench.rounds)
    agreed = same_values(found["catalog"]["ndcg@10"], found["theirs"][10]["ndcg"])
    for clock in ("wall", "cpu"):
        values = [per(taken[side], 1, clock=clock, scale=1e3) for side in ("ours", "theirs")]
        name = f"both protocols at 5 cut-offs, {said(threads)}, {clock}"
        facts = agreed if clock == "wall" else {}
        words = data.name + data.tested
        yield Measure(PART, name, words, "ms", values[0], "implicit", values[1], BAR, counted=COUNTED, facts=facts)


def same_values(ours: float, theirs: float) -> dict[str, float]:
    """Both values; refuses those that cannot come from the same lists."""
    if abs(ours - theirs) > SAME:
        raise AssertionError(f"NDCG@10 is {ours:.4f} by topnrank and {theirs:.4f} by implicit: not the same lists")
    return {"NDCG@10 ours": float(ours), "implicit's": float(theirs)}


# -- libraries that take lists -------------------------------------------------------------------------------------------


def against_lists(bench: Bench, data: Named) -> Iterator[Measure]:
    """Our whole evaluation against the metrics alone of ranx, ir-measures and RecTools."""
    both = twins(bench, data, 1)
    if both is None or not bench.peers.has("pandas"):
        return
    model = both[0]
    recommended, relevant = model.recommend(data.train.users.ids[:USERS], n=N), _likes(data)
    sides: dict[str, Side] = {
        "ours": timed(lambda: tnr.evaluate(model, data.test, protocol="catalog", metrics=METRICS, num_threads=1))
    }
    frames = (relevant.to_pandas(), recommended.to_pandas())
    for peer, make in (("ranx", _ranx), ("ir_measures", _ir_measures)):
        sides |= bench.working(peer, lambda make=make: make(bench, *frames))
    worker = Worker.start(bench, relevant, recommended)
    if worker is not None:
        sides["RecTools"] = worker
    with on_threads(1):
        taken = in_turn(sides, bench.rounds)
    if worker is not None:
        worker.stop()
    ours = per(taken.pop("ours"), 1, scale=1e3)
    for peer, seconds in taken.items():
        others, name = per(seconds, 1, scale=1e3), "catalog at 5 cut-offs"
        yield Measure(PART, name, data.name + data.tested, "ms", ours, peer, others, counted=ON_LISTS)


def _likes(data: Named) -> pa.Table:
    """Test rows of at least four stars."""
    assert data.test.ratings is not None
    return data.test.take(data.test.ratings >= 4).to_arrow().select(["user", "item"])


def _texts(frame: Any) -> Any:
    """ranx and ir-measures want ids as text."""
    return frame.assign(user=frame["user"].astype(str), item=frame["item"].astype(str))


def _ranx(bench: Bench, relevant: Any, recommended: Any) -> dict[str, Side]:
    ranx = bench.peers.use("ranx", "ranx")
    if ranx is None:
        return {}
    likes, lists = (
        _texts(relevant).assign(gain=1),
        _texts(recommended).assign(score=-recommended["rank"].to_numpy(float)),
    )

    def evaluate() -> None:
        qrels = ranx.Qrels.from_df(likes, q_id_col="user", doc_id_col="item", score_col="gain")
        runs = ranx.Run.from_df(lists, q_id_col="user", doc_id_col="item", score_col="score")
        ranx.evaluate(qrels, runs, METRICS, make_comparable=True)

    return {"ranx": timed(evaluate)}


def _ir_measures(bench: Bench, relevant: Any, recommended: Any) -> dict[str, Side]:
    ir_measures = bench.peers.use("ir_measures", "ir_measures")
    if ir_measures is None:
        return {}
    names = {"user": "query_id", "item": "doc_id"}
    likes = _texts(relevant).assign(relevance=1).rename(columns=names)
    lists = _texts(recommended).assign(score=-recommended["rank"].to_numpy(np.float64)).rename(columns=names)
    metrics = [ir_measures.nDCG @ cut for cut in CUTS]
    return {"ir-measures": timed(lambda: ir_measures.calc_aggregate(metrics, likes, lists))}
