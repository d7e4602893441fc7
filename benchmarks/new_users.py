"""Users never seen, and rows that come later: writes docs/results/new_users.md.

    TOPNRANK_DATA=folder python benchmarks/new_users.py

MovieLens 1M, relevant from 4 stars on. 1,000 users are left out of training; 20 % of their likes and dislikes are held out,
the rest is the history that each method gets at prediction time. Then `partial_fit` against training anew.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

import topnrank as tnr
from catalog_data import _hold_out, load
from common import environment
from topnrank.rng import stream

PAGE = Path(__file__).parent.parent / "docs" / "results" / "new_users.md"
METRICS = ("ndcg@10", "ndcg@20", "recall@20", "ndcg@100")
LEFT_OUT, LIKED = 1000, 4.0
OURS: dict[str, Any] = {"protocol": "catalog", "factors": 64, "num_threads": 1}


class Scored:
    """Ready scores of some users as `evaluate` wants them."""

    def __init__(self, data: tnr.Interactions, scores: np.ndarray[Any, Any]) -> None:
        self.fitted, self.scores = data, scores

    def score_block(self, users: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Rows of the scores."""
        return self.scores[users].copy()

    def score_pairs(self, users: np.ndarray[Any, Any], items: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Single scores."""
        return self.scores[users, items]


def parts(data: tnr.Interactions, users: np.ndarray[Any, Any]) -> tuple[tnr.Interactions, ...]:
    """(rows of the other users, histories of `users`, their held-out rows); all with the ids of `data`."""
    mine = np.isin(data.user_index, users)
    history, held_out = _hold_out(data.take(mine), 0.2, 0)
    return data.take(~mine), history, held_out


def by_history(model: tnr.Model, history: tnr.Interactions) -> np.ndarray[Any, Any]:
    """Scores of all users of `history` as users never seen; zeros for users without rows."""
    scores = np.zeros((history.n_users, history.n_items), np.float32)
    busy = np.flatnonzero(np.diff(history.indptr))
    indptr = np.concatenate([[0], np.cumsum(np.diff(history.indptr)[busy])])
    assert history.ratings is not None
    scores[busy] = model.score_histories(indptr, history.indices.astype(np.int64), history.ratings.astype(np.float64))
    return scores


def als(train: tnr.Interactions, history: tnr.Interactions) -> np.ndarray[Any, Any]:
    """implicit's ALS with its own fold-in, at the settings that the catalog study starts from."""
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    def likes(data: tnr.Interactions) -> Any:
        liked = data.take(data.ratings >= LIKED)  # type: ignore[operator]
        ones = np.ones(len(liked), np.float32)
        return csr_matrix((ones, liked.indices, liked.indptr), shape=(data.n_users, data.n_items))

    model = AlternatingLeastSquares(
        factors=64, alpha=7.0, regularization=80.0, iterations=15, random_state=0, num_threads=1
    )
    model.fit(likes(train), show_progress=False)
    busy = np.flatnonzero(np.diff(history.indptr))
    vectors = model.recalculate_user(busy, likes(history)[busy])
    scores = np.zeros((history.n_users, history.n_items), np.float32)
    scores[busy] = vectors @ model.item_factors.T
    return scores


def milliseconds(model: tnr.Model, history: tnr.Interactions) -> str:
    """Median CPU time of one recommendation for a history of the usual length."""
    sizes = np.diff(history.indptr)
    user = int(np.argsort(sizes)[np.searchsorted(np.sort(sizes), np.median(sizes[sizes > 0]))])
    rows = slice(history.indptr[user], history.indptr[user + 1])
    assert history.ratings is not None
    given = list(zip(history.items.ids[history.indices[rows]].tolist(), history.ratings[rows].tolist(), strict=True))
    times = []
    for _ in range(200):
        start = time.process_time()
        model.recommend(history=given, n=10)
        times.append(1e3 * (time.process_time() - start))
    return f"{np.median(times):.2f} ({len(given)} items)"


def row(name: str, result: tnr.Evaluation, more: str = "") -> str:
    """One line of a table."""
    return f"| {name} | " + " | ".join(f"{result[metric]:.4f}" for metric in METRICS) + f" | {more} |"


def new_users(data: tnr.Interactions) -> list[str]:
    """The table of users never seen."""
    users = np.sort(stream(0, "new users").permutation(data.n_users)[:LEFT_OUT])
    train, history, held_out = parts(data, users)
    ours, ridge = tnr.TopNRank(**OURS), tnr.NeighborRidge(neighbors=100, regularization=200.0)
    lines = ["| method | NDCG@10 | NDCG@20 | Recall@20 | NDCG@100 | ms for one user |", "|---|---|---|---|---|---|"]
    for name, model in (("TopNRank", ours), ("EASE", tnr.EASE(regularization=700.0)), ("NeighborRidge", ridge)):
        model.fit(train)
        scores = Scored(history, by_history(model, history))
        result = tnr.evaluate(scores, held_out, protocol="catalog", metrics=METRICS)
        lines.append(row(name, result, milliseconds(model, history)))
    folded = Scored(history, als(train, history))
    lines.append(row("implicit ALS, fold-in", tnr.evaluate(folded, held_out, protocol="catalog", metrics=METRICS), "-"))
    counts = np.bincount(train.indices, minlength=data.n_items).astype(np.float32)
    popular = Scored(history, np.tile(counts, (data.n_users, 1)))
    lines.append(row("popularity", tnr.evaluate(popular, held_out, protocol="catalog", metrics=METRICS), "-"))
    return lines


def later_rows(data: tnr.Interactions) -> list[str]:
    """The table of partial_fit: a tenth of the users and of the items, and a tenth of the other rows, come later."""
    train, held_out = _hold_out(data, 0.2, 0)
    draw = stream(1, "later rows")
    late = (draw.random(data.n_users) < 0.1)[train.user_index] | (draw.random(data.n_items) < 0.1)[train.indices]
    late |= draw.random(len(train)) < 0.1
    first, then = train.take(~late).compact(), train.take(late).compact()
    lines = ["| model | NDCG@10 | NDCG@20 | Recall@20 | NDCG@100 | CPU s |", "|---|---|---|---|---|---|"]
    model, start = tnr.TopNRank(**OURS).fit(first), time.process_time()
    known = tnr.evaluate(model, held_out, protocol="catalog", metrics=METRICS)
    lines.append(row(f"not brought up to date ({known.n_users:,} users known)", known, "-"))
    start = time.process_time()
    model.partial_fit(then)
    spent = time.process_time() - start
    lines.append(row("partial_fit", tnr.evaluate(model, held_out, protocol="catalog", metrics=METRICS), f"{spent:.1f}"))
    start = time.process_time()
    anew = tnr.TopNRank(**OURS).fit(train)
    spent = time.process_time() - start
    lines.append(row("trained anew", tnr.evaluate(anew, held_out, protocol="catalog", metrics=METRICS), f"{spent:.1f}"))
    words = f"{len(first):,} rows first, {len(then):,} later, of {data.n_users:,} users and {data.n_items:,} items."
    return [words, "", *lines]


def main() -> None:
    """Runs both and writes the page."""
    data = load("ml-1m").data
    lines = [
        "# Users never seen, and rows that come later",
        "",
        f"MovieLens 1M, relevant from 4 stars on, all items but those of the history are ranked. {LEFT_OUT:,} random users "
        "took no part in training; of their likes and dislikes 20 % are held out, the rest is their history. One split, "
        "one seed, default settings (64 factors), no intervals: differences below about .008 at NDCG@10 are noise. TopNRank "
        "and its neighbors use the dislikes of a history, EASE and ALS do not. Times are CPU milliseconds of one "
        "`recommend(history=...)` call, median of 200.",
        "",
        *new_users(data),
        "",
        "## partial_fit",
        "",
        *later_rows(data),
        "",
        "partial_fit trains the vectors of new items for 5 epochs and computes the neighbors again; "
        "vectors of old items stay.",
        "",
        f"{environment()}.",
        "",
    ]
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
