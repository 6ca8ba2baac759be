"""Losses of the margin y f(x) of linear classifiers: S3VM and logistic regression.

S3VM (thesis, section 8.2):

    l_k = C1/(2L) sum over labelled rows of max(0, 1 - y f)^2          convex
    g_k = C2/(2U) sum over unlabelled rows of exp(-s f^2)              not convex
    f(x) = w'(x - m) + b

L and U count the rows of the whole network and m is the mean of its unlabelled rows. The printed
gradient of l_k is wrong (I(1 - m) m (1 - m), a scalar). The right one is

    -C1/L sum of [1 - y f > 0] (1 - y f) y (x - m)

The printed gradient of g_k is right:  -s C2/U sum of exp(-s f^2) f (x - m).

For M classes one against the rest, w is M vectors one after another, and the losses are added up:

    h_k(w) = sum_c h_k,c(w_c),     C1/L in h_k,c is C1/2P for the P rows of class c
                                   and C1/2(L - P) for the other labelled rows

Logistic regression:

    h_k = sum over rows of log(1 + exp(-y w'x))                        convex; a sum, not a mean
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError
from peerlearn.local.losses import Product
from peerlearn.local.row_losses import RowLosses


class S3VMLosses(RowLosses):
    """Losses of a semi-supervised support vector machine.

    inputs: n_k x d per hosted agent, dense or sparse. targets: -1 or +1, and 0 for unlabelled rows.
    m: mean of the unlabelled rows, the same for all (d) or each agent's own copy (agents x d).
    b: the offset, 2r - 1 for a share r of positives. labelled, unlabelled: L and U, counted over
    the whole network.
    """

    def __init__(
        self,
        inputs: Sequence[Any],
        targets: Sequence[Any],
        m: Any = 0.0,
        b: float = 0.0,
        C1: float = 1.0,
        C2: float = 1.0,
        s: float = 5.0,
        *,
        labelled: int,
        unlabelled: int,
    ) -> None:
        super().__init__(inputs, targets, m, b)
        _check_among(self.y, (-1, 0, 1), "-1, +1, or 0 for a row without a label")
        for name, value in (("C1", C1), ("C2", C2), ("s", s)):
            if not 0 <= value < np.inf:
                raise InputError(f"{name} is {value!r}: give a number of 0 or more")
        self._labelled = self.y != 0
        here = int(np.count_nonzero(self._labelled))
        if labelled < here or unlabelled < len(self.y) - here:
            raise DataError(
                f"the network is said to have {labelled} labelled and {unlabelled} unlabelled "
                f"rows, but the agents here alone have {here} and {len(self.y) - here}: count the "
                "rows of all agents"
            )
        self._s = float(s)
        self._L = labelled
        # One factor per row: C1/L or C2/U. If there is no row of a kind, its factor is never used.
        c_labelled = C1 / max(labelled, 1)
        c_unlabelled = C2 / max(unlabelled, 1)
        self._c = np.where(self._labelled, c_labelled, c_unlabelled)

    def of_class(self, targets: Sequence[Array], b: float, positive: float) -> Self:
        """Return the losses of the same rows for one class against the rest.

        Both sides weigh C1/2: with equal weights of all rows, the rest would decide alone. The rows
        are shared, not copied. targets: signs, of the same rows as before. positive: how many rows
        of the whole network have the sign +1.
        """
        other = copy(self)
        other.y = np.concatenate(targets)
        other._b = float(b)
        rest = self._L - positive
        weights = np.where(other.y > 0, 0.5 * self._L / positive, 0.5 * self._L / rest)
        other._c = np.where(self._labelled, self._c * weights, self._c)
        return other

    def _phi(self, f: Array) -> Array:
        values = np.where(self._labelled, self._short(f) ** 2, self._bell(f))
        return 0.5 * self._c * values

    def _slope(self, f: Array) -> Array:
        unlabelled = -self._s * self._c * self._bell(f) * f
        return np.where(self._labelled, self._convex_slope(f), unlabelled)

    def _convex_slope(self, f: Array) -> Array:
        return np.where(self._labelled, -self._c * self._short(f) * self.y, 0.0)

    def _bend(self, f: Array) -> Array:
        unlabelled = self._s * self._bell(f) * np.maximum(2 * self._s * f**2 - 1, 0.0)
        return self._c * np.where(self._labelled, self._short(f) > 0, unlabelled)

    def _short(self, f: Array) -> Array:
        """Return by how much a labelled row falls short of the margin."""
        return np.maximum(1 - self.y * f, 0.0)

    def _bell(self, f: Array) -> Array:
        return np.exp(-self._s * f**2)


class SeparateLosses:
    """Sum of losses that each have coefficients of their own: here one per class.

    w is hosted agents x (M d): the coefficients of the first losses, of the second, and so on.
    """

    def __init__(self, parts: Sequence[RowLosses]) -> None:
        self._parts = list(parts)
        self.agents = parts[0].agents
        self.dimension = sum(part.dimension for part in parts)

    def value(self, w: Array) -> Array:
        """Return h_k(w_k): shape (agents,)."""
        values = np.zeros(self.agents)
        for part, own in zip(self._parts, self.split(w), strict=True):
            values += part.value(own)
        return values

    def gradient(self, w: Array) -> Array:
        """Return grad h_k(w_k): shape (agents, M d)."""
        return self._join(lambda part, own: part.gradient(own), w)

    def convex_gradient(self, w: Array) -> Array:
        """Return the gradient of the convex part of h_k."""
        return self._join(lambda part, own: part.convex_gradient(own), w)

    def curvature(self, w: Array) -> Product:
        """Return the product with a positive semidefinite approximation of h_k's Hessian at w_k."""
        pairs = zip(self._parts, self.split(w), strict=True)
        products = [part.curvature(own) for part, own in pairs]

        def product(p: Array) -> Array:
            pieces = zip(products, self.split(p), strict=True)
            return np.hstack([of_part(own) for of_part, own in pieces])

        return product

    def gradient_error(self, w: Array) -> Array:
        """Return a bound of the rounding error of `gradient` at w_k: the sum over the losses."""
        errors = np.zeros(self.agents)
        for part, own in zip(self._parts, self.split(w), strict=True):
            errors += part.gradient_error(own)
        return errors

    def outputs(self, w: Array) -> Array:
        """Return f of all rows, agent by agent: rows x M."""
        pairs = zip(self._parts, self.split(w), strict=True)
        return np.column_stack([part.outputs(own) for part, own in pairs])

    def split(self, w: Array) -> list[Array]:
        """Return the coefficients of each of the losses: agents x d."""
        return [np.ascontiguousarray(own) for own in np.split(w, len(self._parts), axis=1)]

    def _join(self, compute: Callable[[RowLosses, Array], Array], w: Array) -> Array:
        pairs = zip(self._parts, self.split(w), strict=True)
        return np.hstack([compute(part, own) for part, own in pairs])


class LogisticLosses(RowLosses):
    """Losses of logistic regression, summed over rows and not averaged.

    inputs: n_k x d per hosted agent, dense or sparse. targets: -1 or +1.
    """

    convex: ClassVar = True

    def __init__(self, inputs: Sequence[Any], targets: Sequence[Any]) -> None:
        super().__init__(inputs, targets)
        _check_among(self.y, (-1, 1), "-1 or +1")

    def _phi(self, f: Array) -> Array:
        return np.logaddexp(0.0, -self.y * f)

    def _slope(self, f: Array) -> Array:
        slope: Array = -self.y * expit(-self.y * f)
        return slope

    def _bend(self, f: Array) -> Array:
        bend: Array = expit(f) * expit(-f)
        return bend

    def self_concordance(self) -> Array:
        """Return the length of each agent's longest row, since |phi'''| <= phi''."""
        longest = np.zeros(self.agents)
        np.maximum.at(longest, self._owner, self.row_lengths())
        return longest


def _check_among(
    y: Array,
    known: Sequence[int],
    words: str,
) -> None:
    others = np.setdiff1d(y, known)
    if len(others):
        raise DataError(f"a target is {others[0]:g}: targets must be {words}")
