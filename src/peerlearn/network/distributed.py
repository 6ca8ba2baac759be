"""Base class of the engines with several processes.

An engine provides two things: rows of neighbors in other processes (`Halo.swap`), and letters,
which may differ in size (`_post`). The mathematics of a round is here, once: a sparse product whose
sums run over neighbors in ascending agent number. Its code is the same as in simulation, so results
have the bits of `SimulatedNetwork(graph, exact_order=True)`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NoReturn, Protocol

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from peerlearn.arrays import FLOAT, Addends, Array, Indices, all_finite, per_agent
from peerlearn.errors import InputError, NetworkError
from peerlearn.network import codec, kernels
from peerlearn.network.base import Message, Network, check_addends, not_finite, row_bytes
from peerlearn.network.routes import Route, mixing_rows, route

Arrays = tuple[np.ndarray[Any, Any], ...]
Letter = tuple[int, int, bytes]  # sender, receiver, content
# Receivers and content of what is sent in every round of a call, if one agent is hosted here. The
# leading axis of the arrays is that agent.
Sending = tuple[Collection[int], Message]

BUFFERS = 3  # rows of this round, of the round before, and those being computed
ROUTES_KEPT = 256  # a tree has two routes per level
HALOS_KEPT = 64


class Halo(Protocol):
    """Rows of the agents here and, below them, rows of their neighbors in other processes."""

    rows: Any  # float64, int64 or uint64

    def swap(self) -> None:
        """Do one round: send the upper rows that the route names, and fill the lower rows."""

    def free(self) -> None:
        """Release resources; the halo is not used afterwards."""


class DistributedNetwork(Network):
    """Network whose agents live in several processes, some of them in this one.

    Subclasses set two class attributes: `checks_every_round`, whether the engine itself refuses
    numbers that are not finite, and `compiled`, whether sums are compiled. Compiling does not pay
    where importing numba takes longer than all sums together.

    Parameters
    ----------
    graph : networkx.Graph
        Graph of all agents.
    weights : str or matrix
        Mixing matrix, as for `Network`.
    place : array of int
        Number of the process of each agent.
    here : int
        Number of this process.
    """

    checks_every_round = False
    compiled = True

    def __reduce__(self) -> NoReturn:
        # Wrappers of scikit-learn with n_jobs send estimators, and with them networks, elsewhere.
        raise NetworkError(
            f"a {type(self).__name__} belongs to this process and cannot be sent to another one: "
            "train with n_jobs=None, as all agents must take part in every fit in the same order"
        )

    def __init__(
        self, graph: nx.Graph, weights: npt.ArrayLike | sp.sparray, place: Indices, here: int
    ) -> None:
        super().__init__(graph, weights)
        self._place = place
        self._here = here
        self._hosted = tuple(np.flatnonzero(place == here).tolist())
        self._rows = np.array(self._hosted, dtype=np.intp)
        links = np.array(self.graph.edges, dtype=np.intp).reshape(-1, 2)
        both = np.vstack([links, links[:, ::-1]])
        self._everywhere = route(both[:, 0], both[:, 1], place, here, self._hosted)
        self._C = mixing_rows(self.mixing, self._everywhere, self._hosted)
        self._step: Callable[..., None] = (
            kernels.sparse_step if self.compiled else kernels.plain_step
        )
        self._routes: dict[bytes, Route] = {}
        self._halos: dict[tuple[Route, int, np.dtype[Any], int], Halo] = {}

    @property
    def hosted(self) -> tuple[int, ...]:
        return self._hosted

    # An engine defines these
    # ---------------------------------------------------------------------------------

    @abstractmethod
    def _new_halo(self, links: Route, width: int, dtype: np.dtype[Any]) -> Halo:
        """Return a halo for rows of `width` numbers of this type along these links."""

    @abstractmethod
    def _post(self, letters: dict[int, list[Letter]]) -> list[Letter]:
        """Do one round of letters, given by process; return those that arrived from elsewhere."""

    # An engine may override these, to record calls and to resume a run that was killed
    # ---------------------------------------------------------------------------------

    def _call(
        self, what: str, rounds: int, compute: Callable[[], Arrays], sending: Sending
    ) -> Arrays:
        """Return what `compute` gives the agents here. All calls of the contract pass here."""
        return compute()

    def _resume(self, rounds: int, shape: tuple[int, ...]) -> tuple[int, Array, Array] | None:
        """Return where to resume inside a `recur` of so many rounds, or None for its start.

        The answer is the number of rounds done, the rows now, and the rows one round before.
        """
        return None

    def _record_progress(self, done: int, now: Array, before: Array) -> None:
        """Note that `done` rounds of a `recur` are done."""

    # The contract
    # ---------------------------------------------------------------------------------

    def mix(self, x: Array) -> Array:
        self.check_allowed("mix")
        x = per_agent(x, len(self._hosted))
        flat = x.reshape(len(x), -1)
        sending = (self._everywhere.sent, {"row": x})
        (mixed,) = self._call("mix", 1, partial(self._mix, flat), sending)
        self._count(row_bytes(flat))
        return mixed.reshape(x.shape)

    def recur(self, x: Array, steps: Array) -> Array:
        self.check_allowed("recur")
        x = per_agent(x, len(self._hosted))
        flat = x.reshape(len(x), -1)
        if len(steps) == 0:
            return x.copy()

        def compute() -> Arrays:
            return (self._recur(flat, np.asarray(steps, np.float64)),)

        sending = (self._everywhere.sent, {"row": x})
        (result,) = self._call("recur", len(steps), compute, sending)
        self._count(row_bytes(flat), rounds=len(steps))
        if len(steps) > 1:  # numbers may have overflowed on the way
            self._must_be_finite(result)
        return result.reshape(x.shape)

    def mix_and_flood(self, x: Array, largest: Array) -> tuple[Array, Array]:
        self.check_allowed("mix_and_flood")
        x = per_agent(x, len(self._hosted))
        largest = per_agent(largest, len(self._hosted), "largest")
        both = np.hstack([x.reshape(len(x), -1), largest.reshape(len(x), -1)])
        width = both.shape[1] - largest[0].size

        def compute() -> Arrays:
            (mixed,) = self._mix(both)
            rows = self._halo(self._everywhere, both.shape[1]).rows
            return mixed[:, :width], self._spread(rows[:, width:])

        sending = (self._everywhere.sent, {"row": x, "largest": largest})
        mixed, spread = self._call("mix_and_flood", 1, compute, sending)
        self._count(row_bytes(both))
        return mixed.reshape(x.shape), spread.reshape(largest.shape)

    def flood(self, largest: Array) -> Array:
        self.check_allowed("flood")
        largest = per_agent(largest, len(self._hosted), "largest")
        flat = largest.reshape(len(largest), -1)

        def compute() -> Arrays:
            return (self._spread(self._swap_rows(self._everywhere, flat)),)

        sending = (self._everywhere.sent, {"largest": largest})
        (spread,) = self._call("flood", 1, compute, sending)
        self._count(row_bytes(flat))
        return spread.reshape(largest.shape)

    def pass_on(self, x: Addends, senders: Indices, receivers: Indices, *, add: bool) -> None:
        self.check_allowed("pass_on")
        check_addends(x)
        links = self._route(senders, receivers)
        flat = x.reshape(len(x), -1)

        def compute() -> Arrays:
            rows = self._swap_rows(links, flat)
            if not len(links.receivers):
                return ()
            if not add:
                return (rows[links.indices[links.indptr[1:] - 1]],)
            # As in simulation, rows of several senders are summed in their order first.
            return (flat[links.receivers] + links.sums(rows.dtype) @ rows,)

        sending = (links.sent, {"sum" if add else "answer": x})
        for changed in self._call("pass_on", 1, compute, sending):
            x[links.receivers] = changed.reshape(-1, *x.shape[1:])
        self.ledger.count(rounds=1, messages=links.messages, bytes=links.messages * row_bytes(x))

    def exchange(
        self, outbox: Sequence[Message], to: Sequence[Sequence[int]] | None = None
    ) -> list[dict[int, Message]]:
        self.check_allowed("exchange")
        if len(outbox) != len(self._hosted) or (to is not None and len(to) != len(self._hosted)):
            raise InputError(
                f"exchange takes one message per hosted agent, {len(self._hosted)} of them, "
                f"not {len(outbox)}"
            )
        letters: dict[int, list[Letter]] = {}
        messages = size = 0
        sending: Sending = ((), {})
        for row, (sender, message) in enumerate(zip(self._hosted, outbox, strict=True)):
            if not message:
                continue
            content = codec.pack(message)
            receivers = sorted(self.graph[sender]) if to is None else to[row]
            if len(receivers) and not all(
                all_finite(np.asarray(array)) for array in message.values()
            ):
                raise not_finite(self.names[sender])
            for receiver in receivers:
                if not self.graph.has_edge(sender, receiver):
                    raise NetworkError(
                        f"agent {sender} cannot send to agent {receiver}: they are not neighbors"
                    )
                letters.setdefault(int(self._place[receiver]), []).append(
                    (sender, int(receiver), content)
                )
            stacked = {name: np.asarray(array)[None] for name, array in message.items()}
            sending = (receivers, stacked)
            messages += len(receivers)
            size += len(receivers) * sum(np.asarray(array).nbytes for array in message.values())
        inbox = self._deliver(letters, sending)
        self.ledger.count(rounds=1, messages=messages, bytes=size)
        return inbox

    # ---------------------------------------------------------------------------------

    def _deliver(
        self, letters: dict[int, list[Letter]], sending: Sending
    ) -> list[dict[int, Message]]:
        """Send the letters and return the messages for each hosted agent, by sender."""

        def compute() -> Arrays:
            arrived = sorted(letters.pop(self._here, []) + self._post(letters))
            ends = np.array([ends for *ends, _ in arrived], dtype=np.int64).reshape(-1, 2)
            return ends, *(np.frombuffer(content, np.uint8) for *_, content in arrived)

        ends, *contents = self._call("exchange", 1, compute, sending)
        inbox: dict[int, dict[int, Message]] = {agent: {} for agent in self._hosted}
        for (sender, receiver), content in zip(ends.tolist(), contents, strict=True):
            inbox[receiver][sender] = codec.unpack(content.data)
        return list(inbox.values())

    def _recur(self, flat: Array, steps: Array) -> Array:
        hosted, width = flat.shape
        halos = [self._halo(self._everywhere, width, buffer) for buffer in range(BUFFERS)]
        start, now, before = self._resume(len(steps), flat.shape) or (0, flat, flat)
        result = np.array(now)  # already the answer if a run resumes after the last round
        self._put(now, halos[start % BUFFERS].rows, self._everywhere)
        halos[(start - 1) % BUFFERS].rows[:hosted] = before
        for n in range(start, len(steps)):
            a, b, c = steps[n]
            halo = halos[n % BUFFERS]
            halo.swap()
            out = result if n == len(steps) - 1 else halos[(n + 1) % BUFFERS].rows[:hosted]
            self._step(
                *self._C,
                halo.rows,
                halos[(n - 1) % BUFFERS].rows[:hosted],
                out,
                a,
                b,
                c if n > 0 else 0.0,
            )
            self._record_progress(n + 1, out, halo.rows[:hosted])
        return result

    def _mix(self, flat: Array) -> Arrays:
        """Do one round and return sum_j C_kj x_j for the agents here."""
        halo = self._halo(self._everywhere, flat.shape[1])
        self._put(flat, halo.rows, self._everywhere)
        halo.swap()
        mixed = np.empty(flat.shape)
        self._step(*self._C, halo.rows, mixed, mixed, 1.0, 0.0, 0.0)
        return (mixed,)

    def _halo(
        self, links: Route, width: int, buffer: int = 0, dtype: np.dtype[Any] = FLOAT
    ) -> Halo:
        """Return the halo for such rows, the same one in every round.

        `buffer` distinguishes halos that are in use at the same time.
        """
        key = links, width, dtype, buffer
        if key not in self._halos:
            while len(self._halos) >= HALOS_KEPT:
                self._halos.pop(next(iter(self._halos))).free()
            self._halos[key] = self._new_halo(links, width, dtype)
        return self._halos[key]

    def _swap_rows(self, links: Route, flat: Addends) -> Any:
        """Do one round along these links and return the rows of the agents here and the halo."""
        halo = self._halo(links, flat.shape[1], dtype=flat.dtype)
        self._put(flat, halo.rows, links)
        halo.swap()
        return halo.rows

    def _put(self, flat: Addends, rows: Any, links: Route) -> None:
        """Copy the rows of the agents here to the halo, and check that sent rows are finite."""
        hosted = len(flat)
        if self.checks_every_round or flat.dtype != FLOAT:
            rows[:hosted] = flat
            return
        if links.all_send:
            fine = kernels.copy_and_check(np.ascontiguousarray(flat), rows)
        else:
            rows[:hosted] = flat
            fine = all_finite(flat[links.senders])
        if not fine:
            self._must_be_finite(flat[links.senders], self._rows[links.senders])

    def _spread(self, rows: Array) -> Array:
        """Return, entry by entry, the largest value in each agent's neighborhood."""
        indptr, indices, _ = self._C
        spread: Array = np.maximum.reduceat(rows[indices], indptr[:-1], axis=0)
        return spread

    def _route(self, senders: Indices, receivers: Indices) -> Route:
        """Return the route along these links, which is kept for the next call."""
        key = np.asarray(senders).tobytes() + b"|" + np.asarray(receivers).tobytes()
        if key not in self._routes:
            if len(self._routes) >= ROUTES_KEPT:
                self._routes.pop(next(iter(self._routes)))
            self._routes[key] = route(
                np.asarray(senders, np.intp),
                np.asarray(receivers, np.intp),
                self._place,
                self._here,
                self._hosted,
            )
        return self._routes[key]

    def _count(self, size: int, rounds: int = 1) -> None:
        """Count rounds in which every agent sends `size` bytes to every neighbor."""
        messages = rounds * self._everywhere.messages
        self.ledger.count(rounds=rounds, messages=messages, bytes=messages * size)
