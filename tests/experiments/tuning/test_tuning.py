"""tune: on validation rows only, never below the defaults, the same again and after a kill."""

import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import topnrank as tnr
from support import killed_search
from support.killed_search import SPACE, TRIALS, outcome, search
from topnrank.experiments.tuning import study as study_module
from topnrank.experiments.tuning.study import STARTUP, WARM_UP
from topnrank.experiments.tuning.tune import tune
from topnrank.models.parameters import Choice, Range
from topnrank.models.persistence import read_params

pytest.importorskip("optuna")
QUICK: dict[str, Any] = {"num_threads": 1, "batch_size": 30}


@pytest.fixture(scope="module")
def data() -> tnr.Interactions:
    return tnr.synthetic(60, 40, seed=5)


@pytest.fixture(scope="module")
def found() -> Any:
    """The search of `killed_search`, undisturbed."""
    return search(None)


def test_the_first_trial_is_the_models_own(found: Any, data: tnr.Interactions) -> None:
    first = found.trials[0]
    assert first["settings"] == {"factors": 50, "learning_rate": 0.07, "n": 20}  # 50 factors are outside the space
    part, held_out = tnr.split_per_user(data, test=0.25, seed=2)
    own = tnr.TopNRank(task="rated", epochs=4, **QUICK).fit(part, validation=held_out)
    assert (first["ndcg@10"], first["epochs"]) == (own.fitted.info.validation["ndcg@10"], own.best_round_)
    assert found.value == max(trial["ndcg@10"] for trial in found.trials if trial["state"] == "complete")
    assert found.value >= first["ndcg@10"]


def test_the_best_trial_can_be_repeated_from_the_model_alone(found: Any, data: tnr.Interactions) -> None:
    best = max(found.trials, key=lambda trial: trial["ndcg@10"])
    assert {name: found.params[name] for name in best["settings"]} == best["settings"]
    assert (found.params["epochs"], found.params["batch_size"]) == (best["epochs"], 30)
    part, held_out = tnr.split_per_user(data, test=0.25, seed=2)
    assert tnr.evaluate(found.model.fit(part), held_out)["ndcg@10"] == pytest.approx(found.value, rel=1e-6)


def test_settings_stay_in_the_space(found: Any) -> None:
    assert len(found.trials) == TRIALS
    later = [trial["settings"] for trial in found.trials[1:]]
    assert {settings["factors"] for settings in later} == {2, 4}
    assert all(0.01 <= settings["learning_rate"] <= 0.3 for settings in later)
    assert all(isinstance(settings["n"], int) and 5 <= settings["n"] <= 50 for settings in later)
    assert len({settings["learning_rate"] for settings in later}) == len(later)


def test_the_same_seed_gives_the_same_search(found: Any, data: tnr.Interactions) -> None:
    assert outcome(search(None)) == outcome(found)
    model = tnr.TopNRank(task="rated", epochs=3, **QUICK)
    other = tune(model, data, trials=3, space=SPACE, seed=3)
    assert other.trials[1]["settings"] != found.trials[1]["settings"]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL does not exist on Windows")
