"""Learning curves of every trained model at its defaults, both scorers, on four data sets.

    TOPNRANK_DATA=folder python benchmarks/learning_curves.py [--only ml-100k] [--markdown FILE] [--figure FILE.png]

Each model trains at its defaults on the whole data set, for as many epochs as its defaults say. Ratings (MovieLens): all
models. Shop events (RetailRocket; view .1, cart .5, buy 1): all models. Unary data (Amazon Video Games): those that learn
from likes, and BPR and WARP with 50 negatives; the others refuse such data. The table gives the mean loss of a list in the
first and the last epoch, and the largest rise from one epoch to the next as a share of the whole fall: sampled losses are
noisy, a divergence would be a rise of more than the fall. Losses of different models cannot be compared.
"""

import argparse
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import topnrank as tnr
from common import environment
from topnrank.models.factor.model import FactorModel

SETS = {
    "ml-100k": "ml-100k.parquet",
    "ml-1m": "ml-1m.parquet",
    "amazon-video-games (unary)": "amazon-video-games-2014-sasrec.parquet",
    "retail-rocket (events)": "retail-rocket-sslrec.parquet",
}
EVENTS = tnr.EventWeights({"view": 0.1, "cart": 0.5, "buy": 1.0, "buy-test": 0.0})
FROM_LIKES = {"CLiMF", "TFMAP", "MFADG"}
Curve = list[float]


def makers() -> dict[str, tuple[type[FactorModel], dict[str, Any]]]:
    """Every trained model by the name of its row."""
    kinds = [kind for kind in tnr.MODELS.values() if issubclass(kind, FactorModel)]
    found: dict[str, tuple[type[FactorModel], dict[str, Any]]] = {kind.__name__: (kind, {}) for kind in kinds}
    for metric in ("mrr", "map", "auc"):
        found[f"TopNRank(metric='{metric}')"] = (tnr.TopNRank, {"metric": metric})
    return found


def curves(name: str, folder: Path) -> dict[tuple[str, str], Curve]:
    """The loss of every epoch, by model and scorer; models that cannot learn from the data are left out."""
    data = tnr.read(folder / SETS[name])
    if data.type_names:
        data = EVENTS(data)
    found = {}
    for row, (kind, settings) in makers().items():
        if "unary" in name and row not in FROM_LIKES:
            if row not in ("BPR", "WARP"):
                continue
            settings = settings | {"negatives": 50}
        for users in ("history", "factors"):
            model = kind(user_representation=users, **settings).fit(data)
            found[row, users] = [record["objective"] for record in model.history_]
            print(name, row, users, *(f"{value:.4g}" for value in found[row, users]), file=sys.stderr, flush=True)
    return found


def table(name: str, found: dict[tuple[str, str], Curve]) -> list[str]:
    """First, last and largest rise of each curve."""
    lines = [
        f"## {name}",
        "",
        "| model | users | epochs | first | last | largest rise / fall |",
        "|---|---|---|---|---|---|",
    ]
    for (row, users), curve in found.items():
        fall = curve[0] - min(curve)
        rise = max((later - earlier for earlier, later in pairwise(curve)), default=0.0)
        share = f"{max(rise, 0.0) / fall:.2f}" if fall > 0 else "never fell"
        lines.append(f"| {row} | {users} | {len(curve)} | {curve[0]:.4g} | {curve[-1]:.4g} | {share} |")
    return [*lines, ""]


def draw(found: dict[str, dict[tuple[str, str], Curve]], path: Path) -> None:
    """One small panel for each model: the loss from its first value (1) to its lowest (0)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = list(makers())
    figure, panels = plt.subplots(4, 4, figsize=(13, 10), sharey=True, layout="constrained")
    colors = dict(zip(SETS, ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True))
    for panel, row in zip(panels.flat, rows, strict=False):
        for name, of_set in found.items():
            for users, style in (("history", "-"), ("factors", "--")):
                curve = of_set.get((row, users))
                if curve:
                    span = (curve[0] - min(curve)) or 1.0
                    scaled = [(value - min(curve)) / span for value in curve]
                    panel.plot(range(1, len(curve) + 1), scaled, style, color=colors[name], lw=1.4)
        panel.set_title(row, fontsize=10)
        panel.grid(alpha=0.3)
    for panel in panels.flat[len(rows) :]:
        panel.axis("off")
    handles = [plt.Line2D([], [], color=color, label=name) for name, color in colors.items()]
    handles += [
        plt.Line2D([], [], color="gray", ls=style, label=users)
        for users, style in (("history", "-"), ("factors", "--"))
    ]
    figure.legend(handles=handles, loc="lower right", ncols=2, frameon=False, fontsize=9)
    figure.supxlabel("epoch")
    figure.supylabel("training loss, first epoch = 1, lowest = 0")
    figure.savefig(path, dpi=80)


def main() -> None:
    """Trains, prints the tables, and writes them and the figure where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SETS, action="append")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    folder = Path(os.environ.get("TOPNRANK_DATA") or sys.exit("set TOPNRANK_DATA to a folder with the data"))
    found = {name: curves(name, folder) for name in arguments.only or SETS}
    text = (__doc__ or "").strip().splitlines()[4:]
    lines = ["# Learning curves at the defaults", "", *text, "", environment(), ""]
    if arguments.figure:
        draw(found, arguments.figure)
        lines += [f"![Learning curves of every model]({arguments.figure.name})", ""]
    for name, of_set in found.items():
        lines += table(name, of_set)
    print("\n".join(lines))
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
