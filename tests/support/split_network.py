"""A network whose agents live apart: one thread each, hosting one agent, so that nothing but
messages can be shared.

The rows that the threads hand in are stacked and given to a SimulatedNetwork, and each thread gets
its own row back. An algorithm that looks across the agent axis, or decides by local data whether to
call the network, fails or hangs here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from peerlearn import SimulatedNetwork
from peerlearn.network.base import Network
from tests.support.waiting import PATIENCE


class Meeting:
    """Where the threads meet once per round: all hand in, one computes, all take their part."""

    def __init__(self, graph: Any, **options: Any) -> None:
        self.together = SimulatedNetwork(graph, **options)
        self._barrier = threading.Barrier(self.together.size, timeout=PATIENCE)
        self._given: list[Any] = [None] * self.together.size
        self._result: Any = None

    def round(
        self, agent: int, operation: str, given: Any, compute: Callable[[list[Any]], Any]
    ) -> Any:
        self._given[agent] = (operation, given)
        if self._barrier.wait() == 0:
            operations = {name for name, _ in self._given}
            assert len(operations) == 1, (
                f"agents made different calls in the same round: {operations}"
            )
            self._result = compute([value for _, value in self._given])
        self._barrier.wait()
        return self._result

    def abort(self) -> None:
        self._barrier.abort()


class OneAgent(Network):
    """What one agent sees: its own row, and what the network does to it."""

    def __init__(self, meeting: Meeting, agent: int) -> None:
        super().__init__(meeting.together.graph, meeting.together.weights)
        self._meeting, self._agent = meeting, agent
        self.reliable = meeting.together.reliable

    @property
    def hosted(self) -> tuple[int, ...]:
        return (self._agent,)

    @property
    def contraction(self) -> float:
        return self._meeting.together.contraction

    @property
    def flood_rounds(self) -> int:
        return self._meeting.together.flood_rounds

    def _stacked(self, name: str, x: Any, *rest: Any) -> Any:
        together = getattr(self._meeting.together, name)
        result = self._meeting.round(
            self._agent, name, x, lambda rows: together(np.concatenate(rows), *rest)
        )
        return result[self._agent : self._agent + 1].copy()

    def mix(self, x: Any) -> Any:
        return self._stacked("mix", x)

    def recur(self, x: Any, steps: Any) -> Any:
        return self._stacked("recur", x, steps)

    def flood(self, largest: Any) -> Any:
        return self._stacked("flood", largest)

    def mix_and_flood(self, x: Any, largest: Any) -> Any:
        def compute(given: list[Any]) -> Any:
            xs, largests = zip(*given, strict=True)
            return self._meeting.together.mix_and_flood(
                np.concatenate(xs), np.concatenate(largests)
            )

        mixed, flooded = self._meeting.round(self._agent, "mix_and_flood", (x, largest), compute)
        own = slice(self._agent, self._agent + 1)
        return mixed[own].copy(), flooded[own].copy()

    def pass_on(self, x: Any, senders: Any, receivers: Any, *, add: bool) -> None:
        def compute(rows: list[Any]) -> Any:
            stacked = np.concatenate(rows)
            self._meeting.together.pass_on(stacked, senders, receivers, add=add)
            return stacked

        x[:] = self._meeting.round(self._agent, "pass_on", x, compute)[self._agent]

    def exchange(self, outbox: Any, to: Any = None) -> Any:
        def compute(given: list[Any]) -> Any:
            messages, receivers = zip(*given, strict=True)
            return self._meeting.together.exchange(
                list(messages), None if to is None else list(receivers)
            )

        given = (outbox[0], None if to is None else to[0])
        return [self._meeting.round(self._agent, "exchange", given, compute)[self._agent]]


def run_apart(graph: Any, work: Callable[[Network, int], Any], **options: Any) -> list[Any]:
    """work(network, agent) in one thread per agent; their results, or the first error."""
    meeting = Meeting(graph, **options)

    def agent(k: int) -> Any:
        try:
            return work(OneAgent(meeting, k), k)
        except BaseException:
            meeting.abort()
            raise

    with ThreadPoolExecutor(meeting.together.size) as pool:
        futures = [pool.submit(agent, k) for k in range(meeting.together.size)]
        errors = [error for future in futures if (error := future.exception())]
        for error in errors:
            if not isinstance(error, threading.BrokenBarrierError):
                raise error
        return [future.result() for future in futures]
