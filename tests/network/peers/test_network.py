"""One agent per process: the numbers and the ledger of a simulation, over TLS; what cannot work is
said by all.
"""

from __future__ import annotations

import json
import re
import socket

import numpy as np
import pytest

from peerlearn import PeerNetwork, SimulatedNetwork, average, graphs
from peerlearn.errors import InputError, NetworkError
from peerlearn.network.peers.certificates import make
from peerlearn.network.peers.chain_file import read_chain
from peerlearn.network.peers.frame import MOST_TEXT
from peerlearn.network.peers.link import Speaker
from peerlearn.network.peers.network import settings_as_text
from peerlearn.numerics import NUMERICS
from peerlearn.testing import check_saved_cases
from peerlearn.testing.cases.calls import entries
from peerlearn.testing.comparing import combine_parts
from tests.support import peer_processes
from tests.support.conformance import FOUR, identity

NAMES = [f"agent-{agent}" for agent in range(4)]


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    make(folder, NAMES)
    return folder


@pytest.mark.processes
class TestEveryMethodAndSolver:
    @pytest.mark.parametrize("checkpoints", [False, True], ids=["no checkpoints", "checkpoints"])
    def test_has_the_bits_and_the_ledger_of_a_simulation(self, checkpoints, certs, tmp_path):
        ports = peer_processes.free_ports(4)
        kept = [[str(tmp_path / f"kept-{agent}")] if checkpoints else [] for agent in range(4)]
        peer_processes.run(
            [
                [
                    "-m",
                    "tests.support.conformance",
                    "peer",
                    str(agent),
                    ports,
                    str(certs),
                    str(tmp_path),
                    *kept[agent],
                ]
                for agent in range(4)
            ],
            tmp_path,
        )
        check_saved_cases(tmp_path, FOUR)
        assert all((tmp_path / f"kept-{agent}").is_dir() == checkpoints for agent in range(4))
        if checkpoints:
            for agent in range(4):
                check_left(tmp_path / f"kept-{agent}")


def check_left(folder):
    """Check that the ledger of what left has the totals of the ledger of messages, and names."""
    chain = read_chain(folder / "left.jsonl")
    totals = json.loads((folder / "totals.json").read_text())
    counts = chain.entries[-1]["counts"]
    assert np.sum(list(counts.values()), axis=0).tolist() == [totals["messages"], totals["bytes"]]
    assert chain.head == totals["head"]
    leaves = [entry for entry in chain.entries if entry["event"] == "leaves"]
    assert {str(entry["line"]) for entry in leaves} == set(counts)
    nameless = {
        entry["by"] for entry in leaves if entry["quantity"].startswith("numbers of peerlearn.")
    }
    assert "peerlearn.testing.cases.calls" in nameless
    # Only a program's own calls have no name.
    assert all(name.startswith("peerlearn.testing.cases.") for name in nameless), nameless


@pytest.mark.processes
class TestShortRuns:
    """Several networks, one after the other in the same processes, without certificates."""

    WORK = """
import sys
from peerlearn import average
from peerlearn.errors import PeerlearnError
import numpy as np
from peerlearn import graphs
from peerlearn.testing.cases.calls import entries
from tests.support.conformance import peer

agent, ports, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]

def averaged(run):
    with peer(agent, ports, "", run=run) as network:
        return average(network, entries([agent], (3,)), method="plain")

def fails_at_agent_0():
    with peer(agent, ports, "", run="fails") as network:
        average(network, entries([agent], (3,)))
        if agent == 0:
            raise PeerlearnError("the fifth row of north.csv has no number")
        average(network, entries([agent], (3,)))

def settings_differ():
    if agent < 2:
        settings = {"alpha": [0.5, 2.0][agent], "hidden": 50}
        peer(agent, ports, "", graphs.complete(2), settings=settings)

def numerics_differ():
    from peerlearn.network import base
    if agent < 2:
        base.NUMERICS += agent
        peer(agent, ports, "", graphs.complete(2), run="numerics")

def sentence(work):
    try:
        work()
    except PeerlearnError as error:
        return [f"{type(error).__name__}: {error}"]
    return ["all went well"]

found = {"hosted": [agent], "first": averaged("first"), "second": averaged("second")}
programs = (fails_at_agent_0, settings_differ, numerics_differ)
found.update({work.__name__: sentence(work) for work in programs})
np.savez(f"{folder}/{agent}.npz", **{name: np.array(value) for name, value in found.items()})
"""

    @pytest.fixture(scope="module")
    @staticmethod
    def found(tmp_path_factory):
        folder, ports = tmp_path_factory.mktemp("short"), peer_processes.free_ports(4)
        peer_processes.run(
            [["-c", TestShortRuns.WORK, str(agent), ports, str(folder)] for agent in range(4)],
            folder,
        )
        return combine_parts([dict(np.load(folder / f"{agent}.npz")) for agent in range(4)], 4)

    @pytest.mark.parametrize("run", ["first", "second"])
    def test_average(self, run, found):
        together = average(
            SimulatedNetwork(FOUR, exact_order=True), entries(range(4), (3,)), method="plain"
        )
        np.testing.assert_array_equal(found[run], together)

    def test_an_error_at_one_agent_ends_the_run_at_all(self, found):
        first, *others = found["fails_at_agent_0"].tolist()
        assert first == "PeerlearnError: the fifth row of north.csv has no number"
        assert (
            others
            == ["Left: agent agent-0 ended the run: the fifth row of north.csv has no number"] * 3
        )

    def test_settings_that_differ_end_both_agents(self, found):
        for said in found["settings_differ"][:2].tolist():
            assert re.match(
                r"(Mismatch|Left): agents agent-[01] and agent-[01] disagree on alpha: ", said
            )
            assert "0.5 at agent-0" in said
            assert "2.0 at agent-1" in said

    def test_releases_that_compute_other_numbers_do_not_train_together(self, found):
        for said in found["numerics_differ"][:2].tolist():
            assert "disagree on the numerics version of peerlearn: " in said
            assert f"{NUMERICS} at agent-0" in said
            assert f"{NUMERICS + 1} at agent-1" in said


