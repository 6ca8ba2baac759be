"""Random vector functional-link networks: random features and a linear readout.

    f(x) = b'h(x) + c,   h: random features, the same at all agents
                         b: ridge over all agents' rows,   c: the intercept, without a penalty

A solver of `peerlearn.algorithms` finds b while the rows stay at their agents (thesis, chapters 2
and 4). Features and penalty are chosen first, by cross-validation from sums, unless they are given
(`peerlearn.algorithms.readout.chosen_features`). A stream has no rows to choose by when it begins,
so it has the features and the penalty that the thesis uses. A saved model has the arrays

    W, b            the hidden layer: inputs x hidden units, and hidden units
    input_mean, input_scale   of standardised inputs; missing if inputs are not standardised
    coefficients    features x outputs
    intercept       outputs; missing in files of models that had none

and the entries activation and direct_links in its text, and feature_norm if longer rows of features
are shortened to that length. W and b are missing if there are no hidden units. A saved stream calls
the array b bias, because b is already the name of the coefficients in its state. For features that
were given, see `peerlearn.models.given_features`.

How the file is organised: `_RVFL` implements what `RowModel` (training), `StreamModel` (streams)
and `NetworkModel` (saved files) ask of a model. The two public classes add only what depends on
the kind of target.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_scalar

from peerlearn.algorithms.agreement import Drawn
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.calibration import fit_scales
from peerlearn.algorithms.differential_privacy import DifferentialPrivacy, begin_release
from peerlearn.algorithms.readout.auto import READOUT, Auto
from peerlearn.algorithms.readout.chosen_features import (
    FOLDS,
    MOST_LINKS,
    Rows,
    choose_alpha,
    choose_features,
    sum_folds,
)
from peerlearn.algorithms.readout.conjugate_gradient import ConjugateGradient
from peerlearn.algorithms.readout.gram import Gram
from peerlearn.algorithms.readout.local import Local
from peerlearn.algorithms.readout.means import common_means, common_sums, secret_means
from peerlearn.algorithms.readout.private_gram import solve_privately
from peerlearn.algorithms.readout.ridge_paths import FoldRows, ridge_paths
from peerlearn.algorithms.readout.secret_gram import solve_in_secret
from peerlearn.algorithms.readout.solver import Solver, must_take
from peerlearn.algorithms.secret_sums import sum_in_secret
from peerlearn.algorithms.streaming.learner import STREAMING, Learner
from peerlearn.arrays import Array, Indices
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError
from peerlearn.local.candidates import Directions
from peerlearn.local.centred import (
    UncentredProblems,
    column_sums,
    intercepts,
    problems_about,
)
from peerlearn.local.chunks import Chunk
from peerlearn.local.features import ACTIVATIONS, RandomFeatures, check_activation
from peerlearn.local.frozen_features import FrozenFeatures
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
    check_need,
    network_of,
)
from peerlearn.models.class_weight import ClassWeight, check_class_weight, weigh_classes
from peerlearn.models.given_features import (
    ENTRY,
    check_features,
    drawn_of,
    features_from_archive,
    features_to_archive,
    freeze,
)
from peerlearn.models.labels import stream_classes
from peerlearn.models.probabilities import Probabilities, check_probability
from peerlearn.models.row_model import RowModel, chunk_of, encode_shares
from peerlearn.models.secret_parts import check_classes_given, check_secret_part
from peerlearn.models.streams import PART, Stream, StreamModel
from peerlearn.models.streams import Rows as StreamRows
from peerlearn.models.targets import NumberTargets
from peerlearn.network import Network
from peerlearn.secret.refusals import secret_error

__all__ = ["RVFLClassifier", "RVFLRegressor"]

FEATURES = "the features"
MOST_COLUMNS = 2**31
NORM = "feature_norm"  # entry in the file of a model whose features are shortened to this length
OPEN = "takes_new_classes"  # entry in the file of a stream that is open for new classes
Features: TypeAlias = Literal["auto", "fixed", "columns"] | Callable[[Any], Any] | BaseEstimator
INSTEAD = "use solver='gram', 'cg' or 'consensus'"  # under secrecy
CHOSEN_UNITS = 500  # most hidden units of chosen features, if their number follows the rows
FIXED_UNITS = 200  # hidden units of fixed features


class _RVFL(StreamModel, RowModel):
    """Common part of the classifier and the regressor: features, solver and prediction."""

    parts: ClassVar = {"solver": READOUT, "stream": STREAMING}
    sum_solvers: ClassVar = (Auto, Gram, ConjugateGradient)
    seeds: ClassVar = (FEATURES, DEALING)
    same_coordinates: ClassVar = True

    alpha_: Array
    coefficients_: Array
    intercept_: Array
    features_: RandomFeatures | FrozenFeatures

    def __init__(
        self,
        n_hidden: int | None = None,
        alpha: float | Literal["auto"] = "auto",
        *,
        features: Features = "auto",
        activation: str | None = None,
        direct_links: bool | Literal["auto"] = "auto",
        fit_intercept: Intercept = "auto",
        solver: Solver | str = "auto",
        stream: Learner | str = "consensus",
        differential_privacy: DifferentialPrivacy | None = None,
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.alpha = alpha
        self.features = features
        self.activation = activation
        self.direct_links = direct_links
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.stream = stream
        self.differential_privacy = differential_privacy
        self.network = network
        self.random_state = random_state

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        if self.differential_privacy is not None:
            self._check_what_is_released(setup)
        must_take(setup.parts["solver"], Ridge(self.stream_alpha))
        return setup

    def check_secrecy(self, parts: Mapping[str, Any]) -> None:
        kind = type(self).__name__
        network = network_of(self.network)
        if self.begins_stream:
            check_secret_part(self.part(PART), network, "use stream='exact'")
            return
        solver = parts["solver"]
        check_secret_part(solver, network, INSTEAD)
        check_classes_given(self)
        needs = {
            "alpha above 0, or solver='gram'": self.alpha != 0 or isinstance(solver, Gram),
            "a number as alpha, because the choice of one would need more sums": (
                self.alpha != "auto"
            ),
            "features='fixed' or others that do not follow from the data": (
                self.features != "auto" or self.activation is not None
            ),
            "solver='gram' for class_weight": (
                getattr(self, "class_weight", None) is None or isinstance(solver, Gram)
            ),
            "no probability=True, which would need more sums": (
                getattr(self, "probability", None) is not True
            ),
        }
        for need, is_met in needs.items():
            check_need(kind, need, is_met=is_met)

    def _check_what_is_released(self, setup: Setup) -> None:
        """Refuse settings with which more than noisy sums would be released."""
        needs = {
            "a network made with secrecy='sums', of 3 agents or more": (
                setup.network.secrecy is not None
            ),
            "solver='gram'": isinstance(setup.parts["solver"], Gram),
            "a number as alpha": self.alpha != "auto",
            "features='fixed' or others that do not follow from the data": (
                self.features != "auto" or self.activation is not None
            ),
            "all classes given as classes=[..]": getattr(self, "classes", ()) is not None,
            "no class_weight": getattr(self, "class_weight", None) is None,
            "no probability=True": getattr(self, "probability", None) is not True,
        }
        for need, is_met in needs.items():
            if not is_met:
                raise InputError(
                    f"differential_privacy is set, and needs {need}, because nothing without noise "
                    "may be released: set it, or leave differential_privacy out; nothing was sent"
                )

    def check_parameters(self) -> None:
        if self.n_hidden is not None:
            check_scalar(self.n_hidden, "n_hidden", Integral, min_val=1)
        if self.alpha != "auto":
            check_scalar(self.alpha, "alpha", Real)
            Ridge(self.alpha)
        check_features(self.features)
        if self.features not in ("auto", "fixed"):
            self._check_no_hidden_units()
        if self.activation is not None:
            check_activation(self.activation)
        if not isinstance(self.direct_links, bool | np.bool_) and self.direct_links != "auto":
            raise InputError(
                f"direct_links is {self.direct_links!r:.60}: give True, False or 'auto'"
            )
        check_intercept(self.fit_intercept)
        self._check_privacy(self.differential_privacy)

    def _check_privacy(self, privacy: Any) -> None:
        """Refuse what is no DifferentialPrivacy, or one without the bounds that the model needs."""
        if privacy is None:
            return
        if not isinstance(privacy, DifferentialPrivacy):
            raise InputError(
                f"differential_privacy is {privacy!r:.60}: give DifferentialPrivacy(epsilon=..)"
            )
        if is_classifier(self) and privacy.target_bounds is not None:
            raise InputError(
                f"target_bounds is {privacy.target_bounds}, but classes have no bounds: leave it "
                "out"
            )
        if not is_classifier(self) and privacy.target_bounds is None:
            raise InputError(
                "differential_privacy of a regressor needs target_bounds, the smallest and the "
                "largest target: give bounds that do not follow from the data"
            )

    def _check_no_hidden_units(self) -> None:
        """Refuse parameters of random features where features are given."""
        usual = {"n_hidden": None, "activation": None, "direct_links": "auto"}
        for name, value in usual.items():
            if getattr(self, name) != value:
                raise InputError(
                    f"{name} is {getattr(self, name)!r:.60}, but there are no hidden units if "
                    f"features is {self.features!r:.60}: leave {name} out"
                )

    @property
    def stream_alpha(self) -> Any:
        return 1.0 if self.alpha == "auto" else self.alpha

    def _chooses_features(self, setup: Setup) -> bool:
        """Return whether features are chosen from the data.

        Neither streams nor agents that send nothing have the sums to choose by.
        """
        if self.features != "auto" or self.activation is not None or PART in setup.parts:
            return False
        return not isinstance(setup.parts["solver"], Local) or setup.network.size == 1

    def draw(self, setup: Setup, columns: int, outputs: int) -> tuple[Drawn, ...]:
        self._seed = setup.seeds[FEATURES]
        if not isinstance(self.features, str):
            self.features_ = freeze(self.features, columns)
            return (drawn_of(self.features_),)
        if self.features == "columns":
            self.features_ = RandomFeatures(np.empty((columns, 0)), np.empty(0), "sine", True)
            return (Drawn.of_features(self.features_),)
        if not self._chooses_features(setup):
            self.features_ = RandomFeatures.draw(
                columns,
                self.n_hidden or FIXED_UNITS,
                seed=self._seed,
                activation=self.activation or "sigmoid",
                direct_links=bool(self.direct_links) and self.direct_links != "auto",
            )
            return (Drawn.of_features(self.features_),)
        directions = Directions.draw(columns, self.n_hidden or CHOSEN_UNITS, self._seed)
        # Until they are chosen, the features are the directions as they were drawn.
        self.features_ = RandomFeatures(directions.V, directions.p, "sine")
        return (Drawn.of_features(self.features_),)

    def common_settings(self, setup: Setup, columns: int, outputs: int | None) -> dict[str, Any]:
        settings = super().common_settings(setup, columns, outputs)
        if isinstance(self.features_, FrozenFeatures):
            # Agents may name the same function differently, so they compare what it returns.
            settings["features"] = self.features_.width
        return settings

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
        secret = network_of(self.network).secrecy is not None
        if sample_weight is not None and secret and not isinstance(self.part("solver"), Gram):
            raise secret_error(
                "sample_weight", "is given", "use solver='gram', which takes weights"
            )
        return self.fit_over_network(X, y, sample_weight)

    def learn(self, setup: Setup, *given: Any) -> Answer:
        if self.differential_privacy is not None and given[2] is not None:
            raise InputError(
                "sample_weight is given, and differential_privacy is the same for all rows: leave "
                "one of them out; nothing was sent"
            )
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
        weights = self.weigh_rows(network, solver, outputs, weights)
        if network.secrecy is not None:
            return self._train_in_secret(network, solver, inputs, outputs, weights)
        note = self._choose_settings(setup, inputs, outputs, weights)
        if self.alpha == 0:
            self._check_determined(network, inputs)
        if not self.fit_intercept and weights is None:
            problems = LeastSquares.of_inputs(self.features_, inputs, outputs)
            means = None
        else:
            uncentred = UncentredProblems.of_inputs(self.features_, inputs, outputs, weights)
            if self.fit_intercept:
                means = common_means(network, solver, uncentred)
            else:
                means = uncentred.zero_means()
            problems = uncentred.about(means)
            del uncentred  # as large as the problems
        answer = solver.solve(network, problems, Ridge(float(self.alpha_[0])))
        if isinstance(solver, Local) and self.alpha == "auto":  # each agent has its own alpha
            answer = replace(answer, coefficients=problems.ridge(self.alpha_))
        if means is None:
            self.intercept_ = np.zeros((len(inputs), outputs[0].shape[1]))
        else:
            self.intercept_ = intercepts(means.centre, answer.coefficients)
        if note:
            note = f"{answer.report.note}; {note}" if answer.report.note else note
            answer = replace(answer, report=replace(answer.report, note=note))
        return answer

    def _train_in_secret(
        self,
        network: Network,
        solver: Solver,
        inputs: list[Array],
        outputs: list[Array],
        weights: list[Array] | None,
    ) -> Answer:
        if isinstance(self, Probabilities):
            self.keep_scales(None)
        if self.differential_privacy is not None:
            return self._train_privately(network, inputs, outputs, self.differential_privacy)
        self.alpha_ = np.full(len(inputs), float(self.alpha))
        if isinstance(solver, Gram):
            answer, self.intercept_ = solve_in_secret(
                network,
                UncentredProblems.of_inputs(self.features_, inputs, outputs, weights),
                float(self.alpha),
                tolerance=solver.tolerance,
                intercept=bool(self.fit_intercept),
            )
            return answer
        self.intercept_ = np.zeros((len(inputs), outputs[0].shape[1]))
        penalty = Ridge(float(self.alpha))
        if not self.fit_intercept:
            problems = LeastSquares.of_inputs(self.features_, inputs, outputs)
            return solver.solve(network, problems, penalty)
        sums = column_sums(self.features_, inputs, outputs)
        means = secret_means(network, sums, self.features_.width + outputs[0].shape[1])
        problems = problems_about(self.features_, inputs, outputs, means)
        found = solver.solve(network, problems, penalty)
        self.intercept_ = intercepts(means.centre, found.coefficients)
        return found

    def _train_privately(
        self,
        network: Network,
        inputs: list[Array],
        outputs: list[Array],
        privacy: DifferentialPrivacy,
    ) -> Answer:
        noise_keys = begin_release(network, privacy, f"{type(self).__name__} by Gram")
        self.features_ = replace(self.features_, norm=privacy.feature_norm)
        middle = 0.0
        length = 1.0  # of the longest targets; those of classes are -1 and 1, or a single 1
        if privacy.target_bounds is not None:
            least, most = privacy.target_bounds
            middle = (least + most) / 2
            length = (most - least) / 2 * math.sqrt(outputs[0].shape[1])
            outputs = [(np.clip(Y, least, most) - middle) / length for Y in outputs]
        answer, constants, self.alpha_ = solve_privately(
            network,
            self.features_,
            inputs,
            outputs,
            float(self.alpha),
            privacy,
            noise_keys,
            intercept=bool(self.fit_intercept),
        )
        self.intercept_ = constants * length + middle
        return replace(answer, coefficients=answer.coefficients * length)

    def fit_folds(
        self,
        shares: Sequence[tuple[Any, Any]],
        folds: Sequence[Indices],
        count: int,
        alphas: Sequence[Any],
    ) -> Iterator[tuple[int, int, Self]] | None:
        """Train on the rows outside each fold with each alpha, from one sum per fold.

        Return a fold, the place of an alpha, and a fitted copy, for all of them; None if training
        is not a sum here, because features or alpha are chosen, classes are weighed, or there are
        to be probabilities.

        shares: of each hosted agent. folds: the fold of each of its rows, of so many.
        """
        if self.differential_privacy is not None:
            raise InputError(
                "differential_privacy is set, and a search would show scores of rows without "
                "noise: choose settings on other data, and leave the search out"
            )
        setup = self.check_settings()
        weighs = getattr(self, "class_weight", None) is not None
        calibrates = getattr(self, "probability", False) is True
        if "auto" in alphas or weighs or calibrates or self._chooses_features(setup):
            return None
        inputs, outputs, _ = self.checked_rows(setup, list(shares), None)
        rows = FoldRows(self.features_, inputs, outputs, folds, bool(self.fit_intercept))
        found = ridge_paths(setup.network, setup.parts["solver"], rows, count, alphas)
        return self._copies(found, alphas)

    def _copies(self, found: Array, alphas: Sequence[Any]) -> Iterator[tuple[int, int, Self]]:
        for fold in range(found.shape[1]):
            for place, alpha in enumerate(alphas):
                model = copy.copy(self)
                model.alpha = alpha
                model.alpha_ = np.full(len(found), float(alpha))
                model.intercept_ = found[:, fold, place, 0]
                model.coefficients_ = found[:, fold, place, 1:]
                yield fold, place, model

    def _choose_settings(
        self,
        setup: Setup,
        inputs: list[Array],
        outputs: list[Array],
        weights: list[Array] | None,
    ) -> str:
        """Choose features and alpha, as far as they are not given, and return a note about it."""
        network = setup.network
        solver: Solver = setup.parts["solver"]
        alpha = None if self.alpha == "auto" else float(self.alpha)
        self.alpha_ = np.full(len(inputs), np.nan if alpha is None else alpha)
        chooses_features = self._chooses_features(setup)
        calibrates = self.asks_probabilities(alpha is None)
        if alpha is not None and not chooses_features and not calibrates:
            return ""
        mark = network.ledger.mark()
        rows = Rows(network, solver, inputs, outputs, weights, self._seed, bool(self.fit_intercept))
        chosen = []
        if chooses_features:
            assert isinstance(self.features_, RandomFeatures)
            directions = Directions(self.features_.W, self.features_.b)
            links = self.direct_links
            if links == "auto":
                links = inputs[0].shape[1] <= MOST_LINKS
            kind, self.features_ = choose_features(
                rows, directions, alpha, links=bool(links), units=self.n_hidden
            )
            chosen.append(f"{kind} features")
        if alpha is None or calibrates:
            folds = sum_folds(rows, self.features_)
        if alpha is None:
            self.alpha_ = choose_alpha(rows, self.features_, folds)
            chosen.append(f"alpha {self.alpha_[0]:.3g}")
        if calibrates:
            self.calibrate(rows, folds)
            chosen.append("probabilities")
        sent = network.ledger.since(mark).megabytes
        how = f"by {FOLDS}-fold cross-validation from sums, which sent {sent:,.3f} MB"
        return f"{', '.join(chosen)} {how}"

    def asks_probabilities(self, has_folds: bool) -> bool:
        """Return whether to fit probabilities. has_folds: whether sums by fold are made anyway."""
        return False

    def calibrate(self, rows: Rows, folds: list[Array]) -> None:
        """Fit probabilities on the scores of rows held out, from the sums of each fold."""

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
        if issparse(rows) or isinstance(self.features_, FrozenFeatures):
            # The features of all rows are never in memory together.
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
    ) -> tuple[StreamRows, Mapping[str, Any]]:
        if self.differential_privacy is not None:
            raise InputError(
                "differential_privacy is set, and streams have none, because every chunk would "
                "cost: leave it out, or use fit"
            )
        turn = 0 if stream is None else stream.rows
        shares = chunk_of(self, network, X, y, turn=turn, first=stream is None)
        fixed: Mapping[str, Any] = {}
        if stream is None:
            # Labels are not sent under secrecy, so all classes must be given.
            may_grow = hasattr(self.part(PART), "add_outputs") and network.secrecy is None
            fixed = self.begin_stream(shares.targets, classes, may_grow=may_grow)
        places = self.meet_classes(network, shares.targets)
        encoded = encode_shares(shares, self.encode_chunk)
        return StreamRows(shares.inputs, encoded, None if stream is None else places), fixed

    def chunks_of(self, stream: Stream, rows: StreamRows) -> tuple[list[Chunk], State]:
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
        if b.shape[2] == 2 and len(getattr(self, "classes_", ())) == 2:
            # An open stream has one output per class; two classes have one, for -1 and +1.
            b = np.ascontiguousarray(b[:, :, 1:] - b[:, :, :1])
            self.coefficients_ = b
        if self.stream_has_intercept(stream.learner):
            self.intercept_ = b[:, 0]
            self.coefficients_ = b[:, 1:]
        else:
            self.intercept_ = np.zeros((len(b), b.shape[2]))
        return self

    # Saved files: see `NetworkModel` and `StreamModel`

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        arrays, entries = self._layer_to_archive("b")
        intercept = self.intercept_[0]
        constant = {"intercept": intercept} if intercept.any() else {}
        return {**arrays, **constant}, {**entries, **self.target_entries()}

    def _layer_to_archive(self, biases: str) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        """Return arrays and entries of the features. biases: what the array b is called."""
        layer = self.features_
        norm = {} if layer.norm is None else {NORM: float(layer.norm)}
        if isinstance(layer, FrozenFeatures):
            own, about = features_to_archive(layer)
            return own, {**about, **norm}
        arrays: dict[str, AnyArray] = {"W": layer.W, biases: layer.b} if layer.W.size else {}
        if layer.mean is not None and layer.scale is not None:
            arrays |= {"input_mean": layer.mean, "input_scale": layer.scale}
        entries = {"activation": layer.activation, "direct_links": bool(layer.direct_links)}
        return arrays, {**entries, **norm}

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
        arrays, _ = self._layer_to_archive("bias")
        return {**arrays, **classes}, {OPEN: True} if self._takes_new_classes else {}

    def stream_from_archive(self, reader: ArchiveReader, agents: int) -> tuple[int, int]:
        self._restore_layer(reader, "bias")
        width = self.row_width
        if self.stream_has_intercept(self.part(PART)):
            width += 1
        outputs = reader.numbers("state b", agents, width, None).shape[2]
        self._takes_new_classes = OPEN in reader.about
        # An open stream has one output per class, also for two classes.
        self.restore_targets(reader, 1 if self._takes_new_classes and outputs == 2 else outputs)
        return width, outputs

    def _restore_layer(self, reader: ArchiveReader, biases: str) -> None:
        norm = reader.entry(NORM, float) if NORM in reader.about else None
        if norm is not None and not 0 < norm < math.inf:
            raise reader.wrong(f"its {NORM} is {norm}, not a number above 0")
        if ENTRY in reader.about:
            given = features_from_archive(reader, self.features, self.n_features_in_)
            self.features_ = replace(given, norm=norm)
            return
        if self.n_features_in_ > MOST_COLUMNS:
            raise reader.wrong(f"it has {self.n_features_in_} columns, more than any table")
        b = np.empty(0)
        W = np.empty((self.n_features_in_, 0))
        if biases in reader.arrays or reader.about.get("direct_links") is not True:
            b = reader.numbers(biases, None)
            W = np.ascontiguousarray(reader.numbers("W", self.n_features_in_, len(b)))
        activation = reader.one_of("activation", ACTIVATIONS)
        links = reader.entry("direct_links", bool)
        mean = None
        scale = None
        if "input_mean" in reader.arrays:
            mean = reader.numbers("input_mean", self.n_features_in_)
            scale = reader.numbers("input_scale", self.n_features_in_)
        self.features_ = RandomFeatures(W, b, activation, links, None, mean, scale, norm)


class RVFLClassifier(Probabilities, _RVFL):
    """Random-feature classifier that agents train together; rows stay at their agents.

    Parameters
    ----------
    n_hidden : int or None, default None
        Number of hidden units. None is 200 if features are fixed. If they are chosen, it is the
        number of rows of the whole network, but at least 100 and at most 500.
    alpha : float or "auto", default "auto"
        Ridge penalty on the coefficients, lambda in the thesis. "auto" chooses it by 5-fold
        cross-validation from sums over all agents; for streams it is 1. With the solver "local",
        each agent chooses from its own rows.
    features : str, function or fitted transformer, default "auto"
        "auto" chooses kind and width of the features by 5-fold cross-validation from sums over all
        agents: random Fourier features, random features with tanh, or none. Columns are
        standardised, and what is more than three deviations away counts as three. "fixed" draws
        the features of the thesis, whatever the data are. Models that are given an activation have
        fixed features, and so have streams and the solver "local" over several agents, which have
        no sums to choose by. The report says what was chosen and what the choice sent: 3 to 12
        times as much as one sum of Gram matrices with all hidden units. "columns" takes the
        columns of X themselves. A function gets up to 1,024 rows at a time and returns one row
        of features for each; it stands for a trained network without its last layer, and so does
        a fitted scikit-learn transformer. All agents must give the same one. Its features are
        computed once, and twice with alpha="auto"; those of all rows are never in memory together.
    activation : {"sigmoid", "tanh", "relu", "sine"} or None, default None
        Activation function of fixed features. None is "sigmoid" if features are fixed.
    direct_links : bool or "auto", default "auto"
        Whether the readout sees the inputs as well as the hidden units. "auto" is True if features
        are chosen and there are at most 2,000 columns, else False.
    fit_intercept : bool or "auto", default "auto"
        Whether f(x) has a constant that is not penalised. The means of features and targets over
        the network then cost one more sum, of 2 B + M + 3 numbers. "auto" is True, except for
        streams whose learner cannot have a constant: all but "exact".
    classes : sequence of labels or None, default None
        All labels that any agent may have. Agents then send each other no labels, and a network
        with secrecy needs that. A class may have no rows. None lets `fit` find the labels that
        occur anywhere in the network.
    class_weight : "balanced", dict of label: weight, or None, default None
        Factors of the squared errors of each class's rows. With "balanced", all classes have the
        same weight together: a class weighs the more the fewer rows the whole network has of it.
        That costs one more sum, of as many numbers as there are classes. Streams take no weights.
    probability : bool or "auto", default "auto"
        Whether to fit `predict_proba`, on scores of rows by readouts of the other folds. "auto" is
        True if alpha is chosen: its cross-validation has the sums of each fold already, and 5 times
        the coefficients and some 10 small sums are sent in addition. With a given alpha, True also
        sends one Gram matrix per fold. "auto" is False for features that are given, because True
        computes them once more. Streams have no probabilities.
    solver : str or Solver, default "auto"
        How agents compute the coefficients together: "auto", "local", "consensus", "admm", "gram",
        "cg", or an object with settings such as ADMM(tolerance=1e-6).
    stream : str or Learner, default "consensus"
        How partial_fit learns: "consensus", "exact", "lms", "rls", or an object with settings such
        as StreamConsensus(every=5).
    differential_privacy : DifferentialPrivacy or None, default None
        Adds noise to the sums, so that nobody learns whether a row is among those of any agent.
        Needs a network with secrecy. Features are shortened, alpha is the smallest ridge that is
        used, and the intercept is penalised like other coefficients. Nothing is reported that
        would tell more: there is no error bound. Streams have none.
    network : Network or None, default None
        The graph of agents. None trains on all rows in one place, the centralised baseline.
    random_state : int, RandomState or None, default None
        Seed of the hidden layer and of the dealing of rows. Agents in several processes must all
        give the same whole number.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        All labels that occur anywhere in the network, or those that were given.
    alpha_ : ndarray of shape (n_hosted_agents,)
        The penalty of each hosted agent, given or chosen. Streams do not set it.
    coefficients_ : ndarray of shape (n_hosted_agents, B, M)
        Coefficients of each hosted agent. M is 1 for two classes (targets -1 and +1), else one
        output per class. With direct_links, B includes the inputs.
    intercept_ : ndarray of shape (n_hosted_agents, M)
        The constant of each hosted agent; 0 without fit_intercept.
    features_ : RandomFeatures or FrozenFeatures
        The hidden layer, or the features that were given: the same at every agent.
    probability_scale_ : ndarray or None
        The factor s of probabilities softmax(s f(x)), or 1 / (1 + exp(-s f(x))) for two classes;
        None if there are none.
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
    >>> model.predict_proba(digits.X[1500:]).max(axis=1).mean().round(1)
    np.float64(0.9)
    """

    def __init__(
        self,
        n_hidden: int | None = None,
        alpha: float | Literal["auto"] = "auto",
        *,
        features: Features = "auto",
        activation: str | None = None,
        direct_links: bool | Literal["auto"] = "auto",
        fit_intercept: Intercept = "auto",
        classes: Sequence[Any] | None = None,
        class_weight: ClassWeight = None,
        probability: bool | Literal["auto"] = "auto",
        solver: Solver | str = "auto",
        stream: Learner | str = "consensus",
        differential_privacy: DifferentialPrivacy | None = None,
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_hidden,
            alpha,
            features=features,
            activation=activation,
            direct_links=direct_links,
            fit_intercept=fit_intercept,
            solver=solver,
            stream=stream,
            differential_privacy=differential_privacy,
            network=network,
            random_state=random_state,
        )
        self.classes = classes
        self.class_weight = class_weight
        self.probability = probability

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.classes is not None:
            stream_classes(self.classes)
        check_class_weight(self.class_weight)
        check_probability(self.probability, auto=True)

    def promises_probabilities(self) -> bool:
        if self.probability != "auto":
            return bool(self.probability)
        return self.alpha == "auto" and isinstance(self.features, str)

    def asks_probabilities(self, has_folds: bool) -> bool:
        asks = bool(self.probability)
        if self.probability == "auto":
            # Features that were given may be expensive, and would be computed once more.
            asks = has_folds and not isinstance(self.features_, FrozenFeatures)
        if not asks:
            self.keep_scales(None)
        return asks

    def calibrate(self, rows: Rows, folds: list[Array]) -> None:
        held_out = rows.score_held_out(self.features_, folds, self.alpha_)
        sum_up = partial(common_sums, rows.network, rows.solver)
        self.keep_scales(fit_scales(held_out, sum_up))

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
            lambda counts: sum_in_secret(
                network, "rows of each class", counts, partial(common_sums, network, solver)
            ),
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
            All labels that the stream will ever have. Needed with the first chunk only. With
            stream="exact" they may be left out at all agents: then agents compare the labels of
            every chunk, and the model gains an output with each new class.

        Returns
        -------
        self : RVFLClassifier
        """
        if self.class_weight is not None:
            raise InputError(
                "class_weight is set, and streams take no weights: leave it out, or use fit"
            )
        if self.probability is True:
            raise InputError(
                "probability=True needs rows that are held out, and a stream keeps none: set it to "
                "'auto' or False, or use fit"
            )
        return self.learn_chunk(X, y, classes)

    def continue_from(self, stream: Stream) -> Self:
        self.keep_scales(None, "it learned from a stream, which keeps no rows to hold out; use fit")
        return super().continue_from(stream)


