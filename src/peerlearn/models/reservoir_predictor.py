"""Predictions of a trained echo state network, how good they are, and forecasts.

    NRMSE^2 = sum |y[n] - d[n]|^2 / sum |d[n] - mean d|^2       over all samples after the washout

(thesis, section 9.4.2, with the variance in place of its root. The norms are over all outputs
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

from peerlearn.arrays import Array, one_blas_thread
from peerlearn.errors import DataError, InputError, warn_caller
from peerlearn.local.readouts import LIMIT, forecast, outputs, run_forced
from peerlearn.local.reservoir import Reservoir
from peerlearn.models import sequence_shares
from peerlearn.models.base import check_whole_number
from peerlearn.models.sequence_model import SequenceModel

FAR = 100.0  # outputs this many times larger than all targets have left what was learned


class ReservoirPredictor(RegressorMixin, SequenceModel):
    """Base class of echo state networks: predictions, scores and forecasts."""

    coefficients_: Array  # hosted agents x width x outputs
    reservoir_: Reservoir
    _scaling: float  # of the teacher
    # True for a model from a file whose inputs are standardised, while its outputs are not.
    _standardised: bool = False

    def predict(self, X: ArrayLike, y_known: ArrayLike | None = None) -> Any:
        """Return the output at every time step, by the first hosted agent's coefficients.

        Every sequence begins with state zero.

        Parameters
        ----------
        X : array-like of shape (n_times, n_inputs), or list of such arrays
            One sequence, or many.
        y_known : array-like, or list of arrays, default None
            Needed if outputs are fed back: the known outputs of the first samples of each sequence.
            They are fed back first, and then the model's own outputs. Without feedback they have
            no effect.

        Returns
        -------
        ndarray of shape (n_times,) or (n_times, n_outputs), or list of them if X has many sequences
        """
        predictions = [one[0] for one in self._predict_sequences(X, y_known, slice(1))]
        return predictions if sequence_shares.are_many(X) else predictions[0]

    def agent_predictions(self, X: ArrayLike, y_known: ArrayLike | None = None) -> Any:
        """Return the predictions by every hosted agent's coefficients; arguments as in `predict`.

        Predictions of a sequence are agents x times, or agents x times x outputs.
        """
        predictions = self._predict_sequences(X, y_known, slice(None))
        return predictions if sequence_shares.are_many(X) else predictions[0]

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return R^2 = 1 - nrmse(X, y)^2. 1 is best."""
        return 1 - self.nrmse(X, y) ** 2

    def nrmse(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the normalised root mean squared error over all samples after the washout.

        If outputs are fed back, they are the known ones during the washout, and the model's own
        after it.
        """
        return float(self._nrmse(X, y, slice(1))[0])

    def agent_scores(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return the score of every hosted agent's coefficients, as `score` computes it."""
        return 1 - self.agent_nrmse(X, y) ** 2

    def agent_nrmse(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return the nrmse of every hosted agent's coefficients, as `nrmse` computes it."""
        check_is_fitted(self)
        b = self.coefficients_
        if (b == b[:1]).all():  # one closed loop is enough if all agents have the same coefficients
            return np.repeat(self._nrmse(X, y, slice(1)), len(b))
        return self._nrmse(X, y, slice(None))

    def forecast(self, n: int, X: ArrayLike | None = None, y: ArrayLike | None = None) -> Array:
        """Return the next n samples in closed loop: each output is the next input.

        The model must have been trained to predict the next input, as in fit(x[:-1], x[1:]).

        Parameters
        ----------
        n : int
            Number of samples to forecast.
        X : array-like of shape (n_times, n_inputs), default None
            The sequence to continue. None continues what was learned last: the last sequence of
            `fit` (with shares, the last one of the first hosted agent), or the stream of the first
            hosted agent. After `fit` the state there is the one without noise; the state of a
            stream includes its noise.
        y : array-like of shape (n_times,) or (n_times, n_outputs), default None
            The known outputs of X. If given, the last of them is the first input of the forecast.

        Returns
        -------
        ndarray of shape (n,) or (n, n_outputs)
            If the closed loop diverges, there is a warning, and samples from there on are NaN.
        """
        check_is_fitted(self)
        check_whole_number(n, "n", 1)
        if self._n_outputs != self.n_features_in_:
            raise InputError(
                "a forecast needs outputs that can be the next inputs, but there are "
                f"{self._n_outputs} outputs and {self.n_features_in_} inputs: train with the next "
                "inputs as outputs, fit(x[:-1], x[1:])"
            )
        if self._standardised:
            raise InputError(
                "this model takes inputs that were standardised and gives outputs in the units of "
                "the target, which cannot be its next inputs: train with scale = false; or "
                "standardise inputs and targets alike before training, and save the model without "
                "center and scale"
            )
        with one_blas_thread():
            h, last, samples = self._history(X, y)
            s = self._scaling
            steps = n - len(samples)
            if steps:
                scaled = forecast(self.reservoir_, self.coefficients_[0], h, s * last, steps, s)
                self._warn_if_diverged(scaled, len(samples))
                samples = [*samples, scaled / s]
        future: Array = np.concatenate(samples)
        return future[:, 0] if self._single_output else future

    @property
    def sparsity_(self) -> float:
        """Share of the first hosted agent's coefficients that are 0."""
        check_is_fitted(self)
        return float(np.mean(self.coefficients_[0] == 0))

    @abstractmethod
    def _latest(self) -> tuple[Array, Array] | None:
        """Return the last state and outputs that the first hosted agent learned from, if any."""

    @abstractmethod
    def _largest(self) -> float:
        """Return the largest absolute target that the hosted agents learned from."""

    @property
    def _axes(self) -> tuple[int, ...]:
        """Shape of y at one time step."""
        return () if self._single_output else (self._n_outputs,)

    def _predict_sequences(self, X: Any, y_known: Any, agents: slice) -> list[Array]:
        """Return predictions of each sequence: agents x times, or agents x times x outputs."""
        check_is_fitted(self)
        x = sequence_shares.many_inputs(self, X)
        if y_known is None and self.reservoir_.feedback:
            raise DataError(
                "outputs are fed back, so that predictions depend on earlier outputs, which are "
                "not known: call predict(X, y_known) with the outputs of the first samples, such "
                "as those of the washout; or set feedback_scaling to 0 and fit again"
            )
        known: list[Array] = []
        if y_known is not None:
            many = sequence_shares.are_many(X)
            known = sequence_shares.read_known_outputs(y_known, x, many, self._axes)
        predictions = [y.transpose(1, 0, 2) for y in self._outputs(x, known, agents)]
        if self._single_output:
            return [y[:, :, 0] for y in predictions]
        return predictions

    def _outputs(self, x: Sequence[Array], known: Sequence[Array], agents: slice) -> list[Array]:
        """Return outputs of each sequence: times x agents x outputs."""
        s = self._scaling
        with one_blas_thread():
            scaled = outputs(self.reservoir_, self.coefficients_[agents], x, [s * d for d in known])
        if self.reservoir_.feedback:
            self._warn_if_unstable(scaled)
        return [y / s for y in scaled]

    def _warn_if_diverged(self, scaled: Array, before: int) -> None:
        """Warn if a forecast diverged, or has left what was learned.

        before: number of samples of the forecast before these.
        """
        diverged = np.flatnonzero(np.isnan(scaled).any(axis=1))
        if len(diverged) == 0:
            self._warn_if_unstable([scaled])
            return
        warn_caller(
            f"the forecast: the loop of outputs that are fed back diverges, after "
            f"{before + diverged[0]} samples they are above {LIMIT:g}, and all later ones are NaN: "
            "train with some noise or a larger alpha, or with a smaller spectral_radius or "
            "feedback_scaling"
        )

    def _warn_if_unstable(self, scaled: Sequence[Array]) -> None:
        """Warn if a closed loop has reached outputs far beyond all that was learned.

        Its outputs may still be finite, because tanh bounds the states.
        """
        sizes = [float(np.abs(y).max(initial=0.0)) for y in scaled]
        reach = max(sizes) / self._scaling
        largest = self._largest()
        if reach > FAR * largest:
            warn_caller(
                f"outputs that are fed back reach {reach:.1e}, where those in training were at "
                f"most {largest:.1e}: the closed loop is not stable; train with some noise or a "
                "larger alpha, or with a smaller spectral_radius or feedback_scaling"
            )

    def _nrmse(self, X: Any, y: Any, agents: slice) -> Array:
        check_is_fitted(self)
        w = self.washout
        pairs = sequence_shares.pairs_of(self, X, y, washout=w, axes=self._axes)
        inputs = [x for x, _ in pairs]
        known = [d[:w] for _, d in pairs]
        predictions = self._outputs(inputs, known, agents)
        Y = np.concatenate([one[w:] for one in predictions])
        D = np.concatenate([d[w:] for _, d in pairs])
        spread = np.sum((D - D.mean(axis=0)) ** 2)
        # The spread of equal numbers may be a rounding error instead of 0.
        if spread == 0 or not np.ptp(D, axis=0).any():
            raise DataError(
                f"the {len(D)} samples after the washout are all alike, and errors are relative to "
                "their variance: give more samples"
            )
        agent_numbers = range(Y.shape[1])
        squares = np.array([np.sum((Y[:, k] - D) ** 2) for k in agent_numbers])
        errors: Array = np.sqrt(squares / spread)
        return errors

    def _history(self, X: Any, y: Any) -> tuple[Array, Array, list[Array]]:
        """Return the state and outputs from which a forecast begins.

        The third value is a list of samples that are already part of the forecast: the output at
        the end of X if its true value is not known, else none.
        """
        if X is None:
            if y is not None:
                raise DataError(
                    "y are the outputs of X, which was not given: call forecast(n, X, y), or leave "
                    "y out"
                )
            end = self._latest()
            if end is None:
                raise DataError(
                    "the first hosted agent has no samples yet, so that there is nothing to "
                    "continue: call forecast(n, X)"
                )
            return *end, []
        if sequence_shares.are_many(X):
            raise DataError("a forecast continues one sequence: give X as one array, time x inputs")
        if y is None and self.reservoir_.feedback:
            raise DataError(
                "outputs are fed back, so that the state after X depends on them: give y of X as "
                "well"
            )
        if y is None:
            x = sequence_shares.inputs_of(self, X, "")
            teachers = None
        else:
            ((x, d),) = sequence_shares.pairs_of(self, X, y, washout=0, axes=self._axes)
            teachers = [self._scaling * d]
        y_forced, h = run_forced(self.reservoir_, self.coefficients_[:1], [x], teachers)
        if y is not None:
            return h[0], d[-1], []
        first = y_forced[0][-1] / self._scaling
        return h[0], first[0], [first]
