"""A network of threads: agents share only messages, and the messages of each link are counted.

Each agent runs in a thread of its own and sees only its own row. So an algorithm that reads rows of
other agents without the network, or that decides by local data whether to call the network, fails
or hangs here. The numbers have the bits of `SimulatedNetwork(graph, exact_order=True)`.

Threads talk through `Wires`: one queue per direction of each link. When one agent fails, it sets an
event, and all agents that wait for a message stop with `Ended`. `run_in_threads` raises the first
error that is not `Ended`, because the others follow from it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import networkx as nx
import numpy as np

from peerlearn import graphs
from peerlearn.errors import NetworkError
from peerlearn.network.base import Network
from peerlearn.network.distributed import DistributedNetwork, Letter
from peerlearn.network.routes import Route

PATIENCE = 60.0  # seconds to wait for a neighbor, which may be computing
Result = TypeVar("Result")
Link = tuple[int, int]  # sender, receiver


class Wires:
    """The links between the threads of one run, with counts of what was sent.

    Parameters
    ----------
    graph : networkx.Graph
        The graph of the agents.

    Attributes
    ----------
    messages : Counter
        Number of messages that were not empty, by link. A link is a pair (sender, receiver).
    bytes : Counter
        Number of bytes, by link.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> from peerlearn.testing import Wires
    >>> wires = Wires(graphs.ring(3))
    >>> wires.put(0, 1, b"hello", 5)
    >>> wires.get(0, 1)
    b'hello'
    >>> wires.messages[0, 1], wires.bytes[0, 1], wires.bytes[1, 0]
    (1, 5, 0)
    """

    def __init__(self, graph: nx.Graph) -> None:
        links = [link for edge in graph.edges for link in (edge, edge[::-1])]
        self._queues: dict[Link, SimpleQueue[Any]] = {link: SimpleQueue() for link in links}
        self._ended = threading.Event()
        self.messages: Counter[Link] = Counter()
        self.bytes: Counter[Link] = Counter()

    def put(self, sender: int, receiver: int, what: Any, size: int) -> None:
        """Send a message of `size` bytes over a link."""
        self._queues[sender, receiver].put(what)
        self.messages[sender, receiver] += size > 0
        self.bytes[sender, receiver] += size

    def get(self, sender: int, receiver: int) -> Any:
        """Return the next message of a link, or raise Ended if none comes."""
        for _ in range(round(PATIENCE / 0.1)):
            try:
                return self._queues[sender, receiver].get(timeout=0.1)
            except Empty:
                if self._ended.is_set():
                    raise Ended(
                        f"agent {receiver} stops, because another agent has failed"
                    ) from None
        raise Ended(
            f"agent {receiver} waited {PATIENCE:g} s for a message of agent {sender}: agent "
            f"{sender} makes fewer network calls"
        )

    def end(self) -> None:
        """Make all agents that wait for a message stop."""
        self._ended.set()


class Ended(NetworkError):
    """Error of an agent that waited for a message in vain."""


class ThreadNetwork(DistributedNetwork):
    """A network that hosts one agent in this thread; the other agents run in other threads.

    `run_in_threads` makes one for each agent.

    Parameters
    ----------
    graph : networkx.Graph
        Who talks to whom.
    weights : str or array
        The mixing weights, as for SimulatedNetwork.
    agent : int
        The agent that this thread hosts.
    wires : Wires
        The links, shared by all threads of a run.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> from peerlearn.testing import ThreadNetwork, Wires
    >>> wires = Wires(graphs.complete(1))
    >>> ThreadNetwork(graphs.complete(1), "metropolis", 0, wires).hosted
    (0,)
    """

    def __init__(self, graph: nx.Graph, weights: Any, agent: int, wires: Wires) -> None:
        super().__init__(graph, weights, np.arange(len(graph)), agent)
        self.wires = wires

    def _new_halo(self, links: Route, width: int, dtype: np.dtype[Any]) -> _ThreadHalo:
        return _ThreadHalo(self, links, width, dtype)

    def _post(self, letters: dict[int, list[Letter]]) -> list[Letter]:
        """Send every neighbor a letter, which may be empty, and return those that came."""
        me = self._here
        neighbors = sorted(self.graph[me])
        for neighbor in neighbors:  # without an empty letter the neighbor would wait
            content = letters[neighbor][0][2] if neighbor in letters else b""
            self.wires.put(me, neighbor, content, len(content))
        arrived = [(neighbor, me, self.wires.get(neighbor, me)) for neighbor in neighbors]
        return [letter for letter in arrived if letter[2]]


class _ThreadHalo:
    """The row of one agent, and below it those of the neighbors that it hears."""

    def __init__(
        self, network: ThreadNetwork, links: Route, width: int, dtype: np.dtype[Any]
    ) -> None:
        self.rows = np.zeros((1 + links.halo, width), dtype)
        self._wires = network.wires
        self._agent = network.hosted[0]
        self._receivers = list(links.sent)
        self._senders = list(links.heard)

    def swap(self) -> None:
        for receiver in self._receivers:
            self._wires.put(self._agent, receiver, self.rows[0].copy(), self.rows[0].nbytes)
        for row, sender in enumerate(self._senders, start=1):
            self.rows[row] = self._wires.get(sender, self._agent)

    def free(self) -> None:
        pass


def run_in_threads(
    graph: nx.Graph,
    work: Callable[[Network], Result],
    weights: Any = "metropolis",
    *,
    wires: Wires | None = None,
) -> list[Result]:
    """Call work(network) for every agent in a thread of its own, and return the results by agent.

    Parameters
    ----------
    graph : networkx.Graph
        Who talks to whom.
    work : callable
        Called with the network of each agent. If it raises, all agents stop and the first error is
        raised.
    weights : str or array, default "metropolis"
        The mixing weights, as for SimulatedNetwork.
    wires : Wires, default None
        Give the links to count what is sent over each. None makes them.

    Returns
    -------
    list
        What `work` returned, by agent.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> from peerlearn.testing import Wires, run_in_threads
    >>> wires = Wires(graphs.ring(3))
    >>> run_in_threads(graphs.ring(3), lambda network: network.mix([1.0]).tolist(), wires=wires)
    [[1.0], [1.0], [1.0]]
    >>> wires.bytes[0, 1]
    8
    """
    graph = graphs.checked(graph)
    shared = Wires(graph) if wires is None else wires

    def live(agent: int) -> Result:
        try:
            return work(ThreadNetwork(graph, weights, agent, shared))
        except BaseException:
            shared.end()
            raise

    with ThreadPoolExecutor(len(graph)) as pool:
        futures = [pool.submit(live, agent) for agent in range(len(graph))]
        errors = [future.exception() for future in futures]
        _raise_cause([error for error in errors if error is not None])
        return [future.result() for future in futures]


def _raise_cause(errors: Sequence[BaseException]) -> None:
    """Raise the error that the others followed from: the first that is not Ended."""
    for error in sorted(errors, key=lambda error: isinstance(error, Ended)):
        raise error
