"""Bad input: exit code 2 and one line with place, rule, value and remedy."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from support.cli_runner import Run, ratings_text
from topnrank.io.tensors import read_file, write_file

GOOD = ratings_text()
HEADER = "user,item,rating\n"
ONE_EACH = HEADER + "".join(f"u{user},i{user % 3},{1 + user % 5}\n" for user in range(9))
EQUAL = HEADER + "".join(f"u{user},i{item},3\n" for user in range(9) for item in range(4))
EQUAL_WEIGHTS = "user,item,weight\n" + "".join(f"u{user},i{item},2\n" for user in range(9) for item in range(4))
ZERO_WEIGHTS = EQUAL_WEIGHTS.replace(",2\n", ",0\n")

FILES: dict[str, tuple[str, str | bytes, tuple[str, ...]]] = {
    "empty": ("a.csv", "", ("a.csv", "is empty", "at least one row")),
    "header only": ("a.csv", HEADER, ("a.csv", "no rows")),
    "missing column": ("a.csv", "user,when,rating\n1,2,3\n", ("a.csv", "no item column", "'when'", "--item '...'")),
    "wrong separator": ("a.csv", "user item rating\n1 2 3\n", ("a.csv", "--separator ' '")),
    "rating is text": ("a.csv", GOOD + "x,y,good\n", ("a.csv, line", "'rating'", "finite number", "'good'", "fix")),
    "rating is nan": ("a.csv", GOOD + "x,y,nan\n", ("a.csv, line", "'rating'", "finite number", "null", "fix")),
    "rating is infinite": ("a.csv", GOOD + "x,y,inf\n", ("a.csv, line", "'rating'", "finite number", "inf", "fix")),
    "user is empty": ("a.csv", GOOD + ",y,3\n", ("a.csv, line", "'user'", "must not be empty", "remove the row")),
    "item is empty": ("a.csv", GOOD + "x,,3\n", ("a.csv, line", "'item'", "must not be empty", "remove the row")),
    "bad encoding": ("a.csv", GOOD.encode() + b"x,Am\xe9lie,3\n", ("a.csv, line", "0xe9", "UTF-8")),
    "truncated gzip": ("a.csv.gz", gzip.compress(GOOD.encode())[:-20], ("a.csv.gz", "truncated or damaged", "again")),
    "duplicate": ("a.csv", HEADER + "a,b,3\na,b,4\n", ("line 3", "'a'", "'b'", "once", "--duplicates last")),
    "users with one item": ("a.csv", ONE_EACH, ("every user has one item only", "longer lists")),
    "equal ratings": ("a.csv", EQUAL, ("all 36 ratings are 3", "no order", "Popularity")),
    "equal weights": ("a.csv", EQUAL_WEIGHTS, ("every user has observed all", "--task rated")),
    "zero weights": ("a.csv", ZERO_WEIGHTS, ("nobody likes anything", "feedback")),
    "a model": ("a.bin", b"\x10\0\0\0\0\0\0\0" + b"{" + b" " * 15, ("a.bin", "model file")),
}


@pytest.mark.parametrize("name", FILES)
def test_training_data(name: str, tmp_path: Path, run: Run) -> None:
    file, content, fragments = FILES[name]
    path = tmp_path / file
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    task = ("--task", "rated") if name in ("users with one item", "equal ratings") else ()
    run("train", path, "-o", tmp_path / "m.safetensors", *task).assert_refused(*fragments)
    assert [found.name for found in tmp_path.iterdir()] == [file]


def test_truncated_parquet(tmp_path: Path, run: Run) -> None:
    pq.write_table(pa.table({"user": [1, 2], "item": [1, 2]}), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole[:-30])
    run("info", tmp_path / "a.parquet").assert_refused("a.parquet", "truncated or damaged", "again")


def test_places_without_data(tmp_path: Path, run: Run) -> None:
    run("info", tmp_path / "none.csv").assert_refused("none.csv", "no such file", "check the path")
    run("info", tmp_path).assert_refused(str(tmp_path), "no data files", "another folder")
    run("evaluate", tmp_path / "m.safetensors", tmp_path / "none.csv").assert_refused("m.safetensors", "no such model")


TRAIN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "factors below 1": (("--set", "factors=0"), ("--set factors", "at least 1", "got 0")),
    "n below 1": (("--set", "n=0"), ("--set n", "at least 1", "got 0")),
    "negative rate": (("--set", "learning_rate=-1"), ("--set learning_rate", "above 0", "got -1")),
    "negative penalty": (("--set", "regularization=-0.5"), ("regularization", "at least 0", "-0.5")),
    "text for a number": (("--set", "factors=many"), ("--set factors", "integer", "'many'")),
    "null for a number": (("--set", "discount=null"), ("--set discount", "got None")),
    "smoothing": (("--set", "smoothing=cosine"), ("smoothing", "'relu'", "'laplace'", "'cosine'")),
    "model": (("--model", "top-rank"), ("--model must be one of", "'biased-mf'", "did you mean 'top-n-rank'")),
    "metric": (("--validation", "0.2", "--metric", "ndgc@10"), ("metric", "'ndgc'", "did you mean 'ndcg'")),
    "cut-off": (("--validation", "0.2", "--metric", "ndcg@0"), ("cut-off", "at least 1", "'ndcg@0'")),
    "patience": (("--validation", "0.2", "--patience", "0"), ("patience", "at least 1", "got 0")),
    "engine": (("--engine", "gpux"), ("engine", "'cpu'", "'gpux'")),
    "seed": (("--seed", "-1"), ("--set seed", "at least 0", "got -1")),
    "feedback": (("--feedback", "stars"), ("--feedback", "centered", "'stars'")),
    "threshold": (("--feedback", "threshold=high"), ("--feedback threshold", "number", "'high'")),
    "event weight": (("--feedback", "events:buy=much"), ("--feedback events", "number", "'much'")),
    "events without weights": (("--feedback", "events:"), ("EventWeights.weights", "must map")),
    "setting of none": (("--feedback", "centered=3"), ("'centered=3'", "threshold=RATING")),
    "unknown setting": (("--set", "facors=3"), ("TopNRank has no parameter 'facors'", "factors", "learning_rate")),
    "no value": (("--set", "factors"), ("--set", "NAME=VALUE", "'factors'")),
    "twice": (("--set", "factors=2", "--set", "factors=3"), ("--set factors", "twice", "once")),
    "two ways": (("--set", "seed=2", "--seed", "3"), ("seed", "--set", "its own option", "once")),
    "task": (("--task", "sampled"), ("task", "'rated'", "'catalog'", "'sampled'")),
    "task of another": (("--task", "rated", "--model", "bpr"), ("--task", "top-n-rank", "bpr", "leave it out")),
    "task two ways": (("--task", "rated", "--set", "task=catalog"), ("task", "--set", "its own option", "once")),
    "paper": (("--paper", "tanh"), ("smoothing", "'relu'", "'sigmoid'", "'tanh'")),
    "paper of another": (("--paper", "relu", "--model", "random"), ("--paper", "--model random", "leave one out")),
    "truncate alone": (("--no-truncate",), ("--no-truncate", "--paper", "--set truncate=false")),
    "metric alone": (("--metric", "map@10"), ("--metric", "--validation", "add it")),
    "rounds of none": (("--model", "popularity", "--validation", "0.1"), ("popularity", "rounds", "--validation")),
    "threads of none": (("--model", "item-mean", "--threads", "2"), ("ItemMean", "'num_threads'", "damping")),
    "filter": (("--min-user-items", "999"), ("no rows are left", "min_user_items=999", "lower them")),
    "negative filter": (("--min-user-items", "-1"), ("--min-user-items", "at least 0", "-1")),
    "holdout share": (("--holdout", "1.5"), ("--holdout", "between 0 and 1", "1.5")),
    "validation share": (("--validation", "0"), ("--validation", "between 0 and 1", "0")),
    "holdout file alone": (("--holdout-file", "t.csv"), ("--holdout-file", "--holdout", "add it")),
    "holdout format": (("--holdout", "0.5", "--holdout-file", "t.xls"), ("t.xls", ".parquet", ".csv", "rename")),
    "format": (("--format", "xls"), ("format", "'csv'", "'xls'")),
    "duplicates": (("--duplicates", "first"), ("duplicates", "'last'", "'first'")),
    "column": (("--item", "movie"), ("ratings.csv", "'movie'", "'item'")),
    "position": (("--item", "7"), ("ratings.csv", "item=7", "3", "counted from 0")),
    "option": (("--sparator", ";"), ("--sparator", "--separator", "--help")),
    "number": (("--threads", "two"), ("--threads", "integer", "--help")),
}


@pytest.mark.parametrize("name", TRAIN)
def test_options_of_train(name: str, ratings: Path, tmp_path: Path, run: Run) -> None:
    options, fragments = TRAIN[name]
    run("train", ratings, "-o", tmp_path / "m.safetensors", *options).assert_refused(*fragments)
    assert not list(tmp_path.iterdir())


EVALUATE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "protocol": (("--protocol", "sampled"), ("protocol", "'rated'", "'catalog'", "'sampled'")),
    "metric": (("--metrics", "ndcg@10,dcg@5"), ("metric", "'ndcg'", "'dcg'")),
    "no metric": (("--metrics", " , "), ("metrics", "at least one", "'ndcg@10'")),
    "relevant": (("--relevant", "high"), ("--relevant", "number", "'high'")),
    "nothing relevant": (("--relevant", "9"), ("no test row is relevant", "rating >= 9", "between 1 and 5")),
    "threads": (("--threads", "-1"), ("--threads", "-1")),
    "per user": (("--per-user", "users.xml"), ("users.xml", ".parquet", "rename")),
}


@pytest.mark.parametrize("name", EVALUATE)
def test_options_of_evaluate(name: str, ratings: Path, model_file: Path, run: Run) -> None:
    options, fragments = EVALUATE[name]
    run("evaluate", model_file, ratings, *options).assert_refused(*fragments)


RECOMMEND: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "nobody": ((), ("exactly one of", "--user", "--history", "got 0")),
    "two ways": (("--user", "u1", "--all"), ("exactly one of", "got 2")),
    "all to the terminal": (("--all",), ("--all", "--output")),
    "n below 1": (("--user", "u1", "-n", "0"), ("n must be", "at least 1", "got 0")),
    "unknown user": (("--user", "nobody"), ("does not know user", "'nobody'", "24 users", "'u0'")),
    "unknown rule": (("--user", "u1", "--unknown", "guess"), ("unknown", "'popular'", "'guess'")),
    "unknown item": (("--user", "u1", "--exclude", "i1,zz"), ("does not know item", "'zz'")),
    "nothing allowed": (("--user", "u1", "--allow", "i1", "--exclude", "i1"), ("no item is left", "at least one")),
    "empty history": (("--history", ","), ("history is empty", "at least one item")),
    "item of the history": (("--history", "zz=5"), ("does not know item", "'zz'")),
    "half rated": (("--history", "i1=5,i2"), ("ratings", "for all items or none")),
    "infinite rating": (("--history", "i1=inf,i2=3"), ("ratings", "finite")),
    "twice": (("--history", "i1=5,i1=3"), ("twice", "once")),
    "format": (("--all", "-o", "top.xlsx"), ("top.xlsx", ".parquet", "rename")),
    "min score": (("--user", "u1", "--min-score", "high"), ("--min-score", "number", "--help")),
    "half a rule": (
        ("--user", "u1", "--max-per-group", "2"),
        ("--groups and --max-per-group go together", "is missing"),
    ),
    "no groups": (("--user", "u1", "--groups", "none.csv"), ("none.csv", "cannot be read", "check the path")),
    "no histories": (("--histories", "none.csv"), ("none.csv",)),
    "rule for items": (("--history", "i1=5", "--unknown-items", "guess"), ("--unknown-items", "'skip'", "'guess'")),
    "nothing known": (("--history", "zz=5", "--unknown-items", "skip"), ("'zz'", "holds nothing else", "'i0'")),
    "no titles": (("--user", "u1", "--titles", "none.csv"), ("none.csv", "cannot be read", "check the path")),
    "no users file": (("--users-file", "none.txt"), ("none.txt", "cannot be read", "check the path")),
}


@pytest.mark.parametrize("name", RECOMMEND)
def test_options_of_recommend(name: str, model_file: Path, run: Run) -> None:
    options, fragments = RECOMMEND[name]
    run("recommend", model_file, *options).assert_refused(*fragments)


BESIDE: dict[str, tuple[str, str, bytes, tuple[str, ...]]] = {
    "foreign titles": ("--titles", "t.csv", b"item,title\nzz,Up\n", ("t.csv", "no title for any item", "'i0'")),
    "one column": ("--titles", "t.csv", b"item\ni1\n", ("t.csv", "two columns", "separator")),
    "short row": ("--titles", "t.csv", b"item,title\ni1,Up\ni2\n", ("t.csv, row 2", "2 fields", "got 1")),
    "titles in Latin-1": ("--titles", "t.csv", b"item,title\ni1,Am\xe9lie\n", ("t.csv", "UTF-8")),
    "broken Parquet": ("--titles", "t.parquet", b"PAR1", ("t.parquet", "Parquet", "again")),
    "groups without a header": (
        "--groups",
        "g.csv",
        b"i1,a\ni2,b\n",
        ("g.csv", "column item and a column group", "i1, a"),
    ),
    "two groups": ("--groups", "g.csv", b"item,group\ni1,a\ni1,b\n", ("g.csv", "'i1'", "two groups")),
    "short row of groups": ("--groups", "g.csv", b"item,group\ni1\n", ("g.csv, row 1", "2 fields", "got 1")),
    "items without a name": ("--exclude-file", "e.csv", b"film\ni1\n", ("e.csv", "needs a column item", "film")),
    "items of a stranger": ("--exclude-file", "e.csv", b"user,item\nann,i1\n", ("names user 'ann'", "does not know")),
    "unknown item": ("--allow-file", "a.txt", b"i1\nzz\n", ("does not know item", "'zz'")),
    "histories of strangers": ("--histories", "h.csv", b"user,item\nann,zz\n", ("user 'ann'", "'zz'", "nothing else")),
    "no users": ("--users-file", "u.txt", b"\n \n", ("u.txt", "no user ids", "one on each line")),
}


@pytest.mark.parametrize("name", BESIDE)
def test_files_beside_the_model(name: str, model_file: Path, tmp_path: Path, run: Run) -> None:
    option, file, content, fragments = BESIDE[name]
    (tmp_path / file).write_bytes(content)
    user = () if option in ("--users-file", "--histories") else ("--user", "u1", "--max-per-group", "1")
    user = user if option == "--groups" else user[:2]
    run("recommend", model_file, option, tmp_path / file, *user).assert_refused(*fragments)


def test_ids_that_do_not_overlap(model_file: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "users.csv").write_text(HEADER + "ann,i1,5\n")
    (tmp_path / "items.csv").write_text(HEADER + "u1,film,5\n")
    for kind, theirs, ours in (("user", "'ann'", "'u0'"), ("item", "'film'", "'i0'")):
        refused = run("evaluate", model_file, tmp_path / f"{kind}s.csv")
        refused.assert_refused(f"no {kind} of the test data", theirs, ours, "ids the model was trained on")


def changed_model(model_file: Path, path: Path, **changes: Any) -> Path:
    """A copy of the model whose description is changed."""
    facts, arrays = read_file(model_file, "model")
    write_file(path, "model", arrays, {k: v for k, v in facts.items() if k not in ("kind", "format")} | changes)
    return path


def test_model_files_of_another_kind_or_version(model_file: Path, tmp_path: Path, run: Run) -> None:
    newer = changed_model(model_file, tmp_path / "newer.safetensors", format=99)
    run("recommend", newer, "--all", "-o", "x.csv").assert_refused("newer.safetensors", "format 99", "upgrade")
    other = changed_model(model_file, tmp_path / "other.safetensors", model="climf-2")
    run("info", other).assert_refused("other.safetensors", "'climf-2'", "upgrade")
    checkpoint = changed_model(model_file, tmp_path / "run.safetensors", kind="checkpoint")
    run("info", checkpoint).assert_refused("run.safetensors", "checkpoint file", "a model file is needed")
    save_file({"weights": np.zeros(3)}, tmp_path / "foreign.safetensors")
    run("info", tmp_path / "foreign.safetensors").assert_refused("foreign.safetensors", "not one of topnrank")


def test_broken_model_files(model_file: Path, ratings: Path, tmp_path: Path, run: Run) -> None:
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(model_file.read_bytes()[:-100])
    run("recommend", cut, "--user", "u1").assert_refused("cut.safetensors", "damaged or cut off", "make it again")
    run("recommend", ratings, "--user", "u1").assert_refused("ratings.csv", "is not a topnrank model file")
    run("recommend", tmp_path, "--user", "u1").assert_refused(str(tmp_path), "is a folder", "model file")


def test_places_that_cannot_be_written(ratings: Path, model_file: Path, tmp_path: Path, run: Run) -> None:
    nowhere = tmp_path / "none" / "m.safetensors"
    run("train", ratings, "-o", nowhere).assert_refused(str(nowhere), "cannot be written", "create its folder")
    inside_a_file = ratings / "m.safetensors"
    run("train", ratings, "-o", inside_a_file).assert_refused(str(inside_a_file), "cannot be written", "another place")
    run("train", ratings, "-o", tmp_path).assert_refused(str(tmp_path), "is a folder", "name of a file")
    run("demo", "-o", tmp_path / "none").assert_refused("demo.safetensors", "cannot be written", "create its folder")
    table = tmp_path / "none" / "top.csv"
    run("recommend", model_file, "--all", "-o", table).assert_refused(str(table), "cannot be written")
    run("evaluate", model_file, ratings, "--per-user", table).assert_refused(str(table), "cannot be written")
    used = ("train", ratings, "-o", tmp_path / "m.safetensors", "--checkpoint", ratings / "folder")
    refused = run(*used)
    assert refused.code == 2
    assert "cannot be created" in refused.err


def test_commands(run: Run) -> None:
    run("trian").assert_refused("No such command 'trian'", "--help")
    run("models", "nothing").assert_refused("'nothing'", "'item-mean'")
    run("train").assert_refused("Missing", "DATA", "--help")
