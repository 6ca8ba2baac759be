"""Sums over the network: exact, modulo 2^64 for integers, and made in one place."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import peerlearn
from peerlearn import Averaging, Faults, SimulatedNetwork, average, graphs, total
from peerlearn.algorithms.sums import broadcast_from_root, sum_alike, sum_everywhere, sum_to_root
from peerlearn.errors import InputError, NetworkError

INTEGERS = [np.int64, np.uint64]


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_are_summed_modulo_2_to_the_64(graph, kind):
    network, limits = SimulatedNetwork(graph), np.iinfo(kind)
    x = np.random.default_rng(0).integers(limits.min, limits.max, (len(graph), 2, 5), kind)
    found = total(network, x)
    exact = x.astype(object).sum(axis=0)
    assert found.dtype == kind
    assert found.shape == x.shape
    assert ((found.astype(object) - exact) % 2**64 == 0).all()
    assert (found == found[0]).all()


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_integers_of_any_size(data):
    kind = data.draw(st.sampled_from(INTEGERS))
    agents = data.draw(st.integers(1, 9))
    x = data.draw(hnp.arrays(kind, (agents, 3)))
    network = SimulatedNetwork(graphs.linear(agents), exact_order=data.draw(st.booleans()))
    assert ((total(network, x)[0].astype(object) - x.astype(object).sum(axis=0)) % 2**64 == 0).all()


def test_the_root_alone_has_the_sum_and_others_those_of_their_subtrees():
    network = SimulatedNetwork(graphs.linear(5))  # the root is in the middle
    mark = network.ledger.mark()
    sums = sum_to_root(network, np.arange(5.0)[:, None])
    assert sums[:, 0].tolist() == [0, 1, 10, 7, 4]
    assert network.ledger.since(mark).messages == 4
    assert network.ledger.since(mark).bytes == 4 * 8


def test_what_is_given_stays_as_it_is():
    network, x = SimulatedNetwork(graphs.star(4)), np.arange(8.0).reshape(4, 2)
    before = x.copy()
    for operation in (sum_to_root, broadcast_from_root, total):
        operation(network, x)
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("kind", [np.float64, *INTEGERS])
def test_the_roots_row_at_every_agent(graph, kind):
    network = SimulatedNetwork(graph)
    x = np.arange(2 * len(graph)).reshape(len(graph), 2).astype(kind)
    found = broadcast_from_root(network, x)
    assert found.dtype == kind
    assert (found == x[network.tree.root]).all()


@pytest.mark.parametrize("method", ["plain", "chebyshev"])
class TestByGossip:
    def test_int64_becomes_float64(self, method):
        found = total(
            SimulatedNetwork(graphs.ring(5)), np.arange(5), method=method, tolerance=1e-12
        )
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, 10.0)

    def test_sums_modulo_2_to_the_64_are_refused(self, method):
        with pytest.raises(
            InputError, match=r"sums modulo 2\^64 are made over a tree only: use method='tree'"
        ):
            total(SimulatedNetwork(graphs.ring(5)), np.arange(5, dtype=np.uint64), method=method)

    def test_sums_are_alike_where_asked(self, method):
        network = SimulatedNetwork(graphs.erdos_renyi(12, 0.3, seed=1))
        x, rough = np.random.default_rng(0).standard_normal((12, 3)), Averaging(method, 1e-3)
        assert (sum_alike(network, x, rough) == sum_alike(network, x, rough)[0]).all()
        assert not (sum_everywhere(network, x, rough) == sum_everywhere(network, x, rough)[0]).all()


def test_lists_and_small_integers_are_numbers():
    network = SimulatedNetwork(graphs.ring(3))
    assert total(network, [1, 2, 3]).dtype == np.float64
    assert total(network, np.array([1, 2, 3], np.int32)).dtype == np.float64
    assert average(network, np.array([1, 2, 4])).dtype == np.float64


def test_one_agent_is_its_own_sum():
    network, x = SimulatedNetwork(graphs.complete(1)), np.array([[2**64 - 1]], np.uint64)
    assert total(network, x).tolist() == x.tolist()
    assert network.ledger.rounds == 0


def test_messages_that_get_lost():
    lossy = SimulatedNetwork(graphs.ring(5), faults=Faults(0.1, seed=0))
    with pytest.raises(NetworkError, match="a tree needs every message to arrive"):
        sum_to_root(lossy, np.arange(5.0))


def test_types_that_no_engine_adds():
    with pytest.raises(
        InputError, match="rows of type float32 are not passed on: give an array of float64, int64"
    ):
        SimulatedNetwork(graphs.ring(3)).pass_on(
            np.ones((3, 2), np.float32), np.array([1]), np.array([0]), add=True
        )


def test_nothing_else_adds_over_agents():
    """Certificates, secrecy and accounting are to be added in one place: nobody else sends rows to
    be added.
    """
    source = Path(peerlearn.__file__).parent
    adding = {
        str(file.relative_to(source))
        for file in source.rglob("*.py")
        if re.search(r"pass_on\([^)]*add=True", file.read_text(encoding="utf-8"), re.DOTALL)
    }
    assert adding == {"algorithms/sums.py"}