@pytest.mark.process
def test_a_killed_search_ends_as_an_undisturbed_one(found: Any, tmp_path: Path) -> None:
    study = tmp_path / "study with a space.db"
    for report in (3, 12):  # in the very first trial, and within a later one
        command = [sys.executable, killed_search.__file__, str(study), str(report)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert outcome(search(study)) == outcome(found)


def test_a_study_goes_on_to_more_trials_and_does_none_twice(data: tnr.Interactions, tmp_path: Path) -> None:
    study, model = tmp_path / "s.db", tnr.TopNRank(task="rated", epochs=2, factors=2, **QUICK)
    options: dict[str, Any] = {"study": study, "space": {"learning_rate": Range(0.01, 0.3)}}
    three = tune(model, data, trials=3, **options)
    five = tune(model, data, trials=5, **options)
    assert five.trials[:3] == three.trials  # seconds included: nothing was done again
    assert len(five.trials) == 5
    assert tune(model, data, trials=2, **options).trials == five.trials
    assert outcome(tune(model, data, trials=5, space=options["space"])) == outcome(five)


def test_a_study_of_another_search_is_refused(data: tnr.Interactions, tmp_path: Path) -> None:
    study, model = tmp_path / "s.db", tnr.ItemMean()
    space = {"damping": Range(0.0, 50.0)}
    tune(model, data, trials=1, study=study, space=space)
    with pytest.raises(tnr.ParameterError, match=r"metric was 'ndcg@10' there and is 'map' now; give another study"):
        tune(model, data, trials=2, study=study, space=space, metric="map")
    with pytest.raises(tnr.ParameterError, match="data was"):
        tune(model, tnr.synthetic(60, 40, seed=6), trials=2, study=study, space=space)
    with pytest.raises(tnr.ParameterError, match="space was"):
        tune(model, data, trials=2, study=study, space={"damping": Range(0.0, 5.0)})


def test_trials_that_diverge_are_not_the_end(data: tnr.Interactions) -> None:
    model = tnr.TopNRank.paper(**QUICK)
    wild = tune(model, data, trials=4, space={"learning_rate": Choice((1e-3, 1e30))})
    states = [trial["state"] for trial in wild.trials]
    assert states[0] == "complete"
    assert "diverged" in states
    failed = wild.trials[states.index("diverged")]
    assert failed["ndcg@10"] is None
    assert "not finite" in failed["error"]
    assert wild.params["learning_rate"] == 1e-3
    model.set_params(learning_rate=1e30)
    with pytest.raises(tnr.DivergenceError, match="all 2 trials of top-n-rank diverged; give a space with smaller"):
        tune(model, data, trials=2, space={"learning_rate": Range(1e29, 1e30)})


def test_trials_that_fall_behind_are_given_up() -> None:
    """After a few good trials, one that learns next to nothing does not run to its end."""
    data = tnr.demo_data()
    model = tnr.BiasedMF(factors=2, init=0.1, epochs=2 * WARM_UP, num_threads=1)
    space = {"learning_rate": Choice((0.02, 0.019, 0.018, 1e-9))}
    trials = tune(model, data, trials=12, space=space, validation=0.5).trials
    assert all(trial["state"] == "complete" for trial in trials[:STARTUP])
    hopeless = [trial["state"] for trial in trials[STARTUP:] if trial["settings"]["learning_rate"] == 1e-9]
    assert set(hopeless) == {"pruned"}
    assert all(trial["state"] == "complete" for trial in trials if trial["settings"]["learning_rate"] == 0.02)


def test_what_is_searched(data: tnr.Interactions) -> None:
    whole = set(tnr.TopNRank.search_space()) - {"epochs"}
    settings = tune(tnr.TopNRank, data, trials=1, fixed=QUICK | {"task": "rated"}).trials[0]["settings"]
    assert set(settings) == whole
    fixed = QUICK | {"epochs": 2, "user_representation": "factors"}
    some = tune(tnr.TopNRank(task="rated", factors=3, squared_weight=0.5), data, trials=1, fixed=fixed)
    assert set(some.trials[0]["settings"]) == whole - {"factors", "squared_weight", "user_representation"}
    assert (some.trials[0]["epochs"], some.params["epochs"], some.params["factors"]) == (None, 2, 3)


def test_a_fixed_number_of_epochs_is_judged_at_its_end(data: tnr.Interactions) -> None:
    model = tnr.TopNRank(task="rated", epochs=4, learning_rate=1.0, factors=4, **QUICK)
    value = tune(model, data, trials=1, space={"n": Range(5, 20, whole=True)}).value
    part, held_out = tnr.split_per_user(data, test=0.25, seed=0)
    history = model.fit(part, validation=held_out, patience=4).history_
    assert value == history[-1]["ndcg@10"]
    assert value < max(record["ndcg@10"] for record in history)  # else this test shows nothing


def test_models_without_rounds(data: tnr.Interactions) -> None:
    found = tune(tnr.ItemMean, data, trials=5, space={"damping": Range(0.0, 50.0)}, metric="map@5")
    part, held_out = tnr.split_per_user(data, test=0.25, seed=0)
    values = {
        tnr.evaluate(tnr.ItemMean(**trial["settings"]).fit(part), held_out, metrics="map@5")["map@5"]
        for trial in found.trials
    }
    assert found.value == max(values)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"trials": 0}, "trials must be an integer of at least 1, got 0"),
        (
            {"space": {"factor": Choice((1,))}},
            "top-n-rank has no parameter 'factor' to search; its parameters: user_representation",
        ),
        ({"space": {"factors": 5}}, "the space of factors must be a Range or a Choice, got 5"),
        ({"space": {"factors": Choice((5, 0))}}, "TopNRank.factors must be"),
        ({"space": {"n": Range(0, 5, whole=True)}}, "TopNRank.n must be"),
        ({"space": {"n": Choice((5,))}, "fixed": {"n": 5}}, "n is in fixed and in space"),
        ({"fixed": {"factor": 5}}, "TopNRank has no parameter 'factor'"),
        ({"metric": "ndgc@10"}, "did you mean 'ndcg'"),
        ({"patience": 0}, "patience must be an integer"),
        ({"validation": 1.5}, "validation must be a fraction between 0 and 1"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], sentence: str, data: tnr.Interactions) -> None:
    with pytest.raises(tnr.ParameterError) as caught:
        tune(tnr.TopNRank, data, **{"trials": 1, **arguments})
    assert sentence in str(caught.value)