class TestRefused:
    """At once, with a sentence, and before anything is opened."""

    GOOD = "127.0.0.1:0"

    def refused(self, sentence, agent=0, graph=FOUR, **options):
        addresses = {1: "127.0.0.1:7101", 3: "127.0.0.1:7103"}
        with pytest.raises(InputError, match=sentence):
            PeerNetwork(graph, agent, **{"listen": self.GOOD, "addresses": addresses, **options})

    def test_without_identity(self):
        self.refused("agent agent-0 has no identity, .* make them with peerlearn certs")

    def test_identity_of_somebody_else(self, certs):
        self.refused(
            "agent agent-0 was given the identity of agent-1: give it its own",
            identity=identity(certs, 1),
        )

    @pytest.mark.parametrize(
        "given",
        [{"listen": "0.0.0.0:7100"}, {"addresses": {1: "north.example:7101", 3: "127.0.0.1:7103"}}],
        ids=str,
    )
    def test_other_machines_without_certificates(self, given):
        self.refused(
            "is not of this machine, and without certificates nothing may",
            insecure_loopback=True,
            **given,
        )

    def test_neighbor_without_address(self, certs):
        addresses = {1: "127.0.0.1:7101"}
        sentence = "agent agent-0 connects to its neighbor agent-3 and has no address of it"
        self.refused(sentence, identity=identity(certs, 0), addresses=addresses)

    @pytest.mark.parametrize(
        "address", ["7101", "north.example", "north:port", ":7101", "north:70000", "north:-1"]
    )
    def test_address(self, address):
        addresses = {1: address, 3: "127.0.0.1:7103"}
        self.refused(
            "the address of agent-1 is .*: write host:port",
            insecure_loopback=True,
            addresses=addresses,
        )
        self.refused(
            "the address of agent-0 is .*: write host:port", insecure_loopback=True, listen=address
        )

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            listen = f"127.0.0.1:{taken.getsockname()[1]}"
            self.refused(
                f"this agent cannot listen on {listen}: the port is in use",
                insecure_loopback=True,
                listen=listen,
            )

    @pytest.mark.parametrize("agent", [-1, 4])
    def test_agent_that_is_not_in_the_graph(self, agent):
        self.refused(
            f"agent {agent} is not one of the 4 agents", agent=agent, insecure_loopback=True
        )

    @pytest.mark.parametrize(
        "names", [["north", "south"], ["north", "south", "east", "north"]], ids=len
    )
    def test_names(self, names):
        self.refused("4 agents need 4 different names", names=names, insecure_loopback=True)


def test_settings_fit_into_a_hello():
    """Longer ones are compared by a checksum, and too many are refused: a hello that is cut cannot
    be read.
    """
    words = settings_as_text({"columns": "é" * 131_072, "short": 1})
    assert words["short"] == "1"
    assert words["columns"].startswith("131072 letters with the checksum")
    assert len(Speaker("run", 0, "north", words).hello()) < MOST_TEXT
    with pytest.raises(
        InputError,
        match="20 settings are too many to compare with neighbors: give fewer or shorter",
    ):
        settings_as_text({str(n): "a" * 100_000 for n in range(20)})


def test_one_agent_needs_nobody():
    with PeerNetwork(
        graphs.complete(1), 0, listen="127.0.0.1:0", addresses={}, insecure_loopback=True
    ) as network:
        assert network.port > 0
        assert average(network, [3.0]).tolist() == [3.0]
        with pytest.raises(
            NetworkError, match="no place that may see every agent's entry: save each agent's own"
        ):
            network.gather(np.ones(1))
