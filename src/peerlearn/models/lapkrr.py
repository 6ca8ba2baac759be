"""Laplacian kernel ridge regression over a network of agents (thesis, chapter 7).

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
from typing import Any, Self
from zlib import crc32

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from peerlearn.algorithms.agreement import Drawn, check_same_settings, probe
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.completion import Completion, completion_of
from peerlearn.algorithms.distances import Distances, Places, distances_of, drawn_by
from peerlearn.algorithms.report import Report
from peerlearn.arrays import HUGE, Array, all_finite
from peerlearn.errors import DataError, InputError
from peerlearn.local.gaussian import gaussian
from peerlearn.local.manifold import Manifold
from peerlearn.local.privacy import Privacy
from peerlearn.local.squared_distances import squared_distances
from peerlearn.local.threads import one_blas_thread
from peerlearn.models.settings import network_fitted_over, network_of, number_between, one_agent, seeds_of
from peerlearn.models.shares import shares_of
from peerlearn.models.targets import LARGEST, finite_rows
from peerlearn.models.unlabelled import PartlyLabelled, labelled
from peerlearn.network import Network

AT_ONCE = 10_000_000  # entries of a kernel matrix when predicting


class LapKRRClassifier(PartlyLabelled, BaseEstimator):
    """A classifier that learns from labelled and unlabelled rows of all agents; the label of the latter is -1.

    For rows by the thousand: every agent holds a matrix of the distances between all of them. For more rows use
    `AnchorLapClassifier`.

    Parameters
    ----------
    width: of the Gaussian kernel exp(-|x - x'|^2 / 2 width^2), in the units of the columns: scale them alike.
    n_neighbors: how many nearest rows each row is joined to in the graph of the data.
    gamma_A: penalty on the size of f; gamma_I: penalty on how much f varies along the graph of the data.
    power: of the graph's Laplacian, q in the formulas.
    distances: what agents share to know the distances between their rows: "landmarks" (exact, and cheapest) or
        "exchange" (the thesis's, with completion), or an object with settings such as Exchange(pattern_rounds=100).
        "local" is the baseline in which every agent learns alone. None: all rows are in one place, as with no network.
    completion: of the distances still unknown after an exchange: "diffusion", "block", or an object with settings.
    privacy: None, or what agents do to rows before they share anything of them: RandomProjection(m) or
        TanhTransform(m, t). See docs/privacy.md for how little that hides.
    network: who talks to whom; None trains on all rows in one place, the centralised baseline.
    random_state: seeds the dealing of rows, landmarks, exchanges and transforms; the same number at every agent.

    Attributes
    ----------
    classes_: all labels that occur anywhere in the network.
    coefficients_: a list of N_k x M arrays, one per hosted agent: what each of its rows counts for in each output; M is
        1 for two classes, else one output per class.
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

    coefficients_: list[Array]
    patterns_: list[Array]
    report_: Report

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

    def _fit(self, X: Any, y: Any) -> Self:
        network, manifold = self._settings()
        deal_seed, share_seed, transform_seed = seeds_of(self.random_state, network, 3)
        mark = network.ledger.mark()
        inputs, targets = shares_of(self, network, X, y, stratify=True, seed=deal_seed)
        columns = inputs[0].shape[1]
        *patterns, probed = _transformed(self.privacy, [*inputs, probe(4, columns)], transform_seed)
        for agent, own in zip(network.hosted, patterns, strict=True):
            finite_rows(own, f"the transformed rows of agent {agent}: ")
        outputs = self._encoded(network, targets)
        sharing = self.distances if self.distances in ("local", None) else distances_of(self.distances)
        check_same_settings(
            network,
            {
                "the number of columns of X": columns,
                "the number of outputs": outputs[0].shape[1],
                **{name: getattr(self, name) for name in ("width", "n_neighbors", "gamma_A", "gamma_I", "power")},
                "distances": sharing,
                "completion": completion_of(self.completion),
                "privacy": self.privacy,
                "the seed of what agents share": share_seed,
                "the seed of their transform": transform_seed,
            },
            Drawn("the transform of rows", computed=probed),
            drawn_by(sharing if network.size > 1 else None, probed.shape[1], share_seed),
        )
        if self.distances == "local":
            coefficients = [self._alone(manifold, own, Y) for own, Y in zip(patterns, outputs, strict=True)]
            report = Report("LapKRR of each agent alone", True, 0, ())
        else:
            coefficients, report = self._together(network, manifold, patterns, outputs, share_seed)
        self._manifold, self._privacy, self._transform_seed = manifold, self.privacy, transform_seed
        self._learned_alone, self._agents, self._hosted = self.distances == "local", network.size, network.hosted
        self.patterns_, self.coefficients_ = patterns, coefficients
        self.report_ = replace(report, sent=network.ledger.since(mark))
        return self

    def decision_function(self, X: Any) -> Array:
        """f(x): one number per row for two classes (above 0 means classes_[1]), else one per row and class.

        All agents call it at the same time with the same rows.
        """
        outputs = self._agent_outputs(X)[0]
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict(self, X: Any) -> Any:
        """The class of each row. All agents call it at the same time with the same rows."""
        return self._decoded(self._agent_outputs(X)[0])

    def _settings(self) -> tuple[Network, Manifold]:
        """The parameters, checked before any work is done."""
        check_scalar(self.n_neighbors, "n_neighbors", Integral, min_val=1)
        check_scalar(self.power, "power", Integral, min_val=1)
        for name, least in (("width", 1 / LARGEST), ("gamma_A", 1 / LARGEST), ("gamma_I", 0.0)):
            number_between(getattr(self, name), name, least, LARGEST)
        completion_of(self.completion)
        if not (self.distances is None or (isinstance(self.distances, str) and self.distances == "local")):
            try:
                distances_of(self.distances)
            except InputError as error:
                raise InputError(f"{error}; or 'local', for each agent alone") from error
        if self.privacy is not None and not hasattr(self.privacy, "drawn"):
            raise InputError(
                f"privacy {self.privacy!r} is not known: give RandomProjection(m), TanhTransform(m, t), or None"
            )
        network = network_of(self.network)
        if self.distances is None and network.size > 1:
            raise InputError(
                "distances=None means that all rows are in one place, but agents of a network keep theirs: set "
                "distances to 'landmarks' or 'exchange', or network to None"
            )
        return network, Manifold(self.width, self.n_neighbors, self.gamma_A, self.gamma_I, self.power)

    def _alone(self, manifold: Manifold, X: Array, Y: Array) -> Array:
        """One agent's own rows; it has as many neighbors as it has rows at most."""
        if len(X) < 2:
            return Y / (1 + self.gamma_A)
        fewer = replace(manifold, n_neighbors=min(self.n_neighbors, len(X) - 1))
        return fewer.coefficients(squared_distances(X), labelled(Y).astype(np.float64), [Y])[0]

    def _together(
        self, network: Network, manifold: Manifold, patterns: Sequence[Array], outputs: Sequence[Array], seed: int
    ) -> tuple[list[Array], Report]:
        """Each hosted agent's own rows of a."""
        places = Places.agreed(network, [len(own) for own in patterns])
        if self.n_neighbors >= places.N:
            raise DataError(
                f"n_neighbors={self.n_neighbors} is too many for n_samples={places.N} rows of the whole network: set "
                f"it to {max(places.N - 1, 1)} or less, or give more rows"
            )
        D, report = self._all_distances(network, patterns, seed)
        J, y = np.zeros((len(D), places.N)), np.zeros((len(D), places.N, outputs[0].shape[1]))
        for k, agent in enumerate(network.hosted):
            J[k, places.of(agent)], y[k, places.of(agent)] = labelled(outputs[k]), outputs[k]
        J = np.rint(total(network, J))  # zeros and ones, however exact the sum
        a = total(network, _solved(manifold, D, J, y))
        if np.abs(a[0]).max() >= HUGE:  # which all agents see alike
            raise DataError(
                f"the rows do not determine a model with width={self.width:g}, gamma_A={self.gamma_A:g} and "
                f"power={self.power}: raise gamma_A, or lower power"
            )
        return [a[k, places.of(agent)] for k, agent in enumerate(network.hosted)], report

    def _all_distances(self, network: Network, patterns: Sequence[Array], seed: int) -> tuple[list[Array], Report]:
        """What each hosted agent holds for the squared distances between all rows."""
        if network.size == 1:
            return [squared_distances(patterns[0])], Report("LapKRR", True, 0, ())
        assert self.distances is not None  # _settings refused it
        sharing = distances_of(self.distances)
        known = sharing.share(network, patterns, seed)
        note = f"distances by {sharing.name}"
        if known.mask is None:
            return known.D, Report("LapKRR", True, 0, (), note=note)
        completion = completion_of(self.completion)
        completed = completion.complete(network, known, seed)
        note = f"{note}, completed by {completion.name}"
        return completed.D, replace(completed.report, solver="LapKRR", note=note)

    def _agent_outputs(self, X: Any) -> list[Array]:
        """They differ only where each agent learned alone."""
        check_is_fitted(self)
        network = self._network_to_predict()
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        finite_rows(rows, "")
        told = {"the number of rows to predict": len(rows), "the rows to predict (a checksum)": crc32(rows.tobytes())}
        check_same_settings(network, told)
        with one_blas_thread():
            (x,) = _transformed(self._privacy, [rows], self._transform_seed)
            parts = [
                _partial(self._manifold, x, own, a) for own, a in zip(self.patterns_, self.coefficients_, strict=True)
            ]
        return parts if self._learned_alone else list(total(network, np.stack(parts)))

    def _network_to_predict(self) -> Network:
        if self._learned_alone:
            return one_agent()
        return network_fitted_over(self.network, self._agents, self._hosted, "rows")


def _transformed(privacy: Privacy | None, inputs: Sequence[Array], seed: int) -> list[Array]:
    """What takes the place of rows, in memory of its own: drawn anew each time, alike at all agents."""
    if privacy is None:
        return [X.copy() for X in inputs]
    transform = privacy.drawn(inputs[0].shape[1], seed)
    return [transform(X) for X in inputs]


def _solved(manifold: Manifold, D: Sequence[Array], J: Array, y: Array) -> Array:
    """a_k of each hosted agent: agents x N x M, HUGE where there is none.

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


def _partial(manifold: Manifold, x: Array, own: Array, a: Array) -> Array:
    """sum_i K(x, x_i) a_i over one agent's rows: in pieces, so that many rows to predict need little memory."""
    step = max(AT_ONCE // max(len(own), 1), 1)
    pieces = [gaussian(squared_distances(x[i : i + step], own), manifold.width) @ a for i in range(0, len(x), step)]
    return np.vstack(pieces) if pieces else np.zeros((0, a.shape[1]))
