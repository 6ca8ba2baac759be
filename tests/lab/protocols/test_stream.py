"""The protocol `stream` against loops written out by hand with the same seeds."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from peerlearn import RVFLClassifier, data, graphs
from peerlearn.algorithms.streaming import StreamConsensus, StreamExact
from peerlearn.data import DataSet
from peerlearn.errors import DataError, InputError
from peerlearn.lab.description.comparison import Comparison, Data, Model, Net
from peerlearn.lab.protocols.stream import Stream

L, B, ALPHA = 4, 15, 0.5
RING = Net("ring", fixed=graphs.ring(L))
NEVER = 10**6


class Recorder(ClassifierMixin, BaseEstimator):
    """Learns nothing, and remembers what it was given."""

    calls: ClassVar[list] = []

    def partial_fit(self, X, y, classes=None):
        self.calls.append((id(self), X, y, classes))
        self.classes_ = np.asarray(classes)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class Batch(ClassifierMixin, BaseEstimator):
    """The same, all at once."""

    calls: ClassVar[list] = []

    def fit(self, X, y):
        self.calls.append((X, y))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def table(rows=120, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    X = rng.normal(size=(rows, 5)) * [1, 2, 3, 4, 5] + y[:, None]
    return DataSet("songs", X, y, "classification", "made here", None)


def rvfl(stream="consensus"):
    return RVFLClassifier(B, ALPHA, stream=stream, activation="sigmoid")


def trials(model, protocol, given=None, net=RING, where="network", folds=3, **more):
    entry = Data("songs", given=given or table(), scale="signed")
    whole = Comparison(
        (entry,), (Model("m", where=where, estimator=model),), (net,), protocol, 7, folds, **more
    )
    return list(whole.trials())


def dealt(trial, repeat):
    """Training rows in the order in which they come, and test rows: scaled to [-1, 1] by the
    training rows.
    """
    X, y = trial.data.given.X, trial.data.given.y
    folds = StratifiedKFold(
        trial.comparison.folds, shuffle=True, random_state=trial.seed("split")
    ).split(X, y)
    train, test = list(folds)[trial.fold]
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    scaled = 2 * (X - low) / (high - low) - 1
    order = np.random.default_rng(trial.seed("deal")).permutation(
        np.tile(np.arange(len(train)), repeat)
    )
    return scaled[train][order], y[train][order], scaled[test], y[test]


def features_of(trial, X):
    """The random features that a model of this seed draws."""
    model = RVFLClassifier(B, ALPHA, random_state=trial.seed("model"), activation="sigmoid")
    return model.fit(X, np.arange(len(X)) % 2).features_


def one_hot(y):
    return np.eye(3)[y]


def test_s_cons_is_the_printed_recursion():
    trial = trials(rvfl(StreamConsensus(variant="thesis")), Stream(10, 2, 3))[1]
    X, y, X_test, y_test = dealt(trial, repeat=2)
    features = features_of(trial, X)
    A, b, errors = np.tile(ALPHA * np.eye(B), (L, 1, 1)), np.zeros((L, B, 3)), []
    for n, start in enumerate(range(0, len(y), 10), start=1):
        for i in range(
            start, min(start + 10, len(y))
        ):  # the rows of a chunk one after the other: the same answer
            k, h = i % L, features(X[i : i + 1])
            A[k] += h.T @ h
            b[k] += np.linalg.solve(A[k], h.T @ (one_hot(y[i : i + 1]) - h @ b[k]))
        b[:] = b.mean(axis=0)
        if n % 3 == 0 or start + 10 >= len(y):
            errors.append(np.mean((features(X_test) @ b[0]).argmax(axis=1) != y_test))
    outcome = trial.comparison.protocol.run(trial)
    assert outcome.curves["error"] == ([3.0, 6.0, 9.0, 12.0, 15.0, 16.0], pytest.approx(errors))
    assert len(set(errors)) > 2
    assert outcome.values["error"] == errors[-1]
    assert outcome.agents["error"] == [errors[-1]] * L


def test_the_centralised_recursion_is_the_batch_solution_after_every_chunk():
    trial = trials(rvfl(), Stream(25, 2), where="centralised")[0]
    X, y, X_test, y_test = dealt(trial, repeat=2)
    features, errors = features_of(trial, X), []
    for stop in [*range(25, len(y), 25), len(y)]:
        H = features(X[:stop])
        b = np.linalg.solve(H.T @ H + ALPHA * np.eye(B), H.T @ one_hot(y[:stop]))
        errors.append(np.mean((features(X_test) @ b).argmax(axis=1) != y_test))
    outcome = trial.comparison.protocol.run(trial)
    assert outcome.curves == {"error": ([float(n) for n in range(1, 8)], pytest.approx(errors))}
    assert (outcome.sent.rounds, outcome.iterations) == (0, 7)


def test_distance_is_to_all_rows_that_came():
    """Rows that come twice weigh twice against the penalty: 1e-9 from twice the rows is far from
    once.
    """
    protocol = Stream(20, 2)
    (exact, *_), (heuristic, *_) = (
        trials(rvfl(stream), protocol, metrics=("error", "distance"))
        for stream in (StreamExact(), "consensus")
    )
    assert protocol.run(exact).values["distance"] < 1e-9
    assert 0.05 < protocol.run(heuristic).values["distance"] < 1
    once = Stream(20, 1)
    assert (
        once.run(trials(rvfl(StreamExact()), once, metrics=("distance",))[0]).values["distance"]
        < 1e-9
    )


def test_training_rows_are_repeated_and_test_rows_never_come():
    Recorder.calls.clear()
    trial = trials(Recorder(), Stream(30, 3), where="centralised")[2]
    outcome = trial.comparison.protocol.run(trial)
    X, y, X_test, _ = dealt(trial, repeat=3)
    assert [len(call[2]) for call in Recorder.calls] == [30] * 8
    np.testing.assert_allclose(np.vstack([call[1] for call in Recorder.calls]), X)
    np.testing.assert_array_equal(np.concatenate([call[2] for call in Recorder.calls]), y)
    assert all(np.array_equal(call[3], [0, 1, 2]) for call in Recorder.calls)
    came = {tuple(row) for row in np.vstack([call[1] for call in Recorder.calls]).tolist()}
    assert len(came) == 80
    assert came.isdisjoint(map(tuple, X_test.tolist()))
    assert outcome.curves["error"][0] == [float(n) for n in range(1, 9)]


def test_alone_every_agent_gets_the_rows_that_are_its_turn():
    Recorder.calls.clear()
    trial = trials(Recorder(), Stream(7), where="alone")[0]
    trial.comparison.protocol.run(trial)
    X, _, _, _ = dealt(trial, repeat=1)
    agents = list(dict.fromkeys(call[0] for call in Recorder.calls))
    assert len(agents) == L
    for k, agent in enumerate(agents):
        np.testing.assert_allclose(
            np.vstack([call[1] for call in Recorder.calls if call[0] == agent]), X[k::L]
        )


def test_alone_is_a_network_that_never_averages():
    protocol = Stream(9, 1, 2)
    alone = protocol.run(trials(rvfl(), protocol, where="alone")[0])
    silent = protocol.run(trials(rvfl(StreamConsensus(every=NEVER)), protocol)[0])
    assert alone.agents["error"] == silent.agents["error"]
    assert len(set(alone.agents["error"])) > 1
    assert alone.curves["error"] == silent.curves["error"]
    assert (alone.values["error"], alone.sent.rounds) == (np.mean(alone.agents["error"]), 0)


def test_no_test_before_every_agent_has_a_row():
    protocol = Stream(chunk=1)
    outcome = protocol.run(trials(Recorder(), protocol, where="alone")[0])
    assert outcome.curves["error"][0] == [float(n) for n in range(L, 81)]


def test_a_model_without_partial_fit_is_fitted_once():
    for where, shares in (("centralised", 1), ("alone", L)):
        Batch.calls.clear()
        trial = trials(Batch(), Stream(10, 2), where=where)[0]
        outcome = trial.comparison.protocol.run(trial)
        X, y, _, y_test = dealt(trial, repeat=2)
        assert len(Batch.calls) == shares
        for k, (X_k, y_k) in enumerate(Batch.calls):
            np.testing.assert_allclose(X_k, X[k::shares])
            np.testing.assert_array_equal(y_k, y[k::shares])
        assert outcome.curves == {}
        assert outcome.values["error"] == np.mean(y_test != 0)


def test_rounds_of_each_chunk():
    """An average over the tree of a ring of four takes four rounds."""
    protocol = Stream(16)
    outcome = protocol.run(trials(rvfl(StreamConsensus(every=2)), protocol)[0])
    agreeing = outcome.sent.rounds - 2 * 4  # on settings and classes, before the first chunk
    assert agreeing > 0
    assert outcome.curves["rounds"] == ([1.0, 2.0, 3.0, 4.0, 5.0], [agreeing, 4.0, 0.0, 4.0, 0.0])
    assert outcome.values["chunk_rounds"] == 2.0
    assert outcome.values["most_rounds"] == 4.0
    assert outcome.values["rounds_kept"] == 0.0  # none in the last quarter, 4 in the first


def test_the_first_chunk_is_left_out_unless_it_is_the_only_one():
    for chunk, most in (
        (16, 4.0),
        (80, 6.0),
    ):  # two rounds more in the first, to agree on settings and classes
        protocol = Stream(chunk)
        outcome = protocol.run(trials(rvfl(), protocol)[0])
        assert outcome.curves["rounds"][1][0] == 6.0
        assert outcome.values["most_rounds"] == outcome.values["chunk_rounds"] == most


def test_numbers_are_learned_too():
    rows = data.load("diabetes", scaled=False)
    protocol = Stream(50)
    entry = Data("diabetes", scale="standard", settings={"n_hidden": 20, "alpha": 1.0})
    whole = Comparison(
        (entry,),
        (Model("exact", "RVFL", settings={"stream": "exact"}),),
        (RING,),
        protocol,
        folds=2,
    )
    outcome = protocol.run(next(whole.trials()))
    at, values = outcome.curves["nrmse"]
    assert at == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert len(rows.y) // 2 == 221
    assert outcome.values["nrmse"] == values[-1] < values[0]


def test_fewer_rows_than_agents_cannot_be_dealt():
    protocol = Stream()
    trial = trials(
        Recorder(), protocol, table(6), Net("ring", fixed=graphs.ring(5)), "alone", folds=2
    )[0]
    with pytest.raises(
        DataError, match="3 training rows of songs cannot be dealt to 5 agents, one each at least"
    ):
        protocol.run(trial)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (Model("m", "VerticalRVFL"), "learns columns, and rows come in chunks"),
        (Model("m", "LapKRR"), "learns all rows at once, and they come in chunks"),
        (Model("m", "RVFLRegressor"), "predicts numbers, and the targets are classes"),
        (Model("m", "RVFL"), ""),
        (Model("m", "sklearn.linear_model.SGDClassifier", "centralised"), ""),
        (Model("m", "sklearn.tree.DecisionTreeClassifier", "alone"), ""),
    ],
)
def test_who_can_learn_a_stream(model, why):
    assert Stream().refuses(Data("songs", given=table(classes=2)), model) == why


@pytest.mark.parametrize("key", ["chunk", "repeat", "every"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True])
def test_settings_are_whole_numbers(key, value):
    with pytest.raises(InputError, match=f"{key} is {value!r}: give the number of .*, 1 or more"):
        Stream(**{key: value})
