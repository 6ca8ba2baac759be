"""Losses of the margin y f(x) of linear classifiers: S3VM and logistic regression.

S3VM (thesis, section 8.2):

    l_k = C1/(2L) sum over labelled rows of max(0, 1 - y f)^2          convex
    g_k = C2/(2U) sum over unlabelled rows of exp(-s f^2)              not convex
    f(x) = w'(x - m) + b

L and U count the rows of the whole network and m is the mean of its unlabelled rows. The printed
gradient of l_k is wrong (I(1 - m) m (1 - m), a scalar). The right one is

    -C1/L sum of [1 - y f > 0] (1 - y f) y (x - m)

The printed gradient of g_k is right:  -s C2/U sum of exp(-s f^2) f (x - m).

Logistic regression:

    h_k = sum over rows of log(1 + exp(-y w'x))                        convex; a sum, not a mean
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError
from peerlearn.local.families import Logistic
from peerlearn.local.row_losses import RowLosses

LOGISTIC = Logistic()


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