def test_nothing_to_search(data: tnr.Interactions) -> None:
    with pytest.raises(tnr.ParameterError, match="nothing is left to search for popularity"):
        tune(tnr.Popularity, data)


def test_bad_study_files(data: tnr.Interactions, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database at all, but long enough to be taken for one" * 100)
    for study, kind, sentence in (
        (tmp_path / "text.db", tnr.ModelFileError, "is not a study file of tune"),
        (tmp_path, tnr.OutputError, "is a folder"),
        (tmp_path / "nowhere" / "s.db", tnr.OutputError, "its folder does not exist"),
    ):
        with pytest.raises(kind, match=sentence):
            tune(tnr.ItemMean, data, trials=1, space={"damping": Range(0.0, 5.0)}, study=study)


def test_without_optuna(data: tnr.Interactions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(tnr.ParameterError, match=r"tune needs Optuna; install it with: pip install 'topnrank\[tune\]'"):
        tune(tnr.TopNRank, data)


def test_optuna_says_nothing(data: tnr.Interactions, capfd: pytest.CaptureFixture[str]) -> None:
    import optuna

    before = optuna.logging.get_verbosity()
    tune(tnr.ItemMean, data, trials=2, space={"damping": Range(0.0, 5.0)})
    assert capfd.readouterr() == ("", "")
    assert optuna.logging.get_verbosity() == before == logging.INFO


def test_parameters_go_into_a_file_and_back(found: Any, tmp_path: Path) -> None:
    found.save_params(tmp_path / "best.json")
    name, parameters = read_params(tmp_path / "best.json")
    assert name == "top-n-rank"
    machine = {"num_threads": 0, "engine": "cpu"}
    assert tnr.TopNRank(**parameters).get_params() == found.params | machine
    paper = tnr.TopNRank.paper(regularization={"user": 0.5})
    tuned = type(found)(paper, 0.5, "ndcg@10", [])
    tuned.save_params(tmp_path / "paper.json")
    assert tnr.TopNRank(**read_params(tmp_path / "paper.json")[1]).get_params() == paper.get_params()
    assert json.loads((tmp_path / "paper.json").read_text())["validation_value"] == 0.5


def test_bad_parameter_files(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    for text, sentence in (
        ("{", "is not JSON"),
        ("[1]", "holds no JSON object"),
        ('{"model": "top-n-rnk", "parameters": {}}', "did you mean 'top-n-rank'"),
        ('{"model": "top-n-rank", "parameters": [1]}', "'parameters' must be a JSON object"),
        ('{"feedback": {"feedback": 3}}', "feedback cannot be read"),
        ('{"feedback": {"feedback": {"kind": "thresold"}}}', "did you mean 'threshold'"),
    ):
        file.write_text(text)
        with pytest.raises(tnr.ParameterError) as caught:
            read_params(file)
        assert sentence in str(caught.value)
    with pytest.raises(tnr.ParameterError, match="cannot be read"):
        read_params(tmp_path / "nowhere.json")
    file.write_text('{"factors": 7, "regularization": {"item": 0.5}}')
    assert read_params(file) == (None, {"factors": 7, "regularization": {"item": 0.5}})


def test_ranges_are_asked_for_as_they_are() -> None:
    """Whole numbers stay whole, both ends belong to the range, choices keep their objects."""
    import optuna

    policy = tnr.Threshold(3.0)
    with study_module.quiet():
        trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    space = {"a": Range(1, 3, whole=True), "b": Range(0.5, 0.5), "c": Choice((policy,))}
    drawn = {name: study_module._suggest(trial, name, values) for name, values in space.items()}
    assert (drawn["b"], drawn["c"]) == (0.5, policy)
    assert drawn["a"] in (1, 2, 3)
    assert isinstance(drawn["a"], int)
    assert study_module._inside(space, {"a": 0, "b": 0.5, "c": tnr.Threshold(3.0)}) == {"b": 0.5, "c": 0}
