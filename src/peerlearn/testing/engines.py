"""The check of engines: every case gives the bits and the ledger of a simulation.

    in one process     check_engine(run)                   run(graph, work) makes all networks
    in several         save_cases(network, folder)         in each process
                       check_saved_cases(folder, graph)    anywhere, when all have ended

The cases of single calls run first, so that a wrong engine fails within a few rounds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from peerlearn import SimulatedNetwork, graphs
from peerlearn.arrays import Array
from peerlearn.errors import InputError, NetworkError
from peerlearn.network.base import Network
from peerlearn.testing.cases import Case, algorithm_cases, call_cases
from peerlearn.testing.cases.case import Arrays
from peerlearn.testing.comparing import combine_parts, describe_differences, quiet

__all__ = ["check_engine", "check_saved_cases", "run_cases", "save_cases"]

Work = Callable[[Network], Any]
Run = Callable[[nx.Graph, Work], Iterable[Any]]

GRAPH = graphs.erdos_renyi(5, 0.5, seed=4)  # agents have one to three neighbors


def check_engine(run: Run, graph: nx.Graph | None = None, *, tolerance: float = 0.0) -> None:
    """Check that an engine gives the bits and the ledger of a simulation, and refuses bad numbers.

    Parameters
    ----------
    run : callable
        Called as run(graph, work). It makes the engine's networks over the graph, calls
        work(network) for each of them at the same time, and returns the results in any order. It
        must not catch errors of `work`.
    graph : networkx.Graph, default None
        A graph of four to seven agents. None takes one of five agents with different numbers of
        neighbors.
    tolerance : float, default 0.0
        How far numbers may be from those of a simulation, relative to the largest. 0 means the same
        bits.

    Raises
    ------
    AssertionError
        With a sentence about the first cases that differ.

    Examples
    --------
    An engine whose one network hosts all agents, compared with itself:

    >>> from peerlearn import SimulatedNetwork
    >>> from peerlearn.testing import check_engine
    >>> check_engine(lambda graph, work: [work(SimulatedNetwork(graph, exact_order=True))])

    `run_in_threads` is an engine with one network per agent: check_engine(run_in_threads).
    """
    graph = GRAPH if graph is None else graph
    _check_size(graph)
    # Threads share the warning filters, so the filters must be set here, outside of them.
    with quiet():
        _check_cases(run, graph, call_cases(), tolerance)
        _check_refusal(run, graph)
        _check_cases(run, graph, algorithm_cases(), tolerance)


def run_cases(network: Network) -> Arrays:
    """Return what every case gives over this network, and what it sent.

    Parameters
    ----------
    network : Network
        A network of four to seven agents.

    Returns
    -------
    dict of str to array
        Arrays by the name "case/array". "case/sent" holds rounds, messages and bytes.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, graphs
    >>> from peerlearn.testing import run_cases
    >>> found = run_cases(SimulatedNetwork(graphs.ring(4)))
    >>> found["call flood/sent"].tolist()  # 4 rounds on 8 links: 8 (1 + 1 + 5 + 12) bytes on each
    [4, 32, 1216]
    """
    _check_size(network.graph)
    return _run(network, call_cases() | algorithm_cases())


def save_cases(network: Network, folder: str | os.PathLike[str]) -> None:
    """Run every case over this network, and save the results for `check_saved_cases`.

    Every process of an engine calls it. Processes may write to different folders if the files are
    copied to one folder afterwards.

    Parameters
    ----------
    network : Network
        The network of this process.
    folder : str or path
        An existing folder. The file is named after the agents that the network hosts.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from peerlearn import SimulatedNetwork, graphs
    >>> from peerlearn.testing import check_saved_cases, save_cases
    >>> with TemporaryDirectory() as folder:
    ...     save_cases(SimulatedNetwork(graphs.ring(4), exact_order=True), folder)
    ...     check_saved_cases(folder, graphs.ring(4))
    """
    found = run_cases(network)
    path = Path(folder) / f"agents-{'-'.join(map(str, network.hosted))}.npz"
    # Names of cases contain slashes and brackets, which file names may not.
    arrays: dict[str, Any] = {f"array {n}": array for n, array in enumerate(found.values())}
    np.savez(path, names=np.array(list(found)), **arrays)


def check_saved_cases(
    folder: str | os.PathLike[str], graph: nx.Graph, *, tolerance: float = 0.0
) -> None:
    """Check that the processes of an engine saved the bits and the ledger of a simulation.

    Parameters
    ----------
    folder : str or path
        Where `save_cases` wrote the files of all processes.
    graph : networkx.Graph
        The graph that the processes ran on.
    tolerance : float, default 0.0
        How far numbers may be from those of a simulation, relative to the largest. 0 means the same
        bits.

    Raises
    ------
    AssertionError
        With a sentence about the first cases that differ.

    Examples
    --------
    `save_cases` shows how files are saved and checked. Without files the check fails:

    >>> from tempfile import TemporaryDirectory
    >>> from peerlearn import graphs
    >>> from peerlearn.testing import check_saved_cases
    >>> with TemporaryDirectory() as folder:
    ...     try:
    ...         check_saved_cases(folder, graphs.ring(4))
    ...     except AssertionError:
    ...         print("no files")
    no files
    """
    parts = [_load(path) for path in sorted(Path(folder).glob("agents-*.npz"))]
    assert parts, f"{folder} has no files of save_cases: call it in every process"
    _compare(parts, graph, call_cases() | algorithm_cases(), tolerance)


def _check_size(graph: nx.Graph) -> None:
    if not 4 <= len(graph) <= 7:
        raise InputError(f"the cases are for 4 to 7 agents: give another graph than {graph}")


def _load(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        names = [str(name) for name in file["names"]]
        return {name: file[f"array {n}"] for n, name in enumerate(names)}


def _run(network: Network, cases: Mapping[str, Case]) -> Arrays:
    found: Arrays = {"hosted": np.array(network.hosted)}
    with quiet():
        for name, case in cases.items():
            mark = network.ledger.mark()
            for key, array in case(network).items():
                found[f"{name}/{key}"] = array
            sent = network.ledger.since(mark)
            found[f"{name}/sent"] = np.array([sent.rounds, sent.messages, sent.bytes])
    return found


def _check_cases(run: Run, graph: nx.Graph, cases: Mapping[str, Case], tolerance: float) -> None:
    parts = list(run(graph, partial(_run, cases=cases)))
    _compare(parts, graph, cases, tolerance)


def _compare(
    parts: Sequence[Arrays], graph: nx.Graph, cases: Mapping[str, Case], tolerance: float
) -> None:
    found = combine_parts(parts, len(graph))
    expected = _run(SimulatedNetwork(graph, exact_order=True), cases)
    different = describe_differences(found, expected, tolerance)
    assert not different, (
        f"the engine differs from a simulation in {len(different)} of {len(expected)} arrays: "
        + "; ".join(different[:5])
    )


def _check_refusal(run: Run, graph: nx.Graph) -> None:
    """Check that NaN is refused by the agent that has it."""
    bad = len(graph) - 1

    def work(network: Network) -> Array:
        x = np.array([np.nan if agent == bad else 1.0 for agent in network.hosted])
        return network.mix(x)

    try:
        list(run(graph, work))
        sentence = ""
    except NetworkError as error:
        sentence = str(error)
    assert sentence, (
        f"the engine sends NaN of agent {bad}, or its run hides an error of work: refuse numbers "
        "that are not finite, and let errors leave run"
    )
    assert f"agent {bad} computed numbers that are not finite" in sentence, (
        f"the engine refuses NaN of agent {bad} with the sentence {sentence!r}, which does not "
        "name it: let _must_be_finite of Network raise it"
    )
