"""Values as people type them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topnrank as tnr
from topnrank.cli.commands.train import ModelOptions
from topnrank.cli.values import parse_feedback, parse_history, parse_settings, split_list
from topnrank.cli.wording import as_options
from topnrank.errors import ParameterError


def test_settings_are_json_else_text() -> None:
    given_settings = ["a=1", "b=0.5", "c=true", "d=None", 'e={"x": [1]}', "f=relu", "g=x=y", "h=", 'i="7"']
    expected = {"a": 1, "b": 0.5, "c": True, "d": None, "e": {"x": [1]}, "f": "relu", "g": "x=y", "h": "", "i": "7"}
    assert parse_settings(given_settings) == expected


def test_numbers_may_be_written_as_people_write_them() -> None:
    assert parse_settings(["a=.02", "b=-.5", "c=1.", "d=+3", "e=.1E-2"]) == {
        "a": 0.02,
        "b": -0.5,
        "c": 1.0,
        "d": 3.0,
        "e": 0.001,
    }
    assert parse_settings(["a=.", "b=e3", "c=1.2.3"]) == {"a": ".", "b": "e3", "c": "1.2.3"}


def test_feedback() -> None:
    assert parse_feedback("threshold=3.5") == parse_feedback("threshold:3.5") == tnr.Threshold(3.5)
    assert parse_feedback("conversion=cart") == tnr.ConversionRate("cart")
    assert parse_feedback("events:buy=1, view=.1") == tnr.EventWeights({"buy": 1.0, "view": 0.1})
    assert parse_feedback("centered") == "centered"
    assert parse_feedback("recency=7:unary") == tnr.Recency(tnr.Unary(), 7.0)
    weights = tnr.EventWeights({"buy": 1.0, "view": 0.1})
    assert parse_feedback("recency=30:events:buy=1,view=.1") == tnr.Recency(weights, 30.0)
    for text, words in {
        "recency": "needs days and a feedback",
        "recency=30": "needs days and a feedback",
        "recency=soon:unary": "must be a number, got 'soon'",
        "recency=3:nothing": "feedback must be one of",
        "unary=3": "take a setting",
    }.items():
        with pytest.raises(ParameterError, match=words):
            parse_feedback(text)


def test_history() -> None:
    assert parse_history("318=5, 858=4.5") == [("318", 5.0), ("858", 4.5)]
    assert parse_history("a,b=c") == ["a", "b=c"]
    known = tnr.Interactions.from_arrays([1, 1, 1], ["a", "b", "d=e"]).items
    assert parse_history("a,d=e", known) == ["a", "d=e"]
    with pytest.raises(ParameterError, match="--history b=c: the rating of item b must be a number, got 'c'"):
        parse_history("b=c", known)
    assert split_list(["a, b", ",c,"]) == ["a", "b", "c"]


def test_remedies_name_options() -> None:
    assert as_options("a.csv: no item column; name it with item='...'") == (
        "a.csv: no item column; name it with --item '...'"
    )
    assert as_options("no column item='x'; say header=True or header=False") == (
        "no column item='x'; say --header or --no-header"
    )
    assert as_options("it failed; rank all items (TopNRank(task='catalog')), or task='rated'") == (
        "it failed; rank all items (--task catalog), or --task rated"
    )
    told = "the data has types; say what they mean with EventWeights({'buy': ..., 'add to cart': ...})"
    assert as_options(told).endswith("with --feedback events:buy=...,'add to cart'=...")
    assert (
        as_options("no item; leave it out with unknown_items='skip'; it knows i=1").count("--unknown-items skip") == 1
    )
    assert as_options("too long; use BPR with negatives=0") == "too long; use BPR with --set negatives=0"
    assert as_options("TopNRank.factors must be an integer, got 0") == "--set factors must be an integer, got 0"
    assert as_options("duplicates must be one of 'last'") == "--duplicates must be one of 'last'"
    assert as_options("nothing to fix") == "nothing to fix"


VALUES = ["abc", "5", "-1", "0", "true", "null", "[]", "{}", "NaN", "1e400", "0.5", '{"item": "x"}', "[1, 2]"]


@given(st.sampled_from(sorted(tnr.MODELS)), st.data())
def test_any_setting_is_taken_or_refused_in_words(model: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*tnr.MODELS[model]().get_params(), "nonsense"]))
    value = data.draw(st.sampled_from(VALUES) | st.text(max_size=5))
    with suppress(ParameterError):
        ModelOptions(model=model, settings=[f"{name}={value}"]).build(seed_has_other_use=False)


def test_seed_of_a_model_without_one() -> None:
    assert ModelOptions(model="item-mean", seed=3).build(seed_has_other_use=True).get_params() == {"damping": 5.0}
    with pytest.raises(ParameterError, match="seed"):
        ModelOptions(model="item-mean", seed=3).build(seed_has_other_use=False)
