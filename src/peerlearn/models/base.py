"""Base classes of all models: class attributes describe a model, methods check and train it.

TOML files, saved files, sites, comparisons and the tests read the class attributes. A new model is
a file in this folder with a public subclass; `peerlearn.models.registry` finds it there. Most
models begin with `peerlearn.models.row_model`. The steps of `fit` are the same for all of them:

    check        parameters, algorithms, network, seeds                  alone, before any work
    learn        deal or check the input, compare settings, train        `RowModel`, `SequenceModel`
    agree        on the coefficients, where the solver promises that     over the network
    report       what the solver did, and what was sent in all steps

The steps run with one BLAS thread. If one of them raises an error, the model is restored to what it
was before `fit`. Checks of single parameters are at the end of the file.
"""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from numbers import Real
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, check_scalar

from peerlearn import graphs
from peerlearn.algorithms.agreement import Drawn, check_coefficients, check_same_settings
from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.registry import Family
from peerlearn.algorithms.secret_sums import one_session, session_of
from peerlearn.arrays import is_whole, one_blas_thread
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import InputError
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.nested import settings_of, with_settings
from peerlearn.network import Network, SimulatedNetwork
from peerlearn.secret.refusals import secret_error
from peerlearn.secret.statement import ONLY_TOTALS, Claim

Takes = Literal["rows", "columns", "sequences", "signals"]
RandomState = int | np.random.RandomState | None  # what a user may give as random_state
Intercept = bool | Literal["auto"]  # what a user may give as fit_intercept
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
    only_in_streams: parts that `fit` does not use.
    own: parameters that may differ between agents.
    before_files: parameters that older files lack, with the values that older releases meant.
    sum_solvers: classes of solvers with which training is sums over the network.
    leaks: what a model would do that is not possible under secrecy.
    instead: what to use under secrecy.
    """

    parts: ClassVar[Mapping[str, Family[Any]]] = {}
    takes: ClassVar[Takes] = "rows"
    partly_labelled: ClassVar[bool] = False
    predicts_alone: ClassVar[bool] = True
    same_coordinates: ClassVar[bool] = False
    alone: ClassVar[Mapping[str, Any]] = {}
    seeds: ClassVar[tuple[str, ...]] = ()
    only_in_streams: ClassVar[tuple[str, ...]] = ()
    own: ClassVar[tuple[str, ...]] = ("network", "random_state")
    before_files: ClassVar[Mapping[str, Any]] = {}
    sum_solvers: ClassVar[tuple[type[Any], ...]] = ()
    leaks: ClassVar[str] = "would send numbers of single agents"
    instead: ClassVar[str] = "use RVFLClassifier or RVFLRegressor with solver='gram'"

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
        """Check all parameters, and return network, algorithms and seeds. Send nothing.

        Algorithms that only streams use are checked, but not among those returned.
        """
        self.check_parameters()
        for name in self.only_in_streams:
            self.parts[name].check(getattr(self, name))
        parts = {name: self.part(name) for name in self.parts if name not in self.only_in_streams}
        network = network_of(self.network)
        if network.secrecy is not None:
            self.check_secrecy(parts)
        return Setup(network, parts, self._draw_seeds(network))

    def check_secrecy(self, parts: Mapping[str, Any]) -> None:
        """Refuse settings with which agents would send more than masked sums.

        It is called if the network keeps sums secret, before anything is sent. Models that send
        only masked sums with some settings override it.

        parts: the parameters that are algorithms, as objects.
        """
        raise secret_error(type(self).__name__, self.leaks, self.instead)

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


def check_need(kind: str, need: str, *, is_met: bool) -> None:
    """Refuse a model that would send more than masked sums, unless what it needs is met."""
    if not is_met:
        raise InputError(
            f"this network keeps sums secret, and {kind} then needs {need}: set it, or use a "
            "network without secrecy; nothing was sent"
        )


class Answer(Protocol):
    """Result of training. `Solution` and `Minimum` of the solvers are answers."""

    @property
    def coefficients(self) -> Any:
        """Coefficients of each hosted agent."""
        ...

    @property
    def report(self) -> Report:
        """What the solver did."""
        ...

    @property
    def apart(self) -> float | None:
        """Largest allowed distance of agents from their common answer; None if not checked."""
        ...


@dataclass(frozen=True)
class OwnAnswer:
    """Answer in which every agent has coefficients of its own, so that none are compared."""

    coefficients: list[Any]
    report: Report
    apart: ClassVar[None] = None


class FittedModel(NetworkModel):
    """Base class of models with `fit`."""

    claim: ClassVar[Claim] = ONLY_TOTALS  # what training under secrecy promises

    coefficients_: Any  # of each hosted agent
    report_: Report

    def fit_over_network(self, *given: Any) -> Self:
        """Train on the arguments of `fit`."""
        with restored_on_error(self), one_blas_thread():
            setup = self.check_settings()
            network = setup.network
            mark = network.ledger.mark()
            with one_session(network):
                answer = self.learn(setup, *given)
                secrecy = None
                if network.secrecy is not None:
                    secrecy = session_of(network).describe(self.claim)
            with network.allow_messages():  # what all agents have
                check_coefficients(network, answer.coefficients, answer.apart)
            self.__dict__.pop("_stream", None)  # a stream that was under way ends here
            self.coefficients_ = answer.coefficients
            self.report_ = replace(answer.report, sent=network.ledger.since(mark), secrecy=secrecy)
        return self

    def learn(self, setup: Setup, *given: Any) -> Answer:
        """Train all agents together on the arguments of `fit`, and return the answer.

        An implementation calls `draw_and_compare` before it trains. It sets all attributes except
        coefficients_ and report_.
        """
        raise NotImplementedError

    def draw(self, setup: Setup, columns: int, outputs: int) -> tuple[Drawn, ...]:
        """Draw the random parts that all agents share, keep them, and return what to compare."""
        return ()

    def draw_and_compare(
        self,
        setup: Setup,
        columns: int,
        outputs: int,
        rows: Sequence[int] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Draw the random parts, and check that all agents have the same ones and equal settings.

        Simulated agents cannot differ, but they compare as well, so that every engine sends the
        same messages.

        rows: number of rows of each hosted agent; given if some agent of the network must have one.
        more: further settings that must be the same, by name.
        """
        drawn = self.draw(setup, columns, outputs)
        settings = self.common_settings(setup, columns, outputs) | dict(more or {})
        if setup.network.secrecy is not None:
            rows = None  # who has no rows is nobody's business
        with setup.network.allow_messages():  # settings do not depend on data
            check_same_settings(setup.network, settings, *drawn, rows=rows)

    def common_settings(self, setup: Setup, columns: int, outputs: int | None) -> dict[str, Any]:
        """Return the settings that all agents must share, by the name used in error messages.

        outputs: the number of outputs; None if it need not be compared.
        """
        settings: dict[str, Any] = {"the number of columns of X": columns}
        if outputs is not None:
            settings["the number of outputs"] = outputs
        for name in inspect.signature(type(self)).parameters:
            if name not in (*self.own, *self.parts):
                settings[name] = getattr(self, name)
        for name, seed in setup.seeds.items():
            if name != DEALING:
                settings[f"the seed of {name}"] = seed
        return {**settings, **setup.parts}


