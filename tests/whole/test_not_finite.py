"""NaN and infinite numbers at one agent: never sent, and the agent is named in the call in which it
would send them.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import networkx as nx
import numpy as np
import pytest

from peerlearn import Faults, PeerNetwork, SimulatedNetwork, graphs
from peerlearn.arrays import all_finite
from peerlearn.errors import NetworkError
from peerlearn.network.peers.link import Left
from tests.support import mpi_jobs
from tests.support.peer_processes import free_ports
from tests.support.waiting import PATIENCE

SENTENCE = (
    "agent {} computed numbers that are not finite, and those are never sent: check its rows, "
    "or choose other settings"
)
ROUNDS = np.array([[1.0, 0.0, 0.0]] * 4)
GROWING = np.array([[2.0, 0.0, 0.0]] * 60)


def links(network):
    """All links, in both directions."""
    edges = np.array(network.graph.edges, dtype=np.intp).reshape(-1, 2)
    return np.vstack([edges, edges[:, ::-1]]).T


CALLS = {
    "mix": lambda network, x: network.mix(x),
    "recur": lambda network, x: network.recur(x, ROUNDS),
    "mix_and_flood, x": lambda network, x: network.mix_and_flood(x, np.zeros(len(x))),
    "mix_and_flood, largest": lambda network, x: network.mix_and_flood(np.zeros(len(x)), x),
    "flood": lambda network, x: network.flood(x),
    "pass_on to add": lambda network, x: network.pass_on(x.copy(), *links(network), add=True),
    "pass_on to keep": lambda network, x: network.pass_on(x.copy(), *links(network), add=False),
    "exchange": lambda network, x: network.exchange([{"n": np.arange(3), "x": row} for row in x]),
    "mix_speaking": lambda network, x: network.mix_speaking(x, np.ones(len(x), dtype=bool)),
}
NETWORKS = {
    "dense": lambda: SimulatedNetwork(graphs.ring(7)),
    "sparse": lambda: SimulatedNetwork(graphs.ring(70)),
    "in exact order": lambda: SimulatedNetwork(graphs.ring(7), exact_order=True),
}
MPI_JOB = """
import json, sys
import numpy as np
from peerlearn import MPINetwork, graphs
from peerlearn.errors import NetworkError
from tests.whole.test_not_finite import CALLS, GROWING

CALLS["mix wide rows"] = lambda network, x: network.mix(np.hstack([np.ones((len(x), 30_000)), x]))
CALLS["growing"] = lambda network, x: network.recur(np.full((len(x), 3), 1e300), GROWING)

def sentence(network, call, x):
    try:
        return repr(CALLS[call](network, x))
    except NetworkError as error:
        return str(error)

with MPINetwork(graphs.ring(7)) as network:
    x = np.ones((len(network.hosted), 3))
    x[network.hosted.index(4), 1] = np.nan
    print(json.dumps({call: sentence(network, call, x) for call in CALLS}))
"""


def spoilt(agents, agent, value=np.nan, width=3):
    x = np.random.default_rng(0).standard_normal((agents, width))
    x[agent, -1] = value
    return x


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", NETWORKS)
def test_simulation(kind, call, value):
    network = NETWORKS[kind]()
    with pytest.raises(NetworkError) as error:
        CALLS[call](network, spoilt(network.size, 4, value))
    assert str(error.value) == SENTENCE.format(4)


@pytest.mark.parametrize("width", [3, 100])
def test_simulation_of_rounds_by_a_polynomial(width):
    with pytest.raises(NetworkError, match=SENTENCE.format(2)):
        SimulatedNetwork(graphs.ring(7)).recur(spoilt(7, 2, width=width), ROUNDS)


@pytest.mark.parametrize("one_row_shows", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("call", ["mix", "recur"])
def test_simulation_of_large_rows(call, value, one_row_shows):
    """Agent 4 is no neighbor of agent 0, whose row of the product is looked at."""
    network = SimulatedNetwork(graphs.ring(7))
    network._one_row_shows &= one_row_shows
    with pytest.raises(NetworkError, match=SENTENCE.format(4)):
        CALLS[call](network, spoilt(7, 4, value, width=10_000))
    CALLS[call](network, spoilt(7, 4, 1e300, width=10_000))


@pytest.mark.parametrize("call", ["mix", "recur", "mix_and_flood, x", "flood", "exchange"])
def test_simulation_where_messages_get_lost(call):
    with pytest.raises(NetworkError, match=SENTENCE.format(4)):
        CALLS[call](SimulatedNetwork(graphs.ring(7), faults=Faults(loss=0.3, seed=0)), spoilt(7, 4))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", NETWORKS)
def test_large_numbers_are_sent(kind, call):
    network = NETWORKS[kind]()
    CALLS[call](network, spoilt(network.size, 4, 1e300))


@pytest.mark.parametrize("width", [3, 100])
@pytest.mark.parametrize("kind", NETWORKS)
def test_numbers_that_become_too_large_on_the_way(kind, width):
    network = NETWORKS[kind]()
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(NetworkError, match=r"agent \d computed numbers that are not finite"),
    ):
        network.recur(np.full((network.size, width), 1e300), GROWING)


class TestWhoSendsNothing:
    """What an agent keeps to itself is its own business."""

    @pytest.mark.parametrize("kind", NETWORKS)
    @pytest.mark.parametrize("add", [True, False])
    def test_receivers(self, kind, add):
        network, senders, receivers = NETWORKS[kind](), np.array([1, 3]), np.array([2, 4])
        x = spoilt(network.size, 2)
        network.pass_on(x, senders, receivers, add=add)
        assert np.isfinite(x[2, -1]) == (not add)
        with pytest.raises(NetworkError, match=SENTENCE.format(2)):
            network.pass_on(spoilt(network.size, 2), receivers, senders, add=add)
        x[[2, 3]] = np.nan
        with pytest.raises(NetworkError, match=SENTENCE.format(3)):
            network.pass_on(x, senders, receivers, add=add)

    @pytest.mark.parametrize("kind", NETWORKS)
    def test_the_silent(self, kind):
        network = NETWORKS[kind]()
        mixed = network.mix_speaking(spoilt(network.size, 4), np.arange(network.size) != 4)
        assert np.isfinite(mixed).all()

    def test_a_message_to_nobody(self):
        network = SimulatedNetwork(graphs.ring(3))
        network.exchange([{"x": np.full(2, np.nan)}, {}, {}], [[], [], []])
        with pytest.raises(NetworkError, match=SENTENCE.format(0)):
            network.exchange([{"x": np.full(2, np.nan)}, {}, {}], [[1], [], []])

    @pytest.mark.parametrize("call", sorted(set(CALLS) - {"pass_on to add", "pass_on to keep"}))
    def test_who_is_alone(self, call):
        CALLS[call](SimulatedNetwork(nx.empty_graph(1)), spoilt(1, 0))


@pytest.mark.processes
class TestMPI:
    def test_every_call_at_one_rank(self):
        said = json.loads(mpi_jobs.run(None, "-c", MPI_JOB))
        assert said.pop("growing") == SENTENCE.format(0)
        assert said == dict.fromkeys([*CALLS, "mix wide rows"], SENTENCE.format(4))

    def test_wide_rows_arrive_as_they_are(self):
        """They are looked at in blocks."""
        work = """
