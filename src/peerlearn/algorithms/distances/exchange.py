"""Exchange: agents send neighbors some of their patterns, then some of the distances they know.

    in round n of n1:   (n1 - n + 1)/n1 p1 N_k of agent k's own patterns,           over the network
                        (n - 1)/n1 p1 N_k of those received before
    D_ij                between all M_k patterns that k then knows                  alone
    in round n of n2:   (n2 - n + 1)/n2 p2 M_k of these entries,                    over the network
                        (n - 1)/n2 p2 M_k of those received before

Every pattern travels with its place among all rows. Thesis, section 7.3.1, steps 1 to 3. p1 N_k is
often about 1, so rounding decides: a number x is rounded up with probability x - floor(x), so that
the right number is sent on average. Rounding down would send none. Participants see patterns of
others as they are, or as `privacy` left them: see docs/privacy.md.
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
from peerlearn.algorithms.unexpected import unexpected_message
from peerlearn.arrays import Array, Indices, all_finite, is_real, is_whole
from peerlearn.errors import InputError, WireError
from peerlearn.network.base import Message, Network

__all__ = ["Exchange"]

# Relative difference allowed between two agents' distances of the same rows.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Exchange:
    """Some distances between rows, from patterns and distances passed on to neighbors.

    It sends raw rows to neighbors, and is kept for comparison with the thesis. A completion such
    as `DiffusionCompletion` fills in the distances that agents do not know in the end.

    Parameters
    ----------
    patterns : float, default 0.025
        Fraction of its rows that an agent sends in a round, p1 in the formulas.
    entries : float, default 0.025
        Fraction of its distances that an agent sends in a round, p2 in the formulas.
    pattern_rounds : int, default 150
        Rounds in which patterns are sent, n1; 0 for none.
    entry_rounds : int, default 150
        Rounds in which distances are sent, n2; 0 for none.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import Exchange, SimulatedNetwork, graphs
    >>> rows = [np.arange(6.0).reshape(3, 2) + k for k in range(4)]
    >>> exchange = Exchange(patterns=0.5, entries=0.5, pattern_rounds=2, entry_rounds=2)
    >>> known = exchange.share(SimulatedNetwork(graphs.ring(4)), rows, seed=0)
    >>> known.mask[0].shape  # True where agent 0 knows the distance between two rows
    (12, 12)
    """

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
        """Return what each hosted agent knows in the end.

        An agent draws from the seed and its own number.
        """
        places = Places.agree(network, [len(X) for X in patterns])
        rngs = [np.random.default_rng((seed, agent)) for agent in network.hosted]
        tables = [
            Patterns(places, agent, X) for agent, X in zip(network.hosted, patterns, strict=True)
        ]
        _hand_on(network, tables, rngs, self.patterns, self.pattern_rounds)
        entries = [Entries(own) for own in tables]
        _hand_on(network, entries, rngs, self.entries, self.entry_rounds)
        matrices = []
        masks = []
        for own in entries:
            D, mask = own.to_matrix()
            matrices.append(D)
            masks.append(mask)
        return Known(places, matrices, masks, patterns[0].shape[1])


class Table(ABC):
    """Values at numbered places, of which one agent knows its own and those received."""

    what: ClassVar[str]

    def __init__(self, values: Array, own: Indices) -> None:
        self.values = values
        self.own = own
        self.known = np.zeros(len(values), dtype=np.bool_)
        self.known[own] = True
        self._received = np.empty(len(values), dtype=np.intp)
        self._count = 0

    @property
    def received(self) -> Indices:
        """The places of all values received so far."""
        return self._received[: self._count]

    def choose(self, later: float, p: float, rng: np.random.Generator) -> Message:
        """Return a message with some values, chosen at random.

        About p (1 - later) n own values and p later n received ones, n the number of own values.
        """
        parts = []
        for places, share in ((self.own, 1 - later), (self.received, later)):
            count = min(round_randomly(p * share * len(self.own), rng), len(places))
            parts.append(rng.choice(places, count, replace=False, shuffle=False))
        chosen = np.concatenate(parts)
        if len(chosen) == 0:
            return {}
        return {"places": chosen.astype(np.int32), "values": self.values[chosen]}

    def receive(self, message: Message, sender: int) -> None:
        """Keep the new values of a message, and refuse values that differ from known ones."""
        places = message.get("places")
        values = message.get("values")
        if (
            places is None
            or values is None
            or places.dtype != np.int32
            or places.ndim != 1
            or values.dtype != np.float64
            or values.shape != (len(places), *self.values.shape[1:])
            or not all_finite(values)
            or not self.are_possible(places, values)
        ):
            raise unexpected_message(sender, self.what)
        unknown = ~self.known[places]
        new, first = np.unique(places[unknown], return_index=True)
        self.values[new] = values[unknown][first]
        self.known[new] = True
        self._received[self._count : self._count + len(new)] = new
        self._count += len(new)
        if np.count_nonzero(np.abs(self.values[places] - values) > ROUNDING * np.abs(values)):
            raise WireError(
                f"agent {sender} sent {self.what} that differ from those known of the same rows: "
                "it, or an agent that they came from, cannot be trusted"
            )

    @abstractmethod
    def are_possible(self, places: NDArray[np.int32], values: Array) -> bool:
        """Return whether such places exist, and can have such values."""


class Patterns(Table):
    """The patterns that one agent knows, of all rows."""

    what: ClassVar = "patterns"

    def __init__(self, places: Places, agent: int, own: Array) -> None:
        rows = np.arange(places.N)[places.of(agent)]
        super().__init__(np.zeros((places.N, own.shape[1])), rows)
        self.values[rows] = own

    def are_possible(self, places: NDArray[np.int32], values: Array) -> bool:
        return not np.count_nonzero((places < 0) | (places >= len(self.values)))


class Entries(Table):
    """The distances that one agent knows, of all pairs of rows i < j.

    The distance of rows i and j is at place i N + j, which fits into four bytes.
    """

    what: ClassVar = "distances"

    def __init__(self, patterns: Patterns) -> None:
        self.N = len(patterns.values)
        rows = np.flatnonzero(patterns.known)
        first, second = np.triu_indices(len(rows), 1)
        places = rows[first] * self.N + rows[second]
        super().__init__(np.zeros(self.N**2), places)
        # By differences, so that all agents compute the same distance, whatever else they know.
        self.values[self.own] = pdist(patterns.values[rows], "sqeuclidean")

    def are_possible(self, places: NDArray[np.int32], values: Array) -> bool:
        first, second = np.divmod(places.astype(np.int64), self.N)
        return not np.count_nonzero((first < 0) | (first >= second) | (values < 0))

    def to_matrix(self) -> tuple[Array, NDArray[np.bool_]]:
        """Return the N x N distances, and a mask of where they are known."""
        D = self.values.reshape(self.N, self.N)
        known = self.known.reshape(self.N, self.N)
        return D + D.T, known | known.T | np.eye(self.N, dtype=np.bool_)


def _hand_on(
    network: Network,
    tables: Sequence[Table],
    rngs: Sequence[np.random.Generator],
    p: float,
    rounds: int,
) -> None:
    """Send and receive for some rounds; agents send more and more of what they have received."""
    for n in range(rounds):
        outbox = [own.choose(n / rounds, p, rng) for own, rng in zip(tables, rngs, strict=True)]
        inbox = network.exchange(outbox)
        for own, box in zip(tables, inbox, strict=True):
            for sender in sorted(box):
                own.receive(box[sender], sender)


def round_randomly(number: float, rng: np.random.Generator) -> int:
    """Return a whole number that is `number` on average."""
    return int(np.floor(number + rng.random()))
