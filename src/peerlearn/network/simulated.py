"""Simulated engine: all agents in this process. Every other engine must give the same results.

One round is one matrix product over all agents: dense BLAS for small networks, a compiled sparse
kernel for large ones. If the number of rounds is known beforehand and the network is small, the
whole polynomial of C is applied as one matrix; the ledger still counts every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from peerlearn.arrays import Addends, Array, Indices, all_finite, per_agent
from peerlearn.errors import InputError, NetworkError
from peerlearn.network import codec, kernels
from peerlearn.network.base import (
    Message,
    Network,
    Secrecy,
    check_addends,
    not_finite,
    row_bytes,
)
from peerlearn.network.faults import Dead, Faults, FaultyLinks

__all__ = ["SimulatedNetwork"]

DENSE_UP_TO = 64  # agents; measured: beyond this the sparse kernel is faster than dense BLAS
POLYNOMIALS_KEPT = 32
ROUTES_KEPT = 256  # a tree has two per level
SMALL = 1 << 14  # numbers of all agents; starting a smaller product takes longer than its sums
FEW = 4  # agents whose products are made and checked in blocks
CHECKED = 1 << 16  # columns of such a block
MANY_NUMBERS = 16  # per agent; with fewer, single rounds are cheaper than their polynomial


class SimulatedNetwork(Network):
    """Network with all agents in this process.

    Parameters
    ----------
    graph : networkx.Graph
        Connected graph of the agents; see `peerlearn.graphs`.
    weights : str or matrix, default "metropolis"
        Mixing matrix: "metropolis", "max-degree", "laplacian", "fastest", or an array with one row
        and one column per agent.
    faults : Faults, default None
        Random loss of messages. None loses none.
    exact_order : bool, default False
        Sum neighbors one by one in ascending order, so that results have the same bits as those of
        other engines. Without it, dense BLAS and precomputed polynomials are used where they are
        faster; they agree to about 1e-12.
    secrecy : {"sums"} or None, default None
        "sums" lets agents send masked sums only, from which nobody learns more than totals.
        What would show numbers of single agents is refused before it is sent. Simulated
        agents are in one memory, so this hides nothing from whoever runs the simulation.
    colluders : int, default 1
        Under secrecy, the number of agents that may put together what they see and still learn
        nothing but totals. At most the number of agents less 2.

    Attributes
    ----------
    ledger : Ledger
        Rounds, messages and bytes sent so far. All other attributes are those of `Network`.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import SimulatedNetwork, graphs
    >>> network = SimulatedNetwork(graphs.ring(4))
    >>> network.mix(np.array([3.0, 0.0, 0.0, 0.0]))
    array([1., 1., 0., 1.])
    >>> network.ledger
    <Ledger: 1 rounds, 8 messages, 6.4e-05 MB>
    """

    def __init__(
        self,
        graph: nx.Graph,
        weights: npt.ArrayLike | sp.sparray = "metropolis",
        *,
        faults: Faults | None = None,
        exact_order: bool = False,
        secrecy: Secrecy | None = None,
        colluders: int = 1,
    ) -> None:
        super().__init__(graph, weights)
        if faults is not None and not isinstance(faults, Faults):
            raise InputError(
                f"faults must be an object such as Faults(loss=0.1, seed=0), not {faults!r}"
            )
        self.exact_order = exact_order
        self._hosted = tuple(range(self.size))
        self._C = self.mixing
        self._messages = int(self._C.nnz) - self.size  # in a round where all agents speak
        self._dense = self._C.toarray() if self.size <= DENSE_UP_TO and not exact_order else None
        self._one_row_shows = _zero_times_nan_is_nan()
        self._faulty = FaultyLinks(faults, self._C) if faults and faults.loss > 0 else None
        self._polynomials: dict[bytes, Array] = {}
        self._routes: dict[bytes, tuple[Indices, Any]] = {}
        self.reliable = self._faulty is None
        self.keep_secrets(secrecy, colluders)

    @property
    def hosted(self) -> tuple[int, ...]:
        return self._hosted

    @property
    def contraction(self) -> float:
        return super().contraction if self._faulty is None else self._faulty.contraction

    @cached_property
    def flood_rounds(self) -> int:
        return self.diameter if self._faulty is None else self._faulty.flood_rounds(self.diameter)

    def mix(self, x: Array) -> Array:
        self.check_allowed("mix")
        if self._dense is None or self._faulty is not None:
            return self.recur(x, np.array([[1.0, 0.0, 0.0]]))
        x = per_agent(x, self.size)
        mixed = self._dense_product(self._dense, x)
        self._count(row_bytes(x))
        return mixed

    def recur(self, x: Array, steps: Array) -> Array:
        self.check_allowed("recur")
        x = per_agent(x, self.size)
        if (
            len(steps) > 1
            and self._dense is not None
            and self._faulty is None
            and x[0].size >= MANY_NUMBERS
        ):
            self._count(row_bytes(x), rounds=len(steps))
            return self._dense_product(self._polynomial(steps), np.ascontiguousarray(x))
        if isfinite(np.vdot(x, x)):
            return self._recur(x, steps)
        self._must_be_finite(x)
        result = self._recur(x, steps)
        self._must_be_finite(result)  # numbers whose squares overflow may have overflowed too
        return result

    def _recur(self, x: Array, steps: Array) -> Array:
        flat = np.ascontiguousarray(x.reshape(self.size, -1))
        now: Array = flat
        before: Array | None = None
        for step in steps:
            # Rows that are two rounds old are overwritten, but never the caller's x. So there are
            # three copies in all, however many rounds.
            out = np.empty_like(flat) if before is None or before is flat else before
            self._step(now, before, out, *step)
            before, now = now, out
        return now.reshape(x.shape) if now is not flat else x.copy()

    def mix_and_flood(self, x: Array, largest: Array) -> tuple[Array, Array]:
        self.check_allowed("mix_and_flood")
        x = per_agent(x, self.size)
        largest = per_agent(largest, self.size, "largest")
        self._must_be_finite(x)
        self._must_be_finite(largest)
        flat = np.ascontiguousarray(x.reshape(self.size, -1))
        out = np.empty_like(flat)
        dead = self._step(flat, None, out, 1.0, 0.0, 0.0, carried=row_bytes(largest))
        return out.reshape(x.shape), self._spread(largest, dead)

    def flood(self, largest: Array) -> Array:
        self.check_allowed("flood")
        largest = per_agent(largest, self.size, "largest")
        self._must_be_finite(largest)
        dead = self._count(row_bytes(largest))
        return self._spread(largest, dead)

    def pass_on(self, x: Addends, senders: Indices, receivers: Indices, *, add: bool) -> None:
        self.check_allowed("pass_on")
        check_addends(x)
        if not self.reliable:
            raise NetworkError(
                "a tree needs every message to arrive, and this network loses some: "
                "use method='plain' for averages"
            )
        self.ledger.count(rounds=1, messages=len(senders), bytes=len(senders) * row_bytes(x))
        if not add:
            rows = x[senders]
            self._must_be_finite(rows, senders)
            x[receivers] = rows
        elif len(senders):
            listeners, sums = self._sums(senders, receivers, x.dtype)
            heard = sums @ x.reshape(self.size, -1)
            if not all_finite(heard):  # cheaper than to check the row of every sender
                self._must_be_finite(x[senders], senders)
            x[listeners] += heard.reshape(len(listeners), *x.shape[1:])

    def exchange(
        self, outbox: Sequence[Message], to: Sequence[Sequence[int]] | None = None
    ) -> list[dict[int, Message]]:
        self.check_allowed("exchange")
        if len(outbox) != self.size or (to is not None and len(to) != self.size):
            raise InputError(
                f"exchange takes one message per hosted agent, {self.size} of them, "
                f"not {len(outbox)}"
            )
        dead = self._faulty.pairs(self._faulty.next_round()) if self._faulty else set()
        inbox: list[dict[int, Message]] = [{} for _ in range(self.size)]
        messages = size = lost = 0
        for sender, message in enumerate(outbox):
            if not message:
                continue
            content = {
                name: _read_only_view(codec.sendable(array, name))
                for name, array in message.items()
            }
            receivers = sorted(self.graph[sender]) if to is None else to[sender]
            if len(receivers) and not all(map(all_finite, content.values())):
                raise not_finite(self.names[sender])
            for receiver in receivers:
                if not self.graph.has_edge(sender, receiver):
                    raise NetworkError(
                        f"agent {sender} cannot send to agent {receiver}: they are not neighbors"
                    )
                if (sender, receiver) in dead:
                    lost += 1
                else:
                    inbox[receiver][sender] = content
            messages += len(receivers)
            size += len(receivers) * sum(array.nbytes for array in content.values())
        self.ledger.count(rounds=1, messages=messages, bytes=size, lost=lost)
        return inbox

    def mix_speaking(self, x: Array, speaking: npt.ArrayLike) -> Array:
        self.check_allowed("mix_speaking")
        self.must_hear_everybody()
        x = per_agent(x, self.size)
        speaks = np.asarray(speaking, dtype=bool)
        flat = np.where(speaks[:, None], x.reshape(self.size, -1), 0.0)
        self._must_be_finite(flat)
        messages = int(np.diff(self._C.indptr)[speaks].sum() - speaks.sum())
        self.ledger.count(rounds=1, messages=messages, bytes=messages * row_bytes(flat))
        mixed = np.empty_like(flat)
        data = self._C.data if self._dense is None else None
        self._product(flat, mixed, mixed, 1.0, 0.0, 0.0, data)
        return mixed.reshape(x.shape)

    @property
    def mixing_here(self) -> Any:
        own_loop = self.reliable and not self.exact_order and self.secrecy is None
        return self._C if own_loop else None

    def gather(self, x: Array) -> Array:
        return per_agent(x, self.size).copy()

    def _step(
        self,
        x: Array,
        before: Array | None,
        out: Array,
        a: float,
        b: float,
        c: float,
        *,
        carried: int = 0,
    ) -> Dead | None:
        """Do and count one round, out <- a C x + b x + c before, and return the dead links.

        Each message has `carried` more bytes than a row of x.
        """
        dead = self._count(row_bytes(x) + carried)
        if before is None:  # this is the first round
            before = out
            c = 0.0
        data = None
        if dead is not None and self._faulty is not None:
            data = self._faulty.left(dead)
        elif self._dense is None:
            data = self._C.data
        self._product(x, before, out, a, b, c, data)
        return dead

    def _dense_product(self, matrix: Array, x: Array) -> Array:
        """Return matrix x, computed by BLAS, and refuse numbers that are not finite.

        Zero times NaN is NaN, so one row of a large product shows whether any agent has such
        numbers. That costs less than to read x again.
        """
        flat = x if x.ndim == 2 else x.reshape(self.size, -1)
        if flat.size <= SMALL:
            fine = isfinite(np.vdot(flat, flat))
            if not fine:
                self._must_be_finite(flat)
            product: Array = matrix.dot(flat)  # faster to start than @, but writes twice
        else:
            product = np.empty_like(flat)
            fine = True
            # Of few agents, the check takes long beside the product, unless it finds its numbers in
            # the processor's cache.
            width = CHECKED if self.size <= FEW else flat.shape[1]
            for left in range(0, flat.shape[1], width):
                part = product[:, left : left + width]
                with np.errstate(invalid="ignore"):
                    np.matmul(matrix, flat[:, left : left + width], out=part)
                shown = part[0] if self._one_row_shows else part
                fine &= isfinite(np.vdot(shown, shown))  # vdot gives no warnings
            if not fine:
                self._must_be_finite(flat)
        if not fine:
            self._must_be_finite(product)  # numbers may have overflowed
        return product if x.ndim == 2 else product.reshape(x.shape)

    def _product(
        self, x: Array, before: Array, out: Array, a: float, b: float, c: float, data: Array | None
    ) -> None:
        """Compute out <- a C x + b x + c before.

        data: entries of C for the sparse kernel; None to use dense BLAS.
        """
        if data is not None or self._dense is None:
            kernels.sparse_step(self._C.indptr, self._C.indices, data, x, before, out, a, b, c)
        elif (a, b, c) == (1.0, 0.0, 0.0):
            np.matmul(self._dense, x, out=out)
        else:
            out[:] = a * (self._dense @ x) + b * x + (c * before if c != 0 else 0.0)

    def _polynomial(self, steps: Array) -> Array:
        """Return the matrix of all these steps together, which is kept for the next call."""
        key = steps.shape[0].to_bytes(8) + steps[-1].tobytes()  # number of rounds, and the method
        if key not in self._polynomials:
            if len(self._polynomials) >= POLYNOMIALS_KEPT:
                self._polynomials.pop(next(iter(self._polynomials)))
            assert self._dense is not None
            self._polynomials[key] = _polynomial_of(self._dense, steps)
        return self._polynomials[key]

    def _sums(
        self, senders: Indices, receivers: Indices, dtype: np.dtype[Any]
    ) -> tuple[Indices, Any]:
        """Return the receivers of these links, and the matrix that sums the rows for each.

        Both are kept for the next call. The matrix has the type of the rows, because scipy would
        turn integers into float64.
        """
        key = senders.tobytes() + b"|" + receivers.tobytes() + dtype.char.encode()
        if key not in self._routes:
            if len(self._routes) >= ROUTES_KEPT:
                self._routes.pop(next(iter(self._routes)))
            order = np.lexsort((senders, receivers))
            unique, starts = np.unique(receivers[order], return_index=True)
            # A sparse product sums row by row, in order, and copies no rows of senders.
            ends = np.append(starts, len(order))
            sums = sp.csr_array(
                (np.ones(len(order), dtype), senders[order], ends), shape=(len(unique), self.size)
            )
            self._routes[key] = unique, sums
        return self._routes[key]

    def _spread(self, largest: Array, dead: Dead | None) -> Array:
        """Return, entry by entry, the largest value in each neighborhood, without dead links."""
        heard = largest[self._C.indices]
        if dead is not None and self._faulty is not None:
            heard[self._faulty.entries(dead)] = -np.inf
        spread: Array = np.maximum.reduceat(heard, self._C.indptr[:-1], axis=0)
        return spread

    def _count(self, row_bytes: int, rounds: int = 1) -> Dead | None:
        """Count rounds in which every agent sends to every neighbor, and return the dead links."""
        messages = rounds * self._messages
        dead = self._faulty.next_round() if self._faulty else None
        lost = 0 if dead is None else 2 * int(dead.sum())
        self.ledger.count(rounds=rounds, messages=messages, bytes=messages * row_bytes, lost=lost)
        return dead


def _zero_times_nan_is_nan() -> bool:
    """Return whether products with BLAS follow IEEE 754; some versions skip zeros."""
    return bool(np.isnan(np.zeros((2, 2)) @ np.full((2, MANY_NUMBERS), np.nan)).all())


def _polynomial_of(C: Array, steps: Array) -> Array:
    """Apply the recurrence to the identity; plain rounds are a power of C."""
    if (steps == [1.0, 0.0, 0.0]).all():
        power: Array = np.linalg.matrix_power(C, len(steps))
        return power
    now = np.eye(len(C))
    before = np.zeros_like(C)
    for a, b, c in steps:
        now, before = a * (C @ now) + b * now + c * before, now
    return now


def _read_only_view(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a view for a receiver, which must not change the sender's array."""
    view = array.view()
    view.flags.writeable = False
    return view