import numpy as np
from peerlearn import MPINetwork, SimulatedNetwork, graphs
x = np.random.default_rng(0).standard_normal((7, 30_001))
with MPINetwork(graphs.ring(7)) as network:
    print(np.array_equal(network.mix(x), SimulatedNetwork(graphs.ring(7), exact_order=True).mix(x)))
"""
        assert mpi_jobs.run(None, "-c", work) == "True\n"

    @pytest.mark.parametrize("call", ["mix", "recur", "exchange", "pass_on to keep"])
    def test_a_job_of_several_ranks_ends_with_the_sentence(self, call):
        """The other rank waits for numbers that never come, unless the job ends."""
        work = f"""
import numpy as np
from peerlearn import MPINetwork, graphs
from tests.whole.test_not_finite import CALLS
with MPINetwork(graphs.ring(4), ranks=[0, 1, 0, 1]) as network:
    x = np.ones((len(network.hosted), 3))
    if network.comm.rank == 1:
        x[0, 2] = np.nan
    CALLS[{call!r}](network, x)
    CALLS["mix"](network, np.ones((len(network.hosted), 3)))
"""
        done = mpi_jobs.start(2, "-c", work)
        assert done.returncode != 0
        assert "rank 1 failed, and with it the job:" in done.stderr
        assert f"NetworkError: {SENTENCE.format(1)}" in done.stderr

    def test_receivers_may_have_what_they_want(self):
        work = """
import numpy as np
from peerlearn import MPINetwork, graphs
with MPINetwork(graphs.ring(4), ranks=[0, 1, 0, 1]) as network:
    x = np.where(np.array(network.hosted)[:, None] == 1, np.nan, np.ones((len(network.hosted), 3)))
    network.pass_on(x, np.array([0]), np.array([1]), add=False)
    network.mix(x)
"""
        mpi_jobs.run(2, "-c", work)


@pytest.mark.processes  # servers
class TestPeers:
    """By name, and the neighbors are told."""

    @pytest.mark.parametrize("call", CALLS)
    def test_every_call(self, call):
        ports = free_ports(2).split(",")
        ready = threading.Barrier(2, timeout=PATIENCE)

        def agent(k):
            with PeerNetwork(
                nx.path_graph(2),
                k,
                listen=f"127.0.0.1:{ports[k]}",
                addresses={1: f"127.0.0.1:{ports[1]}"} if k == 0 else {},
                names=["north", "south"],
                insecure_loopback=True,
            ) as network:
                ready.wait()
                CALLS[call](network, spoilt(1, 0) if k == 1 else np.ones((1, 3)))

        with ThreadPoolExecutor(2) as pool:
            errors = [
                future.exception(timeout=PATIENCE)
                for future in [pool.submit(agent, k) for k in range(2)]
            ]
        assert isinstance(errors[1], NetworkError)
        assert str(errors[1]) == SENTENCE.format("south")
        assert isinstance(errors[0], Left)
        assert f"agent south ended the run: {SENTENCE.format('south')}" in str(errors[0])


class TestAllFinite:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_])
    @pytest.mark.parametrize("shape", [(), (0,), (3,), (40, 500), (2, 3, 4)])
    def test_numbers(self, shape, dtype):
        assert all_finite(np.ones(shape, dtype)) is True

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("size", [1, 7, 10_000, 100_001])
    def test_one_that_is_none(self, size, value, dtype):
        for place in {0, size // 2, size - 1}:
            x = np.ones(size, dtype)
            x[place] = value
            assert all_finite(x) is False
            assert all_finite(x[::-1].reshape(-1, 1)) is False

    @pytest.mark.parametrize("size", [2, 20_000])
    def test_squares_that_are_too_large(self, size):
        x = np.full(size, 1e200)
        assert all_finite(x)
        x[1] = np.nan
        assert not all_finite(x)
        assert all_finite(np.full(size, 1e30, np.float32))

    def test_opposite_infinities(self):
        assert not all_finite(np.array([np.inf, -np.inf]))
