"""The mixing within one iteration: one plain round, or a few accelerated ones.

    plain:      x <- C x                                              sigma = the contraction of C
    chebyshev:  x <- T_K((2 C - (a + b) I) / (b - a)) x / T_K(xi)     sigma = 1 / T_K(xi)

with [a, b] the eigenvalues of C except 1, xi = (2 - a - b) / (b - a) (see rounds.py). Steps of
tracked gradients may be about as long as (1 - sigma)^2 allows (Nedic, Olshevsky and Shi, Achieving
geometric convergence for distributed optimization over time-varying graphs, 2017), and an iteration
costs K rounds. K is where (1 - sigma)^2 / K is largest, or a little more if news then needs fewer
iterations to cross the graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from peerlearn.algorithms.averaging import combine_rounds, recurrence
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.network.base import Network
from peerlearn.rounds import chebyshev_interval

Kind = Literal["plain", "chebyshev"]
KINDS = ("chebyshev", "plain")
Rounds = tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Mixing:
    """The rounds of one iteration, and the factor sigma by which they shrink disagreement.

    A round (a, b, c) is x <- a C x + b x + c (x one round before).
    """

    rounds: Rounds
    sigma: float

    @classmethod
    def of(cls, network: Network, kind: Kind) -> Mixing:
        """Return the mixing of this kind for the network."""
        if kind == "plain":
            return cls(((1.0, 0.0, 0.0),), network.contraction)
        K = 1
        while _gain(network, K + 1) > _gain(network, K):
            K += 1
        iterations = max(1, round(network.diameter / K))  # for news to cross the graph
        K = max(K, math.ceil(network.diameter / iterations))
        return cls(tuple(islice(recurrence(network, chebyshev=True), K)), _contraction(network, K))

    def window(self, network: Network) -> int:
        """Return how many iterations it takes until every agent has heard from every other."""
        return max(1, math.ceil(network.diameter / len(self.rounds)))

    def __call__(self, network: Network, x: Array, heard: Array) -> tuple[Array, Array]:
        """Return x mixed, and the largest numbers heard, which travel in the same messages."""
        now = before = x
        for a, b, c in self.rounds:
            mixed, heard = network.mix_and_flood(now, heard)
            latest = combine_rounds(a, mixed, b, now, c, before)
            before = now
            now = latest
        return now, heard


def _gain(network: Network, K: int) -> float:
    return (1 - _contraction(network, K)) ** 2 / K


def _contraction(network: Network, K: int) -> float:
    """Return 1 / T_K(xi) = 2 q^K / (1 + q^2K),  q = xi - sqrt(xi^2 - 1)."""
    inverse_xi = chebyshev_interval(*network.spectrum)[2]
    q = inverse_xi / (1 + math.sqrt((1 - inverse_xi) * (1 + inverse_xi)))
    return 2 * q**K / (1 + q ** (2 * K))


def check_mixing(kind: str) -> None:
    """Refuse an unknown kind of mixing."""
    if kind not in KINDS:
        raise InputError(f"mixing {kind!r} is not known: choose one of {', '.join(KINDS)}")
