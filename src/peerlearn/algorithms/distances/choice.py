"""What can be a model's `distances`, and the short names for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from peerlearn.algorithms.agreement import Drawn
from peerlearn.algorithms.distances.partial_matrix import Known
from peerlearn.algorithms.registry import Family
from peerlearn.arrays import Array
from peerlearn.network.base import Network


class Distances(Protocol):
    """Anything with `share` will do; one with a name is found by it."""

    name: ClassVar[str]  # what distances="..." calls it

    def share(self, network: Network, patterns: Sequence[Array], seed: int) -> Known:
        """What agents then know, from the rows of the hosted ones; randomness comes from the common seed alone."""
        ...


def describe_draws(distances: Any, columns: int, seed: int) -> Drawn:
    """Return what all agents draw alike for it; nothing, unless it has a method `drawn`."""
    draw = getattr(distances, "drawn", None)
    drawn: Drawn = Drawn("what agents share") if draw is None else draw(columns, seed)
    return drawn


DISTANCES: Family[Distances] = Family("peerlearn.algorithms.distances", "share", "distances")
distances_of = DISTANCES.of
