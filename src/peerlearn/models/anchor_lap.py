"""Semi-supervised classification of many rows over a network of agents: Laplacian ridge regression on anchors.

    A, P       anchors, and the features that they give                        over the network: a few means per agent
    H'H, ..    what each agent's rows add to the normal equations              alone
    sums       of these                                                        over the network: one sum
    b          = (Phi_l'Phi_l + gamma_A I + gamma_I Phi'L^q Phi)^-1 Phi_l'Y    alone
    f(x)       = b'phi(x)                                                      alone

The formulas stand in `peerlearn.local.anchor_graph`, how anchors are agreed on in `peerlearn.algorithms.anchors`. Work
and memory grow with an agent's own rows; what is sent does not depend on their number.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from peerlearn.algorithms.agreement import check_coefficients, check_same_settings
from peerlearn.algorithms.anchors import Anchoring
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.report import Report
from peerlearn.arrays import Array, all_finite
from peerlearn.errors import InputError, WireError
from peerlearn.local.anchor_graph import AnchorGraph
from peerlearn.models.settings import network_of, number_between, seeds_of
from peerlearn.models.shares import shares_of
from peerlearn.models.targets import LARGEST, finite_rows
from peerlearn.models.unlabelled import PartlyLabelled, labelled
from peerlearn.network import Network

NUMBERS = ("n_anchors", "n_local", "n_nearest", "rank")
SETTINGS = ("width", "gamma_A", "gamma_I", "power", *NUMBERS)
SOLVED_ALIKE = 1e-6  # what rounding may make of the coefficients that each agent computes from the same sums


class AnchorLapClassifier(PartlyLabelled, BaseEstimator):
    """A classifier that learns from labelled and unlabelled rows of all agents; the label of the latter is -1.

    For rows by the hundred thousand, of all of which only means and sums are sent. That is no secrecy: the labelled row
    of an agent that has only one can be computed from its sums. Columns should be scaled alike. Some agents may have no
    labelled rows, or no others.

    Parameters
    ----------
    width: of the Gaussian kernel exp(-|x - x'|^2 / 2 width^2); None: about how far rows are from those of the
        n_nearest-th anchor from theirs, which follows the unit of the columns.
    gamma_A: penalty on the size of f, against errors that are summed over labelled rows.
    gamma_I: penalty on how much f varies along the graph of the data, summed over all rows; None: twice the share of
        rows with a label, so that it does not grow with the others.
    power: of the graph's Laplacian, q in the formulas.
    n_anchors: how many points stand for all rows; None: 100, or as many different means as agents send.
    n_local: how many means an agent sends at most; None: enough for four times n_anchors over all agents, and ten at
        least. Each is of two rows or more, except that of an agent with a single row.
    n_nearest: how many anchors each row is joined to in the graph of the data; None: 10, or all.
    rank: how many features; None: 60, or as many as the anchors have directions.
    network: who talks to whom; None trains on all rows in one place, the centralised baseline.
    random_state: seeds the dealing of rows and the search for anchors; the same number at every agent.

    Attributes
    ----------
    classes_: all labels that occur anywhere in the network.
    anchors_: anchors x columns, the same at every agent.
    width_: of the kernel.
    coefficients_: hosted agents x features x M; M is 1 for two classes (targets -1 and +1), else one output per class.
    report_: what was sent, and how many anchors and features there are; prints as a small table.

    >>> from peerlearn import SimulatedNetwork, data, graphs
    >>> moons = data.load("two-moons")
    >>> y = (moons.y > 0).astype(int)
    >>> some = np.where(np.arange(400) < 14, y, -1)  # 14 labels
    >>> model = AnchorLapClassifier(width=0.2, power=2, network=SimulatedNetwork(graphs.ring(5)), random_state=0)
    >>> bool(model.fit(moons.X, some).score(moons.X, y) > 0.95)
    True
    """

    anchors_: Array
    width_: float
    coefficients_: Array
    report_: Report
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

    def _fit(self, X: Any, y: Any) -> Self:
        network, anchoring, anchor_seed, deal_seed = self._settings()
        mark = network.ledger.mark()
        inputs, targets = shares_of(self, network, X, y, stratify=True, seed=deal_seed)
        outputs = self._encoded(network, targets)
        check_same_settings(
            network,
            {
                "the number of columns of X": inputs[0].shape[1],
                **{name: getattr(self, name) for name in SETTINGS},
                "the seed of the anchors": anchor_seed,
            },
        )
        graph = anchoring.agree(network, inputs, anchor_seed)
        own = [graph.numbers(X, Y, np.flatnonzero(labelled(Y))) for X, Y in zip(inputs, outputs, strict=True)]
        sums = total(network, np.stack(own))[0]  # the same bits at all agents: so is all that follows from them
        N, labels = sums[:2]
        if not all_finite(sums) or not 2 <= labels <= N:
            raise WireError(
                f"the sums of all agents, with {labels:g} labels on {N:g} rows, cannot be: one of them runs something "
                "else"
            )
        gamma_I = 2 * labels / N if self.gamma_I is None else self.gamma_I
        b = graph.coefficients(sums, self.gamma_A, gamma_I, self.power)
        self._graph, self.anchors_, self.width_ = graph, graph.A, graph.width
        self.coefficients_ = np.tile(b, (len(network.hosted), 1, 1))
        check_coefficients(network, self.coefficients_, SOLVED_ALIKE)
        note = f"{graph.P.shape[0]} anchors, {graph.P.shape[1]} features"
        self.report_ = Report("one sum on anchors", True, 1, (), network.ledger.since(mark), note)
        return self

    def decision_function(self, X: Any) -> Array:
        """f(x): one number per row for two classes (above 0 means classes_[1]), else one per row and class."""
        outputs: Array = self._features(X) @ self.coefficients_[0]
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict(self, X: Any) -> Any:
        """The class of each row, by the first hosted agent's coefficients."""
        return self._decoded(self._features(X) @ self.coefficients_[0])

    def _agent_outputs(self, X: Any) -> Array:
        outputs: Array = self._features(X) @ self.coefficients_
        return outputs

    def _features(self, X: Any) -> Array:
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        finite_rows(rows, "")
        return self._graph.features(rows)

    def _settings(self) -> tuple[Network, Anchoring, int, int]:
        """The parameters, checked before any work is done; the centralised case is a network of one agent."""
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
        network = network_of(self.network)
        anchor_seed, deal_seed = seeds_of(self.random_state, network, 2)
        anchoring = Anchoring(self.width, self.n_anchors, self.n_local, self.n_nearest, self.rank)
        return network, anchoring, anchor_seed, deal_seed
