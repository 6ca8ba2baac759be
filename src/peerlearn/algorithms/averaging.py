"""Averages over a network, by gossip or over a tree: which method, how exact, and when to stop.

Decentralised average consensus (thesis, appendix A.2) repeats  x_k <- sum_j C_kj x_j.  Let e be
the deviations from the true average, rho = rho(C - 11'/L) the contraction of the weights, and
[a, b] the eigenvalues of C except 1. Then

    plain       |e[n]| <= rho^n |e[0]|
    chebyshev   |e[n]| <= |e[0]| / T_n(xi),   xi = (2 - a - b) / (b - a)

where |e| is the Frobenius norm over all agents. `tolerance` means |e[n]| / |e[0]|: how far every
agent is from the true average, relative to how far apart they were. Chebyshev sends the same
messages and needs about the square root of the rounds (Montijano, Montijano and Sagues, Chebyshev
polynomials in distributed consensus applications, 2013). A tree sums towards its root and sends
the sum back: exact.

Where messages get lost, rho^2 is the contraction of the mean of |e|^2 over all losses. By Markov's
inequality |e[n]| exceeds tolerance |e[0]| with probability (rho^n / tolerance)^2 at most. So many
rounds are made that this is FAILURE or less.

When to stop. A round count that follows from the weights is known to all agents before they start:
stopping="bound". With "messages" they may stop earlier. Each message carries one more number, the
largest residual |C x - x| that its sender knows. After as many rounds as the graph is wide, or
ten, all know the same maximum U. Since

    |e[n]| <= sqrt(L) U[n] / (1 - b)      and      |e[0]| >= U[0] / (1 - a),

all stop in the same round. "oracle" looks at all agents at once, which only a simulation can.
"thesis" is the printed rule |x_k[n] - x_k[n-1]|^2 < tolerance at every agent, also checked by an
oracle. A small update is not a small error: with the thesis's 1e-3 it stops with 7-11 % error on
its random graphs and with 139 % on a line of 50 agents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.algorithms.sums import sum_everywhere
from peerlearn.arrays import SMALLEST_NORM, Array, norms, per_agent
from peerlearn.errors import InputError, NetworkError, warn_not_converged
from peerlearn.network.base import Network
from peerlearn.rounds import chebyshev_interval, chebyshev_rounds, plain_rounds

__all__ = ["Averaging", "average", "iterates", "total"]

Method = Literal["auto", "plain", "chebyshev", "tree"]
Stopping = Literal["bound", "messages", "oracle", "thesis"]
METHODS = ("auto", "plain", "chebyshev", "tree")
STOPPINGS = ("bound", "messages", "oracle", "thesis")
FAILURE = 1e-4  # largest probability that an average is not within tolerance, if messages get lost
CHECK_EVERY = 10  # least number of rounds between checks: a residual costs as much as a round


@dataclass(frozen=True)
class Averaging:
    """Settings of an average, chosen once and given to a solver.

    Parameters
    ----------
    method : {"auto", "plain", "chebyshev", "tree"}, default "auto"
        "plain" gossip works while links fail. "chebyshev" needs 2-40 times fewer rounds. "tree" is
        exact and sends least. "auto" is "tree" if every message arrives, max_rounds allow it and
        stopping is "bound", else "plain".
    tolerance : float, default 1e-6
        Distance of every agent from the true average, relative to the initial spread. Where
        messages get lost, it is exceeded with a probability of 1e-4 at most (`failure_on`).
    max_rounds : int or None, default None
        Limit of rounds; an average that needs more warns. None sets no limit.
    stopping : {"bound", "messages", "oracle", "thesis"}, default "bound"
        When gossip ends: after a number of rounds that follows from the weights ("bound"), when the
        agents have agreed by messages that they are close enough ("messages"), or by a look at all
        agents at once, in simulations only ("oracle", "thesis"). A tree ends by itself.

    Examples
    --------
    >>> from peerlearn import Averaging, SimulatedNetwork, graphs
    >>> network = SimulatedNetwork(graphs.ring(4))
    >>> Averaging("chebyshev", tolerance=1e-3).average(network, [1.0, 2.0, 3.0, 6.0]).round(2)
    array([3., 3., 3., 3.])
    """

    method: Method = "auto"
    tolerance: float = 1e-6
    max_rounds: int | None = None
    stopping: Stopping = "bound"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(
                f"method {self.method!r} is not known: choose one of {', '.join(METHODS)}"
            )
        if self.stopping not in STOPPINGS:
            raise InputError(
                f"stopping {self.stopping!r} is not known: choose one of {', '.join(STOPPINGS)}"
            )
        if not self.tolerance > 0:
            raise InputError(
                f"tolerance must be a number above 0, not {self.tolerance}; "
                "a tree is exact without one"
            )
        if self.max_rounds is not None and self.max_rounds < 1:
            raise InputError(f"max_rounds must be 1 or more, not {self.max_rounds}")

    @classmethod
    def of(cls, averaging: Averaging | Method, tolerance: float = 1e-6) -> Averaging:
        """Return an Averaging, made from the name of its method if only that is given.

        tolerance: used if only a name is given.
        """
        if isinstance(averaging, Averaging):
            return averaging
        return cls(method=averaging, tolerance=tolerance)

    def method_on(self, network: Network) -> Method:
        """Return the method that is used on this network; "auto" is resolved."""
        if self.method != "auto":
            return self.method
        allowed = self.max_rounds is None or 2 * network.tree.height <= self.max_rounds
        return "tree" if network.reliable and self.stopping == "bound" and allowed else "plain"

    def exact_on(self, network: Network) -> bool:
        """Return whether all agents of this network end with the same bits."""
        return network.size == 1 or self.method_on(network) == "tree"

    def average(self, network: Network, x: ArrayLike) -> Array:
        """Return the mean of all agents' x at every agent: the same shape as x.

        Complex numbers are averaged as pairs of real ones.
        """
        if np.iscomplexobj(x):
            return _from_pairs(self.average(network, _to_pairs(x)))
        rows = per_agent(x, len(network.hosted))
        if network.size == 1:
            return rows.copy()
        if self.method_on(network) == "tree":
            sums: Array = sum_everywhere(network, rows, self)
            sums /= network.size
            return sums
        if self.stopping == "bound":
            return self._by_bound(network, rows)
        if self.stopping == "messages":
            return self._by_messages(network, rows)
        return self._by_oracle(network, rows)

    def total(self, network: Network, x: ArrayLike) -> Array:
        """Return the sum of all agents' x at every agent: see sums.py."""
        if np.iscomplexobj(x):
            return _from_pairs(self.total(network, _to_pairs(x)))
        sums: Array = sum_everywhere(network, x, self)
        return sums

    def rounds_on(self, network: Network) -> int:
        """Return how many rounds an average takes at most, which all agents know beforehand."""
        method = self.method_on(network)
        if network.size == 1:
            return 0
        if method == "tree" and network.reliable:
            return 2 * network.tree.height
        if method == "plain":
            failure = self.failure_on(network)
            spare = math.sqrt(failure) if failure > 0 else 1.0
            return plain_rounds(network.contraction, min(self.tolerance, 1.0) * spare)
        if not network.reliable:
            way = "a tree" if method == "tree" else "Chebyshev polynomials"
            raise NetworkError(
                f"averaging by {way} needs every message to arrive, and this network loses some: "
                "use method='plain'"
            )
        return chebyshev_rounds(*network.spectrum, self.tolerance)

    def failure_on(self, network: Network) -> float:
        """Return the largest probability that an average is not within tolerance.

        It is 0 where every message arrives.
        """
        return 0.0 if network.reliable or network.size == 1 else FAILURE

    def suffices_on(self, network: Network) -> bool:
        """Return whether max_rounds and the stopping rule allow the tolerance to be reached."""
        return self.stopping != "thesis" and (
            self.max_rounds is None or self.rounds_on(network) <= self.max_rounds
        )

    def check_rounds(self, network: Network) -> None:
        """Refuse a sum over the tree that takes more rounds than max_rounds."""
        needed = 2 * network.tree.height
        if network.size > 1 and self.max_rounds is not None and self.max_rounds < needed:
            raise NetworkError(
                f"a tree of this network needs {needed} rounds, and max_rounds allows "
                f"{self.max_rounds}: raise it, or choose method='plain' or 'chebyshev'"
            )

    def _steps(self, network: Network) -> tuple[Array, int]:
        """Return one row (a, b, c) per round, and how many rounds are needed.

        A round is x <- a C x + b x + c (x one round before).
        """
        needed = self.rounds_on(network)
        rounds = needed if self.max_rounds is None else min(needed, self.max_rounds)
        if self.method_on(network) == "plain":
            return np.broadcast_to([1.0, 0.0, 0.0], (rounds, 3)), needed
        rows = list(islice(recurrence(network, chebyshev=True), rounds))
        return np.array(rows).reshape(rounds, 3), needed

    def _by_bound(self, network: Network, x: Array) -> Array:
        steps, needed = self._steps(network)
        if len(steps) < needed:
            self._warn(
                f"{len(steps)} rounds are allowed, but {needed} are needed "
                f"with contraction {network.contraction:.6g}"
            )
        return network.recur(x, steps)

    def _by_messages(self, network: Network, x: Array) -> Array:
        if not network.reliable:
            raise NetworkError(
                "agents cannot agree on a round to stop in while messages get lost: "
                "use stopping='bound'"
            )
        steps, needed = self._steps(network)
        largest_eigenvalue, smallest_eigenvalue = network.spectrum
        certain = np.sqrt(network.size) * (1 - smallest_eigenvalue) / (1 - largest_eigenvalue)
        window = max(network.diameter, CHECK_EVERY)
        now = before = candidate = x
        heard = norms(x)
        first = None
        for n, (a, b, c) in enumerate(steps):
            if n == 0:
                mixed = network.mix(now)
            else:
                mixed, heard = network.mix_and_flood(now, heard)
            if n % window == 0:
                # After a window all agents know the largest residual of the candidate.
                if n > 0:
                    first = heard[0] if first is None else first
                    if np.isfinite(heard[0]) and certain * heard[0] <= self.tolerance * first:
                        return candidate.copy()  # it may still be the caller's x
                candidate = now
                heard = norms(mixed - now)
            latest = combine_rounds(a, mixed, b, now, c, before)
            before = now
            now = latest
        if len(steps) < needed:
            self._warn(f"the agents had not agreed to stop within the {len(steps)} rounds allowed")
        return now

    def _by_oracle(self, network: Network, x: Array) -> Array:
        if len(network.hosted) < network.size:
            raise NetworkError(
                f"stopping={self.stopping!r} looks at all agents at once, which only a simulation "
                "can: use stopping='bound' or 'messages'"
            )
        truth = x.mean(axis=0)  # the oracle, and nobody else, may reduce over the agent axis
        goal = self.tolerance * _length(x - truth)
        limit = self.max_rounds or 100_000
        before = x
        for now in islice(iterates(network, x, self.method_on(network)), limit):
            if self.stopping == "thesis":
                done = norms(now - before).max() ** 2 < self.tolerance  # the oracle sees all agents
            else:
                done = _length(now - truth) <= goal
            before = now
            if done:
                return now
        self._warn(f"the oracle had not seen it reached within {limit} rounds")
        return before

    def _warn(self, why: str) -> None:
        quicker = "" if self.method == "chebyshev" else "choose the quicker chebyshev, "
        warn_not_converged(
            f"the average is not within tolerance {self.tolerance:g}: {why}; "
            f"raise max_rounds or tolerance, {quicker}or connect the agents better"
        )


