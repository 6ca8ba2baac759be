"""Few labels: manifold regularisation on anchors, for 100,000 rows.

Laplacian ridge regression:

    A, P       anchors, and the features that they give                        over the network: a few means per agent
    H'H, ..    what each agent's rows add to the normal equations              alone
    sums       of these                                                        over the network: one sum
    b          = (Phi_l'Phi_l + gamma_A I + gamma_I Phi'L^q Phi)^-1 Phi_l'Y    alone
    f(x)       = b'phi(x)                                                      alone

The formulas stand in `peerlearn.local.anchor_graph`, how anchors are agreed on in
`peerlearn.algorithms.anchors`. Work and memory grow with an agent's own rows; what is sent does not
depend on their number. In a file are

    anchors         A, anchors x inputs
    projection      P, anchors x features
    coefficients    b, features x outputs

and in its text width, of the kernel, and nearest: how many anchors each row of the training was
joined to.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from peerlearn.algorithms.anchors import Anchoring
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.readout.solver import Solution
from peerlearn.algorithms.report import Report
from peerlearn.arrays import Array, all_finite
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import InputError, WireError
from peerlearn.local.anchor_graph import AnchorGraph
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import DEALING, Setup
from peerlearn.models.fitted_model import Answer
from peerlearn.models.settings import number_between
from peerlearn.models.targets import LARGEST, finite_rows
from peerlearn.models.unlabelled import PartlyLabelled, labelled
from peerlearn.network import Network

__all__ = ["AnchorLapClassifier"]

NUMBERS = ("n_anchors", "n_local", "n_nearest", "rank")
ANCHORS = "the anchors"
SOLVED_ALIKE = (
    1e-6  # what rounding may make of the coefficients that each agent computes from the same sums
)


class AnchorLapClassifier(PartlyLabelled):
    """A classifier that learns from labelled and unlabelled rows of all agents; the label of the latter is -1.

    For rows by the hundred thousand, of all of which only means and sums are sent. That is no
    secrecy: the labelled row of an agent that has only one can be computed from its sums. Columns
    should be scaled alike. Some agents may have no labelled rows, or no others.

    Parameters
    ----------
    width: of the Gaussian kernel exp(-|x - x'|^2 / 2 width^2); None: about how far rows are from
        those of the n_nearest-th anchor from theirs, which follows the unit of the columns.
    gamma_A: penalty on the size of f, against errors that are summed over labelled rows.
    gamma_I: penalty on how much f varies along the graph of the data, summed over all rows; None:
        twice the share of rows with a label, so that it does not grow with the others.
    power: of the graph's Laplacian, q in the formulas.
    n_anchors: how many points stand for all rows; None: 100, or as many different means as agents
        send.
    n_local: how many means an agent sends at most; None: enough for four times n_anchors over all
        agents, and ten at least. Each is of two rows or more, except that of an agent with a single
        row.
    n_nearest: how many anchors each row is joined to in the graph of the data; None: 10, or all.
    rank: how many features; None: 60, or as many as the anchors have directions.
    network: who talks to whom; None trains on all rows in one place, the centralised baseline.
    random_state: seeds the dealing of rows and the search for anchors; the same number at every
        agent.

    Attributes
    ----------
    classes_: all labels that occur anywhere in the network.
    anchors_: anchors x columns, the same at every agent.
    width_: of the kernel.
    coefficients_: hosted agents x features x M; M is 1 for two classes (targets -1 and +1), else
        one output per class.
    report_: what was sent, and how many anchors and features there are; prints as a small table.

    >>> from peerlearn import SimulatedNetwork, data, graphs
    >>> moons = data.load("two-moons")
    >>> y = (moons.y > 0).astype(int)
    >>> some = np.where(np.arange(400) < 14, y, -1)  # 14 labels
    >>> model = AnchorLapClassifier(width=0.2, power=2, network=SimulatedNetwork(graphs.ring(5)), random_state=0)
    >>> bool(model.fit(moons.X, some).score(moons.X, y) > 0.95)
    True
    """

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
        network: Network | None = None,
        random_state: Any = None,
    ) -> None:
        self.width = width
        self.gamma_A = gamma_A
        self.gamma_I = gamma_I
        self.power = power
        self.n_anchors = n_anchors
        self.n_local = n_local
        self.n_nearest = n_nearest
        self.rank = rank
        self.network = network
        self.random_state = random_state

    def check_parameters(self) -> None:
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
                    f"{name}={asked} is more than n_anchors={self.n_anchors} allow: set {name} to {self.n_anchors} or "
                    "less, or n_anchors higher"
                )

    def common_settings(self, setup: Setup, columns: int, outputs: int | None) -> dict[str, Any]:
        return super().common_settings(
            setup, columns, None
        )  # agents agree on the classes, which tell it

    def train(self, setup: Setup, inputs: list[Array], outputs: list[Array]) -> Answer:
        network = setup.network
        anchoring = Anchoring(self.width, self.n_anchors, self.n_local, self.n_nearest, self.rank)
        graph = anchoring.agree(network, inputs, setup.seeds[ANCHORS])
        own = [
            graph.numbers(X, Y, np.flatnonzero(labelled(Y)))
            for X, Y in zip(inputs, outputs, strict=True)
        ]
        sums = total(network, np.stack(own))[
            0
        ]  # the same bits at all agents: so is all that follows from them
        N, labels = sums[:2]
        if not all_finite(sums) or not 2 <= labels <= N:
            raise WireError(
                f"the sums of all agents, with {labels:g} labels on {N:g} rows, cannot be: one of them runs something "
                "else"
            )
        gamma_I = 2 * labels / N if self.gamma_I is None else self.gamma_I
        b = graph.coefficients(sums, self.gamma_A, gamma_I, self.power)
        self._keep(graph)
        note = f"{graph.P.shape[0]} anchors, {graph.P.shape[1]} features"
        report = Report("one sum on anchors", True, 1, (), note=note)
        return Solution(np.tile(b, (len(network.hosted), 1, 1)), report, SOLVED_ALIKE)

    def _keep(self, graph: AnchorGraph) -> None:
        self._graph, self.anchors_, self.width_ = graph, graph.A, graph.width

    def agent_outputs(self, X: ArrayLike, agents: slice = slice(None)) -> Array:
        rows = self.rows_to_predict(X)
        finite_rows(rows, "")
        outputs: Array = self._graph.features(rows) @ self.coefficients_[agents]
        return outputs

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        graph = self._graph
        return {"anchors": graph.A, "projection": graph.P}, {
            "width": float(graph.width),
            "nearest": int(graph.nearest),
        }

    def from_archive(self, reader: ArchiveReader) -> None:
        A = reader.numbers("anchors", None, self.n_features_in_, largest=LARGEST)
        P = reader.numbers("projection", len(A), None, largest=LARGEST)
        width, nearest = reader.entry("width", float), reader.entry("nearest", int)
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