class RVFLRegressor(NumberTargets, _RVFL):
    """Random-feature regressor that agents train together; rows stay at their agents.

    The target of a row is one number or several.

    Parameters
    ----------
    n_hidden : int or None, default None
        Number of hidden units. None is 200 if features are fixed. If they are chosen, it is the
        number of rows of the whole network, but at least 100 and at most 500.
    alpha : float or "auto", default "auto"
        Ridge penalty on the coefficients, lambda in the thesis. "auto" chooses it by 5-fold
        cross-validation from sums over all agents; for streams it is 1. With the solver "local",
        each agent chooses from its own rows.
    features : str, function or fitted transformer, default "auto"
        "auto" chooses kind and width of the features by 5-fold cross-validation from sums over all
        agents: random Fourier features, random features with tanh, or none. Columns are
        standardised, and what is more than three deviations away counts as three. "fixed" draws
        the features of the thesis, whatever the data are. Models that are given an activation have
        fixed features, and so have streams and the solver "local" over several agents, which have
        no sums to choose by. The report says what was chosen and what the choice sent: 3 to 12
        times as much as one sum of Gram matrices with all hidden units. "columns" takes the
        columns of X themselves. A function gets up to 1,024 rows at a time and returns one row
        of features for each; it stands for a trained network without its last layer, and so does
        a fitted scikit-learn transformer. All agents must give the same one. Its features are
        computed once, and twice with alpha="auto"; those of all rows are never in memory together.
    activation : {"sigmoid", "tanh", "relu", "sine"} or None, default None
        Activation function of fixed features. None is "sigmoid" if features are fixed.
    direct_links : bool or "auto", default "auto"
        Whether the readout sees the inputs as well as the hidden units. "auto" is True if features
        are chosen and there are at most 2,000 columns, else False.
    fit_intercept : bool or "auto", default "auto"
        Whether f(x) has a constant that is not penalised. The means of features and targets over
        the network then cost one more sum, of 2 B + M + 3 numbers. "auto" is True, except for
        streams whose learner cannot have a constant: all but "exact".
    solver : str or Solver, default "auto"
        How agents compute the coefficients together: "auto", "local", "consensus", "admm", "gram",
        "cg", or an object with settings such as ADMM(tolerance=1e-6).
    stream : str or Learner, default "consensus"
        How partial_fit learns: "consensus", "exact", "lms", "rls", or an object with settings such
        as StreamConsensus(every=5).
    differential_privacy : DifferentialPrivacy or None, default None
        Adds noise to the sums, so that nobody learns whether a row is among those of any agent.
        Needs a network with secrecy. Features are shortened, alpha is the smallest ridge that is
        used, and the intercept is penalised like other coefficients. Nothing is reported that
        would tell more: there is no error bound. Streams have none.
    network : Network or None, default None
        The graph of agents. None trains on all rows in one place, the centralised baseline.
    random_state : int, RandomState or None, default None
        Seed of the hidden layer and of the dealing of rows. Agents in several processes must all
        give the same whole number.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_hosted_agents,)
        The penalty of each hosted agent, given or chosen. Streams do not set it.
    coefficients_ : ndarray of shape (n_hosted_agents, B, M)
        Coefficients of each hosted agent, for M outputs. With direct_links, B includes the inputs.
    intercept_ : ndarray of shape (n_hosted_agents, M)
        The constant of each hosted agent; 0 without fit_intercept.
    features_ : RandomFeatures or FrozenFeatures
        The hidden layer, or the features that were given: the same at every agent.
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