def average(
    network: Network,
    x: ArrayLike,
    *,
    tolerance: float = 1e-6,
    max_rounds: int | None = None,
    method: Method = "auto",
    stopping: Stopping = "bound",
) -> Array:
    """Return the mean of all agents' x at every agent.

    Parameters
    ----------
    network : Network
        The network of the agents.
    x : array-like
        One row (or number) for each agent hosted here. Complex numbers are averaged as pairs.
    tolerance : float, default 1e-6
        Distance of every agent from the true average, relative to the initial spread. Where
        messages get lost, it is exceeded with a probability of 1e-4 at most.
    max_rounds : int or None, default None
        Limit of rounds; an average that needs more warns.
    method : {"auto", "plain", "chebyshev", "tree"}, default "auto"
        See `Averaging`.
    stopping : {"bound", "messages", "oracle", "thesis"}, default "bound"
        See `Averaging`.

    Returns
    -------
    ndarray
        The same shape as x.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, average, graphs
    >>> average(SimulatedNetwork(graphs.star(4)), [1.0, 2.0, 3.0, 6.0])
    array([3., 3., 3., 3.])
    """
    return Averaging(method, tolerance, max_rounds, stopping).average(network, x)


def total(
    network: Network,
    x: ArrayLike,
    *,
    tolerance: float = 1e-6,
    max_rounds: int | None = None,
    method: Method = "auto",
    stopping: Stopping = "bound",
) -> Array:
    """Return the sum of all agents' x at every agent.

    Parameters
    ----------
    network : Network
        The network of the agents.
    x : array-like
        One row (or number) for each agent hosted here. Over a tree int64 and uint64 arrays are
        summed modulo 2^64.
    tolerance : float, default 1e-6
        Distance of every agent from the true average, relative to the initial spread.
    max_rounds : int or None, default None
        Limit of rounds; a sum that needs more warns.
    method : {"auto", "plain", "chebyshev", "tree"}, default "auto"
        See `Averaging`.
    stopping : {"bound", "messages", "oracle", "thesis"}, default "bound"
        See `Averaging`.

    Returns
    -------
    ndarray
        The same shape as x.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, graphs, total
    >>> total(SimulatedNetwork(graphs.star(4)), [1.0, 2.0, 3.0, 6.0])
    array([12., 12., 12., 12.])
    """
    return Averaging(method, tolerance, max_rounds, stopping).total(network, x)


