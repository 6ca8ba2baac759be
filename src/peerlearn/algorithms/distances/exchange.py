"""Exchange: agents hand some of their patterns to their neighbors, then some of the distances that they know.

    in round n of n1, over the network:  (n1 - n + 1)/n1 p1 N_k patterns of agent k's own, (n - 1)/n1 p1 N_k of those
                                         it has received before, each with its place among all rows
    alone:                               D_ij between all patterns that k then knows, M_k of them
    in round n of n2, over the network:  (n2 - n + 1)/n2 p2 M_k of these entries, (n - 1)/n2 p2 M_k received ones

Thesis, section 7.3.1, steps 1 to 3. p1 N_k is often about 1, so that rounding decides: a number x
is rounded up with probability x - floor(x), and on average as many are sent as should be; rounding
down sends none. Who takes part sees patterns of others as they are, or as `privacy` left them: see
docs/privacy.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from peerlearn.algorithms.distances.partial_matrix import Known
from peerlearn.algorithms.distances.row_index import Places
from peerlearn.arrays import Array, Indices, all_finite, is_real, is_whole
from peerlearn.errors import InputError, WireError
from peerlearn.network.base import Message, Network

__all__ = ["Exchange"]

ROUNDING = (
    1e-9  # by how much two agents' distances between the same rows may differ, relative to them
)


@dataclass(frozen=True)
class Exchange:
    """patterns, entries: the fractions p1 and p2 above; pattern_rounds, entry_rounds: n1 and n2, also 0."""

    patterns: float = 0.025
    entries: float = 0.025
    pattern_rounds: int = 150
    entry_rounds: int = 150

    name: ClassVar = "exchange"

    def __post_init__(self) -> None:
        for what, fraction in (("patterns", self.patterns), ("entries", self.entries)):
            if not is_real(fraction) or not 0 <= fraction <= 1:
                raise InputError(
                    f"{what} is {fraction!r}: give the fraction to send in a round, from 0 to 1"
                )
        for what, rounds in (
            ("pattern_rounds", self.pattern_rounds),
            ("entry_rounds", self.entry_rounds),
        ):
            if not is_whole(rounds) or rounds < 0:
                raise InputError(f"{what} is {rounds!r}: give a whole number of rounds, 0 or more")

    def share(self, network: Network, patterns: Sequence[Array], seed: int) -> Known:
        """What each hosted agent knows in the end. An agent draws from the seed and its own number."""
        places = Places.agree(network, [len(X) for X in patterns])
        rngs = [np.random.default_rng((seed, agent)) for agent in network.hosted]
        tables = [
            Patterns(places, agent, X) for agent, X in zip(network.hosted, patterns, strict=True)
        ]
        _hand_on(network, tables, rngs, self.patterns, self.pattern_rounds)
        entries = [Entries(own) for own in tables]
        _hand_on(network, entries, rngs, self.entries, self.entry_rounds)
        squares = [own.squares() for own in entries]
        return Known(
            places, [D for D, _ in squares], [mask for _, mask in squares], patterns[0].shape[1]
        )


class Table(ABC):
    """Values at numbered places of which one agent knows some: its own, and those received."""

    what: ClassVar[str]

    def __init__(self, values: Array, own: Indices) -> None:
        self.values, self.own = values, own
        self.known = np.zeros(len(values), dtype=np.bool_)
        self.known[own] = True
        self._received, self._count = np.empty(len(values), dtype=np.intp), 0

    @property
    def received(self) -> Indices:
        return self._received[: self._count]

    def some(self, later: float, p: float, rng: np.random.Generator) -> Message:
        """About p (1 - later) of as many as are its own, of these, and p later of as many, of those received."""
        parts = [
            rng.choice(
                some,
                min(round_randomly(p * share * len(self.own), rng), len(some)),
                replace=False,
                shuffle=False,
            )
            for some, share in ((self.own, 1 - later), (self.received, later))
        ]
        places = np.concatenate(parts)
        return (
            {"places": places.astype(np.int32), "values": self.values[places]}
            if len(places)
            else {}
        )

    def receive(self, message: Message, sender: int) -> None:
        places, values = message.get("places"), message.get("values")
        if (
            places is None
            or values is None
            or places.dtype != np.int32
            or places.ndim != 1
            or values.dtype != np.float64
            or values.shape != (len(places), *self.values.shape[1:])
            or not all_finite(values)
            or not self.possible(places, values)
        ):
            raise WireError(
                f"agent {sender} sent no {self.what} where some were due: it runs something else"
            )
        unknown = ~self.known[places]
        new, first = np.unique(places[unknown], return_index=True)
        self.values[new], self.known[new] = values[unknown][first], True
        self._received[self._count : self._count + len(new)] = new
        self._count += len(new)
        if np.count_nonzero(np.abs(self.values[places] - values) > ROUNDING * np.abs(values)):
            raise WireError(
                f"agent {sender} sent {self.what} that differ from those known of the same rows: it, or an agent that "
                "they came from, is not to be trusted"
            )

    @abstractmethod
    def possible(self, places: NDArray[np.int32], values: Array) -> bool:
        """Whether there are such places, and such values at them."""


class Patterns(Table):
    """A row of columns for every row there is."""

    what: ClassVar = "patterns"

    def __init__(self, places: Places, agent: int, own: Array) -> None:
        super().__init__(np.zeros((places.N, own.shape[1])), np.arange(places.N)[places.of(agent)])
        self.values[self.own] = own

    def possible(self, places: NDArray[np.int32], values: Array) -> bool:
        return not np.count_nonzero((places < 0) | (places >= len(self.values)))


class Entries(Table):
    """A distance for every two rows i < j, at place i N + j: four bytes say where it belongs."""

    what: ClassVar = "distances"

    def __init__(self, patterns: Patterns) -> None:
        self.N, rows = len(patterns.values), np.flatnonzero(patterns.known)
        first, second = np.triu_indices(len(rows), 1)
        super().__init__(np.zeros(self.N**2), rows[first] * self.N + rows[second])
        # By differences: a distance is then the same for all who compute it, whatever other
        # patterns they know.
        self.values[self.own] = pdist(patterns.values[rows], "sqeuclidean")

    def possible(self, places: NDArray[np.int32], values: Array) -> bool:
        first, second = np.divmod(places.astype(np.int64), self.N)
        return not np.count_nonzero((first < 0) | (first >= second) | (values < 0))

    def squares(self) -> tuple[Array, NDArray[np.bool_]]:
        """What is known as N x N: distances, and where they are."""
        D, known = self.values.reshape(self.N, self.N), self.known.reshape(self.N, self.N)
        return D + D.T, known | known.T | np.eye(self.N, dtype=np.bool_)


def _hand_on(
    network: Network,
    tables: Sequence[Table],
    rngs: Sequence[np.random.Generator],
    p: float,
    rounds: int,
) -> None:
    """So many rounds, in which agents send more and more of what they have received."""
    for n in range(rounds):
        inbox = network.exchange(
            [own.some(n / rounds, p, rng) for own, rng in zip(tables, rngs, strict=True)]
        )
        for own, box in zip(tables, inbox, strict=True):
            for sender in sorted(box):
                own.receive(box[sender], sender)


def round_randomly(number: float, rng: np.random.Generator) -> int:
    """A whole number that is `number` on average."""
    return int(np.floor(number + rng.random()))
