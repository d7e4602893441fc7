"""Study files: one search at a time, under any name, and a full disk is one sentence."""

import os

import pytest

import topnrank as tnr
from topnrank.errors import DiskError, OutputError
from topnrank.experiments.tuning.study import only_one
from topnrank.experiments.tuning.tune import tune

pytest.importorskip("optuna")
DATA = tnr.synthetic(20, 15, 120, seed=3)


def search(path):
    return tune(tnr.EASE, DATA, trials=1, study=path)


def test_of_two_searches_in_one_file_the_second_is_refused(tmp_path):
    """It would end the trials of the first."""
    with only_one(tmp_path / "study.db"), pytest.raises(OutputError, match="another process searches with this study"):
        search(tmp_path / "study.db")
    assert len(search(tmp_path / "study.db").trials) == 1


@pytest.mark.parametrize("name", ["a?b.db", "c%20d.db", "e#f.db", "g h.db"])
def test_the_file_has_the_name_that_was_given(tmp_path, name):
    search(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == [f".{name}.lock", name]


def test_a_disk_that_is_full_is_one_sentence(tmp_path):
    from optuna.exceptions import StorageInternalError

    def full():
        with only_one(tmp_path / "study.db"):
            raise StorageInternalError("An exception is raised during the commit") from OSError(28, "No space left")

    with pytest.raises(OutputError, match=r"a trial cannot be written \(.*No space left.*the same command goes on"):
        full()


def test_a_disk_that_is_full_while_the_study_is_made_is_no_damaged_file(tmp_path, monkeypatch):
    """Optuna wraps SQLAlchemy's error, and that wraps SQLite's."""
    import sqlite3

    import optuna
    from sqlalchemy.exc import OperationalError

    def full(*_):
        below = sqlite3.OperationalError("database or disk is full")
        below.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise optuna.exceptions.StorageInternalError("commit") from OperationalError("COMMIT", {}, below)

    monkeypatch.setattr("optuna.storages.RDBStorage", full)
    with pytest.raises(DiskError, match=r"study\.db: cannot be written \(database or disk is full\)"):
        search(tmp_path / "study.db")


def test_a_trial_whose_end_could_not_be_written_is_tried_again(tmp_path, monkeypatch):
    """Its facts were written, its state was not: it is no trial that diverged."""
    import optuna

    undisturbed = tune(tnr.EASE, DATA, trials=2)
    tell = optuna.Study.tell

    def full(study, trial, *values, **options):
        if trial.number == 1:
            raise optuna.exceptions.StorageInternalError("commit") from OSError(28, "No space left")
        return tell(study, trial, *values, **options)

    with monkeypatch.context() as broken:
        broken.setattr(optuna.Study, "tell", full)
        with pytest.raises(OutputError, match="the same command goes on"):
            tune(tnr.EASE, DATA, trials=2, study=tmp_path / "study.db")
    again = tune(tnr.EASE, DATA, trials=2, study=tmp_path / "study.db")
    for found, wanted in zip(again.trials, undisturbed.trials, strict=True):
        assert (found["state"], found["settings"]) == (wanted["state"], wanted["settings"])
