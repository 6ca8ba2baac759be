"""Candidates for the features of a readout, and the folds by which they are compared.

    z = (x - m) / s, limited to [-3, 3]               columns with mean 0 and deviation 1
    fourier: h(x) = sin(V'z / w + p)                  Rahimi and Recht, Random features for
                                                      large-scale kernel machines, 2007
    tanh:    h(x) = tanh(V'z / w + p / pi - 1)        random features whose scale follows the data
    linear:  no hidden units

V: standard normal, p: uniform on [0, 2 pi]; all agents draw them alike. The width w is a factor
times sqrt(2 d), the root of the mean squared distance of two rows with d columns that vary. The
readout also sees z, unless there are too many columns.

The fold of a row follows from z, by a hash that all agents draw alike. So it does not matter which
agent has a row or in which units a column is, and equal rows are in the same fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from peerlearn.arrays import Array
from peerlearn.local.features import BLOCK, RandomFeatures

WIDTHS = (2.5, 1.2, 0.6, 0.3, 0.15)
GRAIN = 2.0**-20  # of standardised numbers, for the hash of a row
MOST_GRAINS = 2.0**50
OFF_CENTER = 0.2371  # so that columns of few values are not rounded half-way between two grains
ACTIVATION_OF = {"fourier": "sine", "tanh": "tanh", "linear": "sine"}


@dataclass(frozen=True)
class Candidate:
    """A kind of features and their width, in units of sqrt(2 d)."""

    kind: str
    width: float = 1.0

    def __str__(self) -> str:
        return self.kind if self.kind == "linear" else f"{self.kind} of width {self.width:g}"


# From smooth to rough: of equally good ones the first is chosen.
CANDIDATES = (
    Candidate("linear"),
    *(Candidate("tanh", width) for width in WIDTHS[1:3]),
    *(Candidate("fourier", width) for width in WIDTHS),
)


@dataclass(frozen=True)
class Directions:
    """V and p of the formulas: what all candidates have in common."""

    V: Array  # inputs x hidden units
    p: Array  # hidden units

    @classmethod
    def draw(cls, inputs: int, hidden: int, seed: int) -> Directions:
        """Draw V and p from the seed."""
        rng = np.random.default_rng(seed)
        V = rng.standard_normal((inputs, hidden))
        return cls(V, rng.uniform(0.0, 2 * np.pi, hidden))

    def layer(
        self, candidate: Candidate, mean: Array, scale: Array, hidden: int | None = None
    ) -> RandomFeatures:
        """Return the hidden layer of a candidate, without direct links.

        mean: of each column. scale: 1 / s, and 0 for a column that does not vary.
        hidden: number of units, the first ones; None takes all.
        """
        units = 0 if candidate.kind == "linear" else hidden
        columns = max(int(np.count_nonzero(scale)), 1)
        width = candidate.width * np.sqrt(2.0 * columns)
        b = self.p[:units]
        if candidate.kind == "tanh":
            b = b / np.pi - 1.0
        W = self.V[:, :units] / width
        return RandomFeatures(W, b, ACTIVATION_OF[candidate.kind], False, None, mean, scale)


def direct_links(mean: Array, scale: Array) -> RandomFeatures:
    """Return standardised inputs as features, without hidden units."""
    W = np.empty((len(mean), 0))
    return RandomFeatures(W, np.empty(0), "sine", True, None, mean, scale)


def first_sums(X: Any, w: Array) -> Array:
    """Return the number of rows with a weight, sum w, and sum w x."""
    return np.concatenate([[np.count_nonzero(w), w.sum()], w @ X])


def second_sums(X: Any, w: Array, mean: Array, most: Array | None = None) -> Array:
    """Return sum w (x - m) and sum w (x - m)^2. X may be sparse.

    most: what a deviation x - m counts at most, for each column; None counts it as it is.
    """
    sums = np.zeros((2, X.shape[1]))
    for start in range(0, X.shape[0], BLOCK):
        rows = slice(start, start + BLOCK)
        x = _dense(X[rows]) - mean
        if most is not None:
            np.clip(x, -most, most, out=x)
        sums += [w[rows] @ x, w[rows] @ x**2]
    return sums.ravel()


def _dense(X: Any) -> Array:
    dense: Array = X.toarray() if issparse(X) else X
    return dense


def hash_rows(X: Any, mean: Array, scale: Array, seed: int) -> NDArray[np.uint64]:
    """Return a number below 2^32 for each row that looks random but follows from the row.

    X may be sparse. Standardised numbers are rounded to whole multiples of GRAIN, so that rounding
    errors of mean and scale have no effect. The hash is linear in them modulo 2^64, with random
    factors, and mixed at the end.
    """
    rng = np.random.default_rng(seed)
    factors = rng.integers(0, 2**64, X.shape[1], dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(X.shape[0], dtype=np.uint64)
    for start in range(0, X.shape[0], BLOCK):
        z = (_dense(X[start : start + BLOCK]) - mean) * (scale / GRAIN)
        grains = np.rint(np.clip(z, -MOST_GRAINS, MOST_GRAINS) + OFF_CENTER).astype(np.int64)
        products = grains.view(np.uint64) * factors
        hashes[start : start + BLOCK] = products.sum(axis=1, dtype=np.uint64)
    hashes ^= hashes >> np.uint64(29)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    return hashes >> np.uint64(32)
