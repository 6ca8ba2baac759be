"""Few labels: manifold regularisation on anchors, for 100,000 rows.

Laplacian ridge regression:

    A, P       anchors, and the features they define         over the network: a few means per agent
    H'H, ..    each agent's part of the normal equations     alone
    sums       of these parts                                over the network: one sum
    b          = (Phi_l'Phi_l + gamma_A I + gamma_I Phi'L^q Phi)^-1 Phi_l'Y                 alone
    f(x)       = b'phi(x)                                                                   alone

The formulas are explained in `peerlearn.local.anchor_graph`, the choice of anchors in
`peerlearn.algorithms.anchors`. Work and memory grow with an agent's own rows; the number of bytes
sent does not depend on the number of rows. A saved model has the arrays

    anchors         A, anchors x inputs
    projection      P, anchors x features
    coefficients    b, features x outputs

and in its text the entries width, of the kernel, and nearest, the number of anchors that each
training row was joined to.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from peerlearn.algorithms.anchors import Anchoring
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.readout.solver import Solution
from peerlearn.arrays import Array, all_finite
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import InputError, WireError
from peerlearn.local.anchor_graph import AnchorGraph
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import DEALING, Answer, RandomState, Setup, number_between
from peerlearn.models.targets import LARGEST, check_finite_rows
from peerlearn.models.unlabelled import Marks, PartlyLabelled, is_labelled
from peerlearn.network import Network

__all__ = ["AnchorLapClassifier"]

NUMBERS = ("n_anchors", "n_local", "n_nearest", "rank")
ANCHORS = "the anchors"
# All agents compute the coefficients from the same sums; rounding may make them differ by this.
SOLVED_ALIKE = 1e-6


class AnchorLapClassifier(PartlyLabelled):
    """Semi-supervised classifier for many rows, most of them without a label.

    Rows without a label have -1 in y. The model is meant for hundreds of thousands of rows; agents
    send only means and sums of their rows. That does not keep rows secret: if an agent has a single
    labelled row, that row can be computed from its sums. Scale columns alike. An agent may have
    only labelled rows, only unlabelled ones, or none. X may be sparse.

    Parameters
    ----------
    width : float or None, default None
        Width of the Gaussian kernel exp(-|x - x'|^2 / 2 width^2). None follows the unit of the
        columns: it is about the distance between a row and the rows near the tenth anchor from its
        own.
    gamma_A : float, default 0.01
        Penalty on the size of f, relative to the sum of errors over labelled rows.
    gamma_I : float or None, default None
        Penalty on how much f varies along the graph of the data, summed over all rows. None is
        20 times the share of labelled rows, at most 2, so that the penalty does not grow with
        unlabelled rows.
    power : int, default 5
        Power of the graph's Laplacian, q in the formulas.
    n_anchors : int or None, default None
        Number of points that stand for all rows. None is a quarter of the rows of all agents, from
        10 to 300, or the number of different means that agents send if that is smaller.
    n_local : int or None, default None
        Largest number of means that one agent sends. None is enough for four times n_anchors over
        all agents, and at least ten. Each is the mean of two rows or more, unless the agent has a
        single row.
    n_nearest : int or None, default None
        Number of anchors that each row is joined to in the graph of the data. None is 5, or all
        anchors if there are fewer.
    rank : int or None, default None
        Number of features. None is the number of directions that the anchors span.
    probability : bool, default False
        Whether to fit `predict_proba`, on scores of labelled rows by models that were trained
        without the labels of their fold. It costs 5 more sums, each of as many numbers as a
        triangle of the features' Gram matrix. With fewer than 5 labels of a class there are fewer
        folds; one label is refused.
    network : Network or None, default None
        The graph of agents. None trains on all rows in one place, the centralised baseline.
    random_state : int, RandomState or None, default None
        Seed of the dealing of rows and of the search for anchors. Agents in several processes must
        all give the same whole number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All labels that occur anywhere in the network.
    anchors_ : ndarray of shape (n_anchors, n_columns)
        The anchors, the same at every agent.
    width_ : float
        Width of the kernel.
    coefficients_ : ndarray of shape (n_hosted_agents, n_features, M)
        Coefficients of each hosted agent. M is 1 for two classes (targets -1 and +1), else one
        output per class.
    probability_scale_ : ndarray or None
        The factor s of probabilities softmax(s f(x)), or 1 / (1 + exp(-s f(x))) for two classes;
        None without probability.
    report_ : Report
        What was sent, and the numbers of anchors and features. It prints as a small table.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import AnchorLapClassifier, SimulatedNetwork, data, graphs
    >>> moons = data.load("two-moons")
    >>> y = (moons.y > 0).astype(int)
    >>> some = np.where(np.arange(400) < 14, y, -1)  # 14 labels
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = AnchorLapClassifier(network=network, random_state=0)
    >>> bool(model.fit(moons.X, some).score(moons.X, y) > 0.95)
    True
    """

    leaks: ClassVar = "would send means of single agents' rows to all agents"
    instead: ClassVar = "use S3VMClassifier with classes"
    seeds: ClassVar = (ANCHORS, DEALING)

    anchors_: Array
    width_: float
    coefficients_: Array
    _graph: AnchorGraph

    def __init__(
        self,
        width: float | None = None,
        gamma_A: float = 0.01,
        gamma_I: float | None = None,
        power: int = 5,
        *,
        n_anchors: int | None = None,
        n_local: int | None = None,
        n_nearest: int | None = None,
        rank: int | None = None,
        probability: bool = False,
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.width = width
        self.gamma_A = gamma_A
        self.gamma_I = gamma_I
        self.power = power
        self.n_anchors = n_anchors
        self.n_local = n_local
        self.n_nearest = n_nearest
        self.rank = rank
        self.probability = probability
        self.network = network
        self.random_state = random_state

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.width is not None:
            number_between(self.width, "width", 1 / LARGEST, LARGEST)
        number_between(self.gamma_A, "gamma_A", 1 / LARGEST, LARGEST)
        if self.gamma_I is not None:
            number_between(self.gamma_I, "gamma_I", 0.0, LARGEST)
        check_scalar(self.power, "power", Integral, min_val=1)
        for name in NUMBERS:
            if getattr(self, name) is not None:
                check_scalar(getattr(self, name), name, Integral, min_val=1)
        for name in ("n_nearest", "rank"):
            asked: Any = getattr(self, name)
            if self.n_anchors is not None and asked is not None and asked > self.n_anchors:
                raise InputError(
                    f"{name}={asked} is more than n_anchors={self.n_anchors} allow: set {name} to "
                    f"{self.n_anchors} or less, or n_anchors higher"
                )

    def common_settings(self, setup: Setup, columns: int, outputs: int | None) -> dict[str, Any]:
        # The number of outputs follows from the classes, on which agents have agreed already.
        return super().common_settings(setup, columns, None)

    def train(self, setup: Setup, inputs: list[Any], outputs: list[Array]) -> Answer:
        network = setup.network
        anchoring = Anchoring(self.width, self.n_anchors, self.n_local, self.n_nearest, self.rank)
        graph = anchoring.agree(network, inputs, setup.seeds[ANCHORS])
        own = [
            graph.numbers(X, Y, np.flatnonzero(is_labelled(Y)))
            for X, Y in zip(inputs, outputs, strict=True)
        ]
        # The total has the same bits at all agents, and so has everything computed from it.
        sums = total(network, np.stack(own))[0]
        N, labels = sums[:2]
        if not all_finite(sums) or not 2 <= labels <= N:
            raise WireError(
                f"the sums of all agents, with {labels:g} labels on {N:g} rows, cannot be right: "
                "one of them probably runs another version or configuration"
            )
        gamma_I = min(20 * labels / N, 2.0) if self.gamma_I is None else self.gamma_I
        b = graph.coefficients(sums, self.gamma_A, gamma_I, self.power)
        self._keep(graph)

        def score(without: list[Array], held: list[Marks]) -> list[Array]:
            """Return scores of rows held out: their labels are subtracted from the sums."""
            rows = [np.flatnonzero(marks) for marks in held]
            agents = list(zip(inputs, outputs, rows, strict=True))
            of_fold = total(network, np.stack([graph.label_numbers(*one) for one in agents]))[0]
            fewer = sums.copy()
            fewer[-len(of_fold) :] -= of_fold
            b = graph.coefficients(fewer, self.gamma_A, gamma_I, self.power)
            return [graph.features(X[held_out]) @ b for X, _, held_out in agents]

        self.calibrate(setup, outputs, score)
        note = f"{graph.P.shape[0]} anchors, {graph.P.shape[1]} features"
        report = Report("one sum on anchors", True, 1, (), note=note)
        return Solution(np.tile(b, (len(network.hosted), 1, 1)), report, SOLVED_ALIKE)

    def _keep(self, graph: AnchorGraph) -> None:
        self._graph = graph
        self.anchors_ = graph.A
        self.width_ = graph.width

    def agent_outputs(self, X: ArrayLike, agents: slice = slice(None)) -> Array:
        rows = self.rows_to_predict(X)
        check_finite_rows(rows, "")
        outputs: Array = self._graph.features(rows) @ self.coefficients_[agents]
        return outputs

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        graph = self._graph
        arrays = {"anchors": graph.A, "projection": graph.P}
        entries = {"width": float(graph.width), "nearest": int(graph.nearest)}
        return arrays, entries | self.target_entries()

    def from_archive(self, reader: ArchiveReader) -> None:
        A = reader.numbers("anchors", None, self.n_features_in_, largest=LARGEST)
        P = reader.numbers("projection", len(A), None, largest=LARGEST)
        width = reader.entry("width", float)
        nearest = reader.entry("nearest", int)
        if not 1 / LARGEST <= width <= LARGEST:
            raise reader.wrong(
                f"its width is {width}, which is not between {1 / LARGEST:g} and {LARGEST:g}"
            )
        if not 1 <= nearest <= len(A):
            raise reader.wrong(
                f"its nearest is {nearest!r:.20}, which is not between 1 and its {len(A)} anchors"
            )
        self._keep(AnchorGraph(A, P, width, nearest))
        coefficients = reader.numbers("coefficients", P.shape[1], None, largest=LARGEST)
        self.coefficients_ = coefficients[None]
        self.restore_targets(reader, coefficients.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
