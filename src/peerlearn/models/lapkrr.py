"""Few labels: manifold regularisation, with all distances known to all agents.

Laplacian kernel ridge regression (thesis, chapter 7):

    D~   squared distances between the rows of all agents                         over the network
    J    which rows have a label: N zeros and ones                                over the network: one sum
    a_k  = (J K~ + gamma_A I + gamma_I L~^q K~)^-1 y_k                            alone; y_k: the labels of k, else 0
    a    = sum_k a_k                                                              over the network: one sum
    f(x) = sum_k sum_{i of k} K(x, x_i) a_i                                       over the network: one sum

Every agent keeps its own rows, and of a what belongs to them: nobody can predict alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from peerlearn.algorithms.agreement import Drawn, check_same_settings, probe
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.completion import COMPLETION, Completion
from peerlearn.algorithms.distances import DISTANCES, Distances, Places, describe_draws
from peerlearn.algorithms.registry import Family
from peerlearn.algorithms.report import Report
from peerlearn.arrays import HUGE, Array, all_finite
from peerlearn.errors import DataError, InputError
from peerlearn.local.gaussian import gaussian
from peerlearn.local.manifold import Manifold
from peerlearn.local.privacy import Privacy
from peerlearn.local.squared_distances import squared_distances
from peerlearn.local.threads import one_blas_thread
from peerlearn.models.base import DEALING, Setup
from peerlearn.models.fitted_model import Answer, OwnAnswer
from peerlearn.models.settings import network_fitted_over, number_between, one_agent
from peerlearn.models.targets import LARGEST, finite_rows
from peerlearn.models.unlabelled import PartlyLabelled, labelled
from peerlearn.network import Network

__all__ = ["LapKRRClassifier"]

PRIVACY: Family[Privacy] = Family("peerlearn.local.privacy", "drawn", "privacy")
SHARED, TRANSFORM = "what agents share", "their transform"
AT_ONCE = 10_000_000  # entries of a kernel matrix when predicting


class LapKRRClassifier(PartlyLabelled):
    """A classifier that learns from labelled and unlabelled rows of all agents; the label of the latter is -1.

    For rows by the thousand: every agent holds a matrix of the distances between all of them. For
    more rows use
    `AnchorLapClassifier`.

    Parameters
    ----------
    width: of the Gaussian kernel exp(-|x - x'|^2 / 2 width^2), in the units of the columns: scale
        them alike.
    n_neighbors: how many nearest rows each row is joined to in the graph of the data.
    gamma_A: penalty on the size of f; gamma_I: penalty on how much f varies along the graph of the
        data.
    power: of the graph's Laplacian, q in the formulas.
    distances: what agents share to know the distances between their rows: "landmarks" (exact, and
        cheapest) or "exchange" (the thesis's, with completion), or an object with settings such as
        Exchange(pattern_rounds=100). "local" is the baseline in which every agent learns alone.
        None: all rows are in one place, as with no network.
    completion: of the distances still unknown after an exchange: "diffusion", "block", or an object
        with settings.
    privacy: None, or what agents do to rows before they share anything of them: RandomProjection(m)
        or TanhTransform(m, t). See docs/privacy.md for how little that hides.
    network: who talks to whom; None trains on all rows in one place, the centralised baseline.
    random_state: seeds the dealing of rows, landmarks, exchanges and transforms; the same number at
        every agent.

    Attributes
    ----------
    classes_: all labels that occur anywhere in the network.
    coefficients_: a list of N_k x M arrays, one per hosted agent: what each of its rows counts for
        in each output; M is 1 for two classes, else one output per class.
    patterns_: the rows of each hosted agent, transformed if privacy asks for it.
    report_: what was sent, and how well distances were completed; prints as a small table.

    >>> from peerlearn import SimulatedNetwork, data, graphs
    >>> moons = data.load("two-moons")
    >>> y = (moons.y > 0).astype(int)
    >>> some = np.where(np.arange(400) < 14, y, -1)  # 14 labels
    >>> model = LapKRRClassifier(width=0.1, network=SimulatedNetwork(graphs.ring(5)), random_state=0)
    >>> bool(model.fit(moons.X, some).score(moons.X, y) > 0.95)
    True
    """

    parts: ClassVar = {
        "distances": DISTANCES,
        "completion": COMPLETION,
        "privacy": PRIVACY,
    }
    predicts_alone: ClassVar = False
    alone: ClassVar = {"distances": "local"}
    seeds: ClassVar = (DEALING, SHARED, TRANSFORM)

    coefficients_: list[Array]
    patterns_: list[Array]

    def __init__(
        self,
        width: float = 1.0,
        n_neighbors: int = 6,
        gamma_A: float = 1e-3,
        gamma_I: float = 1.0,
        power: int = 1,
        *,
        distances: Distances | str | None = "landmarks",
        completion: Completion | str = "diffusion",
        privacy: Privacy | None = None,
        network: Network | None = None,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.n_neighbors = n_neighbors
        self.gamma_A = gamma_A
        self.gamma_I = gamma_I
        self.power = power
        self.distances = distances
        self.completion = completion
        self.privacy = privacy
        self.network = network
        self.random_state = random_state

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        if self.distances is None and setup.network.size > 1:
            raise InputError(
                "distances=None means that all rows are in one place, but agents of a network keep theirs: set "
                "distances to 'landmarks' or 'exchange', or network to None"
            )
        return setup

    def check_parameters(self) -> None:
        check_scalar(self.n_neighbors, "n_neighbors", Integral, min_val=1)
        check_scalar(self.power, "power", Integral, min_val=1)
        for name, least in (("width", 1 / LARGEST), ("gamma_A", 1 / LARGEST), ("gamma_I", 0.0)):
            number_between(getattr(self, name), name, least, LARGEST)

    def part(self, name: str) -> Any:
        """As for every model; distances may also be "local" or None, and privacy None."""
        given = getattr(self, name)
        if name == "distances" and (given is None or (isinstance(given, str) and given == "local")):
            return given
        if name == "privacy":
            return self._check_privacy()
        try:
            return super().part(name)
        except InputError as error:
            if name != "distances":
                raise
            raise InputError(f"{error}; or 'local', for each agent alone") from error

    def _check_privacy(self) -> Privacy | None:
        if self.privacy is not None and not hasattr(self.privacy, "drawn"):
            raise InputError(
                f"privacy {self.privacy!r} is not known: give RandomProjection(m), TanhTransform(m, t), or None"
            )
        return self.privacy

    def draw(self, setup: Setup, columns: int, outputs: int) -> tuple[Drawn, ...]:
        (probed,) = _transform(self.privacy, [probe(4, columns)], setup.seeds[TRANSFORM])
        sharing = setup.parts["distances"] if setup.network.size > 1 else None
        return (
            Drawn("the transform of rows", computed=probed),
            describe_draws(sharing, probed.shape[1], setup.seeds[SHARED]),
        )

    def train(self, setup: Setup, inputs: list[Array], outputs: list[Array]) -> Answer:
        network = setup.network
        self._privacy, self._transform_seed = self.privacy, setup.seeds[TRANSFORM]
        self.patterns_ = _transform(self._privacy, inputs, self._transform_seed)
        for agent, own in zip(network.hosted, self.patterns_, strict=True):
            finite_rows(own, f"the transformed rows of agent {agent}: ")
        self._manifold = Manifold(
            self.width, self.n_neighbors, self.gamma_A, self.gamma_I, self.power
        )
        self._learned_alone, self._agents, self._hosted = (
            self.distances == "local",
            network.size,
            network.hosted,
        )
        if self._learned_alone:
            pairs = zip(self.patterns_, outputs, strict=True)
            coefficients = [self._alone(self._manifold, own, Y) for own, Y in pairs]
            return OwnAnswer(coefficients, Report("LapKRR of each agent alone", True, 0, ()))
        return OwnAnswer(*self._together(setup, self._manifold, self.patterns_, outputs))

    def decision_function(self, X: ArrayLike) -> Array:
        """f(x): one number per row for two classes (above 0 means classes_[1]), else one per row and class.

        All agents call it at the same time with the same rows.
        """
        return super().decision_function(X)

    def predict(self, X: ArrayLike) -> Any:
        """The class of each row. All agents call it at the same time with the same rows."""
        return super().predict(X)

    def _alone(self, manifold: Manifold, X: Array, Y: Array) -> Array:
        """One agent's own rows; it has as many neighbors as it has rows at most."""
        if len(X) < 2:
            return Y / (1 + self.gamma_A)
        fewer = replace(manifold, n_neighbors=min(self.n_neighbors, len(X) - 1))
        return fewer.coefficients(squared_distances(X), labelled(Y).astype(np.float64), [Y])[0]

    def _together(
        self, setup: Setup, manifold: Manifold, patterns: Sequence[Array], outputs: Sequence[Array]
    ) -> tuple[list[Array], Report]:
        """Each hosted agent's own rows of a."""
        network = setup.network
        places = Places.agree(network, [len(own) for own in patterns])
        if self.n_neighbors >= places.N:
            raise DataError(
                f"n_neighbors={self.n_neighbors} is too many for n_samples={places.N} rows of the whole network: set "
                f"it to {max(places.N - 1, 1)} or less, or give more rows"
            )
        D, report = self._all_distances(setup, patterns)
        J, y = np.zeros((len(D), places.N)), np.zeros((len(D), places.N, outputs[0].shape[1]))
        for k, agent in enumerate(network.hosted):
            J[k, places.of(agent)], y[k, places.of(agent)] = labelled(outputs[k]), outputs[k]
        J = np.rint(total(network, J))  # zeros and ones, however exact the sum
        a = total(network, _solve_each(manifold, D, J, y))
        if np.abs(a[0]).max() >= HUGE:  # which all agents see alike
            raise DataError(
                f"the rows do not determine a model with width={self.width:g}, gamma_A={self.gamma_A:g} and "
                f"power={self.power}: raise gamma_A, or lower power"
            )
        return [a[k, places.of(agent)] for k, agent in enumerate(network.hosted)], report

    def _all_distances(self, setup: Setup, patterns: Sequence[Array]) -> tuple[list[Array], Report]:
        """What each hosted agent holds for the squared distances between all rows."""
        network, seed = setup.network, setup.seeds[SHARED]
        if network.size == 1:
            return [squared_distances(patterns[0])], Report("LapKRR", True, 0, ())
        sharing: Distances = setup.parts["distances"]
        known = sharing.share(network, patterns, seed)
        note = f"distances by {sharing.name}"
        if known.mask is None:
            return known.D, Report("LapKRR", True, 0, (), note=note)
        completion: Completion = setup.parts["completion"]
        completed = completion.complete(network, known, seed)
        note = f"{note}, completed by {completion.name}"
        return completed.D, replace(completed.report, solver="LapKRR", note=note)

    def agent_outputs(self, X: ArrayLike, agents: slice = slice(None)) -> list[Array]:
        """Return f(X) as each of these hosted agents knows it; it differs only where each agent learned alone."""
        check_is_fitted(self)
        network = self._network_to_predict()
        rows = self.rows_to_predict(X)
        finite_rows(rows, "")
        told = {
            "the number of rows to predict": len(rows),
            "the rows to predict (a checksum)": crc32(rows.tobytes()),
        }
        check_same_settings(network, told)
        with one_blas_thread():
            (x,) = _transform(self._privacy, [rows], self._transform_seed)
            pairs = zip(self.patterns_, self.coefficients_, strict=True)
            parts = [_sum_kernels(self._manifold, x, own, a) for own, a in pairs]
        everybodys = parts if self._learned_alone else list(total(network, np.stack(parts)))
        return everybodys[agents]

    def _network_to_predict(self) -> Network:
        if self._learned_alone:
            return one_agent()
        return network_fitted_over(self.network, self._agents, self._hosted, "rows")


def _transform(privacy: Privacy | None, inputs: Sequence[Array], seed: int) -> list[Array]:
    """Return what takes the place of rows, in memory of its own: drawn anew each time, alike at all agents."""
    if privacy is None:
        return [X.copy() for X in inputs]
    transform = privacy.drawn(inputs[0].shape[1], seed)
    return [transform(X) for X in inputs]


def _solve_each(manifold: Manifold, D: Sequence[Array], J: Array, y: Array) -> Array:
    """Return a_k of each hosted agent: agents x N x M, HUGE where there is none.

    Agents that hold the same distances share the work.
    """
    a = np.empty_like(y)
    for same in {id(own): own for own in D}.values():
        agents = [k for k, own in enumerate(D) if own is same]
        a[agents] = manifold.coefficients(same, J[agents[0]], [y[k] for k in agents])
    for own in a:
        if not all_finite(own):
            own[:] = HUGE
    return a


def _sum_kernels(manifold: Manifold, x: Array, own: Array, a: Array) -> Array:
    """Return sum_i K(x, x_i) a_i over one agent's rows: in pieces, so that many rows to predict need little memory."""
    step = max(AT_ONCE // max(len(own), 1), 1)
    pieces = [
        gaussian(squared_distances(x[i : i + step], own), manifold.width) @ a
        for i in range(0, len(x), step)
    ]
    return np.vstack(pieces) if pieces else np.zeros((0, a.shape[1]))
