"""Processes that run all cases of peerlearn.testing on their engine, and save the results.

python -m tests.support.conformance mpi FOLDER [RANKS]                        under mpiexec
python -m tests.support.conformance peer K PORTS CERTS FOLDER [CHECKPOINTS]   one agent of four
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from peerlearn import graphs
from peerlearn.testing import save_cases

FOUR = graphs.ring(4)  # few rounds to agreement: with few cores a round over TLS takes milliseconds
SEVEN = graphs.erdos_renyi(7, 0.35, seed=0)  # two and four ranks get unequal parts of it


def peer(agent: int, ports: str, certs: str, graph: Any = FOUR, **options: Any) -> Any:
    """Return the network of one agent.

    ports: of all agents, "7101,7102,..". certs: the folder of their certificates, or "" for none.
    """
    from peerlearn import PeerNetwork

    addresses = [f"127.0.0.1:{port}" for port in ports.split(",")]
    papers = {"identity": identity(certs, agent)} if certs else {"insecure_loopback": True}
    return PeerNetwork(
        graph,
        agent,
        listen=addresses[agent],
        addresses=dict(enumerate(addresses)),
        **papers,
        **options,
    )


def identity(certs: str | Path, agent: int) -> Any:
    """Return the identity of an agent from its files."""
    from peerlearn.network.peers.certificates import Identity

    name = f"agent-{agent}"
    files = ("authority.pem", f"{name}.pem", f"{name}.key")
    return Identity.load(*(Path(certs, file) for file in files), name=name)


def run_mpi(folder: str, places: str = "") -> None:
    """Run all cases on this rank. places: the rank of each agent, "0,1,..", if it is given."""
    from peerlearn import MPINetwork

    ranks = [int(rank) for rank in places.split(",")] if places else None
    with MPINetwork(SEVEN, ranks=ranks) as network:
        save_cases(network, folder)


def run_peer(agent: str, ports: str, certs: str, folder: str, checkpoints: str = "") -> None:
    """Run all cases at this agent. With checkpoints it keeps a ledger too, and saves its totals."""
    kept = Path(checkpoints) if checkpoints else None
    with peer(int(agent), ports, certs, checkpoints=kept, records=kept) as network:
        save_cases(network, folder)
        if kept is not None:
            totals = {"messages": network.ledger.messages, "bytes": network.ledger.bytes}
            totals["head"] = network.record_left()
            (kept / "totals.json").write_text(json.dumps(totals))


if __name__ == "__main__":
    {"mpi": run_mpi, "peer": run_peer}[sys.argv[1]](*sys.argv[2:])
