"""Few labels: manifold regularisation, with all distances known to all agents.

Laplacian kernel ridge regression (thesis, chapter 7):

    D~   squared distances between the rows of all agents            over the network
    w    half the median distance, of the agent in the middle        over the network: one number
    J    which rows have a label: N zeros and ones                   over the network: one sum
    a_k  = (J K~ + gamma_A I + gamma_I L~^q K~)^-1 y_k               alone
    a    = sum_k a_k                                                 over the network: one sum
    f(x) = sum_k sum_{i of k} K(x, x_i) a_i                          over the network: one sum

y_k has the labels of agent k's rows, and 0 for all other rows. Every agent keeps its own rows and
the entries of a that belong to them, so nobody can predict alone.
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
from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.registry import Family
from peerlearn.algorithms.sums import broadcast_from_center
from peerlearn.algorithms.unexpected import unexpected_message
from peerlearn.arrays import HUGE, Array, all_finite, one_blas_thread
from peerlearn.errors import DataError, InputError
from peerlearn.local.gaussian import gaussian
from peerlearn.local.manifold import Manifold
from peerlearn.local.privacy import Privacy
from peerlearn.local.squared_distances import squared_distances
from peerlearn.models.base import (
    DEALING,
    Answer,
    OwnAnswer,
    RandomState,
    Setup,
    network_fitted_over,
    number_between,
    one_agent,
)
from peerlearn.models.targets import LARGEST, check_finite_rows
from peerlearn.models.unlabelled import Marks, PartlyLabelled, is_labelled
from peerlearn.network import Network

__all__ = ["LapKRRClassifier"]

PRIVACY: Family[Privacy] = Family("peerlearn.local.privacy", "drawn", "privacy")
SHARED = "what agents share"
TRANSFORM = "their transform"
AT_ONCE = 10_000_000  # most entries of a kernel matrix that a prediction holds in memory


class LapKRRClassifier(PartlyLabelled):
    """Semi-supervised kernel classifier for some thousand rows, most of them without a label.

    Rows without a label have -1 in y. Every agent holds a matrix of the distances between all rows.
    For more rows use `AnchorLapClassifier`.

    Parameters
    ----------
    width : float or None, default None
        Width of the Gaussian kernel exp(-|x - x'|^2 / 2 width^2), in the units of the columns. None
        is half the median distance between rows. Scale columns alike.
    n_neighbors : int, default 6
        Number of nearest rows that each row is joined to in the graph of the data.
    gamma_A : float, default 0.01
        Penalty on the size of f.
    gamma_I : float, default 1.0
        Penalty on how much f varies along the graph of the data.
    power : int, default 2
        Power of the graph's Laplacian, q in the formulas.
    distances : str, Distances or None, default "landmarks"
        How agents learn the distances between their rows: "landmarks" (exact, and cheapest),
        "exchange" (the thesis's, with completion), or an object with settings such as
        Exchange(pattern_rounds=100). "local" is the baseline in which every agent learns alone.
        None is for all rows in one place, without a network.
    completion : str or Completion, default "diffusion"
        How distances that are still unknown after an exchange are estimated: "diffusion", "block",
        or an object with settings.
    privacy : Privacy or None, default None
        Transform of rows before anything about them is shared: RandomProjection(m) or
        TanhTransform(m, t). See docs/privacy.md for how little it hides.
    probability : bool, default False
        Whether to fit `predict_proba`, on scores of labelled rows by models that were trained
        without the labels of their fold. It costs 5 more sums of coefficients; distances are not
        sent again. With fewer than 5 labels of a class there are fewer folds; one label is refused.
    network : Network or None, default None
        The graph of agents. None trains on all rows in one place, the centralised baseline.
    random_state : int, RandomState or None, default None
        Seed of the dealing of rows, of landmarks, exchanges and transforms. Agents in several
        processes must all give the same whole number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All labels that occur anywhere in the network.
    coefficients_ : list of ndarray of shape (N_k, M)
        The weight of each row of each hosted agent in each output. M is 1 for two classes, else one
        output per class.
    patterns_ : list of ndarray
        The rows of each hosted agent, transformed if privacy is given.
    widths_ : ndarray of shape (n_hosted_agents,)
        Width of the kernel of each hosted agent, the same unless each learned alone.
    probability_scale_ : ndarray or None
        The factor s of probabilities softmax(s f(x)), or 1 / (1 + exp(-s f(x))) for two classes;
        None without probability.
    report_ : Report
        What was sent, and how well distances were completed. It prints as a small table.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import LapKRRClassifier, SimulatedNetwork, data, graphs
    >>> moons = data.load("two-moons")
    >>> y = (moons.y > 0).astype(int)
    >>> some = np.where(np.arange(400) < 14, y, -1)  # 14 labels
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = LapKRRClassifier(network=network, random_state=0)
    >>> bool(model.fit(moons.X, some).score(moons.X, y) > 0.95)
    True
    """

    leaks: ClassVar = "would send distances of single rows to all agents"
    instead: ClassVar = "use S3VMClassifier with classes"
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
    widths_: Array

    def __init__(
        self,
        width: float | None = None,
        n_neighbors: int = 6,
        gamma_A: float = 0.01,
        gamma_I: float = 1.0,
        power: int = 2,
        *,
        distances: Distances | str | None = "landmarks",
        completion: Completion | str = "diffusion",
        privacy: Privacy | None = None,
        probability: bool = False,
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.width = width
        self.n_neighbors = n_neighbors
        self.gamma_A = gamma_A
        self.gamma_I = gamma_I
        self.power = power
        self.distances = distances
        self.completion = completion
        self.privacy = privacy
        self.probability = probability
        self.network = network
        self.random_state = random_state

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        if self.distances is None and setup.network.size > 1:
            raise InputError(
                "distances=None means that all rows are in one place, but agents of a network keep "
                "theirs: set distances to 'landmarks' or 'exchange', or network to None"
            )
        return setup

    def check_parameters(self) -> None:
        super().check_parameters()
        check_scalar(self.n_neighbors, "n_neighbors", Integral, min_val=1)
        check_scalar(self.power, "power", Integral, min_val=1)
        if self.width is not None:
            number_between(self.width, "width", 1 / LARGEST, LARGEST)
        for name, least in (("gamma_A", 1 / LARGEST), ("gamma_I", 0.0)):
            number_between(getattr(self, name), name, least, LARGEST)

    def part(self, name: str) -> Any:
        """Return the algorithm that this parameter names.

        distances may also be "local" or None, and privacy may be None. They are returned as they
        are.
        """
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
                f"privacy {self.privacy!r} is not known: give RandomProjection(m), "
                "TanhTransform(m, t), or None"
            )
        return self.privacy

    def draw(self, setup: Setup, columns: int, outputs: int) -> tuple[Drawn, ...]:
        (probed,) = _transform(self.privacy, [probe(4, columns)], setup.seeds[TRANSFORM])
        sharing = setup.parts["distances"] if setup.network.size > 1 else None
        transform = Drawn("the transform of rows", computed=probed)
        return transform, describe_draws(sharing, probed.shape[1], setup.seeds[SHARED])

    def train(self, setup: Setup, inputs: list[Array], outputs: list[Array]) -> Answer:
        network = setup.network
        self._privacy = self.privacy
        self._transform_seed = setup.seeds[TRANSFORM]
        self.patterns_ = _transform(self._privacy, inputs, self._transform_seed)
        for agent, own in zip(network.hosted, self.patterns_, strict=True):
            check_finite_rows(own, f"the transformed rows of agent {agent}: ")
        self._learned_alone = self.distances == "local"
        self._agents = network.size
        self._hosted = network.hosted
        if self._learned_alone:
            distances = [squared_distances(own) for own in self.patterns_]
            self.widths_ = np.array([self.width or _half_median(D) for D in distances])

            def solve(outputs: list[Array]) -> list[Array]:
                agents = zip(self.widths_, distances, outputs, strict=True)
                return [self._solve_alone(self._manifold(width), D, Y) for width, D, Y in agents]

            def score(without: list[Array], held: list[Marks]) -> list[Array]:
                agents = zip(self.widths_, distances, held, solve(without), strict=True)
                return [gaussian(D[rows], width) @ a for width, D, rows, a in agents]

            self.calibrate(setup, outputs, score, alone=True)
            report = Report("LapKRR of each agent alone", True, 0, ())
            return OwnAnswer(solve(outputs), report)
        return OwnAnswer(*self._solve_together(setup, self.patterns_, outputs))

    def _manifold(self, width: float) -> Manifold:
        return Manifold(width, self.n_neighbors, self.gamma_A, self.gamma_I, self.power)

    def decision_function(self, X: ArrayLike) -> Array:
        """Return f(x) for each row. All agents call it at the same time with the same rows.

        For two classes it is one number per row, and above 0 means classes_[1]. For more classes
        it is one number per row and class.
        """
        return super().decision_function(X)

    def predict(self, X: ArrayLike) -> Any:
        """Return the class of each row. All agents call it together, with the same rows."""
        return super().predict(X)

    def _solve_alone(self, manifold: Manifold, D: Array, Y: Array) -> Array:
        """Return the coefficients of one agent that has only its own rows.

        A row has at most all other rows as its neighbors.
        """
        if len(D) < 2:
            return Y / (1 + self.gamma_A)
        fewer = replace(manifold, n_neighbors=min(self.n_neighbors, len(D) - 1))
        J = is_labelled(Y).astype(np.float64)
        return fewer.coefficients(D, J, [Y])[0]

    def _solve_together(
        self, setup: Setup, patterns: Sequence[Array], outputs: Sequence[Array]
    ) -> tuple[list[Array], Report]:
        """Return the entries of a that belong to each hosted agent, and the report."""
        network = setup.network
        places = Places.agree(network, [len(own) for own in patterns])
        if self.n_neighbors >= places.N:
            raise DataError(
                f"n_neighbors={self.n_neighbors} is too many for n_samples={places.N} rows of the "
                f"whole network: set it to {max(places.N - 1, 1)} or less, or give more rows"
            )
        D, report = self._all_distances(setup, patterns)
        width = self.width or _agree_on_width(network, D)
        self.widths_ = np.full(len(D), width)
        own_rows = [places.of(agent) for agent in network.hosted]

        def solve(outputs: Sequence[Array]) -> Array:
            J = np.zeros((len(D), places.N))
            y = np.zeros((len(D), places.N, outputs[0].shape[1]))
            for k, rows in enumerate(own_rows):
                J[k, rows] = is_labelled(outputs[k])
                y[k, rows] = outputs[k]
            J = np.rint(total(network, J))  # zeros and ones, also if the sum is inexact
            a = total(network, _solve_each(self._manifold(width), D, J, y))
            if np.abs(a[0]).max() >= HUGE:  # all agents see the same a, and stop together
                raise DataError(
                    f"the rows do not determine a model with width={width:g}, "
                    f"gamma_A={self.gamma_A:g} and power={self.power}: raise gamma_A, or lower "
                    "power"
                )
            return a

        def score(without: list[Array], held: list[Marks]) -> list[Array]:
            agents = zip(D, own_rows, held, solve(without), strict=True)
            return [gaussian(known[rows][marks], width) @ a for known, rows, marks, a in agents]

        a = solve(outputs)
        self.calibrate(setup, list(outputs), score)
        return [a[k, rows] for k, rows in enumerate(own_rows)], report

    def _all_distances(self, setup: Setup, patterns: Sequence[Array]) -> tuple[list[Array], Report]:
        """Return the squared distances between all rows, as each hosted agent knows them."""
        network = setup.network
        seed = setup.seeds[SHARED]
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
        """Return f(X) by these hosted agents. They differ only if each agent learned alone."""
        check_is_fitted(self)
        network = self._network_to_predict()
        rows = self.rows_to_predict(X)
        check_finite_rows(rows, "")
        alike = {
            "the number of rows to predict": len(rows),
            "the rows to predict (a checksum)": crc32(rows.tobytes()),
        }
        check_same_settings(network, alike)
        with one_blas_thread():
            (x,) = _transform(self._privacy, [rows], self._transform_seed)
            kept = zip(self.widths_, self.patterns_, self.coefficients_, strict=True)
            parts = [_sum_kernels(width, x, own, a) for width, own, a in kept]
        if self._learned_alone:
            return parts[agents]
        return list(total(network, np.stack(parts)))[agents]

    def _network_to_predict(self) -> Network:
        if self._learned_alone:
            return one_agent()
        return network_fitted_over(self.network, self._agents, self._hosted, "rows")


def _transform(privacy: Privacy | None, inputs: Sequence[Array], seed: int) -> list[Array]:
    """Return transformed copies of rows. The transform follows from the seed alone."""
    if privacy is None:
        return [X.copy() for X in inputs]
    transform = privacy.drawn(inputs[0].shape[1], seed)
    return [transform(X) for X in inputs]


def _solve_each(manifold: Manifold, D: Sequence[Array], J: Array, y: Array) -> Array:
    """Return a_k of each hosted agent, agents x N x M. It is HUGE if there is no solution.

    Hosted agents whose distances are the same array are solved together.
    """
    a = np.empty_like(y)
    different = {id(own): own for own in D}
    for same in different.values():
        agents = [k for k, own in enumerate(D) if own is same]
        a[agents] = manifold.coefficients(same, J[agents[0]], [y[k] for k in agents])
    for own in a:
        if not all_finite(own):
            own[:] = HUGE
    return a


def _agree_on_width(network: Network, D: Sequence[Array]) -> float:
    """Return half the median distance, as the agent in the middle of the graph knows it.

    Estimated distances differ a little from agent to agent, and all need the same kernel.
    """
    own = np.zeros(len(D))
    if network.tree.root in network.hosted:
        middle = network.hosted.index(network.tree.root)
        own[middle] = _half_median(D[middle])
    width = float(broadcast_from_center(network, own)[0])  # the same at all agents
    if not 1 / LARGEST <= width <= LARGEST:
        raise unexpected_message(network.tree.root, "a width of the kernel")
    return width


def _half_median(D: Array) -> float:
    """Return half the median distance between two rows; 1 if all are the same."""
    among = D[np.triu_indices(len(D), 1)]
    return float(np.sqrt(np.median(among))) / 2 or 1.0 if len(among) else 1.0


def _sum_kernels(width: float, x: Array, own: Array, a: Array) -> Array:
    """Return sum_i K(x, x_i) a_i over one agent's rows, computed in pieces to save memory."""
    step = max(AT_ONCE // max(len(own), 1), 1)
    pieces = [
        gaussian(squared_distances(x[i : i + step], own), width) @ a for i in range(0, len(x), step)
    ]
    return np.vstack(pieces) if pieces else np.zeros((0, a.shape[1]))
