"""All agents in this process: the reference that every other engine must equal.

One round is one matrix product over all agents: dense BLAS for small networks, a compiled sparse
kernel for large ones.
Where the number of rounds is known beforehand and the network is small, the whole polynomial of C
is applied as one matrix; the ledger still counts every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

from peerlearn.arrays import Addends, Array, Indices, all_finite, per_agent
from peerlearn.errors import InputError, NetworkError
from peerlearn.network import codec, kernels
from peerlearn.network.base import Message, Network, check_addends, not_finite, row_bytes
from peerlearn.network.faults import Dead, Faults, FaultyLinks

__all__ = ["SimulatedNetwork"]

DENSE_UP_TO = 64  # agents; measured: beyond this the sparse kernel is faster than dense BLAS
POLYNOMIALS_KEPT = 32
ROUTES_KEPT = 256  # a tree has two per level
SMALL = (
    1 << 14
)  # numbers of all agents, for which the start of a product takes longer than its sums
MANY_NUMBERS = 16  # per agent; for fewer, rounds are cheaper than their polynomial


class SimulatedNetwork(Network):
    """Every agent of the graph, in this process.

    graph: a networkx graph, see `peerlearn.graphs`. weights: "metropolis", "max-degree",
    "laplacian", "fastest" or a
    matrix. faults: lose messages on purpose. exact_order: sum neighbors one by one in ascending
    order, so that results have the same bits as those of other engines (dense BLAS and precomputed
    polynomials are equal to about 1e-12).

    >>> from peerlearn import graphs
    >>> network = SimulatedNetwork(graphs.ring(4))
    >>> network.mix(np.array([3.0, 0.0, 0.0, 0.0]))
    array([1., 1., 0., 1.])
    >>> network.ledger
    <Ledger: 1 rounds, 8 messages, 6.4e-05 MB>
    """

    def __init__(
        self,
        graph: nx.Graph,
        weights: Any = "metropolis",
        *,
        faults: Any = None,
        exact_order: bool = False,
    ) -> None:
        super().__init__(graph, weights)
        if faults is not None and not isinstance(faults, Faults):
            raise InputError(
                f"faults must be an object such as Faults(loss=0.1, seed=0), not {faults!r}"
            )
        self.exact_order = exact_order
        self._hosted = tuple(range(self.size))
        self._C = self.mixing
        self._messages = (
            int(self._C.nnz) - self.size
        )  # of a round in which all speak to all neighbors
        self._dense = self._C.toarray() if self.size <= DENSE_UP_TO and not exact_order else None
        self._one_row_shows = _zero_times_nan_is_nan()
        self._faulty = FaultyLinks(faults, self._C) if faults and faults.loss > 0 else None
        self._polynomials: dict[bytes, Array] = {}
        self._routes: dict[bytes, tuple[Indices, Any]] = {}
        self.reliable = self._faulty is None

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
        if self._dense is None or self._faulty is not None:
            return self.recur(x, np.array([[1.0, 0.0, 0.0]]))
        x = per_agent(x, self.size)
        mixed = self._dense_product(self._dense, x)
        self._count(row_bytes(x))
        return mixed

    def recur(self, x: Array, steps: Array) -> Array:
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
        self._must_be_finite(
            result
        )  # numbers whose squares are too large may have become too large themselves
        return result

    def _recur(self, x: Array, steps: Array) -> Array:
        flat = np.ascontiguousarray(x.reshape(self.size, -1))
        now: Array = flat
        before: Array | None = None
        for step in steps:
            # What is two rounds old is overwritten, but never the caller's x: three copies in all,
            # however many rounds.
            out = np.empty_like(flat) if before is None or before is flat else before
            self._step(now, before, out, *step)
            before, now = now, out
        return now.reshape(x.shape) if now is not flat else x.copy()

    def mix_and_flood(self, x: Array, largest: Array) -> tuple[Array, Array]:
        x, largest = per_agent(x, self.size), per_agent(largest, self.size, "largest")
        self._must_be_finite(x)
        self._must_be_finite(largest)
        flat = np.ascontiguousarray(x.reshape(self.size, -1))
        out = np.empty_like(flat)
        dead = self._step(flat, None, out, 1.0, 0.0, 0.0, carried=row_bytes(largest))
        return out.reshape(x.shape), self._spread(largest, dead)

    def flood(self, largest: Array) -> Array:
        largest = per_agent(largest, self.size, "largest")
        self._must_be_finite(largest)
        dead = self._count(row_bytes(largest))
        return self._spread(largest, dead)

    def pass_on(self, x: Addends, senders: Indices, receivers: Indices, *, add: bool) -> None:
        check_addends(x)
        if not self.reliable:
            raise NetworkError(
                "a tree needs every message to arrive, and this network loses some: use method='plain' for averages"
            )
        self.ledger.count(rounds=1, messages=len(senders), bytes=len(senders) * row_bytes(x))
        if not add:
            rows = x[senders]
            self._must_be_finite(rows, senders)
            x[receivers] = rows
        elif len(senders):
            hearing, sums = self._sums(senders, receivers, x.dtype)
            heard = sums @ x.reshape(self.size, -1)
            if not all_finite(heard):  # which costs less than to look at every sender
                self._must_be_finite(x[senders], senders)
            x[hearing] += heard.reshape(len(hearing), *x.shape[1:])

    def exchange(
        self, outbox: Sequence[Message], to: Sequence[Sequence[int]] | None = None
    ) -> list[dict[int, Message]]:
        if len(outbox) != self.size or (to is not None and len(to) != self.size):
            raise InputError(
                f"exchange takes one message per hosted agent, {self.size} of them, not {len(outbox)}"
            )
        dead = self._faulty.pairs(self._faulty.next_round()) if self._faulty else set()
        inbox: list[dict[int, Message]] = [{} for _ in range(self.size)]
        messages = size = lost = 0
        for sender, message in enumerate(outbox):
            if not message:
                continue
            sealed = {name: _sealed(codec.sendable(array, name)) for name, array in message.items()}
            receivers = sorted(self.graph[sender]) if to is None else to[sender]
            if len(receivers) and not all(map(all_finite, sealed.values())):
                raise not_finite(self.names[sender])
            for receiver in receivers:
                if not self.graph.has_edge(sender, receiver):
                    raise NetworkError(
                        f"agent {sender} cannot send to agent {receiver}: they are not neighbors"
                    )
                if (sender, receiver) in dead:
                    lost += 1
                else:
                    inbox[receiver][sender] = sealed
            messages += len(receivers)
            size += len(receivers) * sum(array.nbytes for array in sealed.values())
        self.ledger.count(rounds=1, messages=messages, bytes=size, lost=lost)
        return inbox

    def mix_speaking(self, x: Array, speaking: Any) -> Array:
        self.must_hear_everybody()
        x, speaks = per_agent(x, self.size), np.asarray(speaking, dtype=bool)
        flat = np.where(speaks[:, None], x.reshape(self.size, -1), 0.0)
        self._must_be_finite(flat)
        messages = int(np.diff(self._C.indptr)[speaks].sum() - speaks.sum())
        self.ledger.count(rounds=1, messages=messages, bytes=messages * row_bytes(flat))
        mixed = np.empty_like(flat)
        self._product(
            flat, mixed, mixed, 1.0, 0.0, 0.0, self._C.data if self._dense is None else None
        )
        return mixed.reshape(x.shape)

    @property
    def mixing_here(self) -> Any:
        return self._C if self.reliable and not self.exact_order else None

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
        """One counted round: out <- a C x + b x + c before; `carried` more bytes ride in each message."""
        dead = self._count(row_bytes(x) + carried)
        if before is None:  # before the first round there was nothing
            before, c = out, 0.0
        data = None
        if self._dense is None or dead is not None:
            data = self._C.data if dead is None or self._faulty is None else self._faulty.left(dead)
        self._product(x, before, out, a, b, c, data)
        return dead

    def _dense_product(self, matrix: Array, x: Array) -> Array:
        """Return matrix x, computed by BLAS, and refuse numbers that are not finite.

        Zero times NaN is NaN: one row of a large product shows whether any agent has such numbers,
        which costs less
        than to read x again.
        """
        flat = x if x.ndim == 2 else x.reshape(self.size, -1)
        if flat.size <= SMALL:
            fine = isfinite(np.vdot(flat, flat))
            if not fine:
                self._must_be_finite(flat)
            product: Array = matrix.dot(flat)  # starts sooner than @, but writes its result twice
        else:
            with np.errstate(invalid="ignore"):
                product = matrix @ flat
            shown = product[0] if self._one_row_shows else product
            fine = isfinite(np.vdot(shown, shown))
            if not fine:
                self._must_be_finite(flat)
        if not fine:
            self._must_be_finite(product)  # numbers may have become too large
        return product if x.ndim == 2 else product.reshape(x.shape)

    def _product(
        self, x: Array, before: Array, out: Array, a: float, b: float, c: float, data: Array | None
    ) -> None:
        """out <- a C x + b x + c before; by the sparse kernel with these entries of C, or by BLAS without any."""
        if data is not None or self._dense is None:
            kernels.sparse_step(self._C.indptr, self._C.indices, data, x, before, out, a, b, c)
        elif (a, b, c) == (1.0, 0.0, 0.0):
            np.matmul(self._dense, x, out=out)
        else:
            out[:] = a * (self._dense @ x) + b * x + (c * before if c != 0 else 0.0)

    def _polynomial(self, steps: Array) -> Array:
        """The matrix that these steps amount to: the same recurrence on the identity, kept for the next call."""
        key = steps.shape[0].to_bytes(8) + steps[-1].tobytes()  # how many rounds of which method
        if key not in self._polynomials:
            if len(self._polynomials) >= POLYNOMIALS_KEPT:
                self._polynomials.pop(next(iter(self._polynomials)))
            assert self._dense is not None
            self._polynomials[key] = _polynomial_of(self._dense, steps)
        return self._polynomials[key]

    def _sums(
        self, senders: Indices, receivers: Indices, dtype: np.dtype[Any]
    ) -> tuple[Indices, Any]:
        """Who hears somebody along these links, and the matrix that adds up what each hears; kept for the next call.

        The matrix has the type of what is added: scipy would turn integers into float64.
        """
        key = senders.tobytes() + b"|" + receivers.tobytes() + dtype.char.encode()
        if key not in self._routes:
            if len(self._routes) >= ROUTES_KEPT:
                self._routes.pop(next(iter(self._routes)))
            order = np.lexsort((senders, receivers))
            unique, starts = np.unique(receivers[order], return_index=True)
            # A sparse product sums row by row, in order, without gathering what all senders hold.
            ends = np.append(starts, len(order))
            sums = sp.csr_array(
                (np.ones(len(order), dtype), senders[order], ends), shape=(len(unique), self.size)
            )
            self._routes[key] = unique, sums
        return self._routes[key]

    def _spread(self, largest: Array, dead: Dead | None) -> Array:
        """Entry by entry the largest over each agent's neighborhood, along the links that are not dead."""
        heard = largest[self._C.indices]
        if dead is not None and self._faulty is not None:
            heard[self._faulty.entries(dead)] = -np.inf
        spread: Array = np.maximum.reduceat(heard, self._C.indptr[:-1], axis=0)
        return spread

    def _count(self, row_bytes: int, rounds: int = 1) -> Dead | None:
        """Enter rounds in which every agent sends to every neighbor; says which links fail, if any can."""
        messages = rounds * self._messages
        dead = self._faulty.next_round() if self._faulty else None
        lost = 0 if dead is None else 2 * int(dead.sum())
        self.ledger.count(rounds=rounds, messages=messages, bytes=messages * row_bytes, lost=lost)
        return dead


def _zero_times_nan_is_nan() -> bool:
    """Return whether products with BLAS follow IEEE 754; some versions skip zeros."""
    return bool(np.isnan(np.zeros((2, 2)) @ np.full((2, MANY_NUMBERS), np.nan)).all())


def _polynomial_of(C: Array, steps: Array) -> Array:
    """The recurrence on the identity; plain rounds are a power of C."""
    if (steps == [1.0, 0.0, 0.0]).all():
        power: Array = np.linalg.matrix_power(C, len(steps))
        return power
    now, before = np.eye(len(C)), np.zeros_like(C)
    for a, b, c in steps:
        now, before = a * (C @ now) + b * now + c * before, now
    return now


def _sealed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a neighbor receives: its own view, which it cannot change under the sender's hands."""
    view = array.view()
    view.flags.writeable = False
    return view
