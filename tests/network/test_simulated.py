"""The contract of a network, on the simulated one: what mixes, what is counted, what gets lost."""

from __future__ import annotations

import copy

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn import Faults, SimulatedNetwork, graphs, weights
from peerlearn.errors import GraphError, InputError, NetworkError, WeightsError, WireError
from peerlearn.network import simulated
from peerlearn.network.base import Ledger, Network
from tests.support.networks import random_rows

some_graphs = st.builds(
    graphs.erdos_renyi, st.integers(2, 12), st.floats(0.5, 1.0), st.integers(0, 10**6)
)


@pytest.mark.parametrize("kind", ["max-degree", "metropolis", "laplacian", "fastest"])
def test_mix_is_the_product_with_the_weights(graph, kind):
    network = SimulatedNetwork(graph, kind)
    x = random_rows(network, 3, 2)
    expected = np.einsum("kj,jab->kab", weights.named(kind, graph).toarray(), x)
    np.testing.assert_allclose(network.mix(x), expected, atol=1e-12)


def test_sparse_and_dense_paths_agree(monkeypatch, graph):
    dense = SimulatedNetwork(graph)
    x = random_rows(dense, 7)
    monkeypatch.setattr(simulated, "DENSE_UP_TO", 0)
    sparse = SimulatedNetwork(graph)
    steps = np.array([[1.0, 0.0, 0.0], [1.3, -0.1, -0.2], [1.1, 0.2, -0.3], [1.0, 0.1, -0.1]])
    np.testing.assert_allclose(sparse.recur(x, steps), dense.recur(x, steps), atol=1e-12)
    np.testing.assert_allclose(sparse.mix(x), dense.mix(x), atol=1e-13)
    assert sparse.ledger.since() == dense.ledger.since()


def test_exact_order_has_the_bits_of_a_row_by_row_sum(graph):
    network = SimulatedNetwork(graph, exact_order=True)
    x = random_rows(network, 5)
    C = network.weights
    by_hand = np.zeros_like(x)
    for k in range(network.size):
        for j in sorted([*graph[k], k]):
            by_hand[k] += C[k, j] * x[j]
    assert (network.mix(x) == by_hand).all()


@pytest.mark.parametrize("dense", [True, False])
def test_recurrence_is_what_it_says_and_leaves_its_input_alone(monkeypatch, dense):
    if not dense:
        monkeypatch.setattr(simulated, "DENSE_UP_TO", 0)
    network = SimulatedNetwork(graphs.ring(9))
    x = random_rows(network, 4)
    kept = x.copy()
    steps = np.random.default_rng(1).uniform(-1, 1, (6, 3))
    C, now, before = network.weights.toarray(), x, np.zeros_like(x)
    for a, b, c in steps:
        now, before = a * C @ now + b * now + c * before, now
    np.testing.assert_allclose(network.recur(x, steps), now, atol=1e-12)
    np.testing.assert_array_equal(x, kept)
    assert network.ledger.rounds == 6


@settings(max_examples=25, deadline=None)
@given(some_graphs, st.integers(0, 100))
def test_the_mean_is_kept_in_every_round(graph, seed):
    network = SimulatedNetwork(graph)
    x = random_rows(network, 3, seed=seed)
    mean = x.mean(axis=0)
    for _ in range(5):
        x = network.mix(x)
        np.testing.assert_allclose(x.mean(axis=0), mean, atol=1e-13)


def test_flood_takes_the_largest_of_the_neighborhood(graph):
    network = SimulatedNetwork(graph)
    x = random_rows(network, 2)
    expected = np.stack(
        [np.max([x[j] for j in [k, *graph[k]]], axis=0) for k in range(network.size)]
    )
    np.testing.assert_array_equal(network.flood(x), expected)
    mixed, flooded = network.mix_and_flood(x, x[:, 0])
    np.testing.assert_allclose(mixed, network.mix(x), atol=1e-13)
    np.testing.assert_array_equal(flooded, expected[:, 0])


@pytest.mark.parametrize("exact_order", [True, False])
def test_silent_agents_send_nothing_and_count_as_zero(graph, exact_order):
    network = SimulatedNetwork(graph, exact_order=exact_order)
    x, speaking = random_rows(network, 3), np.arange(network.size) % 3 != 1
    by_letters = Network.mix_speaking(
        SimulatedNetwork(graph), x, speaking
    )  # what engines with processes do
    mixed = network.mix_speaking(x, speaking)
    np.testing.assert_allclose(
        mixed, network.weights.toarray() @ (x * speaking[:, None]), atol=1e-13
    )
    np.testing.assert_allclose(mixed, by_letters, atol=0 if exact_order else 1e-13)
    sent = sum(len(graph[k]) for k in range(network.size) if speaking[k])
    assert network.ledger.since() == simulated_counts(1, sent, sent * 24)


def test_silence_and_nonsense_are_told_apart():
    lossy = SimulatedNetwork(graphs.ring(4), faults=Faults(loss=0.1, seed=0))
    with pytest.raises(NetworkError, match="cannot tell silence from a lost message"):
        lossy.mix_speaking(np.ones((4, 2)), [True] * 4)

    class Nonsense(SimulatedNetwork):
        def exchange(self, outbox, to=None):
            return super().exchange([{"x": np.ones(3)}, *outbox[1:]])

    with pytest.raises(
        WireError, match=r"agent 0 sent an unexpected message .expected a row of 2 numbers"
    ):
        Network.mix_speaking(Nonsense(graphs.ring(4)), np.ones((4, 2)), [True] * 4)


