"""Random vector functional-link networks over a network of agents (thesis, chapters 2 and 4).

    f(x) = b'h(x),   h: random features that all agents draw alike,   b: ridge over everybody's rows

Training b over rows that never leave their agents is the work of a solver, see `peerlearn.algorithms`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from numbers import Integral, Real
from typing import Any, Self
from zlib import crc32

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from peerlearn import graphs
from peerlearn.algorithms.agreement import same_everywhere, union
from peerlearn.algorithms.choice import solver_of
from peerlearn.algorithms.consensus import total
from peerlearn.algorithms.local_fit import Local
from peerlearn.algorithms.solution import Report, Solver
from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError
from peerlearn.local.features import ACTIVATIONS, RandomFeatures, known_activation
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Ridge
from peerlearn.local.threads import one_blas_thread
from peerlearn.models.shares import shares_of
from peerlearn.network import Network, SimulatedNetwork


@cache
def _one_agent() -> Network:
    return SimulatedNetwork(graphs.complete(1))


class _RVFL(BaseEstimator, ABC):
    """What the classifier and the regressor share: features, solver, and prediction."""

    coefficients_: Array
    features_: RandomFeatures
    report_: Report
    _stratify: bool

    def __init__(
        self,
        n_hidden: int = 200,
        alpha: float = 1.0,
        *,
        activation: str = "sigmoid",
        direct_links: bool = False,
        solver: Solver | str = "auto",
        network: Network | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.alpha = alpha
        self.activation = activation
        self.direct_links = direct_links
        self.solver = solver
        self.network = network
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on X, y: dealt to the agents if all of them are hosted here, this agent's share if it is the only one.

        fit(shares) takes a list of (X_k, y_k), one per hosted agent, as `peerlearn.partition` makes it.
        """
        network, solver, feature_seed, deal_seed = self._settings()
        mark = network.ledger.mark()
        inputs, targets = shares_of(self, network, X, y, stratify=self._stratify, seed=deal_seed)
        outputs = self._encoded(network, targets)
        self._must_be_alike(network, inputs, outputs, feature_seed)
        self.features_ = RandomFeatures.draw(
            inputs[0].shape[1],
            self.n_hidden,
            seed=feature_seed,
            activation=self.activation,
            direct_links=self.direct_links,
        )
        with one_blas_thread():
            problems = LeastSquares.of_inputs(self.features_, inputs, outputs)
            if self.alpha == 0:
                self._must_be_determined(network, problems)
            solution = solver.solve(network, problems, Ridge(self.alpha))
        self.coefficients_ = solution.coefficients
        self.report_ = replace(solution.report, sent=network.ledger.since(mark))
        return self

    def agent_scores(self, X: Any, y: Any) -> Array:
        """The score of every hosted agent's own coefficients: as `score`, one number per agent."""
        check_is_fitted(self)
        H = self.features_(self._inputs(X))
        agents, B, M = self.coefficients_.shape
        outputs = (H @ self.coefficients_.transpose(1, 0, 2).reshape(B, -1)).reshape(len(H), agents, M)
        return np.array([self._score(y, self._decoded(outputs[:, k])) for k in range(agents)])

    def _settings(self) -> tuple[Network, Solver, int, int]:
        """The parameters, checked before any work is done; the centralised case is a network of one agent."""
        check_scalar(self.n_hidden, "n_hidden", Integral, min_val=1)
        check_scalar(self.alpha, "alpha", Real)
        Ridge(self.alpha)
        known_activation(self.activation)
        solver = solver_of(self.solver)
        if self.network is None:
            network, solver = _one_agent(), Local()
        elif not isinstance(self.network, Network):
            raise InputError(
                "network must be a peerlearn Network such as SimulatedNetwork(graph), or None, "
                f"not {type(self.network).__name__}"
            )
        else:
            network = self.network
        if self.random_state is None and len(network.hosted) < network.size:
            raise InputError(
                "random_state must be a whole number, the same at every agent: random features are drawn from it by "
                "each agent and never sent"
            )
        random = check_random_state(self.random_state)
        feature_seed, deal_seed = random.randint(np.iinfo(np.int32).max, size=2)
        return network, solver, int(feature_seed), int(deal_seed)

    def _must_be_alike(
        self, network: Network, inputs: Sequence[Array], outputs: Sequence[Array], feature_seed: int
    ) -> None:
        """Agents in other processes may have been given other settings or columns: said now, before any work.

        In simulation, where they cannot, agents ask all the same: what is sent does not depend on the engine.
        """
        if network.size == 1:
            return
        same_everywhere(
            network,
            {
                "the number of columns of X": inputs[0].shape[1],
                "the number of outputs": outputs[0].shape[1],
                "n_hidden": self.n_hidden,
                "alpha": self.alpha,
                "activation (its position in the list)": list(ACTIVATIONS).index(self.activation),
                "direct_links": float(self.direct_links),
                "the seed of the features": feature_seed,
                "solver (a checksum of its settings)": crc32(repr(self.solver).encode()),
            },
        )

    def _must_be_determined(self, network: Network, problems: LeastSquares) -> None:
        N, B = round(float(total(network, problems.rows)[0])), problems.shape[0]
        if N < B:
            raise DataError(
                f"the {N} rows of the whole network do not determine {B} coefficients when alpha is 0: set alpha "
                f"above 0, or n_hidden to {N} or less"
            )

    def _inputs(self, X: Any) -> Array:
        checked: Array = validate_data(self, X, dtype=np.float64, reset=False)
        return checked

    def _raw(self, X: Any) -> Array:
        """f(X) by the first hosted agent's coefficients: rows x M."""
        check_is_fitted(self)
        outputs: Array = self.features_(self._inputs(X)) @ self.coefficients_[0]
        return outputs

    @abstractmethod
    def _encoded(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Each hosted agent's targets as rows x M numbers."""

    @abstractmethod
    def _decoded(self, outputs: Array) -> Any:
        """Predictions from rows x M outputs."""

    @abstractmethod
    def _score(self, y: Any, predicted: Any) -> float: ...


class RVFLClassifier(ClassifierMixin, _RVFL):
    """A classifier that agents train together without showing each other their rows.

    Parameters
    ----------
    n_hidden: hidden units, B in the formulas.
    alpha: ridge penalty on the coefficients, lambda in the thesis.
    activation: "sigmoid", "tanh", "relu" or "sine".
    direct_links: let the readout see the inputs beside the hidden units.
    solver: "auto", "local", "consensus", "admm", "gram", "cg", or an object with settings such as ADMM(tolerance=1e-6).
    network: who talks to whom; None trains on all rows in one place, the centralised baseline.
    random_state: seeds the hidden layer and the dealing of rows; the same number at every agent.

    Attributes
    ----------
    classes_: all labels that occur anywhere in the network.
    coefficients_: hosted agents x B x M; M is 1 for two classes (targets -1 and +1), else one output per class.
    report_: how the solver got there and what was sent; prints as a small table.

    >>> from peerlearn import SimulatedNetwork, data, graphs
    >>> digits = data.load("digits")
    >>> model = RVFLClassifier(network=SimulatedNetwork(graphs.ring(5)), random_state=0)
    >>> bool(model.fit(digits.X[:1500], digits.y[:1500]).score(digits.X[1500:], digits.y[1500:]) > 0.9)
    True
    """

    _stratify = True

    def decision_function(self, X: Any) -> Array:
        """f(x): one number per row for two classes (above 0 means classes_[1]), else one per row and class."""
        outputs = self._raw(X)
        return outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict(self, X: Any) -> Any:
        """The class of each row, by the first hosted agent's coefficients."""
        return self._decoded(self._raw(X))

    def _encoded(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        labels = [column_or_1d(y, warn=True) for y in targets]
        for y in labels:
            check_classification_targets(y)
        self.classes_ = union(network, labels)
        if len(self.classes_) < 2:
            raise DataError(
                f"there is only one class in the whole network, {self.classes_[0]}: a classifier needs rows of two "
                "or more"
            )
        codes = [np.searchsorted(self.classes_, y) for y in labels]
        if len(self.classes_) == 2:
            return [2.0 * code[:, None] - 1.0 for code in codes]
        return [np.eye(len(self.classes_))[code] for code in codes]

    def _decoded(self, outputs: Array) -> Any:
        chosen = (outputs[:, 0] > 0).astype(int) if len(self.classes_) == 2 else outputs.argmax(axis=1)
        return self.classes_[chosen]

    def _score(self, y: Any, predicted: Any) -> float:
        return float(accuracy_score(y, predicted))


class RVFLRegressor(RegressorMixin, _RVFL):
    """A regressor that agents train together without showing each other their rows; one or many outputs.

    Parameters and attributes are those of `RVFLClassifier`, without classes.
    """

    _stratify = False

    def predict(self, X: Any) -> Array:
        """f(x) by the first hosted agent's coefficients: one number per row, or one per row and output."""
        predicted: Array = self._decoded(self._raw(X))
        return predicted

    def _encoded(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        outputs = [np.asarray(y, dtype=np.float64) for y in targets]
        shapes = {y.shape[1:] for y in outputs}
        if len(shapes) > 1:
            raise DataError(
                f"all agents must have the same number of outputs, but shares have y of shapes {sorted(shapes)}"
            )
        self._single_output = outputs[0].ndim == 1
        return [y.reshape(len(y), -1) for y in outputs]

    def _decoded(self, outputs: Array) -> Any:
        return outputs[:, 0] if self._single_output else outputs

    def _score(self, y: Any, predicted: Any) -> float:
        return float(r2_score(y, predicted))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
