"""Tables of real comparisons: every number and name is there, nothing of others' text breaks a format."""

import csv
import dataclasses
import io
import json
import re
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from support.comparisons import HOSTILE, METRICS, PROTOCOLS, REPEATS, cell, small_comparison, small_summary
from topnrank.errors import ParameterError
from topnrank.experiments.compare.result import Cell, Comparison
from topnrank.experiments.report.data import to_csv, to_dict, to_json
from topnrank.experiments.report.formatting import (
    format_p,
    format_seconds,
    format_signed,
    format_test,
    format_value,
    metric_label,
    short_labels,
    shorten,
)
from topnrank.experiments.report.html import to_html
from topnrank.experiments.report.latex import to_latex
from topnrank.experiments.report.markdown import to_markdown
from topnrank.experiments.report.summary import Summary
from topnrank.experiments.report.terminal import to_terminal
from topnrank.experiments.statistics import bootstrap_intervals, paired_tests, per_user, stars


def markdown_tables(text: str) -> list[list[list[str]]]:
    """The cells of every pipe table; an escaped pipe divides nothing."""
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", text, flags=re.MULTILINE)
    return [[re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in block.splitlines()] for block in blocks]


@pytest.fixture(scope="module")
def markdown() -> str:
    return to_markdown(small_summary())


@pytest.fixture(scope="module")
def latex() -> str:
    return to_latex(small_summary())


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    return json.loads(to_json(small_summary()), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.fixture(scope="module")
def csv_rows() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(small_comparison(), reference="ItemMean"))))


def with_cells(comparison: Comparison, cells: dict[tuple[str, int], Cell]) -> Comparison:
    return dataclasses.replace(comparison, cells={**comparison.cells, **cells})


def test_markdown_has_a_row_per_model_with_the_means_of_the_comparison(markdown):
    comparison = small_comparison()
    means, tests, *_ = markdown_tables(markdown)
    assert means[0] == ["Model", "NDCG@1", "NDCG@3", "NDCG@5", "NDCG@10", "NDCG@20", "Time to fit"]
    assert len({len(row) for row in means}) == 1
    assert len(means) == 2 + len(comparison.models)
    values = [[cell_.strip("*") for cell_ in row] for row in means[2:]]
    for model, row in zip(comparison.models, values, strict=True):
        if model != "Broken":
            for metric, text in zip(METRICS, row[1:], strict=False):
                mean, std = comparison.mean(model, "rated", metric), comparison.std(model, "rated", metric)
                assert text == f"{mean:.4f} ± {std:.4f}"
    assert len(tests) == 2 + len(METRICS) * (len(comparison.models) - 2)


def test_the_best_of_each_column_is_bold_and_nothing_else(markdown):
    comparison = small_comparison()
    for protocol, table in zip(PROTOCOLS, markdown_tables(markdown)[::2], strict=True):
        for place, metric in enumerate(METRICS, 1):
            shown = {model: round(comparison.mean(model, protocol, metric), 4) for model in comparison.models}
            best = {model for model, mean in shown.items() if mean == np.nanmax(list(shown.values()))}
            bold = {model for model, row in zip(comparison.models, table[2:], strict=True) if "**" in row[place]}
            assert bold == best, (protocol, metric)


def test_a_failed_row_says_why_in_every_format(markdown, latex, csv_rows, content):
    why = "failed: the objective became NaN in round 3"
    assert f"| Broken ({why} \\| lower learning_rate to 50 % of \\<it>) | - |" in markdown
    assert re.search(r"Broken & \\multicolumn\{6\}.*" + why + r" \\textbar\{\} lower learning\\_rate", latex)
    broken = [row for row in csv_rows if row["model"] == "Broken"]
    assert {row["mean"] for row in broken} == {""}
    assert all(row["note"].startswith(why) for row in broken)
    cells = [one for one in content["cells"] if one["model"] == "Broken"]
    assert [one["error"][:13] for one in cells] == ["the objective"] * REPEATS


