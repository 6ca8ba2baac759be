"""Everybody's table at every agent: whole, in order, and refused where it cannot be one."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from peerlearn import Faults, SimulatedNetwork, graphs
from peerlearn.algorithms.all_gather import all_gather
from peerlearn.errors import NetworkError, WireError
from tests.support.split_network import run_apart

WIDTH = 3


def table(agent):
    """Agent 1 has no rows."""
    return np.random.default_rng(agent).standard_normal((agent if agent != 1 else 0, WIDTH))


def test_all_agents_get_all_tables(graph):
    network = SimulatedNetwork(graph)
    found = all_gather(network, [table(k) for k in range(network.size)], WIDTH)
    assert len(found) == network.size
    for agent, own in enumerate(found):
        np.testing.assert_array_equal(own, table(agent))


@pytest.mark.parametrize(
    "shape", [graphs.ring(5), graphs.star(5), graphs.linear(5, 1)], ids=["ring", "star", "line"]
)
def test_agents_that_live_apart_get_them_too(shape):
    found = run_apart(shape, lambda network, k: all_gather(network, [table(k)], WIDTH))
    for tables in found:
        for agent, own in enumerate(tables):
            np.testing.assert_array_equal(own, table(agent))


def test_every_table_crosses_a_link_of_the_tree_once_each_way_it_must_go():
    network = SimulatedNetwork(graphs.linear(3, 1))  # 0 - 1 - 2, the root in the middle
    all_gather(network, [np.ones((2, WIDTH))] * 3, WIDTH)
    rows_up, rows_down = 2 + 2, 6 + 6
    lengths_up, lengths_down = 1 + 1, 3 + 3
    numbers = WIDTH * (rows_up + rows_down) + lengths_up + lengths_down
    assert (network.ledger.rounds, network.ledger.messages, network.ledger.bytes) == (
        2,
        4,
        8 * numbers,
    )


def test_one_agent_asks_nobody():
    network = SimulatedNetwork(graphs.complete(1))
    (own,) = all_gather(network, [table(4)], WIDTH)
    np.testing.assert_array_equal(own, table(4))
    assert network.ledger.messages == 0


def test_lost_messages_are_refused():
    with pytest.raises(NetworkError, match="cannot tell silence from a lost message"):
        all_gather(
            SimulatedNetwork(graphs.ring(4), faults=Faults(0.1, seed=0)),
            [table(k) for k in range(4)],
            WIDTH,
        )


GOOD = {"rows": np.array([2]), "table": np.ones((2, WIDTH))}
STRANGE = {
    "nothing": {},
    "no rows": {"table": GOOD["table"]},
    "rows of another agent": GOOD | {"rows": np.array([1, 1])},
    "too few": GOOD | {"rows": np.array([3])},
    "fewer than none": GOOD | {"rows": np.array([-2])},
    "more than there are numbers": GOOD | {"rows": np.array([2**63 - 1])},
    "halves": GOOD | {"rows": np.array([2.0])},
    "another width": GOOD | {"table": np.ones((2, WIDTH + 1))},
    "flat": GOOD | {"table": np.ones(2 * WIDTH)},
    "other numbers": GOOD | {"table": np.ones((2, WIDTH), dtype=np.float32)},
    "no number": GOOD | {"table": np.full((2, WIDTH), np.nan)},
}


class Tampered(SimulatedNetwork):
    """Agent 2 of a line of three, a leaf, sends something else."""

    def __init__(self, message):
        super().__init__(nx.path_graph(3))
        self.message = message

    def exchange(self, outbox, to=None):
        inbox = super().exchange(outbox, to)
        return [
            {k: (self.message or {"else": np.zeros(1)}) if k == 2 else sent[k] for k in sent}
            for sent in inbox
        ]


@pytest.mark.parametrize("message", STRANGE.values(), ids=STRANGE)
def test_what_cannot_be_tables_is_refused_by_the_senders_name(message):
    with pytest.raises(
        WireError, match=r"agent 2 sent an unexpected message .expected tables of 3 columns"
    ):
        all_gather(Tampered(message), [np.ones((2, WIDTH))] * 3, WIDTH)


def test_what_is_tampered_with_otherwise_well_arrives():
    found = all_gather(Tampered(GOOD), [np.zeros((2, WIDTH))] * 3, WIDTH)
    np.testing.assert_array_equal(found[2], GOOD["table"])
