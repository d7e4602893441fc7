"""How many functions a reader has to follow: each step of the usual work walks through few of them."""

import pytest

from support.walks import walked
from topnrank import TopNRank, compare, synthetic
from topnrank.cli import main

DATA = synthetic(60, 40)


GIVEN = {"task": "rated", "epochs": 2}
"""Of a training whose settings are given; to choose them on held-out rows is a training and many evaluations more."""


def fit():
    return TopNRank(**GIVEN).fit(DATA)


def check(call, most):
    found = walked(call)
    count = sum(map(len, found.values()))
    lines = [f"{file} {len(names)}: {', '.join(names)}" for file, names in found.items()]
    assert count <= most, "\n".join([f"{count} functions, at most {most} are wanted:", *lines])


def test_recommend():
    model = TopNRank(epochs=2).fit(DATA)
    check(lambda: model.recommend([DATA.users.ids[3]]), 25)


def test_fit():
    check(fit, 80)


@pytest.mark.usefixtures("capsys")
def test_train(tmp_path):
    rows = [f"{user},{item},{1 + user * item % 5}" for user in range(60) for item in range(40) if user * item % 3]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *rows]))
    arguments = ["train", str(tmp_path / "ratings.csv"), "-o", str(tmp_path / "m.safetensors"), "--set", "epochs=1"]
    arguments += ["--set", "task=rated"]
    check(lambda: main(arguments), 184)


def test_compare():
    check(lambda: compare([TopNRank(**GIVEN)], DATA, protocol="rated", repeats=2), 170)


def test_compare_without_controls():
    check(lambda: compare([TopNRank(**GIVEN)], DATA, protocol="rated", repeats=2, controls=False), 154)
