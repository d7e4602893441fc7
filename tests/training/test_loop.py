"""The loop, the schedule and the callbacks, with an engine that only pretends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from topnrank.engines import State, StepReport
from topnrank.errors import DivergenceError, ParameterError
from topnrank.training import SGD, AdaGrad, EarlyStopping, Recorder, Round, Schedule, Tolerance, make_optimizer, train
from topnrank.training.schedule import batch_count


class FakeEngine:
    """Remembers who was visited; its one parameter counts the visits."""

    def __init__(self, moved=1.0, bad_at=0, bad=None):
        self.state = State({"x": np.zeros(1)}, {"x": np.zeros(1)})
        self.visited, self.moved, self.bad_at, self.bad = [], moved, bad_at, bad or {"value": np.nan}
        self.moments = []

    def step(self, users, when):
        self.visited.append(users.tolist())
        self.moments.append(when)
        self.state.parameters["x"] += 1
        report = StepReport(value=-2.0 * users.size, active=3 * users.size, lists=users.size, moved=self.moved)
        return report._replace(**self.bad) if len(self.visited) == self.bad_at else report


def make_schedule(**length):
    return Schedule(np.array([2, 3, 5, 7, 11, 13, 17]), batch=3, seed=4, **length)


@pytest.mark.parametrize("length", [{"rounds": 4}, {"rounds": 12, "whole": False}])
def test_visits_know_their_iteration_and_how_far_training_is(length):
    engine, resumed = FakeEngine(), FakeEngine()
    train(engine, make_schedule(**length))
    assert [when.iteration for when in engine.moments] == list(range(12))
    assert [when.progress for when in engine.moments] == pytest.approx(np.arange(12) / 11)
    train(resumed, make_schedule(**length), done=3)
    assert resumed.moments == engine.moments[-len(resumed.moments) :]


@given(n=st.integers(1, 40), batch=st.integers(1, 45), seed=st.integers(0, 5), round_=st.integers(0, 3))
def test_an_epoch_visits_every_user_once(n, batch, seed, round_):
    schedule = Schedule(np.arange(100, 100 + n), batch, seed, rounds=4)
    batches = list(schedule.batches(round_))
    assert sorted(np.concatenate(batches)) == list(range(100, 100 + n))
    assert all(users.size == batch for users in batches[:-1])
    assert len(batches) == -(-n // batch)


@given(n=st.integers(1, 40), batch=st.integers(1, 45), seed=st.integers(0, 5))
def test_an_iteration_draws_without_replacement(n, batch, seed):
    schedule = Schedule(np.arange(n), batch, seed, rounds=4, whole=False)
    for round_ in range(4):
        (users,) = schedule.batches(round_)
        assert users.size == min(batch, n) == np.unique(users).size


def test_batches_are_the_same_each_time_and_differ_between_rounds_and_seeds():
    one, again = make_schedule(rounds=2), make_schedule(rounds=2)
    assert_array_equal(np.concatenate(list(one.batches(1))), np.concatenate(list(again.batches(1))))
    assert np.concatenate(list(one.batches(0))).tolist() != np.concatenate(list(one.batches(1))).tolist()
    other = Schedule(one.users, 3, seed=5, rounds=2)
    assert np.concatenate(list(one.batches(0))).tolist() != np.concatenate(list(other.batches(0))).tolist()


@pytest.mark.parametrize(
    ("batch_size", "n_users", "expected"),
    [
        (50, 200, 50),
        (50, 20, 20),
        (0.1, 200, 20),
        (0.1, 3, 1),
        (1.0, 7, 7),
        (1, 7, 1),
        ("auto", 30, 30),
        ("auto", 6040, 201),
        ("auto", 138_493, 4616),
    ],
)
def test_batch_sizes_as_counts_and_shares(batch_size, n_users, expected):
    assert batch_count(batch_size, n_users) == expected


@pytest.mark.parametrize(("length", "visits"), [({"rounds": 2}, 6), ({"rounds": 5, "whole": False}, 5)])
def test_training_visits_all_rounds(length, visits):
    engine, recorder = FakeEngine(), Recorder()
    schedule = make_schedule(**length)
    assert train(engine, schedule, [recorder]) == schedule.rounds
    assert len(engine.visited) == visits
    expected = [users.tolist() for r in range(schedule.rounds) for users in schedule.batches(r)]
    assert engine.visited == expected


def test_a_round_is_averaged_over_its_lists():
    recorder = Recorder()
    train(FakeEngine(moved=0.5), make_schedule(rounds=2), [recorder])
    assert recorder.records == [
        {"round": r, "iteration": 3 * r, "objective": -2.0, "effective_n": 3.0, "moved": 1.5} for r in (1, 2)
    ]


def test_a_resumed_run_goes_on_where_the_other_ended():
    whole, first, second = FakeEngine(), FakeEngine(), FakeEngine()
    recorders = [Recorder() for _ in range(3)]
    train(whole, make_schedule(rounds=4), [recorders[0]])
    train(first, make_schedule(rounds=1), [recorders[1]])
    assert train(second, make_schedule(rounds=4), [recorders[2]], done=1) == 4
    assert whole.visited == first.visited + second.visited
    assert recorders[0].records == recorders[1].records + recorders[2].records


def test_a_run_that_is_done_visits_nobody():
    engine = FakeEngine()
    assert train(engine, make_schedule(rounds=2), done=2) == 2
    assert engine.visited == []


def test_all_callbacks_see_the_round_in_which_one_stops():
    recorder = Recorder()
    assert train(FakeEngine(moved=0.01), make_schedule(rounds=9), [Tolerance(0.1), recorder]) == 1
    assert len(recorder.records) == 1


@pytest.mark.parametrize(("moved", "rounds"), [(0.1, 5), (0.0999, 1)])
def test_tolerance_stops_below_epsilon(moved, rounds):
    assert train(FakeEngine(moved=moved), make_schedule(rounds=5, whole=False), [Tolerance(0.1)]) == rounds


@pytest.mark.parametrize("bad", [{"value": np.nan}, {"value": np.inf}, {"moved": np.inf}, {"moved": np.nan}], ids=str)
def test_divergence_names_the_iteration(bad):
    recorder = Recorder()
    with pytest.raises(DivergenceError, match="diverged in iteration 5: "):
        train(FakeEngine(bad_at=5, bad=bad), make_schedule(rounds=3), [recorder])
    assert len(recorder.records) == 1  # the round before is the last that callbacks saw


def stopping_on(values, patience=2):
    """Early stopping that measures `values`, one after another."""
    remaining = iter(values)
    return EarlyStopping(lambda engine: next(remaining), "ndcg@10", patience)


def test_early_stopping_keeps_the_best_round():
    stopping, recorder = stopping_on([0.1, 0.4, 0.3, 0.2, 0.9]), Recorder()
    assert train(FakeEngine(), make_schedule(rounds=9, whole=False), [stopping, recorder]) == 4
    assert (stopping.best_value, stopping.best_round) == (0.4, 2)
    assert stopping.best["x"].tolist() == [2.0]
    assert [record["ndcg@10"] for record in recorder.records] == [0.1, 0.4, 0.3, 0.2]


def test_a_value_that_only_equals_the_best_is_no_progress():
    assert train(FakeEngine(), make_schedule(rounds=9, whole=False), [stopping_on([0.5] * 9, patience=3)]) == 4


def test_early_stopping_has_memory():
    first = stopping_on([0.1, 0.4])
    train(FakeEngine(), make_schedule(rounds=2, whole=False), [first])
    second = stopping_on([0.3, 0.2, 0.9])
    second.recall(*first.memory())
    assert train(FakeEngine(), make_schedule(rounds=9, whole=False), [second], done=2) == 4
    assert (second.best_value, second.best_round, second.best["x"].tolist()) == (0.4, 2, [2.0])


def test_the_recorder_has_memory():
    first, second = Recorder(), Recorder()
    train(FakeEngine(), make_schedule(rounds=1), [first])
    second.recall(*first.memory())
    second.after_round(FakeEngine(), Round(2, 6, -1.0, 1.0, 0.1))
    assert [record["round"] for record in second.records] == [1, 2]
    assert len(first.records) == 1


@pytest.mark.parametrize(
    ("given_", "expected"), [("sgd", SGD()), ("adagrad", AdaGrad(30.0)), (AdaGrad(2.0), AdaGrad(2.0)), (SGD(), SGD())]
)
def test_optimizers_by_name_or_object(given_, expected):
    assert make_optimizer(given_) == expected


@pytest.mark.parametrize("bad", ["adam", None, AdaGrad(0.0), AdaGrad(-1.0), AdaGrad(float("nan")), AdaGrad("1")])
def test_other_optimizers_are_refused(bad):
    with pytest.raises(ParameterError, match=r"optimizer must be one of|AdaGrad.initial must be"):
        make_optimizer(bad)
