"""Similar items by a measure: how often the item that comes next is among the ten most similar to the one before.

    python benchmarks/similar.py ratings.parquet [users [column of times]]

Prints shares for the cosine of item vectors, the neighbor weights, the same users, all of them together, and popularity.
"""

import sys

import numpy as np

import topnrank as tnr
from topnrank.models.linear.neighbors import neighbor_term
from topnrank.models.serving.similar import Cosine, together

LENGTH = 10


def last_pairs(train, test, most, seed=0):
    """Users with the item before the last one and the last one."""
    rows = []
    for user in np.flatnonzero(np.diff(test.indptr)):
        mine = slice(train.indptr[user], train.indptr[user + 1])
        before = train.indices[mine][np.argmax(train.timestamps[mine])]
        rows.append((user, before, test.indices[test.indptr[user]]))
    chosen = np.random.default_rng(seed).permutation(len(rows))[:most]
    return [rows[place] for place in np.sort(chosen)]


def found(train, pairs, similarity):
    """Share of pairs whose second item is among the most similar to the first, the user's own left out."""
    hits, known = 0, {}
    for user, before, after in pairs:
        if before not in known:
            known[before] = similarity(before)
        scores = known[before].astype(np.float64)
        scores[train.indices[train.indptr[user] : train.indptr[user + 1]]] = -np.inf
        rank = (scores > scores[after]).sum() + ((scores == scores[after]).sum() - 1) / 2
        hits += rank < LENGTH
    return hits / len(pairs)


def main(path, most=4000, timestamp=None):
    """Trains and prints."""
    train, test = tnr.split_last(tnr.read(path, duplicates="last", timestamp=timestamp))
    model = tnr.TopNRank(order="none").fit(train)
    cosine, neighbors = Cosine(model.item_factors_), neighbor_term(model.fitted)

    def weights(item):
        return np.zeros(train.n_items) if neighbors is None else neighbors.of_items(np.array([item]))[0]

    def all_parts(item):
        similar = model.item_similarity(np.array([item]))
        return cosine(np.array([item]))[0] if similar is None else np.nan_to_num(similar[0])

    popularity = np.bincount(train.indices, minlength=train.n_items)
    pairs = last_pairs(train, test, int(most))
    print(f"{path}: {len(pairs)} users, {train.n_items} items, chosen {model.fitted.info.chosen}")
    for name, similarity in {
        "cosine of vectors": lambda item: cosine(np.array([item]))[0],
        "neighbor weights": weights,
        "same users": lambda item: np.nan_to_num(together(model.fitted, np.array([item]))[0]),
        "all (similar_items)": all_parts,
        "popularity": lambda item: popularity,
    }.items():
        print(f"  {name:20} {found(train, pairs, similarity):.4f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