def test_every_round_message_and_byte_is_counted():
    network = SimulatedNetwork(graphs.star(5))  # 4 links, so 8 messages a round
    x = random_rows(network, 10)
    network.mix(x)
    assert network.ledger.since() == simulated_counts(1, 8, 8 * 80)
    mark = network.ledger.mark()
    network.mix_and_flood(x, x[:, 0])
    assert network.ledger.since(mark) == simulated_counts(1, 8, 8 * 88)
    mark = network.ledger.mark()
    network.flood(x[:, 0])
    assert network.ledger.since(mark) == simulated_counts(1, 8, 64)
    mark = network.ledger.mark()
    network.pass_on(x, np.array([1, 2]), np.array([0, 0]), add=True)
    assert network.ledger.since(mark) == simulated_counts(1, 2, 160)
    mark = network.ledger.mark()
    network.exchange([{"a": np.zeros(3)}, {}, {}, {"b": np.zeros((2, 2), dtype=np.uint8)}, {}])
    assert network.ledger.since(mark) == simulated_counts(1, 5, 4 * 24 + 4)


def simulated_counts(rounds, messages, bytes):
    ledger = Ledger()
    ledger.count(rounds=rounds, messages=messages, bytes=bytes)
    return ledger.since()


def test_rounds_done_elsewhere_are_counted_as_rounds_of_mix(graph):
    x = np.ones((graph.number_of_nodes(), 3))
    by_network, by_loop = SimulatedNetwork(graph), SimulatedNetwork(graph)
    mixed = by_network.mix(by_network.mix(x))
    C = by_loop.mixing_here
    by_loop.count_mixed(rounds=2, numbers=3)
    np.testing.assert_allclose(C @ (C @ x), mixed, atol=1e-14)
    assert by_loop.ledger.mark() == by_network.ledger.mark()


def test_no_loop_does_rounds_where_messages_get_lost_or_order_matters():
    ring = graphs.ring(4)
    assert SimulatedNetwork(ring, faults=Faults(loss=0.1, seed=0)).mixing_here is None
    assert SimulatedNetwork(ring, exact_order=True).mixing_here is None


def test_pass_on_adds_or_replaces():
    network = SimulatedNetwork(graphs.star(4))
    x = np.array([[1.0], [2.0], [3.0], [4.0]])
    network.pass_on(x, np.array([3, 1]), np.array([0, 0]), add=True)
    assert x.ravel().tolist() == [7.0, 2.0, 3.0, 4.0]
    network.pass_on(x, np.array([0, 0]), np.array([2, 3]), add=False)
    assert x.ravel().tolist() == [7.0, 2.0, 7.0, 7.0]


def test_exchange_reaches_neighbors_and_nobody_else():
    network = SimulatedNetwork(graphs.linear(3))
    inbox = network.exchange([{"x": np.array([1.0])}, {}, {"x": np.array([3.0, 3.0])}])
    assert [sorted(box) for box in inbox] == [[], [0, 2], []]
    assert inbox[1][2]["x"].tolist() == [3.0, 3.0]
    inbox = network.exchange([{}, {"x": np.array([2.0])}, {}], to=[[], [2], []])
    assert [sorted(box) for box in inbox] == [[], [], [1]]


def test_a_neighbor_cannot_change_what_it_received():
    network = SimulatedNetwork(graphs.linear(2))
    mine = np.ones(3)
    received = network.exchange([{"x": mine}, {}])[1][0]["x"]
    with pytest.raises(ValueError, match="read-only"):
        received[0] = 5.0


def test_messages_to_strangers_are_refused():
    network = SimulatedNetwork(graphs.linear(3))
    with pytest.raises(
        NetworkError, match="agent 0 cannot send to agent 2: they are not neighbors"
    ):
        network.exchange([{"x": np.ones(1)}, {}, {}], to=[[2], [], []])
    with pytest.raises(InputError, match="one message per hosted agent, 3 of them, not 1"):
        network.exchange([{}])


def test_one_agent_is_a_network():
    network = SimulatedNetwork(graphs.complete(1))
    assert network.mix(np.array([[2.0, 3.0]])).tolist() == [[2.0, 3.0]]
    assert (network.ledger.messages, network.ledger.bytes) == (0, 0)
    assert network.contraction == 0
    assert network.diameter == 0


def test_bad_graphs_weights_and_rows_get_their_sentence():
    apart = nx.Graph([(0, 1), (2, 3)])
    with pytest.raises(GraphError, match=r"2, 3|2 and 3"):
        SimulatedNetwork(apart)
    with pytest.raises(
        InputError, match=r"faults must be an object such as Faults\(loss=0.1, seed=0\), not 0.2"
    ):
        SimulatedNetwork(graphs.ring(3), faults=0.2)
    star = graphs.star(5)
    C = nx.to_numpy_array(star, nodelist=range(5)) + np.eye(5)
    with pytest.raises(WeightsError, match="not symmetric"):
        SimulatedNetwork(star, C / C.sum(axis=1, keepdims=True))
    with pytest.raises(InputError, match=r"shape \(3, 2\).*5 agents hosted here"):
        SimulatedNetwork(graphs.ring(5)).mix(np.zeros((3, 2)))
    with pytest.raises(InputError, match="probability"):
        Faults(loss=1.0)


def test_cloning_an_estimator_keeps_its_network():
    network = SimulatedNetwork(graphs.ring(3))
    assert copy.deepcopy(network) is network
