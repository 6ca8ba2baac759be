"""Random vector functional-link networks over a network of agents (thesis, chapters 2 and 4).

    f(x) = b'h(x),   h: random features that all agents draw alike,   b: ridge over everybody's rows

Training b over rows that never leave their agents is the work of a solver, see `peerlearn.algorithms`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from peerlearn.algorithms.agreement import Drawn, check_coefficients, check_same_settings
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.readout.auto import solver_of
from peerlearn.algorithms.readout.local import Local
from peerlearn.algorithms.readout.solver import Solver, must_take
from peerlearn.algorithms.report import Report
from peerlearn.algorithms.streaming.learner import Learner, learner_of
from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.local.chunks import Chunk
from peerlearn.local.features import ACTIVATIONS, RandomFeatures, known_activation
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Ridge
from peerlearn.local.recursive import State
from peerlearn.local.threads import one_blas_thread
from peerlearn.models.labels import codes_of, stream_classes
from peerlearn.models.settings import network_of, seeds_of
from peerlearn.models.shares import chunk_of, shares_of
from peerlearn.models.streams import Rows, Stream, learn_chunk, outputs_of
from peerlearn.models.targets import LabelTargets, NumberTargets, Targets
from peerlearn.models.unharmed import unharmed
from peerlearn.network import Network


class _RVFL(BaseEstimator, Targets):
    """What the classifier and the regressor share: features, solver, and prediction."""

    coefficients_: Array
    features_: RandomFeatures
    report_: Report
    _stratify: bool
    _stream: Stream

    def __init__(
        self,
        n_hidden: int = 200,
        alpha: float = 1.0,
        *,
        activation: str = "sigmoid",
        direct_links: bool = False,
        solver: Solver | str = "auto",
        stream: Learner | str = "consensus",
        network: Network | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.alpha = alpha
        self.activation = activation
        self.direct_links = direct_links
        self.solver = solver
        self.stream = stream
        self.network = network
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on X, y: dealt to the agents if all of them are hosted here, this agent's share if it is the only one.

        fit(shares) takes a list of (X_k, y_k), one per hosted agent, as `peerlearn.partition` makes it.
        """
        with unharmed(self):
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> Self:
        network, solver, feature_seed, deal_seed = self._settings()
        mark = network.ledger.mark()
        inputs, targets = shares_of(self, network, X, y, stratify=self._stratify, seed=deal_seed)
        outputs = self._encoded(network, targets)
        self._draw_features(inputs[0].shape[1], feature_seed)
        counts = [len(own) for own in inputs]
        self._must_be_alike(network, inputs, outputs, feature_seed, {"solver": solver}, rows=counts)
        if hasattr(self, "_stream"):
            del self._stream  # a stream that was under way ends here
        with one_blas_thread():
            problems = LeastSquares.of_inputs(self.features_, inputs, outputs)
            if self.alpha == 0:
                self._must_be_determined(network, problems)
            solution = solver.solve(network, problems, Ridge(self.alpha))
        check_coefficients(network, solution.coefficients, solution.apart)
        self.coefficients_ = solution.coefficients
        self.report_ = replace(solution.report, sent=network.ledger.since(mark))
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        with unharmed(self), one_blas_thread():
            learn_chunk(self, X, y, classes)
        return self

    def _agent_outputs(self, X: Any) -> Array:
        check_is_fitted(self)
        H = self.features_(self._inputs(X))
        agents, B, M = self.coefficients_.shape
        outputs = (H @ self.coefficients_.transpose(1, 0, 2).reshape(B, -1)).reshape(len(H), agents, M)
        return outputs.transpose(1, 0, 2)

    def _settings(self) -> tuple[Network, Solver, int, int]:
        """The parameters, checked before any work is done; the centralised case is a network of one agent."""
        check_scalar(self.n_hidden, "n_hidden", Integral, min_val=1)
        check_scalar(self.alpha, "alpha", Real)
        Ridge(self.alpha)
        known_activation(self.activation)
        solver = solver_of(self.solver)
        learner_of(self.stream)
        network = network_of(self.network)
        solver = Local() if self.network is None else solver
        must_take(solver, Ridge(self.alpha))
        feature_seed, deal_seed = seeds_of(self.random_state, network, 2)
        return network, solver, feature_seed, deal_seed

    def _draw_features(self, inputs: int, seed: int) -> int:
        """The hidden layer that every agent draws alike; how many features it gives."""
        self.features_ = RandomFeatures.draw(
            inputs, self.n_hidden, seed=seed, activation=self.activation, direct_links=self.direct_links
        )
        return self.features_.width

    def _new_rows(
        self, network: Network, X: Any, y: Any, classes: Any, stream: Stream | None
    ) -> tuple[Rows, Mapping[str, Any]]:
        turn, first = (0, True) if stream is None else (stream.rows, False)
        shares = chunk_of(self, network, X, y, turn=turn, first=first)
        fixed = self._begin_stream(shares.targets, classes) if first else {}
        return Rows(shares.inputs, outputs_of(self, shares)), fixed

    def _chunks(self, stream: Stream, rows: Rows) -> tuple[list[Chunk], State]:
        return Chunk.of_inputs(self.features_, rows.inputs, rows.outputs), {}

    def _memory(self, agents: int) -> State:
        return {}  # a row says all that its features depend on

    def _must_be_alike(
        self,
        network: Network,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        feature_seed: int,
        checksums: Mapping[str, Any],
        rows: Sequence[int] | None = None,
    ) -> None:
        """Check that agents in other processes have the same settings, columns and features, before any work.

        In simulation, where they cannot, agents ask all the same: what is sent does not depend on the engine.
        """
        check_same_settings(
            network,
            {
                "the number of columns of X": inputs[0].shape[1],
                "the number of outputs": outputs[0].shape[1],
                "n_hidden": self.n_hidden,
                "alpha": self.alpha,
                "activation (its position in the list)": list(ACTIVATIONS).index(self.activation),
                "direct_links": float(self.direct_links),
                "the seed of the features": feature_seed,
                **checksums,
            },
            Drawn.of_features(self.features_),
            rows=rows,
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
    def _begin_stream(self, targets: Sequence[Any], classes: Any) -> Mapping[str, Any]:
        """Fix what all chunks must have in common; what of it must be alike at every agent, by name."""

    @abstractmethod
    def _encoded_chunk(self, targets: Any, whose: str) -> Array:
        """Targets of a chunk as rows x M numbers, if they fit what was fixed; `whose` begins the sentence if not."""


class RVFLClassifier(LabelTargets, _RVFL):
    """A classifier that agents train together without sending each other their rows.

    Parameters
    ----------
    n_hidden: hidden units, B in the formulas.
    alpha: ridge penalty on the coefficients, lambda in the thesis.
    activation: "sigmoid", "tanh", "relu" or "sine".
    direct_links: let the readout see the inputs beside the hidden units.
    solver: "auto", "local", "consensus", "admm", "gram", "cg", or an object with settings such as ADMM(tolerance=1e-6).
    stream: how partial_fit learns: "consensus", "exact", "lms", "rls", or an object such as StreamConsensus(every=5).
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

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn from one more chunk of a stream.

        Row i of the stream goes to agent i mod L if all agents are hosted here; a process that hosts one agent gives
        that agent's rows; partial_fit(shares) takes a list of (X_k, y_k), one per hosted agent. A chunk may have one
        row, or none at some agents (tables of 0 rows). classes, all there will be, are given with the first chunk.
        """
        return self._partial_fit(X, y, classes)

    def _begin_stream(self, targets: Sequence[Any], classes: Any) -> Mapping[str, Any]:
        if classes is None and hasattr(self, "classes_"):
            classes = self.classes_  # of a fit before
        if classes is None:
            raise DataError(
                "classes must be passed on the first call to partial_fit: give all that there will be, chunks need not "
                "have rows of every one"
            )
        self.classes_ = stream_classes(classes)
        return {"classes": self.classes_.tolist()}

    def _encoded_chunk(self, targets: Any, whose: str) -> Array:
        return self._outputs_of(codes_of(targets, self.classes_, whose))


class RVFLRegressor(NumberTargets, _RVFL):
    """A regressor that agents train together without sending each other their rows; one or many outputs.

    Parameters and attributes are those of `RVFLClassifier`, without classes.
    """

    _stratify = False

    def predict(self, X: Any) -> Array:
        """f(x) by the first hosted agent's coefficients: one number per row, or one per row and output."""
        predicted: Array = self._decoded(self._raw(X))
        return predicted

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one more chunk of a stream: as `RVFLClassifier.partial_fit`, without classes."""
        return self._partial_fit(X, y)

    def _begin_stream(self, targets: Sequence[Any], classes: Any) -> Mapping[str, Any]:
        self._single_output, self._n_outputs = targets[0].ndim == 1, int(np.prod(targets[0].shape[1:]))
        return {}

    def _encoded_chunk(self, targets: Any, whose: str) -> Array:
        y = np.asarray(targets, dtype=np.float64)
        if (y.ndim == 1) != self._single_output or int(np.prod(y.shape[1:])) != self._n_outputs:
            raise DataError(
                f"{whose}y has shape {y.shape}, but the stream began with {self._n_outputs} outputs per row: give "
                "every chunk the same"
            )
        return y.reshape(len(y), self._n_outputs)
