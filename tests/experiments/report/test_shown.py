"""Results show themselves: short in a session, whole when printed, as tables in a notebook, and as figures."""

import re

import pytest

from topnrank import EASE, ParameterError, TopNRank, compare, evaluate, split_per_user, synthetic, tune

DATA = synthetic(60, 40, 1500, seed=2)
TRAIN, TEST = split_per_user(DATA, test=0.3)
MODEL = TopNRank(task="rated", factors=6, epochs=3).fit(TRAIN, validation=0.2)


@pytest.fixture(scope="module")
def comparison():
    return compare(
        [EASE(regularization=10.0), MODEL], DATA, repeats=2, metrics=["ndcg@10", "recall@5"], protocol="catalog"
    )


def test_a_session_shows_one_line(comparison):
    shown = [
        comparison,
        MODEL,
        TopNRank(),
        evaluate(MODEL, TEST),
        DATA,
        MODEL.fitted.info.history and MODEL.history_.plot(),
    ]
    assert all(len(repr(one)) < 300 and "\n" not in repr(one) for one in shown)
    assert repr(MODEL) == "TopNRank(factors=6, epochs=3, task='rated')" or "task='rated'" in repr(MODEL)
    assert repr(TopNRank()) == "TopNRank()"


def test_a_printed_comparison_is_the_table_with_the_tests(comparison):
    text = str(comparison)
    for words in ("top-n-rank", "random", "95 % ndcg@10", "Against ease", "p ", "Holm", "is best at NDCG@10"):
        assert words in text, words
    assert "2 repeats" in text
    assert "top-n-rank ran at" not in text  # its parameters were set
    assert text == str(comparison)


def test_one_repeat_has_no_deviation_and_the_verdict_says_who_was_not_tuned():
    once = compare([TopNRank(), EASE(regularization=10.0)], DATA, repeats=1, metrics="ndcg@10", controls=False)
    assert "± standard deviation" not in str(once)
    assert "1 repeats" not in str(once)
    assert "top-n-rank ran at its defaults, not tuned" in str(once)


def test_users_of_all_repeats_are_told(comparison):
    users = comparison.facts["users_counted"]["catalog"]
    changed = {**comparison.facts, "users_counted": {"catalog": [users[0], users[0] + 2]}}
    several = type(comparison)(
        **{**{n: getattr(comparison, n) for n in comparison.__dataclass_fields__}, "facts": changed}
    )
    assert f"over {users[0]} to {users[0] + 2} users" in str(several)


def test_a_notebook_shows_tables(comparison):
    tuned = tune(EASE, DATA, trials=2)
    for one in (comparison, MODEL, evaluate(MODEL, TEST), DATA, MODEL.history_, tuned):
        page = one._repr_html_()
        assert "<table>" in page
        assert len(re.findall("<tr>", page)) == len(re.findall("</tr>", page)) > 1
    assert "<script" not in compare({"<script>": EASE(regularization=1.0)}, DATA, repeats=1)._repr_html_()
    assert "validation rows" in str(tuned)
    assert tuned.table().num_rows == 2
    assert tuned.to_csv().startswith("trial,")


def test_tables_and_files(comparison, tmp_path):
    table, tests = comparison.table(), comparison.tests(reference="random")
    assert table.num_rows == len(comparison.models) * 2
    assert {"model", "mean", "low", "high", "stars"} <= set(table.column_names)
    assert set(tests["first"].to_pylist()) == {"random"}
    for kind in ("markdown", "latex", "csv", "json"):
        text = getattr(comparison, f"to_{kind}")(tmp_path / kind)
        assert (tmp_path / kind).read_text() == text
    comparison.report(tmp_path / "page.html")
    assert "top-n-rank" in (tmp_path / "page.html").read_text()


def test_plots(comparison, tmp_path):
    for picture in (comparison.plot(), comparison.plot("runtime"), MODEL.history_.plot(), DATA.plot()):
        assert picture._repr_html_().count("<svg") == 1
        picture.write(tmp_path / "figure.png")
    assert comparison.plot("runtime").name.startswith("runtime")
    with pytest.raises(ParameterError, match=r"no figure 'pie'.*differences"):
        comparison.plot("pie")
    with pytest.raises(ParameterError, match="not trained in rounds"):
        type(MODEL.history_)().plot()
