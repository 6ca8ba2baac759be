"""Comparing what agents found apart with what a simulation of all agents finds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import networkx as nx
import numpy as np

from peerlearn import SimulatedNetwork
from peerlearn.arrays import one_blas_thread
from peerlearn.errors import NotConverged
from peerlearn.network.base import Counts, Network
from peerlearn.testing.threads import Wires, run_in_threads

AnyArray = np.ndarray[Any, Any]
Arrays = dict[str, AnyArray]


@contextmanager
def quiet() -> Iterator[None]:
    """Run the block with one BLAS thread and without warnings of solvers that are cut short."""
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        yield


def check_threads(what: str, graph: nx.Graph, work: Callable[[Network], Mapping[str, Any]]) -> None:
    """Check that agents in threads find the bits of simulated ones, and send what is counted.

    what: the algorithm, for sentences. work: returns named arrays whose leading axis is the hosted
    agents.
    """
    together = SimulatedNetwork(graph, exact_order=True)
    wires = Wires(graph)
    with quiet():
        expected = work(together)
        apart = run_in_threads(graph, lambda network: (work(network), network), wires=wires)
    for agent, (found, _) in enumerate(apart):
        for key, array in expected.items():
            same = np.array_equal(found[key][0], array[agent])
            assert same, (
                f"{what}: agent {agent} in a thread of its own computes other numbers than "
                f"simulated ({key}): let nothing but the network look across the agents"
            )
    _check_sent(what, wires, together.ledger.since(), [network for _, network in apart])


def _check_sent(what: str, wires: Wires, expected: Counts, networks: Sequence[Network]) -> None:
    counts = [network.ledger.since() for network in networks]
    messages = sum(own.messages for own in counts)
    size = sum(own.bytes for own in counts)
    assert (messages, size) == (expected.messages, expected.bytes), (
        f"{what}: agents in threads count {messages} messages and {size} bytes, and simulated ones "
        f"{expected.messages} and {expected.bytes}"
    )
    really = sum(wires.messages.values())
    assert really == expected.messages, (
        f"{what} sends {really} messages, and the ledger counts {expected.messages}"
    )


def combine_parts(parts: Sequence[Mapping[str, AnyArray]], agents: int) -> Arrays:
    """Return what one process would have found: rows by agent, and the sum of what was sent."""
    hosted = np.concatenate([part["hosted"] for part in parts])
    order = np.argsort(hosted)
    assert hosted[order].tolist() == list(range(agents)), (
        f"the networks host agents {sorted(hosted.tolist())}: host each of the {agents} agents once"
    )
    names = [list(part) for part in parts]
    assert all(own == names[0] for own in names), "the processes ran different cases"
    combined: Arrays = {}
    for key in names[0]:
        found = [part[key] for part in parts]
        is_count = key.endswith("/sent")
        combined[key] = _sum_counts(key, found) if is_count else np.concatenate(found)[order]
    return combined


def _sum_counts(key: str, found: Sequence[AnyArray]) -> AnyArray:
    """Return the sum of messages and bytes; all processes take part in the same rounds."""
    rounds = {int(sent[0]) for sent in found}
    assert len(rounds) == 1, f"{key}: processes count different rounds, {sorted(rounds)}"
    return np.array([rounds.pop(), *np.sum(found, axis=0)[1:]])


def describe_differences(
    found: Mapping[str, AnyArray], expected: Mapping[str, AnyArray], tolerance: float
) -> list[str]:
    """Return a text for every array that differs. tolerance: 0 means in any bit."""
    assert list(found) == list(expected), "other cases were run than are expected"
    texts = []
    for key, array in expected.items():
        own = found[key]
        away = _distance(own, array)
        same_bits = own.dtype == array.dtype and own.tobytes() == array.tobytes()
        if not (away <= tolerance) or (tolerance == 0 and not same_bits):
            texts.append(_describe(key, own, array, away))
    return texts


def _describe(key: str, found: AnyArray, expected: AnyArray, away: float) -> str:
    if key.endswith("/sent"):
        counts = ("rounds", "messages", "bytes")
        words = [
            f"{name} {own} instead of {wanted}"
            for name, own, wanted in zip(counts, found, expected, strict=True)
            if own != wanted
        ]
        return f"{key}: {', '.join(words)}"
    kinds = f"{found.dtype}{list(found.shape)} and {expected.dtype}{list(expected.shape)}"
    return f"{key}: {away:.1e} apart, {kinds}"


def _distance(found: AnyArray, expected: AnyArray) -> float:
    """Return the largest difference relative to the largest number; infinite if not comparable."""
    if found.shape != expected.shape:
        return float("inf")
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(found, expected) else float("inf")
    finite = np.isfinite(expected)
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    largest = np.abs(expected[finite]).max(initial=0.0)
    apart = np.abs(found[finite] - expected[finite]).max(initial=0.0)
    return float(apart / max(largest, 1e-300))
