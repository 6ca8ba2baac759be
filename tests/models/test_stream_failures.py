"""What a stream must survive: a network that fails, memory that cannot be written, neighbors that
talk nonsense.
"""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn import (
    DiffusionRLS,
    Faults,
    RVFLClassifier,
    RVFLRegressor,
    SimulatedNetwork,
    StreamConsensus,
    graphs,
)
from peerlearn.algorithms.agreement import union
from peerlearn.algorithms.columns.sketches import Layout
from peerlearn.algorithms.readout.gram import merge_equations
from peerlearn.algorithms.streaming import StreamExact
from peerlearn.algorithms.streaming.learner import learners
from peerlearn.errors import DataError, InputError, NetworkError, WireError
from peerlearn.local.column_blocks import ColumnBlocks
from peerlearn.local.normal_equations import NormalEquations
from peerlearn.models.stream_archive import save_stream
from tests.support.split_network import run_apart

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 3)), RNG.standard_normal(60)
STREAMS = [
    *learners(),
    StreamConsensus(every=2),
    StreamConsensus(forgetting=0.9),
    DiffusionRLS(threshold=0.1),
]


class Failing(SimulatedNetwork):
    """A network whose n-th call from now on fails, once."""

    fails_in = None

    def _fail(self):
        if self.fails_in is not None:
            self.fails_in -= 1
            if self.fails_in < 0:
                self.fails_in = None
                raise NetworkError("a link is gone")

    def mix(self, x):
        self._fail()
        return super().mix(x)

    def mix_speaking(self, x, speaking):
        self._fail()
        return super().mix_speaking(x, speaking)

    def pass_on(self, x, senders, receivers, *, add):
        self._fail()
        super().pass_on(x, senders, receivers, add=add)

    def exchange(self, outbox, to=None):
        self._fail()
        return super().exchange(outbox, to)


def model(network, stream, **settings):
    settings = {"alpha": 1.0, "activation": "sigmoid", **settings}
    return RVFLRegressor(12, network=network, stream=stream, random_state=0, **settings)


@pytest.mark.parametrize("stream", STREAMS, ids=str)
@pytest.mark.parametrize("call", [0, 1, 2, 3])
def test_a_chunk_that_the_network_failed_in_can_be_given_again(stream, call):
    network = Failing(graphs.linear(4))
    learning, twin = model(network, stream), model(SimulatedNetwork(graphs.linear(4)), stream)
    for start in range(0, 60, 20):
        chunk = X[start : start + 20], Y[start : start + 20]
        network.fails_in = call if start else None
        try:
            learning.partial_fit(*chunk)
        except NetworkError:
            learning.partial_fit(*chunk)
        network.fails_in = None
        twin.partial_fit(*chunk)
    np.testing.assert_array_equal(learning.coefficients_, twin.coefficients_)
    for name, array in twin._stream.state.items():
        np.testing.assert_array_equal(learning._stream.state[name], array, err_msg=name)


@pytest.mark.parametrize("stream", learners())
def test_memory_that_cannot_be_written_is_copied(stream):
    learning, twin = (
        model(SimulatedNetwork(graphs.ring(3)), stream).partial_fit(X[:20], Y[:20])
        for _ in range(2)
    )
    for array in learning._stream.state.values():
        array.flags.writeable = False  # as joblib hands large arrays to other processes
    kept = {name: array.copy() for name, array in learning._stream.state.items()}
    held = learning._stream.state
    learning.partial_fit(X[20:], Y[20:])
    np.testing.assert_array_equal(
        learning.coefficients_, twin.partial_fit(X[20:], Y[20:]).coefficients_
    )
    for name, array in kept.items():
        np.testing.assert_array_equal(held[name], array)


@pytest.mark.parametrize(
    "stream",
    [
        StreamConsensus(every=100, threshold=0.1),
        StreamConsensus(every=100, averaging="tree"),
        StreamExact(averaging="chebyshev"),
    ],
    ids=str,
)
def test_what_lost_messages_would_ruin_is_refused_with_the_first_chunk(stream):
    lossy = SimulatedNetwork(graphs.ring(4), faults=Faults(loss=0.1, seed=0))
    with pytest.raises(NetworkError, match="this network loses some"):
        model(lossy, stream).partial_fit(X, Y)


def test_an_agent_that_refuses_its_first_chunk_has_sent_nothing_and_may_try_again():
    def work(network, agent):
        learning = RVFLRegressor(12, activation="relu", network=network, random_state=0, alpha=1.0)
        if agent == 1:
            with pytest.raises(
                DataError, match=r"X has values up to 1\.0e\+200, whose squares overflow"
            ):
                learning.partial_fit(np.full((3, 3), 1e200), np.ones(3))
        return learning.partial_fit(X[agent::4], Y[agent::4]).coefficients_

    together = RVFLRegressor(
        12, activation="relu", network=SimulatedNetwork(graphs.ring(4)), random_state=0, alpha=1.0
    )
    shares = [(X[k::4], Y[k::4]) for k in range(4)]
    apart = np.concatenate(run_apart(graphs.ring(4), work))
    np.testing.assert_allclose(apart, together.partial_fit(shares).coefficients_, atol=1e-12)


