"""Data and a small model for tests of `compare`."""

from topnrank import (
    BiasedMF,
    synthetic,
)
from topnrank.experiments.compare.result import Comparison

DATA = synthetic(50, 40, 1200, seed=2)


def small(**parameters):
    return BiasedMF(factors=4, epochs=2, num_threads=1, **parameters)


def same_values(first: Comparison, second: Comparison) -> None:
    """Every number of every cell, bit by bit."""
    assert first.models == second.models
    assert first.cells.keys() == second.cells.keys()
    for place, cell in first.cells.items():
        other = second.cells[place]
        assert (cell.error, cell.curve) == (other.error, other.curve)
        assert cell.values.keys() == other.values.keys()
        for key, values in cell.values.items():
            assert values.tobytes() == other.values[key].tobytes(), (place, key)
