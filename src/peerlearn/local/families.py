"""Families of generalised linear models: what a row loses when the model's output for it is f.

    gaussian      (f - y)^2 / 2                      mean f
    poisson       exp(f) - y f                       mean exp(f)
    gamma         y exp(-f) + f                      mean exp(f): the log link, not the inverse
    logistic      log(1 + exp(-y f)),  y = -1 or 1   probability of 1: 1 / (1 + exp(-f))
    multinomial   log(sum_c exp(f_c)) - f_y          the output of the first class is 0

These are negative log-likelihoods with dispersion 1, up to terms without f. All are convex in f.
McCullagh and Nelder, Generalized linear models, 1989, chapters 2, 4, 5, 6 and 8.

All methods take f, rows x M, and y, rows x 1, or rows x classes in the multinomial family. They
return one entry per row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, softmax, xlogy

from peerlearn.arrays import Array

FARTHEST = 300.0  # exp of larger outputs is cut off, so that sums of it stay finite


class OutputFamily(ABC):
    """Base class of families.

    Attributes
    ----------
    name: how users call it.
    has_dispersion: whether the variance has a factor that is estimated.
    concordance: R in |D^3 loss[v, v, u]| <= R |u| D^2 loss[v, v] (Bach, 2010).
    may_separate: whether rows may have no finite best coefficients.
    expects_another_hessian: whether `information` is not `bends`.
    profiles_dispersion: whether the log-likelihood is that of the most likely dispersion, and not
        of the estimated one.
    """

    name: ClassVar[str]
    has_dispersion: ClassVar[bool] = False
    concordance: ClassVar[float] = 1.0
    may_separate: ClassVar[bool] = False
    expects_another_hessian: ClassVar[bool] = False
    profiles_dispersion: ClassVar[bool] = False

    @abstractmethod
    def outputs(self, targets: int) -> int:
        """Return M, from the number of columns of y."""

    @abstractmethod
    def values(self, f: Array, y: Array) -> Array:
        """Return the loss of each row: (rows,)."""

    @abstractmethod
    def slopes(self, f: Array, y: Array) -> Array:
        """Return its gradient in f: (rows, M)."""

    @abstractmethod
    def bends(self, f: Array, y: Array) -> Array:
        """Return its Hessian in f: (rows, M, M)."""

    def information(self, f: Array, y: Array) -> Array:
        """Return the Hessian that is expected if the model is true: (rows, M, M)."""
        return self.bends(f, y)

    @abstractmethod
    def deviances(self, f: Array, y: Array) -> Array:
        """Return twice the loss, minus that of the best f for this row alone: (rows,)."""

    def squares(self, f: Array, y: Array) -> Array:
        """Return squared errors relative to the variance function (Pearson): (rows,)."""
        return np.zeros(len(f))

    def constants(self, y: Array) -> Array:
        """Return the terms of the negative log-likelihood that have no f: (rows,)."""
        return np.zeros(len(y))

    def log_likelihood(self, f: Array, y: Array, weights: Array, dispersion: float) -> Array:
        """Return the log-likelihood of each row: (rows,). Its variance is divided by its weight."""
        return -weights * (self.values(f, y) + self.constants(y)) / dispersion

    def margins(self, f: Array, y: Array) -> Array:
        """Return by how much a step along f leaves the loss of a row below or above: (rows,).

        If no margin is negative and some are positive, losses fall along f without end.
        """
        margins: Array = -np.abs(f).max(axis=1, initial=0.0)
        return margins

    def offsets_of_outputs(self, offsets: Array) -> Array:
        """Return the offsets of M outputs, from those of the columns of y."""
        return offsets

    def spread(self, W: Array) -> Array:
        """Return the gradient of half the ridge penalty, at coefficients of M outputs each."""
        return W

    @abstractmethod
    def start(self, mean: Array, exposure: float) -> Array:
        """Return a good constant output: (M,).

        mean: the mean of y. exposure: the mean of exp(offset).
        """


class OneOutput(OutputFamily):
    """Families of one output. phi, slope and bend work on each entry of f and y."""

    def outputs(self, targets: int) -> int:
        return 1

    @abstractmethod
    def phi(self, f: Array, y: Array) -> Array:
        """Return the loss."""

    @abstractmethod
    def slope(self, f: Array, y: Array) -> Array:
        """Return its derivative."""

    @abstractmethod
    def bend(self, f: Array, y: Array) -> Array:
        """Return its second derivative."""

    def values(self, f: Array, y: Array) -> Array:
        return self.phi(f[:, 0], y[:, 0])

    def slopes(self, f: Array, y: Array) -> Array:
        return self.slope(f, y)

    def bends(self, f: Array, y: Array) -> Array:
        return self.bend(f, y)[:, :, None]


class Gaussian(OneOutput):
    """Numbers with errors of constant variance."""

    name: ClassVar = "gaussian"
    has_dispersion: ClassVar = True
    concordance: ClassVar = 0.0
    profiles_dispersion: ClassVar = True

    def phi(self, f: Array, y: Array) -> Array:
        return 0.5 * (f - y) ** 2

    def slope(self, f: Array, y: Array) -> Array:
        return f - y

    def bend(self, f: Array, y: Array) -> Array:
        return np.ones_like(f)

    def mean(self, f: Array) -> Array:
        """Return the expected y."""
        return f

    def deviances(self, f: Array, y: Array) -> Array:
        return 2.0 * self.values(f, y)

    def squares(self, f: Array, y: Array) -> Array:
        return 2.0 * self.values(f, y)

    def log_likelihood(self, f: Array, y: Array, weights: Array, dispersion: float) -> Array:
        variances = dispersion / weights
        return -self.values(f, y) / variances - 0.5 * np.log(2.0 * np.pi * variances)

    def start(self, mean: Array, exposure: float) -> Array:
        return mean


class Poisson(OneOutput):
    """Counts, whose variance is their mean; the mean is exp(f)."""

    name: ClassVar = "poisson"
    may_separate: ClassVar = True

    def phi(self, f: Array, y: Array) -> Array:
        return _exp(f) - y * f

    def slope(self, f: Array, y: Array) -> Array:
        return _exp(f) - y

    def bend(self, f: Array, y: Array) -> Array:
        return _exp(f)

    def mean(self, f: Array) -> Array:
        """Return the expected y."""
        return _exp(f)

    def deviances(self, f: Array, y: Array) -> Array:
        best: Array = xlogy(y[:, 0], y[:, 0]) - y[:, 0]
        return 2.0 * (best + self.values(f, y))

    def constants(self, y: Array) -> Array:
        constants: Array = gammaln(y[:, 0] + 1.0)
        return constants

    def margins(self, f: Array, y: Array) -> Array:
        f = f[:, 0]
        return np.where(y[:, 0] == 0, -f, -np.abs(f))

    def start(self, mean: Array, exposure: float) -> Array:
        start: Array = np.log(mean / exposure)
        return start


class Gamma(OneOutput):
    """Numbers above 0 whose standard deviation is in proportion to their mean, exp(f)."""

    name: ClassVar = "gamma"
    has_dispersion: ClassVar = True
    expects_another_hessian: ClassVar = True

    def phi(self, f: Array, y: Array) -> Array:
        return y * _exp(-f) + f

    def slope(self, f: Array, y: Array) -> Array:
        return 1.0 - y * _exp(-f)

    def bend(self, f: Array, y: Array) -> Array:
        return y * _exp(-f)

    def information(self, f: Array, y: Array) -> Array:
        return np.ones_like(f)[:, :, None]

    def mean(self, f: Array) -> Array:
        """Return the expected y."""
        return _exp(f)

    def deviances(self, f: Array, y: Array) -> Array:
        return 2.0 * (self.values(f, y) - 1.0 - np.log(y[:, 0]))

    def squares(self, f: Array, y: Array) -> Array:
        relative: Array = y[:, 0] * _exp(-f[:, 0]) - 1.0
        return relative**2

    def log_likelihood(self, f: Array, y: Array, weights: Array, dispersion: float) -> Array:
        shapes = weights / dispersion
        own = y[:, 0]
        sizes: Array = gammaln(shapes)
        fits: Array = np.log(shapes * own) - self.phi(f[:, 0], own)
        return shapes * fits - sizes - np.log(own)

    def start(self, mean: Array, exposure: float) -> Array:
        start: Array = np.log(mean / exposure)
        return start


class Logistic(OneOutput):
    """Two classes, -1 and 1."""

    name: ClassVar = "logistic"
    may_separate: ClassVar = True

    # exp of -|f| does not overflow, and numpy's exp takes a fifth of the time of expit.
    def phi(self, f: Array, y: Array) -> Array:
        return np.log1p(np.exp(-np.abs(f))) + np.maximum(-y * f, 0.0)

    def slope(self, f: Array, y: Array) -> Array:
        t = np.exp(-np.abs(f))
        return -y * np.where(y * f > 0, t, 1.0) / (1.0 + t)

    def bend(self, f: Array, y: Array) -> Array:
        t = np.exp(-np.abs(f))
        return t / (1.0 + t) ** 2

    def deviances(self, f: Array, y: Array) -> Array:
        return 2.0 * self.values(f, y)

    def margins(self, f: Array, y: Array) -> Array:
        margins: Array = (y * f)[:, 0]
        return margins

    def start(self, mean: Array, exposure: float) -> Array:
        return np.log1p(mean) - np.log1p(-mean)


class Multinomial(OutputFamily):
    """Three classes or more; y has a 1 in the column of a row's class and 0 in others.

    has_reference: whether the output of the first class is 0, so that M is C - 1 and the best
    coefficients are unique. A lasso has one output per class.
    """

    name: ClassVar = "multinomial"
    concordance: ClassVar = float(np.sqrt(2.0))
    may_separate: ClassVar = True

    def __init__(self, has_reference: bool = True) -> None:
        self._first = int(has_reference)

    def outputs(self, targets: int) -> int:
        return targets - self._first

    def values(self, f: Array, y: Array) -> Array:
        all_f = self._of_all(f)
        largest: Array = all_f.max(axis=1, initial=0.0)
        sums: Array = np.exp(all_f - largest[:, None]).sum(axis=1)
        own: Array = (all_f * y).sum(axis=1)
        return largest + np.log(sums) - own

    def slopes(self, f: Array, y: Array) -> Array:
        return self._probabilities(f) - y[:, self._first :]

    def bends(self, f: Array, y: Array) -> Array:
        p = self._probabilities(f)
        bends = -p[:, :, None] * p[:, None, :]
        own = np.arange(f.shape[1])
        bends[:, own, own] += p
        return bends

    def _probabilities(self, f: Array) -> Array:
        """Return the probabilities of all classes with an output."""
        p: Array = softmax(self._of_all(f), axis=1)[:, self._first :]
        return p

    def _of_all(self, f: Array) -> Array:
        """Return outputs of all classes."""
        return np.hstack([np.zeros((len(f), self._first)), f])

    def deviances(self, f: Array, y: Array) -> Array:
        return 2.0 * self.values(f, y)

    def margins(self, f: Array, y: Array) -> Array:
        all_f = self._of_all(f)
        own = (all_f * y).sum(axis=1)
        others = np.where(y > 0, -np.inf, all_f).max(axis=1, initial=-np.inf)
        ahead: Array = own - others
        # A row may be neither ahead nor behind of some class, and ahead of another.
        gained: Array = (own[:, None] - all_f).sum(axis=1)
        return np.where(ahead < 0, ahead, gained)

    def offsets_of_outputs(self, offsets: Array) -> Array:
        if not self._first:
            return offsets
        return offsets[:, 1:] - offsets[:, :1]

    def spread(self, W: Array) -> Array:
        """Return differences from the mean over all classes, that of the first being 0.

        The penalty then is that of one output per class, whichever class comes first.
        """
        means: Array = W.sum(axis=-1, keepdims=True) / (W.shape[-1] + self._first)
        return W - means

    def start(self, mean: Array, exposure: float) -> Array:
        start: Array = np.log(mean / mean[0])[self._first :]
        return start


def _exp(f: Array) -> Array:
    return np.exp(np.minimum(f, FARTHEST))


Regression = Gaussian | Poisson | Gamma
REGRESSIONS: Mapping[str, type[Regression]] = {
    kind.name: kind for kind in (Gaussian, Poisson, Gamma)
}
