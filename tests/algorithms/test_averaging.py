"""Averages are averages: every method, every way of stopping, several graphs; and the ledger tells
the price.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn import Averaging, Faults, SimulatedNetwork, average, everyone, graphs, maximum, total
from peerlearn.algorithms.averaging import iterates
from peerlearn.algorithms.sums import broadcast_from_center
from peerlearn.errors import InputError, NetworkError, NotConverged
from peerlearn.network import simulated
from tests.support.networks import random_rows as rows


def error(x, start):
    """Relative to the initial spread, as `tolerance` promises it."""
    truth = start.mean(axis=0)
    return np.linalg.norm(x - truth) / np.linalg.norm(start - truth)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("stopping", ["bound", "messages", "oracle"])
@pytest.mark.parametrize("method", ["plain", "chebyshev", "tree"])
def test_tolerance_means_the_distance_to_the_true_average(graph, method, stopping, tolerance):
    network = SimulatedNetwork(graph)
    start = rows(network, 5)
    x = average(network, start, tolerance=tolerance, method=method, stopping=stopping)
    assert error(x, start) <= tolerance
    np.testing.assert_allclose(x.mean(axis=0), start.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("weights", ["max-degree", "metropolis", "laplacian"])
def test_the_slowest_start_still_meets_the_bound(graph, weights):
    """The eigenvector that mixes worst is the case that a rule of thumb misses."""
    network = SimulatedNetwork(graph, weights)
    vectors = np.linalg.eigh(network.weights.toarray())[1]
    for slow in (vectors[:, -2], vectors[:, 0]):
        start = slow[:, None] + 3.0
        for method in ("plain", "chebyshev"):
            for stopping in ("bound", "messages"):
                assert (
                    error(average(network, start, method=method, stopping=stopping), start) <= 1e-6
                )


def test_chebyshev_needs_the_square_root_of_the_rounds():
    limits = {
        "line": (graphs.linear(50), 240),
        "ring": (graphs.ring(50), 120),
        "random": (graphs.erdos_renyi(50, 0.2), 16),
    }
    for graph, limit in limits.values():
        network = SimulatedNetwork(graph)
        start = rows(network, 20)
        assert error(average(network, start, method="chebyshev"), start) <= 1e-6
        assert network.ledger.rounds <= limit


def test_tree_is_exact_in_twice_its_height(graph):
    network = SimulatedNetwork(graph)
    start = rows(network, 3)
    x = average(network, start, method="tree")
    np.testing.assert_allclose(x, np.broadcast_to(start.mean(axis=0), x.shape), atol=1e-15)
    assert (x == x[0]).all()
    assert network.ledger.rounds == 2 * network.tree.height
    assert network.ledger.messages == 2 * (network.size - 1)


def test_messages_stop_no_later_than_the_bound_and_earlier_on_easy_starts():
    graph = graphs.small_world(40, 3, 0.3)
    easy = np.linalg.eigh(SimulatedNetwork(graph).weights.toarray())[1][
        :, 20:21
    ]  # an eigenvector that mixes fast
    by_bound, by_messages = SimulatedNetwork(graph), SimulatedNetwork(graph)
    average(by_bound, easy, method="plain")
    assert error(average(by_messages, easy, method="plain", stopping="messages"), easy) <= 1e-6
    assert by_messages.ledger.rounds < by_bound.ledger.rounds


def test_agents_that_agree_already_stop_after_one_window_of_ten_rounds():
    network = SimulatedNetwork(graphs.linear(10))
    start = np.ones((10, 2))
    x = average(network, start, method="plain", stopping="messages")
    assert network.ledger.rounds == 11
    assert not np.shares_memory(x, start)


def test_the_thesis_rule_stops_early_and_far_from_the_average():
    network = SimulatedNetwork(graphs.linear(50), "max-degree")
    start = 0.1 * rows(network, 5)
    x = average(network, start, tolerance=1e-3, method="plain", stopping="thesis")
    assert network.ledger.rounds < 20
    assert error(x, start) > 0.3


def test_the_thesis_rule_is_the_printed_one():
    network = SimulatedNetwork(graphs.erdos_renyi(20, 0.2), "max-degree")
    start = rows(network, 5)
    x = average(network, start, tolerance=1e-3, method="plain", stopping="thesis")
    C, now, n = network.weights.toarray(), start, 0
    while True:
        now, before, n = C @ now, now, n + 1
        if (((now - before) ** 2).sum(axis=1) < 1e-3).all():
            break
    assert network.ledger.rounds == n
    np.testing.assert_allclose(x, now, atol=1e-13)


@pytest.mark.parametrize("method", ["plain", "chebyshev"])
def test_iterates_end_where_average_ends(graph, method):
    network = SimulatedNetwork(graph)
    start = rows(network, 2)
    x = average(network, start, method=method, tolerance=1e-3)
    n = network.ledger.rounds
    for _, step in zip(range(n), iterates(network, start, method), strict=False):
        last = step
    np.testing.assert_allclose(last, x, atol=1e-12)


def test_the_precomputed_polynomial_equals_the_loop(graph):
    fast = SimulatedNetwork(graph)
    start = rows(fast, 6)
    quick = average(fast, start, method="chebyshev")
    slow = SimulatedNetwork(graph, exact_order=True)
    np.testing.assert_allclose(quick, average(slow, start, method="chebyshev"), atol=1e-12)
    assert fast.ledger.since() == slow.ledger.since()


def test_a_thousand_agents_take_the_sparse_path():
    network = SimulatedNetwork(graphs.small_world(1000, 4, 0.2))
    assert network.size > simulated.DENSE_UP_TO
    start = rows(network, 3)
    for method in ("plain", "chebyshev", "tree"):
        assert error(average(network, start, method=method), start) <= 1e-6


@pytest.mark.parametrize("method", ["auto", "plain", "chebyshev", "tree"])
def test_total_is_the_sum(graph, method):
    network = SimulatedNetwork(graph)
    start = rows(network, 2, 3)
    np.testing.assert_allclose(
        total(network, start, method=method, tolerance=1e-12),
        np.broadcast_to(start.sum(axis=0), start.shape),
        atol=1e-9,
    )


def test_totals_of_whole_numbers_on_a_tree_are_whole():
    network = SimulatedNetwork(graphs.erdos_renyi(30, 0.2))
    counts = np.random.default_rng(0).integers(1, 1000, 30)
    assert (total(network, counts, method="tree") == counts.sum()).all()


def test_one_agent_is_its_own_average():
    network = SimulatedNetwork(graphs.complete(1))
    for method in ("plain", "chebyshev", "tree"):
        assert average(network, [[4.0, 5.0]], method=method).tolist() == [[4.0, 5.0]]
    assert total(network, [3.0]).tolist() == [3.0]
    assert everyone(network, [True])
    assert network.ledger.bytes == 0


class TestLostMessages:
    def test_plain_averaging_reaches_the_exact_mean_within_tolerance(self, graph):
        errors = []
        for seed in range(20):
            network = SimulatedNetwork(graph, faults=Faults(0.2, seed))
            start = rows(network, 3)
            x = average(network, start, tolerance=1e-4)
            errors.append(error(x, start))
            np.testing.assert_allclose(x.mean(axis=0), start.mean(axis=0), atol=1e-12)
        assert math.sqrt(np.mean(np.square(errors))) <= 1e-4  # the bound holds in the mean square

    def test_floods_go_on_long_enough(self, graph):
        for seed in range(20):
            network = SimulatedNetwork(graph, faults=Faults(0.5, seed))
            start = rows(network, 2)
            assert network.flood_rounds > network.diameter
            np.testing.assert_array_equal(
                maximum(network, start), np.broadcast_to(start.max(axis=0), start.shape)
            )
            assert (broadcast_from_center(network, start) == start[network.tree.root]).all()

    def test_methods_that_need_every_message_refuse(self):
        network = SimulatedNetwork(graphs.ring(6), faults=Faults(0.1))
        start = rows(network, 1)
        for options, why in (
            ({"method": "chebyshev"}, "averaging by Chebyshev polynomials needs every message"),
            ({"method": "tree"}, "a tree needs every message"),
            ({"stopping": "messages"}, "cannot agree on a round to stop"),
        ):
            with pytest.raises(NetworkError, match=why):
                average(network, start, **options)


def test_too_few_rounds_warn_with_the_numbers():
    network = SimulatedNetwork(graphs.linear(50))
    start = rows(network, 1)
    with pytest.warns(
        NotConverged, match=r"tolerance 1e-06: 100 rounds are allowed, but 231 are needed.*0\.99868"
    ):
        average(network, start, method="chebyshev", max_rounds=100)
    assert network.ledger.rounds == 100
    with pytest.warns(NotConverged, match="not agreed to stop within the 60 rounds"):
        average(network, start, method="chebyshev", max_rounds=60, stopping="messages")
    with pytest.warns(NotConverged, match="oracle had not seen it reached within 5 rounds"):
        average(network, start, method="plain", max_rounds=5, stopping="oracle")


def test_a_tree_does_not_take_more_rounds_than_allowed():
    network = SimulatedNetwork(graphs.linear(50))
    with pytest.raises(
        NetworkError, match="a tree of this network needs 50 rounds, and max_rounds allows 49"
    ):
        average(network, rows(network, 1), method="tree", max_rounds=49)
    with pytest.warns(NotConverged, match="49 rounds are allowed"):
        average(network, rows(network, 1), max_rounds=49)  # auto falls back on plain
    assert network.ledger.rounds == 49


def test_asking_for_a_stopping_rule_is_asking_for_plain():
    network = SimulatedNetwork(graphs.erdos_renyi(20, 0.2))
    average(network, rows(network, 1), stopping="oracle")
    assert network.ledger.messages == network.ledger.rounds * 2 * network.graph.number_of_edges()


def test_enough_rounds_do_not_warn():
    network = SimulatedNetwork(graphs.linear(50))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        average(network, rows(network, 1), method="chebyshev", max_rounds=231)
        average(network, rows(network, 1), method="chebyshev", max_rounds=231, stopping="messages")


def test_an_oracle_needs_all_agents_here(monkeypatch):
    network = SimulatedNetwork(graphs.ring(4))
    monkeypatch.setattr(SimulatedNetwork, "hosted", property(lambda self: (0, 1)))
    with pytest.raises(NetworkError, match="only a simulation can"):
        average(network, np.zeros((2, 1)), method="plain", stopping="oracle")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"method": "magic"},
            "method 'magic' is not known: choose one of auto, plain, chebyshev, tree",
        ),
        ({"stopping": "never"}, "stopping 'never' is not known"),
        ({"tolerance": 0.0}, "tolerance must be a number above 0, not 0.0"),
        ({"tolerance": float("nan")}, "tolerance must be a number above 0"),
        ({"max_rounds": 0}, "max_rounds must be 1 or more, not 0"),
    ],
)
def test_bad_options_get_their_sentence(options, sentence):
    with pytest.raises(InputError, match=sentence):
        Averaging(**options)


@settings(max_examples=30, deadline=None)
@given(
    st.builds(graphs.erdos_renyi, st.integers(2, 15), st.floats(0.4, 1.0), st.integers(0, 10**6)),
    st.sampled_from(["max-degree", "metropolis", "laplacian"]),
    st.sampled_from(["plain", "chebyshev", "tree"]),
    st.floats(1e-9, 0.5),
)
def test_any_graph_any_weights_any_method(graph, weights, method, tolerance):
    network = SimulatedNetwork(graph, weights)
    start = rows(network, 2, seed=network.size)
    x = average(network, start, method=method, tolerance=tolerance)
    assert error(x, start) <= tolerance * (1 + 1e-9) + 1e-14
