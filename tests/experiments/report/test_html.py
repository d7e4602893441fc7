"""The report as a page: well-formed, alone, complete, safe; and its figures as files."""

import dataclasses
import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from itertools import pairwise

import html5lib
import pytest

from support.comparisons import HOSTILE, METRICS, PROTOCOLS, REPEATS, small_comparison, small_summary
from topnrank.errors import OutputError, ParameterError
from topnrank.experiments.report.formatting import metric_label
from topnrank.experiments.report.html import to_html, write_report
from topnrank.experiments.report.plot_style import CONTROL, SERIES, VARIABLES, looks
from topnrank.experiments.report.plots import pictures
from topnrank.experiments.report.summary import Summary

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Reader(HTMLParser):
    """Elements, their attributes and texts; fails where an element is closed that is not the last opened one."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data.strip())

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def text() -> str:
    return to_html(small_summary())


@pytest.fixture(scope="module")
def read(text) -> Reader:
    return Reader(text)


def test_the_page_is_well_formed(text, read):
    parser = html5lib.HTMLParser(strict=True)
    parser.parse(text)
    assert parser.errors == []
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_page_stands_alone(text, read):
    for tag, attributes in read.elements:
        assert tag not in ("script", "link", "img", "iframe", "object"), tag
        for name in ("src", "href", "xlink:href", "action", "data"):
            assert attributes.get(name, "#").startswith("#"), (tag, name, attributes)
    assert "@import" not in text
    assert set(re.findall(r"url\(\s*['\"]?(.)", text)) <= {"#"}
    assert not re.search(r"https?://", text)


def test_what_is_linked_within_the_page_exists(text, read):
    ids = {attributes["id"] for _, attributes in read.elements if "id" in attributes}
    targets = {attributes["href"][1:] for _, attributes in read.elements if "href" in attributes}
    targets |= set(re.findall(r"url\(#([^)]+)\)", text))
    targets |= {attributes["aria-labelledby"] for _, attributes in read.elements if "aria-labelledby" in attributes}
    assert targets
    assert targets <= ids


def test_every_model_and_metric_is_there_with_its_numbers(read):
    words, comparison = " ".join(read.texts), small_comparison()
    for model in comparison.models:
        assert read.texts.count(model) >= 2 * len(PROTOCOLS) or model == "Broken", model
    for metric in METRICS:
        assert words.count(metric_label(metric)) >= 2
    for model in set(comparison.models) - {"Broken"}:
        for protocol in PROTOCOLS:
            assert f"{comparison.mean(model, protocol, 'ndcg@5'):.4f}" in read.texts
    assert words.count("failed: the objective became NaN in round 3 | lower learning_rate to 50 % of <it>") == len(
        PROTOCOLS
    )


def test_names_are_escaped(text, read):
    assert "<b>" not in text
    assert not read.of("b")
    assert not read.of("it")
    assert HOSTILE in read.texts


def test_the_page_is_small(text):
    assert len(text.encode()) < 2_000_000


def test_every_figure_is_named_for_those_who_do_not_see_it(read):
    drawings = read.of("svg")
    names = {"curves", "differences", "users", "runtime"}
    ids = {attributes["id"] for attributes in read.of("figure")}
    once = {"figure-objective", "figure-validation", "figure-lengths"}
    assert ids == {f"figure-{name}-{protocol}" for name in names for protocol in PROTOCOLS} | once
    assert len(drawings) == len(ids)
    assert all(drawing["role"] == "img" and len(drawing["aria-label"]) > 40 for drawing in drawings)
    assert len(read.of("figcaption")) == len(ids)


def test_headings_step_down_one_at_a_time_and_tables_are_labeled(read):
    levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    assert len(read.of("caption")) == len(read.of("table"))
    assert all(attributes.get("scope") in ("row", "col") for attributes in read.of("th"))
    regions = [attributes for attributes in read.of("div") if attributes.get("class") == "wide"]
    assert len(regions) == len(read.of("table"))
    assert all(region["tabindex"] == "0" and region["aria-label"] for region in regions)


def test_colors_follow_the_page(text):
    """Every color that figures are drawn with is a variable with a light and a dark value, and none is left as it was."""
    style, body = text.split("</style>")
    light, dark = style.split("prefers-color-scheme: dark", 1)
    for color, variable in VARIABLES.items():
        assert f"{variable}: {color}" in light, variable
        assert re.search(rf"{variable}: #[0-9a-f]{{6}};", dark), variable
        assert color not in body, color
    assert set(re.findall(r"#[0-9a-f]{6}\b", body)) <= set()
    assert 'name="viewport"' in text


def test_the_same_comparison_gives_the_same_page(text):
    assert to_html(small_comparison()) == text


def test_parameters_of_every_model_are_told(read):
    comparison = small_comparison()
    summaries = len(read.of("details"))
    assert summaries == len(PROTOCOLS) + sum(bool(given) for given in comparison.settings["parameters"].values())
    assert "Popularity: no parameters." in read.texts
    assert '"8"' in read.texts  # epochs of TopNRank


def test_a_reference_may_be_chosen():
    three = dataclasses.replace(small_comparison(), models=("ItemMean", HOSTILE, "Random"), protocols=("rated",))
    read = Reader(to_html(three, reference=HOSTILE))
    assert f"{HOSTILE} against the others at NDCG@10, rated items" in read.texts


def test_a_single_repeat_of_untrained_models_has_a_page():
    """No spread, no training curves, no validation: what has no numbers is left out."""
    comparison = small_comparison()
    models = ("ItemMean", "Popularity", "Random")
    cells = {key: cell for key, cell in comparison.cells.items() if key[0] in models and key[1] == 0}
    facts = {"users": 120}
    small = dataclasses.replace(
        comparison, models=models, cells=cells, repeats=1, protocols=("rated",), metrics=("ndcg@10",), facts=facts
    )
    read = Reader(to_html(small))
    assert {attributes["id"] for attributes in read.of("figure")} == {
        f"figure-{name}-rated" for name in ("differences", "users", "runtime")
    }
    assert not any("spread" in attributes.get("class", "") for attributes in read.of("span"))
    assert "120 users; ranking rated items; one split, the same for all models." in read.texts


def test_a_page_of_failures_is_still_a_page():
    comparison = small_comparison()
    cells = {("Broken", repeat): comparison.cells["Broken", repeat] for repeat in range(REPEATS)}
    read = Reader(to_html(dataclasses.replace(comparison, models=("Broken",), cells=cells)))
    assert "On rated items no model gave a number." in read.texts


def test_all_of_many_metrics_can_be_unfolded():
    metrics = tuple(f"ndcg@{k}" for k in range(1, 21))
    three = dataclasses.replace(small_comparison(metrics), models=("ItemMean", "Popularity", "Random"))
    read = Reader(to_html(three))
    assert "All 20 metrics" in read.texts
    assert all(metric_label(metric) in read.texts for metric in metrics)


def test_the_report_is_written_at_once_or_not_at_all(tmp_path):
    controls = dataclasses.replace(small_comparison(), models=("ItemMean", "Random"), protocols=("rated",))
    target = tmp_path / "report.html"
    write_report(controls, target)
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.endswith("</html>\n")
    with pytest.raises(ParameterError, match="reference must be one of"):
        write_report(controls, target, reference="nobody")
    assert target.read_text(encoding="utf-8") == text
    with pytest.raises(OutputError, match="its folder does not exist"):
        write_report(controls, tmp_path / "nowhere" / "report.html")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


# -- figures ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn():
    return {picture.name: picture for picture in pictures(small_summary())}


def test_figures_are_files(tmp_path, drawn):
    picture = drawn["curves-rated"]
    for kind, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        picture.write(tmp_path / f"figure.{kind}")
        assert (tmp_path / f"figure.{kind}").read_bytes().startswith(start)
    with pytest.raises(ParameterError, match="ending of a figure's file must be one of 'svg', 'pdf', 'png', got 'gif'"):
        picture.write(tmp_path / "figure.gif")


def test_every_figure_is_an_svg_document_with_text(drawn):
    for picture in drawn.values():
        root = ElementTree.fromstring(picture.svg())
        assert root.tag.endswith("svg")
        assert root.findall(".//{http://www.w3.org/2000/svg}text"), picture.name


def test_curves_show_the_means_at_the_cut_offs_present(drawn):
    comparison = small_comparison()
    axes = drawn["curves-catalog"].figure.axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert set(lines) == set(comparison.models) - {"Broken"}
    for model, line in lines.items():
        assert line.get_xdata().tolist() == [1, 3, 5, 10, 20]
        assert line.get_ydata().tolist() == [comparison.mean(model, "catalog", metric) for metric in METRICS]


def test_training_curves_are_those_of_the_cells(drawn):
    comparison = small_comparison()
    panels = {axes.get_title(loc="left"): axes for axes in drawn["objective"].figure.axes if axes.get_visible()}
    assert set(panels) == {"TopNRank", "BiasedMF", HOSTILE}
    for repeat, line in enumerate(panels["BiasedMF"].get_lines()):
        assert line.get_ydata().tolist() == [r["objective"] for r in comparison.cells["BiasedMF", repeat].curve]
    validation = drawn["validation"].figure.axes[0]
    assert validation.get_ylabel() == "validation NDCG@10"
    assert len(validation.get_lines()) == REPEATS


def test_a_model_looks_the_same_in_every_figure(drawn):
    expected = looks(small_summary())
    for name in ("curves-rated", "curves-catalog", "runtime-rated"):
        shown = {line.get_label(): line.get_color() for line in drawn[name].figure.axes[0].get_lines()}
        assert {model: color for model, color in shown.items() if not model.startswith("_")} == {
            model: expected[model].color for model in small_comparison().models if model != "Broken"
        }


def test_looks_are_distinct_and_controls_grey():
    names = [f"model {number}" for number in range(21)]
    kinds = {"kinds": {"mean": "item-mean"}}
    many = dataclasses.replace(small_comparison(), models=(*names, "ItemMean", "mean"), settings=kinds)
    found = looks(Summary.of(many))
    assert len({(look.color, look.marker, str(look.dashes)) for look in found.values()}) == len(found)
    assert {found[name].color for name in names} == set(SERIES)
    assert (found["ItemMean"].color, found["mean"].color) == CONTROL[:2]


def test_list_lengths_count_every_user(drawn):
    bars = drawn["lengths"].figure.axes[0].patches
    assert sum(bar.get_height() for bar in bars) == 120


def test_figures_leave_the_settings_of_matplotlib_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    pictures(small_summary())[0].svg()
    assert dict(matplotlib.rcParams) == before


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ParameterError, match=r"figures need Matplotlib; install it with: pip install 'topnrank\[report\]'"
    ):
        pictures(small_comparison())


def test_without_jinja_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        ParameterError, match=r"the report needs Jinja; install it with: pip install 'topnrank\[report\]'"
    ):
        to_html(small_comparison())


def test_every_name_is_in_the_legend_and_none_twice():
    names = ("_private", "model (rate=0.001, epochs=20)", "model (rate=0.002, epochs=20)", *(f"m{n}" for n in range(6)))
    comparison = small_comparison()
    cells = {(name, 0): comparison.cells["ItemMean", 0] for name in names}
    picture = pictures(dataclasses.replace(comparison, models=names, cells=cells, repeats=1, metrics=METRICS[:2]))[0]
    shown = [text.get_text() for text in picture.figure.legends[0].get_texts()]
    assert shown == ["\u200b_private", "model …1, epochs=2…", "model …2, epochs=2…", *names[3:]]