def test_a_model_that_fails_once_keeps_its_other_repeats():
    comparison = small_comparison()
    failed = Cell("BiasedMF", 1, 0.0, 0.0, {}, [], "out of luck")
    changed = with_cells(dataclasses.replace(comparison, models=("ItemMean", "BiasedMF")), {("BiasedMF", 1): failed})
    row = next(row for row in markdown_tables(to_markdown(changed))[0] if row[0].startswith("BiasedMF"))
    assert row[0] == "BiasedMF (failed: in 1 of 3 repeats: out of luck)"
    others = np.mean([np.nanmean(comparison.cells["BiasedMF", r].values["rated", "ndcg@10"]) for r in (0, 2)])
    assert row[4].strip("*").startswith(f"{others:.4f}")


def test_csv_is_tidy_and_has_the_numbers_of_the_comparison(csv_rows):
    comparison = small_comparison()
    keys = [(row["model"], row["protocol"], row["metric"]) for row in csv_rows]
    assert set(keys) == {(m, p, k) for m in comparison.models for p in PROTOCOLS for k in METRICS}
    assert len(keys) == len(set(keys))
    tests = {(t.second, t.protocol, t.metric): t for t in paired_tests(comparison, "ItemMean")}
    for key, row in zip(keys, csv_rows, strict=True):
        if row["mean"]:
            assert float(row["mean"]) == comparison.mean(*key)
            values = per_user(comparison.values(*key))
            assert (float(row["low"]), float(row["high"])) == pytest.approx(bootstrap_intervals([values])[0], abs=1e-12)
            assert int(row["users"]) == (~np.isnan(values)).sum()
        if key[0] in ("ItemMean", "Broken"):
            assert row["difference"] == ""
        else:
            assert float(row["difference"]) == tests[key].difference
            assert float(row["wilcoxon_holm"]) == tests[key].wilcoxon_holm


def test_json_is_complete_and_strict(content):
    comparison = small_comparison()
    assert content["models"] == list(comparison.models)
    assert content["settings"] == json.loads(json.dumps(comparison.settings))
    assert content["facts"] == comparison.facts
    assert len(content["results"]) == len(comparison.models) * len(PROTOCOLS)
    assert all(set(result["values"]) == set(METRICS) for result in content["results"])
    assert len(content["cells"]) == len(comparison.models) * REPEATS
    assert content["cells"][0]["curve"] == comparison.cells["TopNRank", 0].curve
    score = content["results"][0]["values"]["ndcg@10"]
    assert score["interval"] == list(small_summary().rows["rated"][0].scores["ndcg@10"].interval)
    assert np.mean(score["by_repeat"]) == pytest.approx(score["mean"])
    assert {test["second"] for test in content["tests"]} == set(comparison.models) - {"TopNRank", "Broken"}


def test_statistics_are_computed_once_for_all_formats(monkeypatch):
    from topnrank.experiments.report import summary as module

    calls: list[str] = []
    for name in ("bootstrap_intervals", "paired_tests"):
        original = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given, name=name, original=original: (calls.append(name), original(*given))[1]
        )
    only = dataclasses.replace(small_comparison(), models=("ItemMean", "Popularity", "Random"), protocols=("rated",))
    summary = Summary.of(only)
    for _ in range(2):
        for render in (to_markdown, to_latex, to_csv, to_dict, to_html, to_terminal):
            render(summary)
    assert sorted(calls) == ["bootstrap_intervals", "paired_tests"]  # the best row is the reference here


