"""What sessions are worth the less is known of the visit in which somebody buys: writes docs/results/sessions.md.

    TOPNRANK_DATA=folder python benchmarks/sessions.py

RetailRocket without its held-out test purchases. Of each user with two purchases or more the last one is asked for: once all
else that the user did is known, as in the catalog study, once all events of the user from half an hour or a day before the
purchase on are taken away. Settings are those that benchmarks/catalog.py chose; nothing was tuned here.
"""

from pathlib import Path
from typing import Any

import numpy as np

import topnrank as tnr
from catalog_data import Split, load
from catalog_methods import methods
from common import environment
from topnrank.experiments.statistics import bootstrap_intervals

PAGE = Path(__file__).parent.parent / "docs" / "results" / "sessions.md"
METRIC = "ndcg@10"
MARGINS = {"half an hour before on": 1800, "a day before on": 86400}
OURS = {"recency": 32.0, "learning_rate": 0.0681, "regularization": 0.6511, "neighbor_penalty": 27.04, "epochs": 3}
SETTINGS: dict[str, dict[str, Any]] = {
    "random": {},
    "popularity": {},
    "als-equal": {"factors": 64, "alpha": 64.36, "regularization": 29.83},
    "ease-equal": {"regularization": 59.06},
    "neighbor-ridge-plain": {"recency": None, "regularization": 28.01},
    "neighbor-ridge": {"sessions": 30.0, "recency": 32.0, "regularization": 68.1},
    "topnrank-plain": {
        "recency": 128.0,
        "learning_rate": 0.01161,
        "regularization": 2.676,
        "neighbor_penalty": 62.25,
        "epochs": 3,
    },
    "topnrank-equal": {"sessions": 30.0, **OURS},
}
INTRODUCTION = """# Sessions, the less is known of the visit

{docstring}
{environment}.

NDCG@10 over all items but those with a training event of the user, 95 % bootstrap intervals over users; seed 0. Users whose
purchase was seen before the cut, or who have no other purchase before it, are left out. The purchases are training rows of
the catalog study, and many of them its validation rows: settings were chosen with them in sight.
"""


def before(train: tnr.Interactions, margin: int) -> Split:
    """(what came before `margin` seconds before the last purchase of each user with an earlier one, that purchase)."""
    assert train.types is not None
    assert train.timestamps is not None
    bought = train.take(train.types == train.type_names.index("buy"))
    assert bought.timestamps is not None
    last, first = np.zeros(train.n_users, np.int64), np.full(train.n_users, np.iinfo(np.int64).max)
    np.maximum.at(last, bought.user_index, bought.timestamps)
    np.minimum.at(first, bought.user_index, bought.timestamps)
    asked = first < last - margin
    end = np.where(asked, last - margin, np.iinfo(np.int64).max)
    known = train.take(train.timestamps < end[train.user_index])
    return known, bought.take((asked & (last > 0))[bought.user_index] & (bought.timestamps == last[bought.user_index]))


def measured(key: str, parts: Split) -> tuple[str, int]:
    """NDCG@10 with its interval, and the users."""
    fitted = methods("retail-rocket", "events")[key].make(dict(SETTINGS[key]), 0).fit(parts[0])
    found = tnr.evaluate(fitted, parts[1], protocol="catalog", metrics=METRIC, relevant=None, num_threads=1)
    low, high = bootstrap_intervals([found.per_user[METRIC]])[0]
    return f"{found[METRIC]:.4f} ({low:.4f} to {high:.4f})", found.n_users


def main() -> None:
    """Writes the page."""
    task = load("retail-rocket")
    cases = {"only the events of that pair": task.validation}
    cases |= {words: before(task.tests[0][0], margin) for words, margin in MARGINS.items()}
    table, counts = methods("retail-rocket", "events"), {}
    rows = []
    for key in SETTINGS:
        cells = []
        for words, parts in cases.items():
            cell, counts[words] = measured(key, parts)
            cells.append(cell)
        rows.append([table[key].label, *cells])
        print(rows[-1], flush=True)
    head = ["taken away of the user's events", *(f"{words} ({counts[words]} users)" for words in cases)]
    lines = [f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows]]
    docstring = "\n".join((__doc__ or "").split("\n\n")[2:])
    page = INTRODUCTION.format(docstring=docstring, environment=environment())
    PAGE.write_text("\n".join([page, *lines]) + "\n")


if __name__ == "__main__":
    main()
