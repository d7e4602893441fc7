"""What people type: columns of other fields, titles as they are, fixed splits, new rows, similar items."""

import pytest

import topnrank as tnr
from topnrank.io.tables import write_table

DATA = tnr.synthetic(40, 30, 600, seed=4)
TRAIN, TEST = tnr.split_per_user(DATA, test=0.3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    for name, part in (("all", DATA), ("train", TRAIN), ("test", TEST)):
        write_table(str(folder / f"{name}.csv"), part.to_arrow())
    tnr.TopNRank(task="rated", factors=4, epochs=2).fit(DATA).save(folder / "m.safetensors")
    items = DATA.items.ids.tolist()
    (folder / "titles.dat").write_text("".join(f"{item}::Film {item} (1999)::Drama\n" for item in items))
    (folder / "named.txt").write_text("nr;year;film\n" + "".join(f"{item};1999;Film {item}\n" for item in items))
    return folder


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Customer;SKU;Score", "ratings"),
        ("User_ID;Thing_ID;Hours", "weights"),
        ("player;Game_ID;plays", "weights"),
        ("Listener;trackId;count", "weights"),
    ],
)
def test_columns_of_other_fields(folder, run, header, found):
    (folder / "other.csv").write_text(f"{header}\na;x;3\na;y;4\nb;x;5\n")
    assert found in run("info", folder / "other.csv", "--json").json


def test_several_columns_of_ids_are_not_guessed(folder, run):
    (folder / "ids.csv").write_text("user_id,order_id,thing_id,rating\n1,2,3,4\n")
    run("info", folder / "ids.csv").assert_refused("no item column", "'order_id', 'thing_id'", "--item '...'")


def test_many_numbers_are_no_types_of_events(folder, run):
    rows = "".join(f"u{k},i{k},{k}\n" for k in range(1, 11))
    (folder / "feedback.csv").write_text("user_id,item_id,Feedback\n" + rows)
    facts = run("info", folder / "feedback.csv", "--json").json
    assert len(facts["ratings"]) == 10
    assert "taken for ratings" in facts["notes"][0]
    (folder / "few.csv").write_text("user_id,item_id,Feedback\n1,2,view\n1,3,buy\n")
    assert run("info", folder / "few.csv", "--json").json["types"] == {"buy": 1, "view": 1}


def test_info_describes_repeated_rows(folder, run):
    (folder / "twice.csv").write_text("user,item,rating\n1,2,3\n1,2,5\n1,3,4\n")
    facts = run("info", folder / "twice.csv", "--json").json
    assert (facts["rows"], facts["repeated_rows"]) == (2, 1)
    assert "1 of 3 rows repeat" in facts["notes"][0]


def test_columns_that_are_not_used_are_told(folder, run):
    (folder / "shop.csv").write_text(
        "CUSTOMER_ID,DAY,PRODUCT_ID,AMOUNT\n1,11/1/2000,2,3\n1,13/1/2000,3,1\n2,1/1/2001,3,2\n"
    )
    assert run("info", folder / "shop.csv", "--json").json["columns_not_used"] == ["DAY", "AMOUNT"]
    trained = run(
        "train", folder / "shop.csv", "--weight", "AMOUNT", "-m", "popularity", "-o", folder / "p.safetensors"
    )
    assert "shop.csv: columns not used: DAY" in trained.err
    run("info", folder / "shop.csv", "--timestamp", "DAY").assert_refused(
        "line 2", "'DAY'", "'11/1/2000'", "as 2026-01-31"
    )
    nameless = folder / "nameless.csv"
    nameless.write_text("s,d,y\n1,2,3\n")
    run("info", nameless).assert_refused("no user column and no item column", "--user '...' and --item '...'")