def test_one_star_rule_in_every_format(markdown, latex, content):
    """Stars where both tests agree; a test that is significant by Student's t alone has none."""
    test = dataclasses.replace(small_summary().tests("rated")[0], t_holm=0.0007, wilcoxon_holm=0.09, difference=0.0041)
    assert (test.p, test.stars, format_test(test)[2]) == (0.09, "", "+0.0041")
    assert dataclasses.replace(test, wilcoxon_holm=0.009).stars == "**"
    assert dataclasses.replace(test, t_holm=float("nan"), wilcoxon_holm=0.0009).stars == "***"  # t is not defined
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(*to_terminal(small_summary()), soft_wrap=True)
    terminal = console.export_text()
    page = to_html(small_summary())
    assert "lie below 0.05, ** where both lie below 0.01, *** where both lie below 0.001" in terminal
    assert "where both corrected p values" in latex
    assert "where both corrected p values" in markdown
    assert page.count("where both corrected p values") == len(PROTOCOLS) + 1
    assert [one["stars"] for one in content["tests"]] == [
        one.stars for protocol in PROTOCOLS for one in small_summary().tests(protocol)
    ]
    shown = small_summary().tests("rated")
    for one in shown:
        assert f"{format_signed(one.difference)} {one.stars}".strip() in terminal


def test_latex_escapes_names_and_closes_what_it_opens(latex):
    plain = latex.replace(r"\{", "").replace(r"\}", "")
    assert r"\textless{}b\textgreater{}" + '"' + r"\&'\textbar{}\_x\_" in latex
    assert "<" not in latex
    for begin, end in (("{", "}"), (r"\begin{table}", r"\end{table}"), (r"\begin{tabular}", r"\end{tabular}")):
        assert plain.count(begin) == plain.count(end) > 0, begin
    for body in re.findall(r"\\midrule\n(.*?)\n\\bottomrule", latex, flags=re.DOTALL):
        full = [line for line in body.splitlines() if "multicolumn" not in line]
        assert len({len(re.findall(r"(?<!\\)&", line)) for line in full}) == 1
    assert all(rule in latex for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"$\pm$"))


def test_markdown_escapes_names(markdown):
    assert HOSTILE not in markdown
    assert r"""\<b>"&'\|\_x\_""" in markdown


def test_conventions_stand_below_each_table(markdown, latex):
    for text in (markdown, latex):
        for words in ("own test items are ranked", "random order", "per-user", "numpy", "rating", "Holm", "0, 1, 2"):
            assert words in text, words
        assert text.rindex("numpy") > text.index("ItemMean")


def test_many_cut_offs_are_measured_but_the_usual_ones_shown():
    metrics = tuple(f"ndcg@{k}" for k in range(1, 21))
    comparison = dataclasses.replace(small_comparison(metrics), models=("TopNRank", "ItemMean"))
    text = to_markdown(comparison)
    assert markdown_tables(text)[0][0] == ["Model", *(f"NDCG@{k}" for k in (1, 3, 5, 10, 20)), "Time to fit"]
    assert "Also measured: NDCG@2, NDCG@4," in text
    assert len(list(csv.DictReader(io.StringIO(to_csv(comparison))))) == len(comparison.models) * 2 * 20


def test_an_unknown_reference_lists_the_rows():
    with pytest.raises(ParameterError, match="reference must be one of 'TopNRank', 'BiasedMF'"):
        to_markdown(small_comparison(), reference="TopNrank")


def test_the_verdict_names_the_best_and_those_not_significantly_worse():
    comparison = small_comparison()
    for protocol in PROTOCOLS:
        verdict = small_summary().verdict(protocol)
        means = {model: comparison.mean(model, protocol, "ndcg@10") for model in comparison.models if model != "Broken"}
        best = max(means, key=means.__getitem__)
        assert f"{best} is best at NDCG@10 ({means[best]:.4f})" in verdict
        tests = [t for t in paired_tests(comparison, best) if (t.protocol, t.metric) == (protocol, "ndcg@10")]
        even = [t.second for t in tests if max(t.t_holm, t.wilcoxon_holm) >= 0.05]
        assert (" not significantly worse" in verdict) == bool(even), verdict
        head = verdict.partition(" not significantly worse")[0]
        assert all((model in head) == (model in even) for model in means if model != best) or not even, verdict


