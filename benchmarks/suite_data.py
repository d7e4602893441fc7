"""The data of the benchmark suite: MovieLens 1M where there is one, synthetic ratings of given shapes, kept in a folder."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import topnrank as tnr
from suite_measure import Side
from suite_peers import Peers, last_line

ML_1M = (6_040, 3_706, 1_000_209)
ML_20M = (138_493, 27_278, 20_000_263)
"""Users, items, ratings"""
QUICK = 0.01
"""What of the large shapes a quick run takes."""
Split = tuple[tnr.Interactions, tnr.Interactions]


class LeftOut(Exception):  # noqa: N818 (no error)
    """Says why a part has nothing to measure here."""


@dataclass(frozen=True)
class Named:
    """Training and test rows with the words of the report."""

    name: str
    train: tnr.Interactions
    test: tnr.Interactions
    tested: str = ""
    """What to add to the name where not all test rows are used"""

    @property
    def visits(self) -> int:
        """Ratings in the lists that one pass visits: those of users with at least two."""
        lengths = np.diff(self.train.indptr)
        return int(lengths[lengths >= 2].sum())

    def matrix(self, *, likes: bool = False) -> Any:
        """The training rows, or those of at least four stars, as implicit wants them: a CSR matrix of ones."""
        return _matrix(self.train, likes=likes)

    def test_likes(self) -> Any:
        """The test rows of at least four stars as a CSR matrix."""
        return _matrix(self.test, likes=True)


def _matrix(rows: tnr.Interactions, *, likes: bool) -> Any:
    from scipy.sparse import csr_matrix

    assert rows.ratings is not None
    rows = rows.take(rows.ratings >= 4) if likes else rows
    ones = np.ones(len(rows), np.float32)
    return csr_matrix((ones, rows.indices, rows.indptr), shape=(rows.n_users, rows.n_items), copy=True)


@dataclass
class Bench:
    """What every part of the suite is given."""

    folder: Path
    """Where data are kept from run to run"""
    peers: Peers
    rounds: int = 5
    quick: bool = False
    full: bool = False
    """Reading and recommending at the whole size of MovieLens 20M"""
    tell: Callable[[str], None] = print
    kept: dict[str, Any] = field(default_factory=dict)
    """What several parts use and only one makes"""

    @cached_property
    def whole(self) -> Named:
        """All of MovieLens 1M for training; synthetic data of its shape where TOPNRANK_DATA names no folder with it."""
        folder = os.environ.get("TOPNRANK_DATA")
        path = Path(folder or "") / "ml-1m.parquet"
        if folder and path.exists() and not self.quick:
            return Named("ML-1M", *[tnr.read(path)] * 2)
        return Named(f"synthetic, {self._shape('ML-1M')}", *[tnr.read(self.synthetic(ML_1M, 0.1))] * 2)

    @cached_property
    def medium(self) -> Named:
        """The same, half for training and half for testing."""
        return Named(f"{self.whole.name}, half", *_halves(self.whole.train))

    @cached_property
    def large(self) -> Named:
        """Synthetic data of MovieLens 20M's shape, half for training."""
        return Named(f"synthetic, {self._shape('ML-20M')}, half", *_halves(tnr.read(self.synthetic(ML_20M, QUICK))))

    def working(self, peer: str, make: Callable[[], dict[str, Side]]) -> dict[str, Side]:
        """The sides of a peer, each tried once; one that fails is noted as missing with its reason and left out."""
        try:
            sides = make()
            for side in sides.values():
                side()
        except Exception as error:  # a peer's trouble is not ours
            self.peers.lose(peer, f"failed: {last_line(error)}")
            return {}
        return sides

    def _shape(self, name: str) -> str:
        return f"a part of {name}'s shape" if self.quick else f"{name}'s shape"

    def synthetic(self, shape: tuple[int, int, int], share: float) -> Path:
        """A Parquet file of synthetic ratings; `share` of the users and ratings in a quick run."""
        users, items, ratings = shape
        if self.quick:
            users, items, ratings = int(users * share), max(items // 10, 200), int(ratings * share)
        path = self.folder / f"{users}-{items}-{ratings}.parquet"
        if not path.exists():
            self.tell(f"making {ratings:,} synthetic ratings")
            data = tnr.synthetic(users, items, ratings, half_stars=True, seed=0)
            temporary = path.with_suffix(".part")
            pq.write_table(data.to_arrow(), temporary)
            temporary.replace(path)
        return path


def _halves(data: tnr.Interactions) -> Split:
    return tnr.split_per_user(data, test=0.5, seed=0)
