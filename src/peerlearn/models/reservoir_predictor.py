"""Predictions of a trained echo state network, how good they are, and forecasts.

    NRMSE^2 = sum |y[n] - d[n]|^2 / sum |d[n] - mean d|^2           over all samples after the washout

(thesis, section 9.4.2, with the variance in place of its root; the norms are those of all outputs
together.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError, warn_caller
from peerlearn.local.readouts import forecast, outputs, run_forced
from peerlearn.local.reservoir import Reservoir
from peerlearn.local.threads import one_blas_thread
from peerlearn.models import sequences as given
from peerlearn.models.sequence_model import SequenceModel
from peerlearn.models.settings import whole_from

FAR = 100.0  # times the largest target: no output that was learned


class ReservoirPredictor(RegressorMixin, SequenceModel):
    """Base class of echo state networks: what can be asked of a reservoir and its readouts."""

    coefficients_: Array  # hosted agents x width x outputs
    reservoir_: Reservoir
    _scaling: float  # of the teacher
    _standardised: bool = (
        False  # whether it is from a file whose inputs are standardised, and outputs are not
    )

    def predict(self, X: ArrayLike, y_known: ArrayLike | None = None) -> Any:
        """The output at every time step of a sequence, from state zero, by the first hosted agent's coefficients.

        Of a list of sequences, a list. Where outputs are fed back, y_known are the known outputs of
        the first samples of each sequence: they are fed back as long as they last, and after them
        the model's own. Without feedback they change nothing.
        """
        predicted = [one[0] for one in self._predicted(X, y_known, slice(1))]
        return predicted if given.are_many(X) else predicted[0]

    def agent_predictions(self, X: ArrayLike, y_known: ArrayLike | None = None) -> Any:
        """As `predict`, by every hosted agent's own coefficients: agents x times, or x times x outputs."""
        predicted = self._predicted(X, y_known, slice(None))
        return predicted if given.are_many(X) else predicted[0]

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """1 - nrmse(X, y)^2: R^2 over all samples after the washout of all sequences together; 1 is best."""
        return 1 - self.nrmse(X, y) ** 2

    def nrmse(self, X: ArrayLike, y: ArrayLike) -> float:
        """sqrt(sum |y[n] - d[n]|^2 / (K variance of d)), over the K samples after the washout of all sequences.

        Where outputs are fed back, those of the washout are known, and after it the model's own.
        """
        return float(self._nrmse(X, y, slice(1))[0])

    def agent_scores(self, X: ArrayLike, y: ArrayLike) -> Array:
        """The score of every hosted agent's own coefficients: as `score`, one number per agent."""
        return 1 - self.agent_nrmse(X, y) ** 2

    def agent_nrmse(self, X: ArrayLike, y: ArrayLike) -> Array:
        """As `nrmse`, one number per hosted agent."""
        check_is_fitted(self)
        b = self.coefficients_
        if (b == b[:1]).all():  # one closed loop tells it of all
            return np.repeat(self._nrmse(X, y, slice(1)), len(b))
        return self._nrmse(X, y, slice(None))

    def forecast(self, n: int, X: ArrayLike | None = None, y: ArrayLike | None = None) -> Array:
        """What comes after X, n samples ahead, where each output is the next input: closed loop.

        For a model that was trained to give the next input. It goes on from the end of X, or of X
        and y: then the last of y is the first input. Without X it goes on from the end of what was
        last learned: of the last sequence that fit was given (of shares, the last of the first
        hosted agent), or the first hosted agent's stream. After `fit` the state there is the one
        without noise; a stream goes on from the state that it has, noise included.
        """
        check_is_fitted(self)
        whole_from(n, "n", 1)
        if self._n_outputs != self.n_features_in_:
            raise InputError(
                f"a forecast needs outputs that can be the next inputs, but there are {self._n_outputs} outputs and "
                f"{self.n_features_in_} inputs: train with the next inputs as outputs, fit(x[:-1], x[1:])"
            )
        if self._standardised:
            raise InputError(
                "this model takes inputs that were standardised and gives outputs in the units of the target, which "
                "cannot be its next inputs: train with scale = false; or standardise inputs and targets alike before "
                "training, and save the model without center and scale"
            )
        with one_blas_thread():
            h, last, said = self._history(X, y)
            s, steps = self._scaling, n - len(said)
            if steps:
                scaled = forecast(self.reservoir_, self.coefficients_[0], h, s * last, steps, s)
                self._must_stay_near([scaled])
                said = [*said, scaled / s]
        predicted: Array = np.concatenate(said)
        return predicted[:, 0] if self._single_output else predicted

    @property
    def sparsity_(self) -> float:
        check_is_fitted(self)
        return float(np.mean(self.coefficients_[0] == 0))

    @abstractmethod
    def _latest(self) -> tuple[Array, Array] | None:
        """Return where learning has come to at the first hosted agent: state and outputs there, if there are any."""

    @abstractmethod
    def _largest(self) -> float:
        """Return the largest size of the targets that were learned from, of all hosted agents."""

    @property
    def _axes(self) -> tuple[int, ...]:
        """The shape of y at one time."""
        return () if self._single_output else (self._n_outputs,)

    def _predicted(self, X: Any, y_known: Any, agents: slice) -> list[Array]:
        """Of every sequence, agents x times, or x times x outputs."""
        check_is_fitted(self)
        x = given.many_inputs(self, X)
        if y_known is None and self.reservoir_.feedback:
            raise DataError(
                "outputs are fed back, so that what comes next depends on the outputs before, which are not known: "
                "call predict(X, y_known) with the outputs of the first samples, such as those of the washout; or set "
                "feedback_scaling to 0 and fit again"
            )
        known = (
            []
            if y_known is None
            else given.known_outputs(y_known, x, given.are_many(X), self._axes)
        )
        said = [y.transpose(1, 0, 2) for y in self._outputs(x, known, agents)]
        return [y[:, :, 0] for y in said] if self._single_output else said

    def _outputs(self, x: Sequence[Array], known: Sequence[Array], agents: slice) -> list[Array]:
        """Of every sequence, times x agents x outputs."""
        s = self._scaling
        with one_blas_thread():
            scaled = outputs(self.reservoir_, self.coefficients_[agents], x, [s * d for d in known])
        if self.reservoir_.feedback:
            self._must_stay_near(scaled)
        return [y / s for y in scaled]

    def _must_stay_near(self, scaled: Sequence[Array]) -> None:
        """Say so where a closed loop has left all that was learned; where only tanh is in it, it stays a number."""
        reach = max(float(np.abs(y).max(initial=0.0)) for y in scaled) / self._scaling
        largest = self._largest()
        if reach > FAR * largest:
            warn_caller(
                f"outputs that are fed back reach {reach:.1e}, where those in training were at most "
                f"{largest:.1e}: the closed loop is not stable; train with some noise or a larger alpha, or with "
                "a smaller spectral_radius or feedback_scaling"
            )

    def _nrmse(self, X: Any, y: Any, agents: slice) -> Array:
        check_is_fitted(self)
        pairs = given.pairs_of(self, X, y, washout=self.washout, axes=self._axes)
        w = self.washout
        said = self._outputs([x for x, _ in pairs], [d[:w] for _, d in pairs], agents)
        Y, D = np.concatenate([one[w:] for one in said]), np.concatenate([d[w:] for _, d in pairs])
        spread = np.sum((D - D.mean(axis=0)) ** 2)
        if (
            spread == 0 or not np.ptp(D, axis=0).any()
        ):  # of equal numbers it may be a rounding error
            raise DataError(
                f"the {len(D)} samples after the washout are all alike, and errors are told relative to their "
                "variance: give more samples"
            )
        squares = np.array([np.sum((Y[:, k] - D) ** 2) for k in range(Y.shape[1])])
        errors: Array = np.sqrt(squares / spread)
        return errors

    def _history(self, X: Any, y: Any) -> tuple[Array, Array, list[Array]]:
        """The state after X, or after what was learned; the output before the next, and that if it is a forecast."""
        if X is None:
            if y is not None:
                raise DataError(
                    "y are the outputs of X, which was not given: call forecast(n, X, y), or leave y out"
                )
            if (end := self._latest()) is None:
                raise DataError(
                    "the first hosted agent has no samples yet, so that there is nothing to go on from: call "
                    "forecast(n, X)"
                )
            return *end, []
        if given.are_many(X):
            raise DataError(
                "a forecast goes on from one sequence: give X as one array, time x inputs"
            )
        if y is None and self.reservoir_.feedback:
            raise DataError(
                "outputs are fed back, so that the state after X depends on them: give y of X as well"
            )
        if y is None:
            x, teachers = given.inputs_of(self, X, ""), None
        else:
            ((x, d),) = given.pairs_of(self, X, y, washout=0, axes=self._axes)
            teachers = [self._scaling * d]
        said, h = run_forced(self.reservoir_, self.coefficients_[:1], [x], teachers)
        if y is not None:
            return h[0], d[-1], []
        first = said[0][-1] / self._scaling
        return h[0], first[0], [first]