def test_targets_whose_squares_are_no_numbers_are_refused():
    with pytest.raises(DataError, match=r"y has values up to 1\.0e\+200"):
        model(None, "consensus").partial_fit(X, 1e200 * np.sign(Y))


def test_a_stream_with_changed_parameters_is_not_saved(tmp_path):
    learning = (
        model(SimulatedNetwork(graphs.ring(3)), "consensus").partial_fit(X, Y).set_params(alpha=3.0)
    )
    with pytest.raises(InputError, match=r"alpha was changed from 1\.0 to 3\.0"):
        save_stream(learning, tmp_path / "s.npz")
    assert not list(tmp_path.iterdir())


def test_a_name_and_an_object_without_settings_are_the_same_stream():
    learning = model(SimulatedNetwork(graphs.ring(3)), "consensus").partial_fit(X, Y)
    learning.set_params(stream=StreamConsensus()).partial_fit(X, Y)
    assert learning.report_.iterations == 2


def test_what_is_long_forgotten_leaves_the_coefficients_alone():
    learning = model(SimulatedNetwork(graphs.ring(3)), StreamConsensus(forgetting=0.5)).partial_fit(
        X, Y
    )
    before = learning.coefficients_
    for _ in range(1100):  # until what has been seen underflows
        learning.partial_fit(X[:0], Y[:0])
    np.testing.assert_allclose(learning.coefficients_, before, rtol=1e-9)


class TestLabels:
    def learn(self, y, classes):
        return RVFLClassifier(10, random_state=0, alpha=1.0, activation="sigmoid").partial_fit(
            X[: len(y)], y, classes=classes
        )

    def test_whole_numbers_as_objects_are_numbers(self):
        assert self.learn(np.array([0, 1, 0, 1], dtype=object), [0, 1]).classes_.tolist() == [0, 1]

    def test_numbers_are_no_texts(self):
        with pytest.raises(DataError, match="not all numbers or all texts"):
            self.learn(np.array([1, "1", 2, "2"], dtype=object), ["1", "2"])
        with pytest.raises(
            DataError, match=r"labels are \['a', 1\], which are not all numbers or all texts"
        ):
            self.learn(["a", "b"], ["a", 1])

    def test_classes_may_be_a_set_but_not_a_number(self):
        assert self.learn(["a", "b"], {"b", "a"}).classes_.tolist() == ["a", "b"]
        with pytest.raises(DataError, match="classes are 3: give a list of all labels"):
            self.learn(["a", "b"], 3)


class TestNonsense:
    """Arrays from a neighbor that runs something else."""

    def network(self, nonsense):
        class Talks(SimulatedNetwork):
            def exchange(self, outbox, to=None):
                inbox = super().exchange(outbox, to)
                return [
                    {sender: nonsense if sender == 1 else sent[sender] for sender in sent}
                    for sent in inbox
                ]

        return Talks(graphs.star(3))

    @pytest.mark.parametrize(
        "nonsense",
        [
            {"R": np.ones(100)},
            {"R": np.ones(3)},
            {"R": np.ones((2, 2))},
            {"R": np.ones(9, dtype=np.int64)},
            {"R": np.full(9, np.nan)},
            {"Q": np.ones(9)},
            {"G": np.ones(36)},
            {"G": np.ones(36), "P": np.ones((2, 7))},
            {"G": np.ones(35), "P": np.ones((8, 1))},
        ],
    )
    def test_no_equations(self, nonsense):
        own = [NormalEquations.of_rows(RNG.standard_normal((2, 9)), (8, 1)) for _ in range(3)]
        with pytest.raises(
            WireError, match=r"agent 1 sent an unexpected message .expected equations of 8"
        ):
            merge_equations(self.network(nonsense), own)

    def test_what_is_sent_is_what_arrives(self):
        for rows in (1, 2, 7, 8, 30):
            equations = NormalEquations.of_rows(RNG.standard_normal((rows, 9)), (8, 1))
            arrived = NormalEquations.unpack(equations.pack(), (8, 1))
            for sent, got in zip(equations.gram(), arrived.gram(), strict=True):
                np.testing.assert_allclose(got, sent, atol=1e-12)

    @pytest.mark.parametrize(
        "nonsense",
        [
            {"labels": np.ones((2, 1))},
            {"labels": np.ones(2), "kinds": np.array([4])},
            {"labels": np.ones((2, 1)), "kinds": np.array([4.0])},
            {"labels": np.ones((2, 1)), "kinds": np.array([99])},
            {"labels": np.ones((2, 1)), "kinds": np.array([8])},
        ],
    )
    def test_no_labels(self, nonsense):
        with pytest.raises(WireError, match="agent 1 sent"):
            union(self.network(nonsense), [np.arange(2)] * 3)

    def test_no_number_of_columns(self):
        class Floods(SimulatedNetwork):
            def flood(self, largest):
                return super().flood(largest + 1e9)

        blocks = ColumnBlocks.of_features([np.ones((4, 2))] * 3)
        with pytest.raises(WireError, match="an impossible number of columns"):
            Layout.of(Floods(graphs.ring(3)), blocks)