@pytest.mark.parametrize("options", [("titles.dat",), ("named.txt", "--title-columns", "nr,film")])
def test_titles_are_read_as_data_are(folder, run, options):
    asked = ("recommend", folder / "m.safetensors", "--user", DATA.users.ids[0], "-n", 2, "--json")
    rows = run(*asked, "--titles", folder / options[0], *options[1:]).json["recommendations"]
    assert [row["title"].startswith(f"Film {row['item']}") for row in rows] == [True, True]
    wrong = run("similar", folder / "m.safetensors", "1", "--titles", folder / "named.txt", "--title-columns", "nr,no")
    wrong.assert_refused("--title-columns needs ITEM,TITLE", "nr, year, film")


def test_similar_items(folder, run):
    first, second = map(str, DATA.items.ids[:2].tolist())
    rows = run("similar", folder / "m.safetensors", first, second, "-n", "3", "--json").json["similar"]
    model = tnr.load(folder / "m.safetensors")
    assert [row["item"] for row in rows[:3]] == model.similar_items(DATA.items.ids[0], n=3)["item"].to_pylist()
    assert len(rows) == 6
    assert run("similar", folder / "m.safetensors", first, "-o", folder / "alike.csv").code == 0
    run("similar", folder / "m.safetensors", "no such").assert_refused("does not know item 'no such'")


def test_new_rows_are_taken_in(folder, run):
    item = DATA.items.ids[0]
    (folder / "new.csv").write_text(f"user,item,rating\n99999,{item},5\n")
    facts = run("update", folder / "m.safetensors", folder / "new.csv", "-o", folder / "n.safetensors", "--json").json
    assert (facts["new_users"], facts["new_items"], facts["new_rows"]) == (1, 0, 1)
    assert 99999 in tnr.load(folder / "n.safetensors").user_ids_
    tnr.EASE(regularization=5.0).fit(DATA).save(folder / "ease.safetensors")
    run("update", folder / "ease.safetensors", folder / "new.csv").assert_refused("EASE cannot take in new rows")


def test_a_fixed_split_is_compared(folder, run):
    fixed = ("--train", folder / "train.csv", "--test", folder / "test.csv")
    options = (
        "--models",
        "popularity",
        "--protocol",
        "catalog",
        "--no-controls",
        "--repeats",
        "1",
        "--metric",
        "ndcg@10",
    )
    found = run("compare", *fixed, *options, "--json").json["results"][0]["values"]["ndcg@10"]["mean"]
    train, test = (tnr.read(folder / f"{part}.csv") for part in ("train", "test"))
    assert found == pytest.approx(tnr.evaluate(tnr.Popularity().fit(train), test)["ndcg@10"])
    run("compare", *fixed[:2], *options).assert_refused("give DATA, or --train FILE and --test FILE")
    run("compare", folder / "all.csv", *fixed, *options).assert_refused("give DATA, or --train FILE")
    run("compare", *fixed, *options, "--split", "last").assert_refused("--split does not go with --train")


def test_a_model_and_its_tuned_settings_are_two_rows(folder, run):
    tnr.models.persistence.write_params(folder / "best.json", tnr.ItemMean(damping=1.0))
    options = ("--models", "item-mean", "--params", folder / "best.json", "--repeats", "1", "--metric", "ndcg@10")
    rows = run("compare", folder / "all.csv", *options, "--no-controls", "--protocol", "rated", "--json").json["models"]
    assert rows == ["item-mean", "item-mean-tuned"]


def test_messages_name_options(folder, run):
    known = DATA.items.ids[0]
    model = folder / "m.safetensors"
    run("recommend", model, "--history", f"{known}=buy", "-q").assert_refused(
        f"--history {known}=buy", "must be a number"
    )
    run("recommend", model, "--history", f"{known}=5,99999=2", "-q").assert_refused("--unknown-items skip")
    (folder / "ev.csv").write_text("user,item,event\n1,2,buy\n1,3,view\n2,2,buy\n")
    run("train", folder / "ev.csv", "-o", folder / "e.safetensors").assert_refused("--feedback events:buy=...,view=...")
    run("train", folder / "all.csv", "-o", folder / "e.safetensors", "--feedback", "unari").assert_refused(
        "--feedback must be one of", "events:TYPE=WEIGHT", "'unary'"
    )
