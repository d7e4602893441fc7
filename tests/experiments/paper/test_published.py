"""The paper's numbers, against what stands in its Tables 2 and 4."""

import pytest

from topnrank.experiments.paper.published import AMAZON, CUTS, METRICS, MOVIELENS, RELU, TABLE2, TABLE4, TABLES, TITLES


@pytest.mark.parametrize(
    ("table", "data", "row", "cut", "value"),
    [
        (TABLE2, AMAZON, "Top-N-Rank.ReLU", 1, 0.8186),
        (TABLE2, AMAZON, "non-Top-N.ReLU", 20, 0.8350),
        (TABLE2, AMAZON, "Top-N-Rank.sgm", 5, 0.7861),
        (TABLE2, AMAZON, "non-Top-N.sgm", 3, 0.7657),
        (TABLE2, MOVIELENS, "Top-N-Rank.ReLU", 10, 0.7469),
        (TABLE2, MOVIELENS, "non-Top-N.ReLU", 1, 0.7775),
        (TABLE2, MOVIELENS, "Top-N-Rank.sgm", 3, 0.7564),
        (TABLE2, MOVIELENS, "non-Top-N.sgm", 20, 0.6954),
        (TABLE4, AMAZON, "Top-N-Rank.ReLU", 20, 0.8383),
        (TABLE4, AMAZON, "MF-ADG", 1, 0.7809),
        (TABLE4, AMAZON, "xCLiMF", 1, 0.709),
        (TABLE4, AMAZON, "ListPMF-PL", 20, 0.78),
        (TABLE4, MOVIELENS, "CLiMF", 10, 0.691),
        (TABLE4, MOVIELENS, "xCLiMF", 5, 0.7271),
        (TABLE4, MOVIELENS, "ListRank", 3, 0.7423),
        (TABLE4, MOVIELENS, "ListPMF-PL", 5, 0.659),
    ],
)
def test_some_numbers(table: object, data: str, row: str, cut: int, value: float) -> None:
    assert table[data][row][CUTS.index(cut)] == value  # type: ignore[index]


def test_shape() -> None:
    assert METRICS == ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg@20")
    assert list(TABLES) == list(TITLES) == ["table2", "table4"]
    for table, rows in (("table2", 4), ("table4", 6)):
        assert list(TABLES[table]) == [AMAZON, MOVIELENS]
        assert all(len(part) == rows and next(iter(part)) == RELU for part in TABLES[table].values())


def test_relu_is_bold_in_every_column_there() -> None:
    for table in TABLES.values():
        for rows in table.values():
            assert all(rows[RELU] >= other for other in rows.values())
            assert all(max(column) == rows[RELU][at] for at, column in enumerate(zip(*rows.values(), strict=True)))
