"""Rows without a label: how they are marked, and agents that have no others."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier

from peerlearn import (
    AnchorLapClassifier,
    LapKRRClassifier,
    S3VMClassifier,
    SimulatedNetwork,
    graphs,
)
from peerlearn.algorithms.agreement import union
from peerlearn.errors import DataError, NetworkError, WireError
from peerlearn.models.unlabelled import is_labelled, is_unlabelled
from peerlearn.testing import run_in_threads
from tests.support.split_network import run_apart


@pytest.mark.parametrize(
    "y",
    [
        np.array([-1, 0, 3]),
        np.array([-1.0, 0.0, 3.0]),
        np.array([-1, "a", "b"], dtype=object),
        np.array(["-1", "a", "b"], dtype=object),
        np.array(["-1", "a", "b"]),
        np.array([-1, 0, 3], dtype=object),
        np.array([-1.0, 0.0, 3.0], dtype=object),
        np.array([np.int64(-1), 0, 3], dtype=object),
    ],
    ids=lambda y: f"{y.dtype}",
)
def test_minus_one_means_no_label(y):
    np.testing.assert_array_equal(is_unlabelled(y), [True, False, False])


def test_truths_are_labels():
    assert not is_unlabelled(np.array([True, False])).any()


@pytest.mark.parametrize("kind", [int, float, str, object])
def test_the_labels_of_all_agents_though_some_have_none(kind):
    known = [
        np.array([]),
        np.array([3, 7]).astype(kind),
        np.array([], dtype=int),
        np.array([5, 3]).astype(kind),
    ]
    expected = np.array([3, 5, 7]).astype(str if kind is object else kind)
    for found in (
        union(SimulatedNetwork(graphs.ring(4)), known),
        *run_apart(graphs.ring(4), lambda network, k: union(network, [known[k]])),
    ):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype.kind == expected.dtype.kind


def test_nobody_has_labels():
    assert len(union(SimulatedNetwork(graphs.ring(3)), [np.array([])] * 3)) == 0


@pytest.mark.parametrize(
    "message",
    [
        {"labels": np.zeros((1, 1), dtype=np.int64), "kinds": np.array([0])},
        {"labels": np.zeros((0, 1), dtype=np.int64), "kinds": np.array([2])},
    ],
    ids=["labels of no kind", "a kind without labels"],
)
def test_labels_and_their_kind_belong_together(message):
    class Tampered(SimulatedNetwork):
        def exchange(self, outbox, to=None):
            return super().exchange([message if box else box for box in outbox], to)

    with pytest.raises(WireError, match="sent labels of an unknown kind"):
        union(Tampered(graphs.ring(3)), [np.array([1, 2])] * 3)


@pytest.mark.parametrize(
    "labels",
    [
        np.zeros((3, 2), dtype=np.int64),
        np.zeros((3, 0), dtype=np.int64),
        np.array([[np.nan]]),
        np.array([[0x110000]], dtype=np.uint32),
    ],
    ids=["two numbers each", "no numbers", "no number", "no letter"],
)
def test_labels_that_are_none_are_refused(labels):
    kind = {"i": 2, "f": 4, "u": 8}[labels.dtype.kind]

    class Tampered(SimulatedNetwork):
        def exchange(self, outbox, to=None):
            wrong = {"labels": labels, "kinds": np.array([kind])}
            inbox = super().exchange(outbox, to)
            return [{k: wrong if k == 0 else sent[k] for k in sent} for sent in inbox]

    with pytest.raises(WireError, match="agent 0 sent an invalid label"):
        union(Tampered(graphs.ring(3)), [np.array([1, 2])] * 3)


def test_minus_one_is_nobodys_class():
    class Tampered(SimulatedNetwork):
        def exchange(self, outbox, to=None):
            told = {"labels": np.array([[-1], [3]]), "kinds": np.array([2])}
            return super().exchange([outbox[0], told, outbox[2]], to)

    with pytest.raises(WireError, match="an agent sent -1 as a class"):
        AnchorLapClassifier().encode(Tampered(graphs.ring(3)), [np.array([1, 2])] * 3)


def test_encoded_rows_are_zero_where_there_is_no_label():
    network = SimulatedNetwork(graphs.ring(3))
    targets = [np.array([-1, 2]), np.array([-1, -1]), np.array([2, 9])]
    outputs = AnchorLapClassifier().encode(network, targets)
    np.testing.assert_array_equal(np.concatenate(outputs)[:, 0], [0, -1, 0, 0, -1, 1])
    assert [is_labelled(own).tolist() for own in outputs] == [
        [False, True],
        [False, False],
        [True, True],
    ]
    many = AnchorLapClassifier().encode(network, [*targets[:2], np.array([4, 9])])
    np.testing.assert_array_equal(many[0], [[0, 0, 0], [1, 0, 0]])


def test_texts_and_numbers_do_not_mix():
    with pytest.raises(DataError, match="not all numbers or all texts"):
        AnchorLapClassifier().encode(
            SimulatedNetwork(graphs.ring(3)), [np.array([-1, "a", 3], dtype=object)] * 3
        )


@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, OneVsOneClassifier, OutputCodeClassifier])
@pytest.mark.parametrize(
    "model", [S3VMClassifier(), AnchorLapClassifier(), LapKRRClassifier(n_neighbors=3)], ids=repr
)
def test_a_wrapper_that_makes_minus_one_a_class_is_refused(model, wrapper):
    X = np.random.default_rng(0).standard_normal((60, 3))
    truth = np.argmax(X, axis=1)
    y = np.where(np.arange(60) % 2 == 0, truth, -1)
    with pytest.raises(DataError, match=r"takes -1, which marks rows .*, for a class: train "):
        wrapper(model).fit(X, y)
    if wrapper is not OutputCodeClassifier:  # its codes are -1 and 1
        assert wrapper(model).fit(X, truth).score(X, truth) > 0.5  # with all labels it may
    assert model.fit(X, y).score(X, truth) > 0.5


@pytest.mark.processes
@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, OneVsOneClassifier, OutputCodeClassifier])
def test_such_a_wrapper_is_seen_from_other_processes(wrapper):
    X = np.random.default_rng(0).standard_normal((60, 3))
    y = np.where(np.arange(60) % 2 == 0, np.argmax(X, axis=1), -1)
    with pytest.raises(DataError, match=r"takes -1, which marks rows .*, for a class: train "):
        wrapper(AnchorLapClassifier(), n_jobs=2).fit(X, y)


def test_agents_in_several_processes_are_not_sent_to_others():
    """Every wrapper with n_jobs would send the estimator, and its network with it."""

    def fit(network):
        model = AnchorLapClassifier(network=network)
        with pytest.raises(NetworkError, match=r"belongs to this process .* n_jobs=None"):
            pickle.dumps(model)
        return clone(model).network is network

    assert all(run_in_threads(graphs.ring(3), fit))
