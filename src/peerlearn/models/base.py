"""The base class of all models: what a class states of itself, and what is checked before any work.

TOML files, saved files, sites, comparisons and the tests read what a class states. A new model is a
file in this folder with a public subclass: `peerlearn.models.registry` finds it there. Most begin
with `peerlearn.models.row_model`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sklearn.base import BaseEstimator

from peerlearn.algorithms.registry import Family
from peerlearn.data.dataset import AnyArray
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.settings import network_of, one_agent, seeds_of
from peerlearn.network import Network

Takes = Literal["rows", "columns", "sequences", "signals"]
# The seed by which input is dealt to agents: the one that agents in several processes need not
# share.
DEALING = "the dealing"


@dataclass(frozen=True)
class Setup:
    """What a model works with, once its parameters are checked."""

    network: Network  # of one agent where the model has none
    parts: Mapping[str, Any]  # the algorithms among the parameters, as objects
    seeds: Mapping[str, int]  # by what is drawn from them


class NetworkModel(ABC, BaseEstimator):
    """Base class of all models.

    A subclass states what is special about it by the class attributes below and by methods.

    Attributes
    ----------
    parts: the parameters that are algorithms, and the family that each comes from.
    takes: what one agent has: rows, columns of everybody's rows, sequences (rows in their order),
        or signals.
    partly_labelled: whether rows may lack a label, and then carry -1.
    predicts_alone: whether one agent can predict with its coefficients, or all agents must
        together.
    same_coordinates: whether coefficients mean the same over any network, so that they can be
        compared with those of the same model in one place.
    alone: parameters with which every agent of a network learns alone. Empty: a copy of the model
        at each agent will do.
    seeds: what is drawn from random_state, in this order, by the words of error messages.
    own: parameters that agents need not have in common.
    """

    parts: ClassVar[Mapping[str, Family[Any]]] = {}
    takes: ClassVar[Takes] = "rows"
    partly_labelled: ClassVar[bool] = False
    predicts_alone: ClassVar[bool] = True
    same_coordinates: ClassVar[bool] = False
    alone: ClassVar[Mapping[str, Any]] = {}
    seeds: ClassVar[tuple[str, ...]] = ()
    own: ClassVar[tuple[str, ...]] = ("network", "random_state")

    network: Network | None
    random_state: Any
    n_features_in_: int

    def check_settings(self) -> Setup:
        """Check all parameters without any data, and return what they come to. Nothing is sent."""
        self.check_parameters()
        parts = {name: self.part(name) for name in self.parts}
        network = network_of(self.network)
        return Setup(network, parts, self._draw_seeds(network))

    def check_parameters(self) -> None:
        """Refuse bad parameters. The parts, network and random_state are checked elsewhere."""

    def part(self, name: str) -> Any:
        """Return the algorithm that is this parameter, as an object."""
        family = self.parts[name]
        chosen = family.of(getattr(self, name))
        if self.network is None and family.in_one_place:
            return family.of(family.in_one_place)
        return chosen

    def _draw_seeds(self, network: Network) -> dict[str, int]:
        if not self.seeds:
            return {}
        # Agents in several processes deal nothing: if nothing else is drawn, any random_state will
        # do.
        among = one_agent() if self.seeds == (DEALING,) else network
        drawn = seeds_of(self.random_state, among, len(self.seeds))
        return dict(zip(self.seeds, drawn, strict=True))

    @classmethod
    def can_be_saved(cls) -> bool:
        """Return whether the class has a way to be read back from a file."""
        return cls.from_archive is not NetworkModel.from_archive

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return the arrays and the plain values that a prediction needs, by name.

        They are those of the first hosted agent. Coefficients and classes are saved of every model.
        """
        return {}, {}

    def from_archive(self, reader: ArchiveReader) -> None:
        """Set all that a prediction needs from a file, checked.

        Parameters and n_features_in_ are set already.
        """
        raise NotImplementedError

    def check_use_in_files(self) -> None:
        """Refuse settings with which nobody could predict from the rows of a file."""
