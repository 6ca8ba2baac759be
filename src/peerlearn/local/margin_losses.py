"""Losses of the margin y f(x) of linear classifiers: S3VM and logistic regression.

S3VM (thesis, section 8.2):

    l_k = C1/(2L) sum over labelled rows of max(0, 1 - y f)^2          convex
    g_k = C2/(2U) sum over unlabelled rows of exp(-s f^2)              not convex
    f(x) = w'(x - m) + b

L and U count the rows of the whole network and m is the mean of its unlabelled rows. The printed
gradient of l_k is wrong (I(1 - m) m (1 - m), a scalar). The right one is

    -C1/L sum of [1 - y f > 0] (1 - y f) y (x - m)

The printed gradient of g_k is right:  -s C2/U sum of exp(-s f^2) f (x - m).

S3VM of M > 2 classes, with one f per class. p = softmax(s f) is how sure a row is of each class:

    l_k = 10 C1/(2L) sum over labelled rows of sum_{c != y} max(0, 1 - f_y + f_c)^2
    g_k = 3 C2/U sum over unlabelled rows of 1 - |p|^2

The sum over c is Weston and Watkins' (Support vector machines for multi-class pattern recognition,
1999), with squares. 1 - |p|^2 is 0 where one f is far above the others; for two classes it is a
bell of f_1 - f_2 with a height of 1/2. 10 and 3 were found by trials: docs/decisions/0024.

Logistic regression:

    h_k = sum over rows of log(1 + exp(-y w'x))                        convex; a sum, not a mean
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from peerlearn.arrays import Array, dots, norms
from peerlearn.errors import DataError, InputError
from peerlearn.local.families import Logistic
from peerlearn.local.losses import ROUNDING, Product
from peerlearn.local.row_losses import RowLosses

LOGISTIC = Logistic()
# Weights of the two terms for more than two classes.
LABELLED = 10.0
UNLABELLED = 3.0


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
        # One factor per row: C1/L or C2/U. If there is no row of a kind, its factor is never used.
        c_labelled = C1 / max(labelled, 1)
        c_unlabelled = C2 / max(unlabelled, 1)
        self._c = np.where(self._labelled, c_labelled, c_unlabelled)

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


class MulticlassS3VMLosses(RowLosses):
    """Losses of a semi-supervised support vector machine of more than two classes.

    w is hosted agents x M d: the coefficients of the first class, of the second, and so on.
    targets: classes from 0 to M - 1, and -1 for unlabelled rows. classes: M. The others are those
    of S3VMLosses. Give a column of ones for intercepts.
    """

    def __init__(
        self,
        inputs: Sequence[Any],
        targets: Sequence[Any],
        m: Any = 0.0,
        C1: float = 1.0,
        C2: float = 1.0,
        s: float = 5.0,
        *,
        classes: int,
        labelled: int,
        unlabelled: int,
    ) -> None:
        super().__init__(inputs, targets, m)
        self._M = classes
        self._columns = self.dimension
        self.dimension = classes * self._columns
        self._known = np.flatnonzero(self.y >= 0)
        self._unknown = np.flatnonzero(self.y < 0)
        # Place of each labelled row's class among its M outputs.
        self._own = (np.arange(len(self._known)), self.y[self._known].astype(np.intp))
        self._c1 = LABELLED * C1 / max(labelled, 1)
        self._c2 = UNLABELLED * C2 / max(unlabelled, 1)
        self._s = float(s)

    def _phi(self, f: Array) -> Array:
        p = self._sureness(f)
        values = np.empty(len(f))
        values[self._known] = 0.5 * self._c1 * (self._short(f) ** 2).sum(axis=1)
        values[self._unknown] = self._c2 * (1 - (p * p).sum(axis=1))
        return values

    def _slope(self, f: Array) -> Array:
        p = self._sureness(f)
        slopes = self._convex_slope(f)
        squares = (p * p).sum(axis=1, keepdims=True)
        slopes[self._unknown] = -2 * self._c2 * self._s * p * (p - squares)
        return slopes

    def _convex_slope(self, f: Array) -> Array:
        return self._to_outputs(self._c1 * self._short(f))

    def _bend(self, f: Array) -> Array:
        """Return the second derivatives by the margins of labelled rows: labelled rows x M."""
        return np.where(self._short(f) > 0, self._c1, 0.0)

    def curvature(self, w: Array) -> Product:
        """Return the product with the Hessian of the labelled rows' losses at w_k."""
        bend = self._bend(self.outputs(w))

        def product(p: Array) -> Array:
            f = self._forth(p)[self._known]
            return self._back(self._to_outputs(bend * (f - f[self._own][:, None])))

        return product

    def gradient_error(self, w: Array) -> Array:
        """Return the rounding error of one operation: nothing is certified without convexity."""
        return ROUNDING * norms(self.gradient(w))

    def _short(self, f: Array) -> Array:
        """Return by how much labelled rows fall short of the margin to each other class."""
        known = f[self._known]
        short = np.maximum(1 - known[self._own][:, None] + known, 0.0)
        short[self._own] = 0.0
        return short

    def _sureness(self, f: Array) -> Array:
        """Return p of the unlabelled rows."""
        a = self._s * f[self._unknown]
        powers = np.exp(a - a.max(axis=1, keepdims=True, initial=-np.inf))
        p: Array = powers / powers.sum(axis=1, keepdims=True)
        return p

    def _to_outputs(self, by_margin: Array) -> Array:
        """Return derivatives by f, all rows x M, from those by f_c - f_y of labelled rows."""
        by_margin[self._own] = -by_margin.sum(axis=1)
        slopes = np.zeros((len(self.y), self._M))
        slopes[self._known] = by_margin
        return slopes

    def _forth(self, w: Array) -> Array:
        """Return w_c'(x - m) of all rows: rows x M."""
        each = w.reshape(self.agents, self._M, self._columns)
        means = np.repeat(self._m, self._M, axis=0)
        shifts = dots(each.reshape(-1, self._columns), means).reshape(self.agents, self._M)
        outputs: Array = self._X @ each.transpose(0, 2, 1).reshape(-1, self._M)
        return outputs - shifts[self._owner]

    def _back(self, c: Array) -> Array:
        """Return the sums of c_c (x - m) over the rows of each agent: agents x M d."""
        back: Array = (self._X.T @ c).reshape(self.agents, self._columns, self._M)
        sums = np.column_stack([self._sums(own) for own in c.T])
        each = back.transpose(0, 2, 1) - sums[:, :, None] * self._m[:, None, :]
        return np.ascontiguousarray(each).reshape(self.agents, self.dimension)


class LogisticLosses(RowLosses):
    """Losses of logistic regression, summed over rows and not averaged.

    inputs: n_k x d per hosted agent, dense or sparse. targets: -1 or +1.
    """

    convex: ClassVar = True

    def __init__(self, inputs: Sequence[Any], targets: Sequence[Any]) -> None:
        super().__init__(inputs, targets)
        _check_among(self.y, (-1, 1), "-1 or +1")

    def _phi(self, f: Array) -> Array:
        return LOGISTIC.phi(f, self.y)

    def _slope(self, f: Array) -> Array:
        return LOGISTIC.slope(f, self.y)

    def _bend(self, f: Array) -> Array:
        return LOGISTIC.bend(f, self.y)

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
