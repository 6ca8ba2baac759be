"""Base class of all models: its class attributes describe a model, its methods check parameters.

TOML files, saved files, sites, comparisons and the tests read the class attributes. A new model is
a file in this folder with a public subclass; `peerlearn.models.registry` finds it there. Most
models begin with `peerlearn.models.row_model`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from sklearn.base import BaseEstimator

from peerlearn.algorithms.registry import Family
from peerlearn.data.dataset import AnyArray
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.nested import settings_of, with_settings
from peerlearn.models.settings import network_of, one_agent, seeds_of
from peerlearn.network import Network

Takes = Literal["rows", "columns", "sequences", "signals"]
# Name of the seed by which input is dealt to agents. It is the only seed that agents in several
# processes need not share, because each of them already has its own input.
DEALING = "the dealing"


@dataclass(frozen=True)
class Setup:
    """Network, algorithms and seeds of a model, after its parameters were checked.

    network: the model's network; a network of one agent if the model has none.
    parts: the parameters that are algorithms, as objects, by parameter name.
    seeds: the seeds, by the names in `NetworkModel.seeds`.
    """

    network: Network
    parts: Mapping[str, Any]
    seeds: Mapping[str, int]


class NetworkModel(ABC, BaseEstimator):
    """Base class of all models.

    A subclass describes itself by the class attributes below and by overriding methods.

    Attributes
    ----------
    parts: the parameters that are algorithms, and the family that each comes from.
    takes: what one agent has: rows, columns of all agents' rows, sequences (rows in time order),
        or signals.
    partly_labelled: whether rows may lack a label. Such rows have the label -1.
    predicts_alone: True if one agent can predict with its own coefficients; False if all agents
        must predict together.
    same_coordinates: whether the coefficients have the same meaning over any network, so that they
        can be compared with those of the same model trained in one place.
    alone: parameter values with which every agent of a network learns alone. If empty, a copy of
        the model at each agent does the same.
    seeds: names of the seeds drawn from random_state, in this order. Error messages use the names.
    own: parameters that may differ between agents.
    before_files: parameters that older files lack, with the values that older releases meant.
    """

    parts: ClassVar[Mapping[str, Family[Any]]] = {}
    takes: ClassVar[Takes] = "rows"
    partly_labelled: ClassVar[bool] = False
    predicts_alone: ClassVar[bool] = True
    same_coordinates: ClassVar[bool] = False
    alone: ClassVar[Mapping[str, Any]] = {}
    seeds: ClassVar[tuple[str, ...]] = ()
    own: ClassVar[tuple[str, ...]] = ("network", "random_state")
    before_files: ClassVar[Mapping[str, Any]] = {}

    network: Network | None
    random_state: Any
    n_features_in_: int

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        deep: whether to return the settings of algorithms as well, such as solver__tolerance.
        """
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name in self.parts:
                params |= settings_of(self._part_with_settings(name), name)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and settings of algorithms such as solver__tolerance.

        An algorithm is replaced by one with the new settings; it may have been given by name.
        """
        nested: dict[str, dict[str, Any]] = {}
        plain = {}
        for key, value in params.items():
            name, is_nested, setting = key.partition("__")
            if is_nested and name in self.parts:
                nested.setdefault(name, {})[setting] = value
            else:
                plain[key] = value
        super().set_params(**plain)
        for name, settings in nested.items():
            chosen = self.parts[name].of(getattr(self, name))
            setattr(self, name, with_settings(chosen, settings, name))
        return self

    def _part_with_settings(self, name: str) -> Any:
        """Return the algorithm of this parameter; None if the parameter is not valid."""
        try:
            return self.parts[name].of(getattr(self, name))
        except ValueError:
            return None

    def check_settings(self) -> Setup:
        """Check all parameters, and return network, algorithms and seeds. Send nothing."""
        self.check_parameters()
        parts = {name: self.part(name) for name in self.parts}
        network = network_of(self.network)
        return Setup(network, parts, self._draw_seeds(network))

    def check_parameters(self) -> None:
        """Refuse bad parameters. Parts, network and random_state are checked elsewhere."""

    def part(self, name: str) -> Any:
        """Return the algorithm that this parameter names, as an object."""
        family = self.parts[name]
        chosen = family.of(getattr(self, name))
        if self.network is None and family.in_one_place:
            return family.of(family.in_one_place)
        return chosen

    def _draw_seeds(self, network: Network) -> dict[str, int]:
        if not self.seeds:
            return {}
        # Agents in several processes deal nothing. If nothing else is drawn, they may have any
        # random_state, also None.
        among = one_agent() if self.seeds == (DEALING,) else network
        drawn = seeds_of(self.random_state, among, len(self.seeds))
        return dict(zip(self.seeds, drawn, strict=True))

    @classmethod
    def can_be_saved(cls) -> bool:
        """Return whether the class has a way to be read back from a file."""
        return cls.from_archive is not NetworkModel.from_archive

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return the arrays and the plain values that a prediction needs, by name.

        They belong to the first hosted agent. Coefficients and classes need not be returned: they
        are saved for every model.
        """
        return {}, {}

    def from_archive(self, reader: ArchiveReader) -> None:
        """Check what a file has, and set all attributes that a prediction needs.

        Parameters and n_features_in_ are set already.
        """
        raise NotImplementedError

    def check_use_in_files(self) -> None:
        """Refuse settings with which a saved model could not predict from the rows of a file."""
