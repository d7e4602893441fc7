"""What to run for a table of the paper: rows, settings, and the published numbers to put beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topnrank._checks import one_of
from topnrank.data.feedback.policies import LIKED_FROM, Threshold
from topnrank.data.interactions import Interactions
from topnrank.errors import DataError, ParameterError
from topnrank.experiments.paper.published import PLAIN_RELU, PLAIN_SIGMOID, RELU, SIGMOID, TABLES, TITLES, Values
from topnrank.experiments.tuning.grid import Grid, GridSearch
from topnrank.models.base import Model
from topnrank.models.factor.model import FactorModel
from topnrank.models.listwise import MFADG, CLiMF, ListPMF, ListRank, XCLiMF
from topnrank.models.parameters import Range
from topnrank.models.topnrank.model import TopNRank

FACTORS, N, MIN_USER_ITEMS = 10, 20, 10
"""k, N, the stars from which a rating is positive, and how many ratings a user needs (sections IV.A and IV.B)."""
RATES = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
"""Learning rates to pick from: the paper gives none. The small ones are for many users: a batch is a tenth of them, and
its gradients are summed."""
FAIR_RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0)
FAIR_PENALTIES = (5e-4, 1.5e-3, 5e-3, 1.5e-2, 5e-2)
"""Rates and lambdas of the fair ablation for a gate of height 1; a gate of height N divides the rates by N and multiplies
the lambdas by N, which is the same problem: so every arm has the same chance. N = 20 and 5e-3 give the paper's 0.1."""
VARIANTS = {
    RELU: ("relu", True),
    PLAIN_RELU: ("relu", False),
    SIGMOID: ("sigmoid", True),
    PLAIN_SIGMOID: ("sigmoid", False),
}
"""Smoothing and truncation of the paper's four variants."""
BASELINES: dict[str, tuple[type[FactorModel], dict[str, Any]]] = {
    "MF-ADG": (MFADG, {"feedback": Threshold(LIKED_FROM), "negatives": 100}),
    "CLiMF": (CLiMF, {"feedback": Threshold(LIKED_FROM)}),
    "xCLiMF": (XCLiMF, {}),
    "ListRank": (ListRank, {}),
    "ListPMF-PL": (ListPMF, {}),
}
"""The methods of Table 4, in its order; MF-ADG's sample of 100 is the paper's."""
DEFAULT = "Top-N-Rank (our default)"


@dataclass(frozen=True)
class Plan:
    """What to run for one table."""

    table: str
    """"table2" or "table4\""""
    data: Interactions
    """Filtered as in the paper"""
    name: str
    """Name of the data"""
    fair: bool
    rows: dict[str, Model]
    """By name, in the paper's order; then our own"""
    published: dict[str, Values]
    """The paper's numbers by row; empty where the data are not the paper's"""

    @property
    def title(self) -> str:
        """The table's title."""
        return TITLES[self.table] + (", each arm tuned on its own" if self.fair else "")

    def train_lengths(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """(n_users,) items of each user in a training half."""
        lengths = np.bincount(self.data.user_index[self.data.pair_starts], minlength=self.data.n_users)
        return lengths - lengths // 2


def make_plan(table: str, data: Interactions, *, name: str = "data", fair: bool = False) -> Plan:
    """Rows and settings of `table` for some data, from which users with fewer than 10 ratings are taken out."""
    one_of("the table", table, tuple(TABLES))
    if fair and table != "table2":
        raise ParameterError("fair tunes the arms of the truncation ablation, which is table2; leave it out for table4")
    if data.ratings is None:
        raise DataError("the paper's experiments need ratings, to tell positive (4 stars and more) from negative rows")
    if _longest(data) < MIN_USER_ITEMS:
        raise DataError(f"no user has {MIN_USER_ITEMS} ratings or more, which the paper asks for; use longer lists")
    kept = data.filter(min_user_items=MIN_USER_ITEMS)
    rows = _table4() if table == "table4" else _fair(_longest(kept)) if fair else _table2()
    return Plan(table, kept, name, fair, {**rows, DEFAULT: TopNRank()}, TABLES[table].get(name, {}))


def _longest(data: Interactions) -> int:
    return int(np.bincount(data.user_index[data.pair_starts], minlength=1).max())


def _variant(name: str, grid: Grid, **changes: Any) -> GridSearch:
    smoothing, truncate = VARIANTS[name]
    model = TopNRank.paper(smoothing=smoothing, truncate=truncate, **changes)
    return GridSearch(model=model, grid=grid, protocol="rated")


def _table2() -> dict[str, Model]:
    """The four variants, each with its own learning rate and all else as in the paper."""
    return {name: _variant(name, {"learning_rate": RATES}) for name in VARIANTS}


def _fair(longest: int) -> dict[str, Model]:
    """The four arms with a rate and a lambda of their own, and one whose N cuts nothing.

    With the sigmoid that fifth arm would be the arm without truncation: its gate is 1 where no list reaches N.
    """
    rows: dict[str, Model] = {}
    for name, (smoothing, truncate) in VARIANTS.items():
        rows[name] = _variant(name, _fair_grid(N if truncate and smoothing == "relu" else 1))
        if name == RELU:
            rows[f"{RELU}, N = {longest} (cuts nothing)"] = _variant(name, _fair_grid(longest), n=longest)
    return rows


def _fair_grid(height: int) -> Grid:
    """Rates and lambdas for a gate of that height."""
    return {
        "learning_rate": _rounded(rate / height for rate in FAIR_RATES),
        "regularization": _rounded(penalty * height for penalty in FAIR_PENALTIES),
    }


def _table4() -> dict[str, Model]:
    """Two of the variants, and the other methods with 10 factors and free user vectors."""
    rows: dict[str, Model] = {name: _variant(name, {"learning_rate": RATES}) for name in (RELU, SIGMOID)}
    for name, (kind, settings) in BASELINES.items():
        model = kind(user_representation="factors", factors=FACTORS, **settings)
        rows[name] = GridSearch(model=model, grid=_baseline_grid(model), in_turn=True, protocol="rated")
    return rows


def _baseline_grid(model: FactorModel) -> Grid:
    """Five rates and four lambdas over the ranges that the model declares worth trying, a little beyond, and its own."""
    space = model.search_space()
    rates, penalties = space["learning_rate"], space["regularization"]
    assert isinstance(rates, Range)
    assert isinstance(penalties, Range)
    points = {
        "learning_rate": np.geomspace(rates.low / 5.0, rates.high, 5).tolist(),
        "regularization": np.geomspace(penalties.low / 3.0, penalties.high * 3.0, 4).tolist(),
    }
    own = model.get_params()
    return {name: tuple(sorted({*_rounded(values), own[name]})) for name, values in points.items()}


def _rounded(values: Any) -> tuple[float, ...]:
    """Three significant digits, so that settings can be read."""
    sequence: Sequence[float] = tuple(values)
    return tuple(float(f"{value:.3g}") for value in sequence)
