"""Every case of conformance_cases.py on any network: what simulation and other engines share.

    python -m tests.conformance mpi OUT.npz [RANKS]                      under mpiexec; rank r writes OUT-r.npz
    python -m tests.conformance peer K PORTS CERTS OUT.npz [CHECKPOINTS] one agent of four; writes
    OUT-K.npz

With what every case gives stands what it sent: rounds, messages, bytes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from peerlearn import SimulatedNetwork, graphs
from peerlearn.errors import NotConverged
from peerlearn.local.threads import one_blas_thread
from peerlearn.network.base import Network
from tests.conformance_cases import Arrays, cases

FOUR = graphs.ring(
    4
)  # few rounds to agreement: a round over TLS costs milliseconds when cores are few
SEVEN = graphs.erdos_renyi(7, 0.35, seed=0)  # two and four ranks get unequal parts of it


# What they give
# ----------------------------------------------------------------------------------------------------


def run_all(network: Network) -> Arrays:
    """Every array of every case as "case/array", and what each case sent as "case/sent"."""
    found: Arrays = {"hosted": np.array(network.hosted)}
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", NotConverged
        )  # that answers are the same is the question, not that they do
        for case, work in cases().items():
            mark = network.ledger.mark()
            found.update(
                {f"{case}/{key}": array for key, array in work(network, network.hosted).items()}
            )
            sent = network.ledger.since(mark)
            found[f"{case}/sent"] = np.array([sent.rounds, sent.messages, sent.bytes])
    return found


def reference(graph: Any, *, exact_order: bool = True) -> Arrays:
    return run_all(SimulatedNetwork(graph, exact_order=exact_order))


def put_together(parts: Sequence[Mapping[str, np.ndarray]]) -> Arrays:
    """What processes found apart, as one process would have: rows by agent, and the sum of what was sent."""
    order = np.argsort(np.concatenate([part["hosted"] for part in parts]))
    return {key: _put_together(key, [part[key] for part in parts], order) for key in parts[0]}


def _put_together(key: str, found: list[np.ndarray], order: np.ndarray) -> np.ndarray:
    if not key.endswith("/sent"):
        return np.concatenate(found)[order]
    rounds = {int(sent[0]) for sent in found}
    assert len(rounds) == 1, f"{key}: processes count different rounds, {sorted(rounds)}"
    return np.array([rounds.pop(), *np.sum(found, axis=0)[1:]])


def different_bits(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> list[str]:
    """The names under which something else stands, in whatever bit."""
    assert list(found) == list(expected)
    return [
        f"{key}: {found[key].dtype} {found[key].shape}, {array.dtype} {array.shape}, {_distance(found[key], array)}"
        for key, array in expected.items()
        if (found[key].dtype, found[key].shape) != (array.dtype, array.shape)
        or found[key].tobytes() != array.tobytes()
    ]


def further_apart(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], tolerance: float
) -> list[str]:
    """The names under which numbers differ by more than the tolerance, relative to the largest; or anything else."""
    assert list(found) == list(expected)
    distances = {key: _distance(found[key], array) for key, array in expected.items()}
    return [
        f"{key}: {distance:.1e}" for key, distance in distances.items() if not distance <= tolerance
    ]


def _distance(found: np.ndarray, expected: np.ndarray) -> float:
    if found.shape != expected.shape:
        return np.inf
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(found, expected) else np.inf
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        return np.inf
    found, expected = found[finite], expected[finite]
    return float(
        np.abs(found - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1e-300)
    )


# As a process
# ------------------------------------------------------------------------------------------------------


def save(out: str | Path, process: int, found: Mapping[str, np.ndarray]) -> None:
    """Names hold slashes and brackets, which are no names of files: they are kept in a list."""
    np.savez(
        part_of(out, process),
        names=np.array(list(found)),
        **{f"a{i}": a for i, a in enumerate(found.values())},
    )


def load(out: str | Path, processes: int) -> list[Arrays]:
    """What each process saved."""
    parts = []
    for process in range(processes):
        with np.load(part_of(out, process), allow_pickle=False) as file:
            parts.append({str(name): file[f"a{i}"] for i, name in enumerate(file["names"])})
    return parts


def part_of(out: str | Path, process: int) -> Path:
    return Path(out).with_name(f"{Path(out).stem}-{process}.npz")


def peer(agent: int, ports: str, certs: str, graph: Any = FOUR, **options: Any) -> Any:
    """One agent; ports: of all agents, "7101,7102,.."; certs: the folder of their papers, or "" to do without."""
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
    from peerlearn.network.peers.certificates import Identity

    name = f"agent-{agent}"
    return Identity.load(
        *(Path(certs, file) for file in ("authority.pem", f"{name}.pem", f"{name}.key")), name=name
    )


def main(mode: str, *given: str) -> None:
    if mode == "mpi":
        from peerlearn import MPINetwork

        out, ranks = given[0], [int(rank) for rank in given[1].split(",")] if given[1:] else None
        with MPINetwork(SEVEN, ranks=ranks) as network:
            save(out, network.comm.rank, run_all(network))
    elif mode == "peer":
        agent, ports, certs, out, *checkpoints = given
        with peer(
            int(agent), ports, certs, checkpoints=Path(*checkpoints) if checkpoints else None
        ) as network:
            save(out, int(agent), run_all(network))


if __name__ == "__main__":
    main(*sys.argv[1:])
