"""Random vector functional-link networks: random features and a linear readout.

    f(x) = b'h(x),   h: random features that all agents draw alike,   b: ridge over everybody's rows

Training b over rows that never leave their agents is the work of a solver, see
`peerlearn.algorithms` (thesis, chapters 2 and 4). In a file are

    W, b            the hidden layer: inputs x hidden units, and hidden units
    coefficients    features x outputs

and in its text activation and direct_links; in that of a stream, b is called bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from peerlearn.algorithms.agreement import Drawn
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.readout.auto import READOUT
from peerlearn.algorithms.readout.solver import Solver, must_take
from peerlearn.algorithms.streaming.learner import STREAMING, Learner
from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError
from peerlearn.local.chunks import Chunk
from peerlearn.local.features import ACTIVATIONS, RandomFeatures, check_activation
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Ridge
from peerlearn.local.recursive import State
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import DEALING, Setup
from peerlearn.models.fitted_model import Answer
from peerlearn.models.label_targets import LabelTargets
from peerlearn.models.number_targets import NumberTargets
from peerlearn.models.row_model import RowModel
from peerlearn.models.shares import chunk_of, encode_shares
from peerlearn.models.streams import Rows, Stream, StreamModel
from peerlearn.network import Network

__all__ = ["RVFLClassifier", "RVFLRegressor"]

FEATURES = "the features"


class _RVFL(StreamModel, RowModel):
    """What the classifier and the regressor share: features, solver, and prediction."""

    parts: ClassVar = {"solver": READOUT, "stream": STREAMING}
    seeds: ClassVar = (FEATURES, DEALING)
    same_coordinates: ClassVar = True

    coefficients_: Array
    features_: RandomFeatures

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

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        must_take(setup.parts["solver"], Ridge(self.alpha))
        return setup

    def check_parameters(self) -> None:
        check_scalar(self.n_hidden, "n_hidden", Integral, min_val=1)
        check_scalar(self.alpha, "alpha", Real)
        Ridge(self.alpha)
        check_activation(self.activation)

    def draw(self, setup: Setup, columns: int, outputs: int) -> tuple[Drawn, ...]:
        self.features_ = RandomFeatures.draw(
            columns,
            self.n_hidden,
            seed=setup.seeds[FEATURES],
            activation=self.activation,
            direct_links=self.direct_links,
        )
        return (Drawn.of_features(self.features_),)

    def train(self, setup: Setup, inputs: list[Array], outputs: list[Array]) -> Answer:
        problems = LeastSquares.of_inputs(self.features_, inputs, outputs)
        if self.alpha == 0:
            self._check_determined(setup.network, problems)
        solver: Solver = setup.parts["solver"]
        return solver.solve(setup.network, problems, Ridge(self.alpha))

    def _check_determined(self, network: Network, problems: LeastSquares) -> None:
        N, B = round(float(total(network, problems.rows)[0])), problems.shape[0]
        if N < B:
            raise DataError(
                f"the {N} rows of the whole network do not determine {B} coefficients when alpha is 0: set alpha "
                f"above 0, or n_hidden to {N} or less"
            )

    def agent_outputs(self, X: ArrayLike, agents: slice = slice(None)) -> Array:
        rows = self.rows_to_predict(X)
        H = self.features_(rows)
        b = self.coefficients_[agents]
        L, B, M = b.shape
        outputs = (H @ b.transpose(1, 0, 2).reshape(B, -1)).reshape(len(H), L, M)
        return outputs.transpose(1, 0, 2)

    # Streams
    # ---------------------------------------------------------------------------------------------------------

    def new_rows(
        self, network: Network, X: Any, y: Any, classes: Any, stream: Stream | None
    ) -> tuple[Rows, Mapping[str, Any]]:
        turn = 0 if stream is None else stream.rows
        shares = chunk_of(self, network, X, y, turn=turn, first=stream is None)
        fixed = self.begin_stream(shares.targets, classes) if stream is None else {}
        return Rows(shares.inputs, encode_shares(shares, self.encode_chunk)), fixed

    def chunks_of(self, stream: Stream, rows: Rows) -> tuple[list[Chunk], State]:
        return Chunk.of_inputs(self.features_, rows.inputs, rows.outputs), {}

    def memory(self, agents: int) -> State:
        return {}  # a row says all that its features depend on

    @property
    def row_width(self) -> int:
        return self.features_.width

    # Files
    # -----------------------------------------------------------------------------------------------------------

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        layer = self.features_
        told = {
            "activation": layer.activation,
            "direct_links": bool(layer.direct_links),
            **self.target_entries(),
        }
        return {"W": layer.W, "b": layer.b}, told

    def from_archive(self, reader: ArchiveReader) -> None:
        self._restore_layer(reader, "b")
        coefficients = reader.numbers("coefficients", self.row_width, None)
        self.coefficients_ = coefficients[None]
        self.restore_targets(reader, coefficients.shape[1])

    def stream_to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        classes = {"classes": self.classes_} if hasattr(self, "classes_") else {}
        return {"W": self.features_.W, "bias": self.features_.b, **classes}, {}

    def stream_from_archive(self, reader: ArchiveReader, agents: int) -> tuple[int, int]:
        self._restore_layer(reader, "bias")
        outputs = reader.numbers("state b", agents, self.row_width, None).shape[2]
        self.restore_targets(reader, outputs)
        return self.row_width, outputs

    def _restore_layer(self, reader: ArchiveReader, biases: str) -> None:
        b = reader.numbers(biases, None)
        activation = reader.one_of("activation", ACTIVATIONS)
        W = np.ascontiguousarray(reader.numbers("W", self.n_features_in_, len(b)))
        self.features_ = RandomFeatures(W, b, activation, reader.entry("direct_links", bool))


class RVFLClassifier(LabelTargets, _RVFL):
    """A classifier that agents train together without sending each other their rows.

    Parameters
    ----------
    n_hidden: hidden units, B in the formulas.
    alpha: ridge penalty on the coefficients, lambda in the thesis.
    activation: "sigmoid", "tanh", "relu" or "sine".
    direct_links: let the readout see the inputs beside the hidden units.
    solver: "auto", "local", "consensus", "admm", "gram", "cg", or an object with settings such as
        ADMM(tolerance=1e-6).
    stream: how partial_fit learns: "consensus", "exact", "lms", "rls", or an object such as
        StreamConsensus(every=5).
    network: who talks to whom; None trains on all rows in one place, the centralised baseline.
    random_state: seeds the hidden layer and the dealing of rows; the same number at every agent.

    Attributes
    ----------
    classes_: all labels that occur anywhere in the network.
    coefficients_: hosted agents x B x M; M is 1 for two classes (targets -1 and +1), else one
        output per class.
    report_: how the solver got there and what was sent; prints as a small table.

    >>> from peerlearn import SimulatedNetwork, data, graphs
    >>> digits = data.load("digits")
    >>> model = RVFLClassifier(network=SimulatedNetwork(graphs.ring(5)), random_state=0)
    >>> bool(model.fit(digits.X[:1500], digits.y[:1500]).score(digits.X[1500:], digits.y[1500:]) > 0.9)
    True
    """

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike | None = None, classes: ArrayLike | None = None
    ) -> Self:
        """Learn from one more chunk of a stream.

        Row i of the stream goes to agent i mod L if all agents are hosted here; a process that
        hosts one agent gives that agent's rows; partial_fit(shares) takes a list of (X_k, y_k), one
        per hosted agent. A chunk may have one row, or none at some agents (tables of 0 rows).
        classes, all there will be, are given with the first chunk.
        """
        return self.learn_chunk(X, y, classes)


class RVFLRegressor(NumberTargets, _RVFL):
    """A regressor that agents train together without sending each other their rows; one or many outputs.

    Parameters and attributes are those of `RVFLClassifier`, without classes.
    """

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from one more chunk of a stream: as `RVFLClassifier.partial_fit`, without classes."""
        return self.learn_chunk(X, y)
