"""Random vector functional-link networks: random features and a linear readout.

    f(x) = b'h(x) + c,   h: random features, the same at all agents
                         b: ridge over all agents' rows,   c: the intercept, without a penalty

A solver of `peerlearn.algorithms` finds b while the rows stay at their agents (thesis, chapters 2
and 4). A saved model has the arrays

    W, b            the hidden layer: inputs x hidden units, and hidden units
    coefficients    features x outputs
    intercept       outputs; missing in files of models that had none

and the entries activation and direct_links in its text. A saved stream calls the array b bias,
because b is already the name of the coefficients in its state.

How the file is organised: `_RVFL` implements what `RowModel` (training), `StreamModel` (streams)
and `NetworkModel` (saved files) ask of a model. The two public classes add only what depends on
the kind of target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import check_scalar

from peerlearn.algorithms.agreement import Drawn
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.readout.auto import READOUT
from peerlearn.algorithms.readout.means import common_means, common_sums
from peerlearn.algorithms.readout.solver import Solver, must_take
from peerlearn.algorithms.streaming.learner import STREAMING, Learner
from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError
from peerlearn.local.centred import UncentredProblems, intercepts
from peerlearn.local.chunks import Chunk
from peerlearn.local.features import ACTIVATIONS, RandomFeatures, check_activation
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Ridge
from peerlearn.local.recursive import State
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import (
    DEALING,
    Answer,
    Intercept,
    RandomState,
    Setup,
    check_intercept,
)
from peerlearn.models.class_weight import ClassWeight, check_class_weight, weigh_classes
from peerlearn.models.row_model import RowModel, chunk_of, encode_shares
from peerlearn.models.streams import PART, Rows, Stream, StreamModel
from peerlearn.models.targets import LabelTargets, NumberTargets
from peerlearn.network import Network

__all__ = ["RVFLClassifier", "RVFLRegressor"]

FEATURES = "the features"


class _RVFL(StreamModel, RowModel):
    """Common part of the classifier and the regressor: features, solver and prediction."""

    parts: ClassVar = {"solver": READOUT, "stream": STREAMING}
    seeds: ClassVar = (FEATURES, DEALING)
    same_coordinates: ClassVar = True

    coefficients_: Array
    intercept_: Array
    features_: RandomFeatures

    def __init__(
        self,
        n_hidden: int = 200,
        alpha: float = 1.0,
        *,
        activation: str = "sigmoid",
        direct_links: bool = False,
        fit_intercept: Intercept = "auto",
        solver: Solver | str = "auto",
        stream: Learner | str = "consensus",
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.alpha = alpha
        self.activation = activation
        self.direct_links = direct_links
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.stream = stream
        self.network = network
        self.random_state = random_state

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        must_take(setup.parts["solver"], Ridge(self.alpha))
        return setup

    def check_parameters(self) -> None:
        check_scalar(self.n_hidden, "n_hidden", Integral, min_val=1)
        check_scalar(self.alpha, "alpha", Real)
        Ridge(self.alpha)
        check_activation(self.activation)
        check_intercept(self.fit_intercept)

    def draw(self, setup: Setup, columns: int, outputs: int) -> tuple[Drawn, ...]:
        self.features_ = RandomFeatures.draw(
            columns,
            self.n_hidden,
            seed=setup.seeds[FEATURES],
            activation=self.activation,
            direct_links=self.direct_links,
        )
        return (Drawn.of_features(self.features_),)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> Self:
        """Train on rows and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns), or list of (X_k, y_k)
            The rows. If all agents are hosted here, the rows are dealt to them. A process that
            hosts one agent gives that agent's rows. A list of shares, as `peerlearn.partition`
            makes it, has one (X_k, y_k) per hosted agent. Sparse rows never become dense all at
            once: only the features of some rows do.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), default None
            The targets of the rows; None if X is a list of shares.
        sample_weight : array-like of shape (n_rows,), list of them, or None, default None
            Factors of the rows' squared errors, 0 or more. With shares, a list with the weights of
            each share's rows. None weighs all rows 1.

        Returns
        -------
        self : the model
        """
        return self.fit_over_network(X, y, sample_weight)

    def learn(self, setup: Setup, *given: Any) -> Answer:
        inputs, outputs, weights = self.checked_rows(setup, *given)
        given_weights = () if weights is None else (weights,)
        return self.train(setup, inputs, outputs, *given_weights)

    def train(
        self,
        setup: Setup,
        inputs: list[Array],
        outputs: list[Array],
        weights: list[Array] | None = None,
    ) -> Answer:
        network = setup.network
        solver: Solver = setup.parts["solver"]
        if self.alpha == 0:
            self._check_determined(network, inputs)
        weights = self.weigh_rows(network, solver, outputs, weights)
        if not self.fit_intercept and weights is None:
            problems = LeastSquares.of_inputs(self.features_, inputs, outputs)
            answer = solver.solve(network, problems, Ridge(self.alpha))
            self.intercept_ = np.zeros((len(inputs), outputs[0].shape[1]))
            return answer
        uncentred = UncentredProblems.of_inputs(self.features_, inputs, outputs, weights)
        if self.fit_intercept:
            means = common_means(network, solver, uncentred)
        else:
            means = uncentred.zero_means()
        problems = uncentred.about(means)
        del uncentred  # as large as the problems
        answer = solver.solve(network, problems, Ridge(self.alpha))
        self.intercept_ = intercepts(means.centre, answer.coefficients)
        return answer

    def weigh_rows(
        self,
        network: Network,
        solver: Solver,
        outputs: list[Array],
        weights: list[Array] | None,
    ) -> list[Array] | None:
        """Return the weights of all rows, from those that were given; None if all are 1."""
        return weights

    def _check_determined(self, network: Network, inputs: list[Array]) -> None:
        rows = np.array([X.shape[0] for X in inputs])
        N = round(float(total(network, rows)[0]))
        constants = 1 if self.fit_intercept else 0
        unknown = self.features_.width + constants
        if unknown > N:
            most = max(N - constants, 1)
            raise DataError(
                f"the {N} rows of the whole network do not determine {unknown} coefficients when "
                f"alpha is 0: set alpha above 0, or n_hidden to {most} or less"
            )

    def agent_outputs(self, X: ArrayLike, agents: slice = slice(None)) -> Array:
        rows = self.rows_to_predict(X)
        b = self.coefficients_[agents]
        L, B, M = b.shape
        # One matrix product for all agents: rows x B times B x (L M).
        side_by_side = b.transpose(1, 0, 2).reshape(B, -1)
        if issparse(rows):  # never as dense as the features of all rows
            outputs = np.empty((rows.shape[0], L * M))
            for block, H in self.features_.blocks(rows):
                outputs[block] = H @ side_by_side
        else:
            outputs = self.features_(rows) @ side_by_side
        outputs = outputs.reshape(-1, L, M)
        outputs += self.intercept_[agents]
        return outputs.transpose(1, 0, 2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Streams: see `StreamModel`

    def new_rows(
        self, network: Network, X: Any, y: Any, classes: Any, stream: Stream | None
    ) -> tuple[Rows, Mapping[str, Any]]:
        turn = 0 if stream is None else stream.rows
        shares = chunk_of(self, network, X, y, turn=turn, first=stream is None)
        fixed = self.begin_stream(shares.targets, classes) if stream is None else {}
        return Rows(shares.inputs, encode_shares(shares, self.encode_chunk)), fixed

    def chunks_of(self, stream: Stream, rows: Rows) -> tuple[list[Chunk], State]:
        chunks = Chunk.of_inputs(self.features_, rows.inputs, rows.outputs)
        if self.stream_has_intercept(stream.learner):
            chunks = [chunk.with_constant() for chunk in chunks]
        return chunks, {}

    def memory(self, agents: int) -> State:
        return {}  # the features of a row depend on nothing before it

    @property
    def row_width(self) -> int:
        return self.features_.width

    def continue_from(self, stream: Stream) -> Self:
        super().continue_from(stream)
        b = stream.state["b"]
        if self.stream_has_intercept(stream.learner):
            self.intercept_ = b[:, 0]
            self.coefficients_ = b[:, 1:]
        else:
            self.intercept_ = np.zeros((len(b), b.shape[2]))
        return self

    # Saved files: see `NetworkModel` and `StreamModel`

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        layer = self.features_
        entries = {
            "activation": layer.activation,
            "direct_links": bool(layer.direct_links),
            **self.target_entries(),
        }
        intercept = self.intercept_[0]
        constant = {"intercept": intercept} if intercept.any() else {}
        return {"W": layer.W, "b": layer.b, **constant}, entries

    def from_archive(self, reader: ArchiveReader) -> None:
        self._restore_layer(reader, "b")
        coefficients = reader.numbers("coefficients", self.row_width, None)
        outputs = coefficients.shape[1]
        self.coefficients_ = coefficients[None]
        self.restore_targets(reader, outputs)
        self.intercept_ = np.zeros((1, outputs))
        if "intercept" in reader.arrays:
            self.intercept_ = reader.numbers("intercept", outputs)[None]

    def stream_to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        classes = {"classes": self.classes_} if hasattr(self, "classes_") else {}
        return {"W": self.features_.W, "bias": self.features_.b, **classes}, {}

    def stream_from_archive(self, reader: ArchiveReader, agents: int) -> tuple[int, int]:
        self._restore_layer(reader, "bias")
        width = self.row_width
        if self.stream_has_intercept(self.part(PART)):
            width += 1
        outputs = reader.numbers("state b", agents, width, None).shape[2]
        self.restore_targets(reader, outputs)
        return width, outputs

    def _restore_layer(self, reader: ArchiveReader, biases: str) -> None:
        b = reader.numbers(biases, None)
        activation = reader.one_of("activation", ACTIVATIONS)
        W = np.ascontiguousarray(reader.numbers("W", self.n_features_in_, len(b)))
        self.features_ = RandomFeatures(W, b, activation, reader.entry("direct_links", bool))


class RVFLClassifier(LabelTargets, _RVFL):
    """Random-feature classifier that agents train together; rows stay at their agents.

    Parameters
    ----------
    n_hidden : int, default 200
        Number of hidden units, B in the formulas.
    alpha : float, default 1.0
        Ridge penalty on the coefficients, lambda in the thesis.
    activation : {"sigmoid", "tanh", "relu", "sine"}, default "sigmoid"
        Activation function of the hidden units.
    direct_links : bool, default False
        Whether the readout sees the inputs as well as the hidden units.
    fit_intercept : bool or "auto", default "auto"
        Whether f(x) has a constant that is not penalised. The means of features and targets over
        the network then cost one more sum, of 2 B + M + 2 numbers. "auto" is True, except for
        streams whose learner cannot have a constant: all but "exact".
    class_weight : "balanced", dict of label: weight, or None, default None
        Factors of the squared errors of each class's rows. With "balanced", all classes have the
        same weight together: a class weighs the more the fewer rows the whole network has of it.
        That costs one more sum, of as many numbers as there are classes. Streams take no weights.
    solver : str or Solver, default "auto"
        How agents compute the coefficients together: "auto", "local", "consensus", "admm", "gram",
        "cg", or an object with settings such as ADMM(tolerance=1e-6).
    stream : str or Learner, default "consensus"
        How partial_fit learns: "consensus", "exact", "lms", "rls", or an object with settings such
        as StreamConsensus(every=5).
    network : Network or None, default None
        The graph of agents. None trains on all rows in one place, the centralised baseline.
    random_state : int, RandomState or None, default None
        Seed of the hidden layer and of the dealing of rows. Agents in several processes must all
        give the same whole number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All labels that occur anywhere in the network.
    coefficients_ : ndarray of shape (n_hosted_agents, B, M)
        Coefficients of each hosted agent. M is 1 for two classes (targets -1 and +1), else one
        output per class. With direct_links, B includes the inputs.
    intercept_ : ndarray of shape (n_hosted_agents, M)
        The constant of each hosted agent; 0 without fit_intercept.
    features_ : RandomFeatures
        The hidden layer, the same at every agent.
    report_ : Report
        What the solver did and what was sent. It prints as a small table.

    Examples
    --------
    >>> from peerlearn import RVFLClassifier, SimulatedNetwork, data, graphs
    >>> digits = data.load("digits")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = RVFLClassifier(network=network, random_state=0)
    >>> model = model.fit(digits.X[:1500], digits.y[:1500])
    >>> bool(model.score(digits.X[1500:], digits.y[1500:]) > 0.9)
    True
    """

    def __init__(
        self,
        n_hidden: int = 200,
        alpha: float = 1.0,
        *,
        activation: str = "sigmoid",
        direct_links: bool = False,
        fit_intercept: Intercept = "auto",
        class_weight: ClassWeight = None,
        solver: Solver | str = "auto",
        stream: Learner | str = "consensus",
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_hidden,
            alpha,
            activation=activation,
            direct_links=direct_links,
            fit_intercept=fit_intercept,
            solver=solver,
            stream=stream,
            network=network,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def check_parameters(self) -> None:
        super().check_parameters()
        check_class_weight(self.class_weight)

    def weigh_rows(
        self,
        network: Network,
        solver: Solver,
        outputs: list[Array],
        weights: list[Array] | None,
    ) -> list[Array] | None:
        """Return the given weights, times those of classes."""
        return weigh_classes(
            self.class_weight,
            self.classes_.tolist(),
            outputs,
            weights,
            lambda counts: common_sums(network, solver, counts),
        )

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, classes: ArrayLike | None = None
    ) -> Self:
        """Learn from one more chunk of a stream.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns), or list of (X_k, y_k)
            The new rows. If all agents are hosted here, row i of the stream goes to agent i mod L.
            A process that hosts one agent gives that agent's rows. A list of shares has one
            (X_k, y_k) per hosted agent. A chunk may have one row, or none at some agents (a table
            of 0 rows).
        y : array-like of shape (n_rows,), default None
            The labels of the rows; None if X is a list of shares.
        classes : array-like, default None
            All labels that the stream will ever have. Needed with the first chunk only.

        Returns
        -------
        self : RVFLClassifier
        """
        if self.class_weight is not None:
            raise InputError(
                "class_weight is set, and streams take no weights: leave it out, or use fit"
            )
        return self.learn_chunk(X, y, classes)


class RVFLRegressor(NumberTargets, _RVFL):
    """Random-feature regressor that agents train together; rows stay at their agents.

    The target of a row is one number or several.

    Parameters
    ----------
    n_hidden : int, default 200
        Number of hidden units, B in the formulas.
    alpha : float, default 1.0
        Ridge penalty on the coefficients, lambda in the thesis.
    activation : {"sigmoid", "tanh", "relu", "sine"}, default "sigmoid"
        Activation function of the hidden units.
    direct_links : bool, default False
        Whether the readout sees the inputs as well as the hidden units.
    fit_intercept : bool or "auto", default "auto"
        Whether f(x) has a constant that is not penalised. The means of features and targets over
        the network then cost one more sum, of 2 B + M + 2 numbers. "auto" is True, except for
        streams whose learner cannot have a constant: all but "exact".
    solver : str or Solver, default "auto"
        How agents compute the coefficients together: "auto", "local", "consensus", "admm", "gram",
        "cg", or an object with settings such as ADMM(tolerance=1e-6).
    stream : str or Learner, default "consensus"
        How partial_fit learns: "consensus", "exact", "lms", "rls", or an object with settings such
        as StreamConsensus(every=5).
    network : Network or None, default None
        The graph of agents. None trains on all rows in one place, the centralised baseline.
    random_state : int, RandomState or None, default None
        Seed of the hidden layer and of the dealing of rows. Agents in several processes must all
        give the same whole number.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_hosted_agents, B, M)
        Coefficients of each hosted agent, for M outputs. With direct_links, B includes the inputs.
    intercept_ : ndarray of shape (n_hosted_agents, M)
        The constant of each hosted agent; 0 without fit_intercept.
    features_ : RandomFeatures
        The hidden layer, the same at every agent.
    report_ : Report
        What the solver did and what was sent. It prints as a small table.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import RVFLRegressor, SimulatedNetwork, graphs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = RVFLRegressor(alpha=1e-3, network=network, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from one more chunk of a stream.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns), or list of (X_k, y_k)
            The new rows, as in `RVFLClassifier.partial_fit`.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), default None
            The targets of the rows; None if X is a list of shares.

        Returns
        -------
        self : RVFLRegressor
        """
        return self.learn_chunk(X, y)
