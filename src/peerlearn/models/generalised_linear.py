"""What LogisticClassifier and GLMRegressor share: training, standard errors and bad input.

    means and spreads of all columns                        one sum
    W by a smooth solver, Newton unless another is given    over the network
    standard errors, if there is no penalty                 one sum, two if there is a dispersion

Columns are centred and scaled for the solver alone: coefficients and penalty are those of the
columns as they are. The intercept has no penalty. A saved model has the arrays

    coefficients    columns x outputs
    intercept       outputs

and, if alpha was 0, estimates, covariance and covariance_by_sites, and in its text the entry
inference: what `summary` shows.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from peerlearn.algorithms.likelihood import Moments, infer, moments, separates
from peerlearn.algorithms.proximal import minimise_with_lasso
from peerlearn.algorithms.registry import Family
from peerlearn.algorithms.smooth import LBFGS, NEXT, Minimum, Newton, SmoothSolver
from peerlearn.arrays import Array, is_real
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError
from peerlearn.local.families import OutputFamily
from peerlearn.local.glm_losses import Design, GLMLosses, GLMRows
from peerlearn.local.inference import Errors, Inference, Summary, in_units, summarise
from peerlearn.local.proximal_newton import ProximalNewton
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import DEALING, Answer, Setup, network_of, number_between
from peerlearn.models.row_model import RowModel, deal_rows
from peerlearn.models.secret_parts import check_classes_given, check_secret_part
from peerlearn.models.targets import LARGEST
from peerlearn.network import Network
from peerlearn.secret.statement import HIDDEN_SUMS

# Settings of Newton's method where only its name is given. Fits take about 7 evaluations; if there
# is no best answer, 50 show that.
EXACT = Newton(tolerance=1e-8, max_iterations=50)
# Rows per coefficient that are enough for a rough Hessian: its eigenvalues are then off by 6 %.
ROWS_OF_SAMPLE = 1000
LARGEST_SHARE = 0.5  # of the rows for which a sample is worth its time
MOST = 1000  # coefficients for which standard errors are computed
DEPENDENT = 1e-12  # least eigenvalue of the Hessian relative to the largest
FACTS = ("rows", "sites", "dispersion", "deviance", "log_likelihood")  # numbers of an Inference
TELLING = 0.3  # columns with this share of the largest entry of a direction are named
OF_STANDARDISED = "of the intercept and the coefficients of standardised columns together"
PENALTY_HELPS = "set alpha above 0, which gives finite coefficients, or leave the column out"


class _Solvers(Family[SmoothSolver]):
    """Smooth solvers that need no penalty on the intercept.

    The name "newton" means Newton with other settings than usual.
    """

    def kinds(self) -> dict[str, type[SmoothSolver]]:
        """Return every class but NEXT, whose surrogates need a penalty on all coefficients."""
        return {name: kind for name, kind in super().kinds().items() if kind is not NEXT}

    def of(self, given: SmoothSolver | str) -> SmoothSolver:
        """Return a solver, created from its name if only that is given."""
        chosen = super().of(given)
        if isinstance(chosen, NEXT):
            raise InputError(
                "NEXT needs a penalty on all coefficients, and the intercept has none: use "
                "solver='newton' or 'tracking'"
            )
        return EXACT if isinstance(given, str) and isinstance(chosen, Newton) else chosen


SOLVERS = _Solvers("peerlearn.algorithms.smooth", "minimise", "solver")


class GeneralisedLinear(RowModel):
    """Base class of generalised linear models. They have the parameters below."""

    parts: ClassVar = {"solver": SOLVERS}
    sum_solvers: ClassVar = (Newton, LBFGS)
    same_coordinates: ClassVar = True
    claim: ClassVar = HIDDEN_SUMS

    alpha: float
    penalty: str
    fit_intercept: bool
    coefficients_: Array
    intercept_: Array
    inference_: Inference | None
    _names: tuple[str, ...] | None = None

    def check_secrecy(self, parts: Mapping[str, Any]) -> None:
        network = network_of(self.network)
        check_secret_part(parts["solver"], network, "use solver='newton' or 'lbfgs'")
        check_classes_given(self)

    def check_parameters(self) -> None:
        number_between(self.alpha, "alpha", 0.0, LARGEST)
        if self.penalty not in ("ridge", "lasso"):
            raise InputError(f"penalty is {self.penalty!r:.60}: give 'ridge' or 'lasso'")
        if self._has_lasso and not isinstance(self.part("solver"), Newton):
            raise InputError(
                "penalty='lasso' needs solver='newton', because other solvers take smooth losses "
                "only: use it, or penalty='ridge'"
            )
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise InputError(f"fit_intercept is {self.fit_intercept!r:.60}: give True or False")

    @property
    def _has_lasso(self) -> bool:
        return self.penalty == "lasso" and self.alpha > 0

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | Sequence[ArrayLike] | None = None,
        offset: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> Self:
        """Train on rows and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_columns), or list of (X_k, y_k)
            The rows. If all agents are hosted here, the rows are dealt to them. A process that
            hosts one agent gives that agent's rows. A list of shares, as `peerlearn.partition`
            makes it, has one (X_k, y_k) per hosted agent. Sparse rows become dense some at a time.
        y : array-like of shape (n_rows,), default None
            The targets of the rows; None if X is a list of shares.
        sample_weight : array-like of shape (n_rows,), list of them, or None, default None
            Factors of the rows' log-likelihoods, 0 or more. With shares, a list with the weights of
            each share's rows. None weighs all rows 1. Standard errors count a row with a weight
            above 0 as one row.
        offset : array-like of shape (n_rows,) or (n_rows, n_classes), list of them, or None
            Known parts of f(x), such as the logarithm of the time in which something was counted.
            For three classes or more, one column per class, in the order of the sorted labels.
            With shares, a list with the offsets of each share's rows. None, the default, adds
            nothing.

        Returns
        -------
        self : the model
        """
        return self.fit_over_network(X, y, sample_weight, offset)

    def learn(self, setup: Setup, *given: Any) -> Answer:
        X, y, weights, offset = given
        inputs, outputs, dealt = self.checked_rows(setup, X, y, weights)
        offsets = self._deal_offsets(setup, y, offset, inputs, outputs[0].shape[1])
        return self.train(setup, inputs, outputs, dealt, offsets)

    def _deal_offsets(
        self, setup: Setup, y: Any, offset: Any, inputs: Sequence[Array], columns: int
    ) -> list[Array] | None:
        """Return the offsets of each hosted agent's rows: rows x columns. None if none are given.

        columns: 1, or one per class.
        """
        network = setup.network
        if offset is None:
            return None
        if y is None:
            if not isinstance(offset, Sequence) or len(offset) != len(inputs):
                raise DataError(
                    f"offset must be a list of {len(inputs)} arrays, the offsets of each share's "
                    "rows, if fit is called with shares"
                )
            return [
                check_offset(own, X.shape[0], columns, f"the share of agent {agent}: ")
                for agent, own, X in zip(network.hosted, offset, inputs, strict=True)
            ]
        if len(inputs) == 1:
            return [check_offset(offset, inputs[0].shape[0], columns, "")]
        targets = np.asarray(y)
        whole = check_offset(offset, len(targets), columns, "")
        labels = targets if is_classifier(self) else None
        rows = deal_rows(network, len(targets), labels, setup.seeds[DEALING])
        return [whole[own] for own in rows]

    @abstractmethod
    def family_of_targets(self) -> OutputFamily:
        """Return the family, after targets were encoded."""

    @abstractmethod
    def check_means(self, means: Array) -> None:
        """Refuse targets whose means over the network show that they cannot be learned."""

    def train(
        self,
        setup: Setup,
        inputs: list[Array],
        outputs: list[Array],
        weights: list[Array] | None = None,
        offsets: list[Array] | None = None,
    ) -> Answer:
        network = setup.network
        weights = self.weigh_rows(network, outputs, weights)
        if weights is None:
            weights = [np.ones(X.shape[0]) for X in inputs]
        family = self.family_of_targets()
        M = family.outputs(outputs[0].shape[1])
        if offsets is None:
            offsets = [np.zeros((X.shape[0], M)) for X in inputs]
        else:
            offsets = [family.offsets_of_outputs(own) for own in offsets]
        rows = [GLMRows(*own) for own in zip(inputs, outputs, weights, offsets, strict=True)]
        found = moments(network, rows)
        design = self._design_of(found)
        self._check_moments(found, design.width * M)
        ridge = np.zeros(design.width)
        if not self._has_lasso:
            ridge[int(design.intercept) :] = self.alpha / network.size / design.scale**2
        share = ROWS_OF_SAMPLE * design.width * M / found.rows
        losses = GLMLosses(rows, family, design, ridge, share if share <= LARGEST_SHARE else 1.0)
        start = np.zeros((len(rows), design.width, M))
        if design.intercept:
            start[:, 0] = family.start(found.targets, found.exposure)
        answer = self._minimise(setup, losses, design, start.reshape(len(rows), -1))
        self.inference_ = None
        if self.alpha == 0 and losses.dimension <= MOST:
            self.inference_ = self._infer(network, rows, family, losses, design, answer)
        W = np.stack([design.to_columns() @ own for own in losses.shaped(answer.coefficients)])
        return self._keep(W, answer)

    def weigh_rows(
        self, network: Network, outputs: list[Array], weights: list[Array] | None
    ) -> list[Array] | None:
        """Return the weights of all rows, from those that were given; None if all are 1."""
        return weights

    def _minimise(self, setup: Setup, losses: GLMLosses, design: Design, start: Array) -> Minimum:
        """Return the best w of all agents. A ridge penalty is part of the losses."""
        solver: SmoothSolver = setup.parts["solver"]
        if not self._has_lasso:
            return solver.minimise(setup.network, losses, 0.0, start)
        assert isinstance(solver, Newton)
        M = losses.dimension // design.width
        scale = np.repeat(design.scale, M)
        free = M * int(design.intercept)
        alpha = float(self.alpha)
        tolerance = solver.tolerance

        def begin(w: Array) -> ProximalNewton:
            return ProximalNewton(w, free, alpha, scale, tolerance)

        return minimise_with_lasso(setup.network, losses, solver, begin, start)

    def _design_of(self, found: Moments) -> Design:
        """Return how columns are standardised: by their means only if there is an intercept."""
        intercept = bool(self.fit_intercept)
        scale = found.deviations if intercept else found.sizes
        centre = found.means if intercept else np.zeros_like(found.means)
        return Design(intercept, centre, np.where(scale > 0, scale, 1.0))

    def _check_moments(self, found: Moments, unknown: int) -> None:
        """Refuse weights, targets and columns that cannot be learned from; all agents see alike."""
        if not found.weight > 0:
            raise DataError(
                "sample_weight is zero for all rows of the whole network: give some of them a "
                "weight above 0"
            )
        self.check_means(found.targets)
        if self.alpha > 0:
            return
        scale = found.deviations if self.fit_intercept else found.sizes
        (constant,) = np.nonzero(scale == 0)
        if len(constant):
            alike = "constant" if self.fit_intercept else "zero in all rows"
            raise DataError(
                f"{self._name_columns(constant)} {alike} over the whole network, so that nothing "
                f"can be learned about it without a penalty: leave it out, or set alpha above 0"
            )
        if unknown > found.rows:
            raise DataError(
                f"the {found.rows} rows of the whole network do not determine {unknown} "
                "coefficients when alpha is 0: set alpha above 0"
            )

    def _infer(
        self,
        network: Network,
        rows: Sequence[GLMRows],
        family: OutputFamily,
        losses: GLMLosses,
        design: Design,
        answer: Minimum,
    ) -> Inference:
        """Return standard errors, after a look for coefficients that have no best value."""
        w = answer.coefficients
        sums = infer(network, rows, family, losses, w)
        D, V = np.linalg.eigh(sums.hessian)
        solver_tolerance = getattr(self.part("solver"), "tolerance", 0.0)
        if family.may_separate and not answer.report.bound <= solver_tolerance:
            # Dependent columns have eigenvalues of 0, up to rounding.
            least = np.finfo(np.float64).eps * D[-1]
            step = -V @ ((V.T @ sums.gradient) / np.maximum(D, least))
            directions = [w[0], step, V[:, 0], -V[:, 0]]
            found = separates(network, losses, directions)
            if found is not None:
                raise self._separation(found, design)
        if D[0] <= DEPENDENT * D[-1]:
            (columns,) = np.nonzero(_are_telling(V[:, 0], design))
            raise DataError(
                f"{self._name_columns(columns)} a linear combination of other columns, so that no "
                "coefficients are best without a penalty: leave a column out, or set alpha above 0"
            )
        return in_units(sums.inference, design.centre, design.scale, design.intercept)

    def _separation(self, direction: Array, design: Design) -> DataError:
        """Return the error about rows along which losses fall without end."""
        (columns,) = np.nonzero(_are_telling(direction, design))
        return DataError(
            f"the targets are separated: {self._name_columns(columns)} enough to predict some of "
            "them without any error, so that the best coefficients are infinite and have no "
            f"standard errors. A penalty helps: {PENALTY_HELPS}"
        )

    def _name_columns(self, columns: Sequence[int] | AnyArray) -> str:
        """Return names or numbers of columns, and the verb that goes with them."""
        names = self._column_names()
        listed = ", ".join(names[j] for j in columns[:5])
        more = f" and {len(columns) - 5} others" if len(columns) > 5 else ""
        if len(columns) == 1:
            return f"column {listed} is"
        return f"columns {listed}{more} are"

    def name_columns(self, names: Sequence[str]) -> None:
        """Keep names of columns for messages and `summary`, where X is an array without names."""
        self._names = tuple(names)

    def _column_names(self) -> list[str]:
        """Return the names of the columns, or x0, x1 and so on if they have none."""
        names = getattr(self, "feature_names_in_", self._names)
        if names is None:
            return [f"x{j}" for j in range(self.n_features_in_)]
        return [str(name) for name in names]

    def _keep(self, W: Array, answer: Minimum) -> Answer:
        """Keep the intercept, and return the answer with the coefficients of columns."""
        W = self.outputs_of_targets(W)
        first = int(self.fit_intercept)
        self.intercept_ = W[:, 0].copy() if first else np.zeros((len(W), W.shape[2]))
        report = answer.report
        if report.bound < math.inf:
            report = replace(report, bound_reason=report.bound_reason or OF_STANDARDISED)
        kept: Answer = replace(answer, coefficients=W[:, first:].copy(), report=report)
        return kept

    def outputs_of_targets(self, W: Array) -> Array:
        """Return coefficients of as many outputs as targets have, from those of the family."""
        return W

    def agent_outputs(self, X: ArrayLike, agents: slice = slice(None)) -> Array:
        rows = self.rows_to_predict(X)
        outputs = [
            rows @ b + c
            for b, c in zip(self.coefficients_[agents], self.intercept_[agents], strict=True)
        ]
        return np.stack(outputs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def summary(self, errors: Errors = "model", level: float = 0.95) -> Summary:
        """Return coefficients with standard errors, intervals and p-values; alpha must be 0.

        Nothing is sent: what is needed was summed by `fit`.

        Parameters
        ----------
        errors : {"model", "sites"}, default "model"
            "model" trusts the family. "sites" allows that the rows of one agent depend on each
            other: sandwich errors with one cluster per agent that has rows, and the correction
            G/(G-1) * (N-1)/(N-p) for G agents, N rows and p coefficients. Few agents make them too
            small.
        level : float, default 0.95
            Confidence of the intervals.

        Returns
        -------
        Summary
        """
        check_is_fitted(self)
        found = getattr(self, "inference_", None)
        if found is None:
            reason = f"they are computed for up to {MOST} coefficients"
            if self.alpha > 0:
                reason = "coefficients with a penalty are biased, and have none: fit with alpha=0"
            raise InputError(f"there are no standard errors here: {reason}")
        names = self._column_names()
        if self.fit_intercept:
            names = ["intercept", *names]
        return summarise(found, tuple(self.name_coefficients(names)), errors, level)

    def name_coefficients(self, names: list[str]) -> list[str]:
        """Return the names of all coefficients, from those of columns."""
        return names

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        arrays: dict[str, AnyArray] = {"intercept": self.intercept_[0]}
        entries = self.target_entries()
        found = self.inference_
        if found is not None and np.isfinite(found.by_model).all():
            arrays |= {"estimates": found.coefficients, "covariance": found.by_model}
            if np.isfinite(found.by_sites).all():
                arrays["covariance_by_sites"] = found.by_sites
            entries["inference"] = {name: getattr(found, name) for name in FACTS}
        return arrays, entries

    def from_archive(self, reader: ArchiveReader) -> None:
        coefficients = reader.numbers("coefficients", self.n_features_in_, None)
        outputs = coefficients.shape[1]
        self.coefficients_ = coefficients[None]
        self.intercept_ = reader.numbers("intercept", outputs)[None]
        self.restore_targets(reader, outputs)
        self.inference_ = None
        if "estimates" in reader.arrays:
            self.inference_ = self._read_inference(reader, max(outputs - 1, 1))

    def _read_inference(self, reader: ArchiveReader, outputs: int) -> Inference:
        p = (self.n_features_in_ + int(self.fit_intercept)) * outputs
        facts = reader.entry("inference", dict)
        if sorted(facts) != sorted(FACTS) or not all(map(is_real, facts.values())):
            raise reader.wrong(f"its inference is not {', '.join(FACTS)}, one number each")
        by_model = reader.numbers("covariance", p, p)
        by_sites = np.full((p, p), np.nan)
        if "covariance_by_sites" in reader.arrays:
            by_sites = reader.numbers("covariance_by_sites", p, p)
        return Inference(reader.numbers("estimates", p), by_model, by_sites, **facts)


def check_offset(offset: Any, rows: int, columns: int, whose: str) -> Array:
    """Return offsets as an array of finite numbers: rows x columns.

    columns: 1, or one per class if there are three or more. whose: begins the error message.
    """
    try:
        checked = np.asarray(offset, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{whose}offset must hold numbers ({error})") from error
    wanted = (rows,) if columns == 1 else (rows, columns)
    if checked.shape != wanted:
        each = "per row"
        if columns > 1:
            each = (
                "per row and class, because a number that is added to all classes changes nothing"
            )
        raise DataError(
            f"{whose}offset has shape {checked.shape}, but there are {rows} rows: give one number "
            f"{each}"
        )
    if not np.isfinite(checked).all():
        raise DataError(f"{whose}offset has NaN or infinite values: give finite numbers")
    return checked.reshape(rows, columns)


def _are_telling(direction: Array, design: Design) -> AnyArray:
    """Return which columns have the large entries of a direction of w."""
    entries = np.abs(direction.reshape(design.width, -1)).max(axis=1)
    own: Array = entries[int(design.intercept) :]
    return np.asarray(own >= TELLING * own.max())
