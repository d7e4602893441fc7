"""The numbers of the paper: Liang, Hu, Dong, Honavar, "Top-N-Rank: A Scalable List-wise Ranking Method for Recommender
Systems" (IEEE Big Data 2018), Tables 2 and 4, as printed.

Mean NDCG over all users and five random halves. The paper gives no spreads and no times. Its own two runs of
Top-N-Rank.ReLU differ by up to 0.0072 (Amazon, NDCG@20), which is about how far its numbers can be trusted.
"""

CUTS = (1, 3, 5, 10, 20)
"""The columns: NDCG@1 to NDCG@20."""
METRICS = tuple(f"ndcg@{cut}" for cut in CUTS)

RELU, SIGMOID = "Top-N-Rank.ReLU", "Top-N-Rank.sgm"
PLAIN_RELU, PLAIN_SIGMOID = "non-Top-N.ReLU", "non-Top-N.sgm"
AMAZON, MOVIELENS = "amazon-video-games", "ml-20m"

Values = tuple[float, float, float, float, float]
Table = dict[str, dict[str, Values]]
"""Data set -> row -> one value for each of `CUTS`; rows in the paper's order."""

TABLE2: Table = {
    AMAZON: {
        RELU: (0.8186, 0.8009, 0.8079, 0.8334, 0.8455),
        PLAIN_RELU: (0.8033, 0.7866, 0.7976, 0.8242, 0.8350),
        SIGMOID: (0.7956, 0.7747, 0.7861, 0.8167, 0.8269),
        PLAIN_SIGMOID: (0.7871, 0.7657, 0.7780, 0.8109, 0.8196),
    },
    MOVIELENS: {
        RELU: (0.7811, 0.7648, 0.7532, 0.7469, 0.7521),
        PLAIN_RELU: (0.7775, 0.7593, 0.7466, 0.7389, 0.7430),
        SIGMOID: (0.7784, 0.7564, 0.7415, 0.7323, 0.7346),
        PLAIN_SIGMOID: (0.7575, 0.7315, 0.7121, 0.6968, 0.6954),  # there "non-Top-N-Rank.sgm"
    },
}

TABLE4: Table = {
    AMAZON: {
        RELU: (0.8135, 0.7964, 0.8043, 0.8325, 0.8383),
        "MF-ADG": (0.7809, 0.7646, 0.7762, 0.8103, 0.8178),
        "CLiMF": (0.7101, 0.7137, 0.7388, 0.7779, 0.7829),
        "xCLiMF": (0.709, 0.7131, 0.7381, 0.7776, 0.7823),
        "ListRank": (0.7045, 0.7106, 0.7367, 0.7761, 0.7809),
        "ListPMF-PL": (0.7043, 0.7123, 0.7376, 0.7762, 0.78),
    },
    MOVIELENS: {
        RELU: (0.7827, 0.7665, 0.7548, 0.7483, 0.7531),
        "MF-ADG": (0.7301, 0.6993, 0.6799, 0.6681, 0.6698),
        "CLiMF": (0.7459, 0.7187, 0.7013, 0.691, 0.6943),
        "xCLiMF": (0.7609, 0.7406, 0.7271, 0.7193, 0.7236),
        "ListRank": (0.7657, 0.7423, 0.7284, 0.7206, 0.7232),
        "ListPMF-PL": (0.6981, 0.6715, 0.659, 0.6568, 0.6638),
    },
}

TABLES: dict[str, Table] = {"table2": TABLE2, "table4": TABLE4}
TITLES = {
    "table2": "Table 2: variants of Top-N-Rank",
    "table4": "Table 4: Top-N-Rank against other list-wise methods",
}