def test_the_verdict_says_when_a_control_wins():
    comparison = small_comparison()
    same = with_cells(
        comparison, {("TopNRank", r): cell_as(comparison, "Random", "TopNRank", r) for r in range(REPEATS)}
    )
    only = dataclasses.replace(same, models=("TopNRank", "ItemMean", "Random"))
    verdict = Summary.of(only).verdict("rated")
    assert verdict.startswith("On rated items, ItemMean is best")
    assert "every other model is significantly worse, " in verdict
    assert verdict.endswith("; no trained model beats this simple control.")


def test_equal_models_are_not_called_better():
    comparison = small_comparison()
    twins = {("BiasedMF", r): cell_as(comparison, "TopNRank", "BiasedMF", r) for r in range(REPEATS)}
    only = dataclasses.replace(with_cells(comparison, twins), models=("TopNRank", "BiasedMF"))
    assert Summary.of(only).verdict("rated").endswith("; BiasedMF is not significantly worse.")


def test_a_comparison_without_numbers_says_so():
    comparison = dataclasses.replace(small_comparison(), models=("Broken",))
    assert "On rated items no model gave a number." in to_markdown(comparison)
    assert json.loads(to_json(comparison))["tests"] == []


def cell_as(comparison: Comparison, source: str, name: str, repeat: int) -> Cell:
    """The cell of one row under the name of another."""
    return dataclasses.replace(comparison.cells[source, repeat], model=name)


def test_joint_intervals_are_those_of_each_column_alone():
    values = np.random.default_rng(3).normal(size=(57, 4))
    values[:9, 1] = np.nan
    values[1:, 3] = np.nan
    joint = bootstrap_intervals(list(values.T), draws=300)
    alone = [bootstrap_intervals([column], draws=300)[0] for column in values.T]
    np.testing.assert_allclose(joint, alone, atol=1e-12)
    assert np.isnan(joint[3]).all()
    assert joint[0] != joint[1]


def test_cells_are_from_real_fits():
    """What the tests above read was learned: a model that learns beats chance."""
    comparison = small_comparison()
    assert comparison.mean("TopNRank", "rated", "ndcg@10") > comparison.mean("Random", "rated", "ndcg@10") + 0.05
    assert np.array_equal(
        cell("ItemMean", 1).values["rated", "ndcg@10"],
        comparison.cells["ItemMean", 1].values["rated", "ndcg@10"],
        equal_nan=True,
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "yes"),
        (None, "none"),
        (1000209, "1,000,209"),
        (0.5, "0.5"),
        ([7, 7, 7], "7 each time"),
        ([0, 1], "0, 1"),
        ({"rated": [1, 2], "all_items": {"k": 3}}, "rated (1, 2), all items (k 3)"),
        (list(range(101)), "101 values, minimum 0, median 50, maximum 100"),
        ("two\nlines", "two lines"),
    ],
)
def test_settings_in_words(value, text):
    assert format_value(value) == text


def test_numbers_in_words():
    assert [format_signed(value) for value in (0.01234, -0.00001, float("nan"))] == ["+0.0123", "0.0000", "-"]
    assert [format_p(p) for p in (0.0001, 0.0314, float("nan"))] == ["<0.001", "0.031", "-"]
    assert [stars(p) for p in (0.0001, 0.001, 0.04, 0.05, float("nan"))] == ["***", "**", "*", "", ""]
    assert [format_seconds(s) for s in (0.0004, 0.25, 12.34, 300.0, 7200.0)] == [
        "0.4 ms",
        "250 ms",
        "12.3 s",
        "5.0 min",
        "2.0 h",
    ]
    assert shorten("TopNRank (user_representation=history)", 12) == "TopNRa…tory)"
    names = ["top-n-rank (learning_rate=0.07, epochs=20)", "top-n-rank (learning_rate=9, epochs=20)", "random"]
    assert list(short_labels(names, 19).values()) == ["top-n-…0.07, epoch…", "top-n-…9, epochs=2…", "random"]
    assert len(set(short_labels([f"{'a' * 50}{n % 2}{'b' * 50}{n}{'c' * 50}" for n in range(30)], 12).values())) == 30
    assert metric_label("ndcg_graded@5") == "graded NDCG@5"