def _to_pairs(x: ArrayLike) -> Array:
    """Return complex numbers as pairs of real ones, along a new last axis."""
    numbers = np.asarray(x)
    return np.stack([numbers.real, numbers.imag], axis=-1).astype(np.float64)


def _from_pairs(pairs: Array) -> Array:
    """Return the complex numbers of pairs; `Array` stands for their type too."""
    return cast(Array, pairs[..., 0] + 1j * pairs[..., 1])


def _length(x: Array) -> float:
    """Return the Frobenius norm over all agents, which only an oracle may look at."""
    length = float(np.linalg.norm(x))
    return length if length > SMALLEST_NORM else float(norms(x.reshape(1, -1))[0])


def iterates(network: Network, x: ArrayLike, method: Method = "plain") -> Iterator[Array]:
    """Yield x after one round, two rounds, and so on without end, to watch how agents agree.

    Parameters
    ----------
    network : Network
        Who talks to whom.
    x : array_like
        The first value of each hosted agent, along the first axis.
    method : {"plain", "chebyshev"}, default "plain"
        As in `Averaging`.

    Yields
    ------
    ndarray
        The values after one more round.

    Examples
    --------
    >>> from itertools import islice
    >>> from peerlearn import SimulatedNetwork, graphs, iterates
    >>> for x in islice(iterates(SimulatedNetwork(graphs.linear(3)), [0.0, 0.0, 3.0]), 3):
    ...     print(x.round(2))
    [0. 1. 2.]
    [0.33 1.   1.67]
    [0.56 1.   1.44]
    """
    now = before = per_agent(x, len(network.hosted))
    for a, b, c in recurrence(network, chebyshev=method == "chebyshev"):
        latest = combine_rounds(a, network.mix(now), b, now, c, before)
        before = now
        now = latest
        yield now


def combine_rounds(a: float, mixed: Array, b: float, now: Array, c: float, before: Array) -> Array:
    """Return a mixed + b now + c before, computed in the memory of `mixed`.

    Nobody else may hold `mixed`.
    """
    if (a, b, c) != (1.0, 0.0, 0.0):
        mixed *= a
        mixed += b * now
        mixed += c * before
    return mixed


def recurrence(network: Network, chebyshev: bool) -> Iterator[tuple[float, float, float]]:
    """Yield the rows (a, b, c) of x <- a C x + b x + c (x one round before), without end.

    Chebyshev: x[n+1] = w S x[n] + (1 - w) x[n-1] with S = (2 C - (a + b) I) / (2 - a - b), which
    keeps the average, and w[n+1] = 1 / (1 - w[n] / (4 xi^2)), the ratio 2 xi T_n(xi) / T_{n+1}(xi).
    """
    if not chebyshev:
        while True:
            yield 1.0, 0.0, 0.0
    scale, shift, inverse_xi = chebyshev_interval(*network.spectrum)
    w = 1.0
    for n in count(1):
        yield w * scale, w * shift, 1.0 - w
        w = 1 / (1 - w * inverse_xi**2 / (2 if n == 1 else 4))
