"""Time of one epoch of every model against Top-N-Rank.ReLU, and how cost grows with the length of the lists.

    python benchmarks/epochs.py [--users 2000] [--rounds 5] [--markdown FILE]

One thread, 10 factors, free user vectors, synthetic ratings shaped like MovieLens. The models take turns in one
process; times are the median over rounds of turns, after one turn that compiles, and ratios are taken within a turn.
The second table trains on lists of one length, with as many ratings in all, and gives the time per rating relative to
lists of 20.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import topnrank as tnr
from common import environment

SHARED: dict[str, Any] = {"user_representation": "factors", "factors": 10, "epochs": 1, "num_threads": 1}
MODELS: dict[str, tnr.Model] = {
    "TopNRank ReLU": tnr.TopNRank(
        smoothing="relu", truncate=True, gradient_budget=None, squared_weight=0.0, learning_rate=1e-3, **SHARED
    ),
    "TopNRank sigmoid": tnr.TopNRank(
        smoothing="sigmoid", truncate=True, gradient_budget=None, squared_weight=0.0, **SHARED
    ),
    "TopNRank Laplace (default objective)": tnr.TopNRank(task="rated", **SHARED),
    "TopNRank(metric='mrr')": tnr.TopNRank(metric="mrr", truncate=True, **SHARED),
    "TopNRank(metric='map')": tnr.TopNRank(metric="map", truncate=True, **SHARED),
    "TopNRank(metric='auc')": tnr.TopNRank(metric="auc", truncate=True, **SHARED),
    "CLiMF": tnr.CLiMF(**SHARED),
    "XCLiMF": tnr.XCLiMF(**SHARED),
    "ListRank": tnr.ListRank(**SHARED),
    "ListPMF": tnr.ListPMF(**SHARED),
    "MFADG, 100 negatives": tnr.MFADG(**SHARED),
    "TFMAP": tnr.TFMAP(**SHARED),
    "GaussianRank": tnr.GaussianRank(**SHARED),
    "BPR": tnr.BPR(**SHARED),
    "BPR, 100 negatives": tnr.BPR(negatives=100, **SHARED),
    "WARP": tnr.WARP(**SHARED),
    "WARP, 100 negatives": tnr.WARP(negatives=100, **SHARED),
    "BiasedMF": tnr.BiasedMF(**SHARED),
}
GROWING = ("TopNRank ReLU", "TopNRank sigmoid", "CLiMF", "TFMAP", "ListRank", "ListPMF", "XCLiMF")
LENGTHS = (20, 100, 500, 2000, 10_000)


def seconds(model: tnr.Model, data: tnr.Interactions) -> float:
    """Time of one epoch itself: two fits, of one and of three epochs; their difference leaves out the preparation."""
    times = []
    for epochs in (1, 3):
        model.set_params(epochs=epochs)
        started = time.perf_counter()
        model.fit(data)
        times.append(time.perf_counter() - started)
    return max(times[1] - times[0], 1e-9) / 2


def turns(models: dict[str, tnr.Model], data: tnr.Interactions, rounds: int) -> dict[str, list[float]]:
    """Seconds per epoch of each model in each round; the models take turns."""
    found: dict[str, list[float]] = {name: [] for name in models}
    for number in range(rounds + 1):
        for name, model in models.items():
            taken = seconds(model, data)
            if number > 0:  # the first turn compiles
                found[name].append(taken)
    return found


def epoch_table(users: int, rounds: int) -> list[str]:
    """Time per epoch of every model."""
    data = tnr.synthetic(users, users // 2, 80 * users, seed=1)
    found = turns(MODELS, data, rounds)
    base = found["TopNRank ReLU"]
    lines = [f"## One epoch over {len(data):,} ratings of {users:,} users", ""]
    lines += ["| model | ms per epoch | ns per rating | times Top-N-Rank.ReLU |", "|---|---|---|---|"]
    for name, times in found.items():
        middle = statistics.median(times)
        ratio = statistics.median(one / other for one, other in zip(times, base, strict=True))
        lines.append(f"| {name} | {1e3 * middle:.1f} | {1e9 * middle / len(data):.0f} | {ratio:.2f} |")
    return lines


def growth_table(rounds: int) -> list[str]:
    """Time per rating by the length of the lists."""
    per_rating: dict[str, list[float]] = {name: [] for name in GROWING}
    for length in LENGTHS:
        users = max(200_000 // length, 4)
        data = tnr.synthetic(users, 2 * length, users * length, min_list=length, seed=2)
        chosen = {name: MODELS[name] for name in GROWING if name != "XCLiMF" or length <= 2000}
        for name, times in turns(chosen, data, rounds).items():
            per_rating[name].append(statistics.median(times) / len(data))
    lines = ["", "## Time per rating, relative to lists of 20 items", ""]
    lines += ["| model | " + " | ".join(f"{length:,}" for length in LENGTHS) + " |", "|---" * (len(LENGTHS) + 1) + "|"]
    for name, values in per_rating.items():
        cells = [f"{value / values[0]:.2f}" for value in values] + ["-"] * (len(LENGTHS) - len(values))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, "", "XCLiMF compares all pairs; lists of 10,000 were left out for it."]


def main() -> None:
    """Prints the tables, and writes them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", type=Path, help="also write the page to this file")
    arguments = parser.parse_args()
    text = (__doc__ or "").strip().splitlines()[4:]
    lines = ["# Time per epoch", "", *text, "", environment(), ""]
    lines += [*epoch_table(arguments.users, arguments.rounds), *growth_table(max(arguments.rounds - 2, 1))]
    print("\n".join(lines))
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
