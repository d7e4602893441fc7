"""Models against each other: repeats on the same splits, statistics one can defend, competitors of other libraries."""