@contextmanager
def restored_on_error(model: Any) -> Iterator[None]:
    """Restore the attributes of the model if an error leaves the block."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


@cache
def one_agent() -> Network:
    """Return the network of one agent, which stands for all data in one place."""
    return SimulatedNetwork(graphs.complete(1))


def network_of(given: Any) -> Network:
    """Return the network of a model. None is the centralised case, a network of one agent."""
    if given is None:
        return one_agent()
    if not isinstance(given, Network):
        raise InputError(
            "network must be a peerlearn Network such as SimulatedNetwork(graph), or None, "
            f"not {type(given).__name__}"
        )
    return given


def number_between(value: Any, name: str, least: float, most: float) -> None:
    """Check that the value is a number from `least` to `most`. NaN is refused."""
    check_scalar(value, name, Real)
    # Compared as a Python number, because a float32 cannot represent every bound.
    plain = value.item() if isinstance(value, np.generic) else value
    if not least <= plain <= most:
        raise InputError(f"{name} is {value}: give a number from {least:g} to {most:g}")


def check_intercept(value: Any) -> None:
    """Check that the value can be fit_intercept."""
    if not isinstance(value, bool | np.bool_) and value != "auto":
        raise InputError(f"fit_intercept is {value!r:.60}: give True, False or 'auto'")


def check_whole_number(value: Any, name: str, least: int) -> None:
    """Check that the value is a whole number of `least` or more. True and False are refused."""
    if not is_whole(value) or value < least:
        raise InputError(f"{name} is {value!r:.60}: give a whole number, {least} or more")


def network_fitted_over(given: Any, agents: int, hosted: tuple[int, ...], why: str) -> Network:
    """Return the network to predict over, if it is the one that the model was fitted over.

    `why` names what each agent has that the others lack. It is used in the error message.
    """
    network = network_of(given)
    if network.size != agents or network.hosted != hosted:
        raise InputError(
            f"this model was fitted over {agents} agents and has the coefficients of "
            f"{', '.join(map(str, hosted))}; each agent has {why} of its own, so that nobody can "
            "predict alone: set network to the one it was fitted over, and let all agents predict "
            "at the same time"
        )
    return network


def seeds_of(random_state: Any, network: Network, count: int) -> list[int]:
    """Return seeds that every agent computes alike, so that random numbers are never sent."""
    if random_state is None and len(network.hosted) < network.size:
        raise InputError(
            "random_state must be a whole number, the same at every agent: each agent draws its "
            "random numbers from it, and they are never sent"
        )
    generator = check_random_state(random_state)
    seeds: list[int] = generator.randint(np.iinfo(np.int32).max, size=count).tolist()
    return seeds
