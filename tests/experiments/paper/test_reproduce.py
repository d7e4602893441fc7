"""reproduce: the paper's settings, our numbers beside its own, and what it leaves out."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

import topnrank as tnr
from topnrank.experiments.compare.run import compare
from topnrank.experiments.paper.page import to_markdown
from topnrank.experiments.paper.plan import DEFAULT, FAIR_PENALTIES, FAIR_RATES, RATES, Plan, make_plan
from topnrank.experiments.paper.published import METRICS, RELU, TABLE2
from topnrank.experiments.paper.reproduce import Reproduction, reproduce
from topnrank.experiments.tuning.grid import GridSearch

CONTROLS = ("item-mean", "popularity", "recent-popularity", "random")


@pytest.fixture(scope="module")
def data() -> tnr.Interactions:
    return tnr.synthetic(60, 40, seed=5)


@pytest.fixture(scope="module")
def made(data: tnr.Interactions) -> Reproduction:
    return reproduce("table2", data, name="ml-20m", repeats=2)


def test_table2_has_the_papers_settings(data: tnr.Interactions) -> None:
    rows = make_plan("table2", data).rows
    assert list(rows) == ["Top-N-Rank.ReLU", "non-Top-N.ReLU", "Top-N-Rank.sgm", "non-Top-N.sgm", DEFAULT]
    shared = {"factors": 10, "n": 20, "regularization": 0.1, "batch_size": 0.1, "iterations": 30, "tolerance": 0.1}
    shared |= {
        "epochs": None,
        "user_representation": "factors",
        "init": "paper",
        "bias": False,
        "feedback": tnr.Threshold(4.0),
    }
    for name, row in list(rows.items())[:4]:
        assert isinstance(row, GridSearch)
        assert row.grid == {"learning_rate": RATES}
        assert (row.validation, row.metric) == (0.25, "ndcg@10")
        parameters = row.model.get_params()
        assert {key: parameters[key] for key in shared} == shared
        assert (parameters["smoothing"], parameters["steepness"]) == (
            ("relu", None) if name.endswith("ReLU") else ("sigmoid", 7.0)
        )
        assert parameters["truncate"] is not name.startswith("non")
    assert rows[DEFAULT].get_params() == tnr.TopNRank().get_params()


def test_table4_has_the_papers_methods(data: tnr.Interactions) -> None:
    rows = make_plan("table4", data).rows
    assert list(rows) == [
        "Top-N-Rank.ReLU",
        "Top-N-Rank.sgm",
        "MF-ADG",
        "CLiMF",
        "xCLiMF",
        "ListRank",
        "ListPMF-PL",
        DEFAULT,
    ]
    for name, kind in (("MF-ADG", tnr.MFADG), ("CLiMF", tnr.CLiMF), ("ListPMF-PL", tnr.ListPMF)):
        row = rows[name]
        assert isinstance(row, GridSearch)
        assert isinstance(row.model, kind)
        assert (row.model.factors, row.model.user_representation) == (10, "factors")
        for parameter, least in (("learning_rate", 5), ("regularization", 4)):
            assert kind().get_params()[parameter] in row.grid[parameter]
            assert least <= len(row.grid[parameter]) <= least + 1
    mf_adg = rows["MF-ADG"]
    assert isinstance(mf_adg, GridSearch)
    assert mf_adg.model.get_params()["negatives"] == 100


def test_the_fair_ablation_gives_every_arm_the_same_chance(data: tnr.Interactions) -> None:
    rows = make_plan("table2", data, fair=True).rows
    longest = int(np.diff(data.indptr).max())
    arm = rows[f"{RELU}, N = {longest} (cuts nothing)"]
    assert isinstance(arm, GridSearch)
    assert (arm.model.get_params()["n"], arm.model.get_params()["truncate"]) == (longest, True)
    products = {}
    for name, row in rows.items():
        if isinstance(row, GridSearch):
            rates, penalties = row.grid["learning_rate"], row.grid["regularization"]
            products[name] = np.outer(rates, penalties)  # what one visit shrinks a vector by
    assert len(products) == 5
    for product in products.values():
        np.testing.assert_allclose(product, np.outer(FAIR_RATES, FAIR_PENALTIES), rtol=0.01)
    relu = rows[RELU]
    assert isinstance(relu, GridSearch)
    assert 0.1 in relu.grid["regularization"]  # the paper's


def test_the_sigmoid_needs_no_arm_that_cuts_nothing(data: tnr.Interactions) -> None:
    """With N larger than any list its gate is 1: the same model as without truncation."""
    longest = int(np.diff(data.indptr).max())
    settings: dict[str, Any] = {"smoothing": "sigmoid", "learning_rate": 0.03}
    whole = tnr.TopNRank.paper(truncate=False, **settings).fit(data)
    gated = tnr.TopNRank.paper(truncate=True, n=longest, **settings).fit(data)
    cut = tnr.TopNRank.paper(truncate=True, n=3, **settings).fit(data)
    np.testing.assert_allclose(gated.item_factors_, whole.item_factors_, rtol=1e-4, atol=1e-5)
    assert not np.allclose(cut.item_factors_, whole.item_factors_, rtol=1e-2)


def test_users_with_few_ratings_are_left_out() -> None:
    data = tnr.synthetic(30, 20, seed=1)
    lengths = np.diff(data.indptr)
    assert {9, 10} <= set(lengths)  # on both sides of the rule
    kept = make_plan("table2", data).data
    np.testing.assert_array_equal(kept.users.ids, data.users.ids[lengths >= 10])


def test_numbers_are_those_of_the_protocol_by_hand(made: Reproduction, data: tnr.Interactions) -> None:
    assert made.rows[:5] == tuple(make_plan("table2", data).rows)
    assert set(made.rows[5:]) == set(CONTROLS)
    values, excluded = [], []
    for seed in (0, 1):
        train, test = tnr.split_per_user(data, test=0.5, seed=seed)
        model = GridSearch(model=tnr.TopNRank.paper(), grid={"learning_rate": RATES}).fit(train)
        result = tnr.evaluate(model, test, metrics=METRICS, relevant=4.0)
        values.append([result[metric] for metric in METRICS])
        excluded.append(result.n_excluded)
        chosen = made.detail(RELU).chosen[seed]
        assert chosen == {"learning_rate": model.chosen_.get_params()["learning_rate"]}
    np.testing.assert_allclose(made.mean(RELU), np.mean(values, axis=0), rtol=1e-12)
    np.testing.assert_allclose(made.std(RELU), np.std(values, axis=0, ddof=1), rtol=1e-9)
    assert made.users_left_out() == excluded


def test_what_the_paper_leaves_out(made: Reproduction) -> None:
    relu, default = made.detail(RELU), made.detail(DEFAULT)
    assert relu.effective_n is not None
    assert 0 < relu.effective_n <= made.plan.train_lengths().mean()
    assert 0 < relu.seconds < relu.seconds_with_choice
    assert (default.effective_n, default.chosen, default.seconds) == (None, [{}, {}], default.seconds_with_choice)
    pairs = [(test.first, test.second, test.metric) for test in made.tests()]
    assert pairs[:-1] == [(RELU, row, "ndcg@10") for row in made.rows if row != RELU]
    assert pairs[-1] == ("Top-N-Rank.sgm", "non-Top-N.sgm", "ndcg@10")
    assert json.loads(json.dumps(made.to_dict()))["rows"][RELU]["published"]["ndcg@1"] == 0.7811


def test_published_numbers_stand_beside_ours(made: Reproduction) -> None:
    page = to_markdown(made)
    assert page.startswith("# Table 2: variants of Top-N-Rank, on ml-20m\n")
    line = next(line for line in page.splitlines() if line.startswith("| Top-N-Rank.ReLU |"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    pairs = [f"{ours:.4f} / {theirs:.4f}" for ours, theirs in zip(made.mean(RELU), TABLE2["ml-20m"][RELU], strict=True)]
    assert cells == [RELU, *pairs, f"{made.std(RELU)[3]:.4f}"]
    assert f"| {DEFAULT} | {made.mean(DEFAULT)[0]:.4f} / - |" in page
    assert "60 users with 10 ratings or more, 40 items, 1,200 ratings; 2 random halves" in page
    assert f"relevant: {made.users_left_out()[0]}" in page


def test_other_data_have_no_published_numbers(made: Reproduction) -> None:
    other = Reproduction(make_plan("table2", made.plan.data, name="mine.csv"), made.comparison)
    page = to_markdown(other)
    assert "0.7811" not in page
    assert "not the paper's data" in page
    assert other.published(RELU) is None


def test_the_end_of_a_grid_is_marked(data: tnr.Interactions) -> None:
    def detail(rates: tuple[float, ...]) -> Any:
        rows: dict[str, tnr.Model] = {RELU: GridSearch(model=tnr.TopNRank.paper(), grid={"learning_rate": rates})}
        plan = dataclasses.replace(make_plan("table2", data), rows=rows)
        return Reproduction(plan, compare(rows, data, repeats=1, protocol="rated")), plan

    edge, _ = detail((1e-3, 1e-9))
    assert edge.detail(RELU).at_edge == ["learning_rate"]
    assert "learning rate† " in to_markdown(edge)
    inner, _ = detail((1e-9, 1e-3, 1e30))
    assert inner.detail(RELU).chosen == [{"learning_rate": 1e-3}]
    assert inner.detail(RELU).at_edge == []
    assert "†" not in to_markdown(inner)


def test_a_row_that_fails_says_why(data: tnr.Interactions) -> None:
    plan = make_plan("table2", data)
    wild = GridSearch(model=tnr.TopNRank.paper(), grid={"learning_rate": (1e30,)})
    rows: dict[str, tnr.Model] = {RELU: GridSearch(model=tnr.TopNRank.paper(), grid={"n": (20,)}), "wild": wild}
    failing: Plan = dataclasses.replace(plan, rows=rows)
    made = Reproduction(failing, compare(rows, data, repeats=1, protocol="rated"))
    assert math.isnan(made.mean("wild")[0])
    line = next(line for line in to_markdown(made).splitlines() if line.startswith("| wild | failed"))
    assert "every point of the grid diverged" in line
    assert made.users_left_out() == [int(np.isnan(made.comparison.values(RELU, "rated", "ndcg@10")).sum())]


def test_a_second_run_gives_the_same_page(data: tnr.Interactions, tmp_path: Any) -> None:
    """From the folder: seconds included, so nothing was done again."""
    first = reproduce("table2", data, repeats=1, folder=tmp_path / "run")
    assert to_markdown(reproduce("table2", data, repeats=1, folder=tmp_path / "run")) == to_markdown(first)


def test_refusals(data: tnr.Interactions) -> None:
    with pytest.raises(tnr.ParameterError, match="did you mean 'table2'"):
        make_plan("tabel2", data)
    with pytest.raises(tnr.ParameterError, match="leave it out for table4"):
        make_plan("table4", data, fair=True)
    with pytest.raises(tnr.DataError, match="no user has 10 ratings or more"):
        make_plan("table2", tnr.synthetic(20, 9, 100))
    likes = tnr.Interactions.from_frame(data.to_arrow().drop_columns(["rating"]))
    with pytest.raises(tnr.DataError, match="need ratings"):
        make_plan("table2", likes)
