"""The contract of a model's `distances`, and their registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from peerlearn.algorithms.agreement import Drawn
from peerlearn.algorithms.distances.partial_matrix import Known
from peerlearn.algorithms.registry import Family
from peerlearn.arrays import Array
from peerlearn.network.base import Network


class Distances(Protocol):
    """The contract of a model's `distances`: any object with `share`.

    name: what `distances="..."` calls it.
    """

    name: ClassVar[str]

    def share(self, network: Network, patterns: Sequence[Array], seed: int) -> Known:
        """Return what agents know after sharing, from the rows of the hosted ones.

        All randomness comes from the common seed.
        """
        ...


def describe_draws(distances: Any, columns: int, seed: int) -> Drawn:
    """Return what all agents draw alike for these distances, to be compared.

    Nothing, unless they have a method `drawn`.
    """
    draw = getattr(distances, "drawn", None)
    drawn: Drawn = Drawn("what agents share") if draw is None else draw(columns, seed)
    return drawn


DISTANCES: Family[Distances] = Family("peerlearn.algorithms.distances", "share", "distances")
distances_of = DISTANCES.of
