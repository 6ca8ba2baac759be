"""Exact K-fold cross-validation of ridge readouts, from one matrix of sums per fold.

    Z_f = sum over the rows of fold f of  w a a',   a = [1, y, x, h]       alone; then summed
    b_f, c_f = argmin  sum over all other rows of  w |y - c - h'b|^2 + alpha |b|^2
    error    = sum_f sum over the rows of fold f of  w |y - c_f - h'b_f|^2

The first line holds all that the others need: b_f follows from sum_j Z_j - Z_f, and the error of
the rows of a fold is a quadratic form of Z_f. So the rows are seen once, for every alpha.

Several candidates for the features share y and x, so their sums have these blocks once. alpha is a
multiple of the mean eigenvalue of the features' matrix about their means, whatever their scale is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.local.features import BLOCK, FeatureMap

RATIOS = 10.0 ** np.arange(1.0, -7.25, -0.5)  # descending: of equal ones the largest is chosen
DIGITS = 6  # of errors that are compared; the rest is rounding
FLOOR = 1e-9  # errors that are less, relative to the targets' squares, are equal


@dataclass(frozen=True)
class Candidates:
    """Feature maps to compare: each has the shared features and those of one layer.

    shared: features of all candidates; None if there are none.
    outputs: number of outputs, M in the formulas.
    """

    shared: FeatureMap | None
    layers: Sequence[FeatureMap]
    outputs: int

    @property
    def _first(self) -> int:
        """Number of columns before those of a layer: the constant, y and the shared features."""
        return 1 + self.outputs + (0 if self.shared is None else self.shared.width)

    def sums(self, X: Any, Y: Array, w: Array | None) -> Array:
        """Return the sums of some rows for all candidates, as one row of numbers.

        w: weights of the rows; None if all are 1.
        """
        p = self._first
        square = np.zeros((p, p))
        blocks = [np.zeros((p + layer.width, layer.width)) for layer in self.layers]
        for start in range(0, X.shape[0], BLOCK):
            rows = slice(start, min(start + BLOCK, X.shape[0]))
            x = X[rows]
            a = np.empty((x.shape[0], p))
            a[:, 0] = 1.0
            a[:, 1 : 1 + self.outputs] = Y[rows]
            if self.shared is not None:
                a[:, 1 + self.outputs :] = self.shared(x)
            weights = 1.0 if w is None else w[rows, None]
            square += a.T @ (weights * a)
            for block, layer in zip(blocks, self.layers, strict=True):
                h = layer(x)
                block += np.hstack([a, h]).T @ (weights * h)
        parts = [square[np.triu_indices(p)]]
        for block in blocks:
            parts += [block[:p].ravel(), block[p:][np.triu_indices(block.shape[1])]]
        return np.concatenate(parts)

    def matrices(self, numbers: Array) -> list[Array]:
        """Return Z of each candidate, from the sums."""
        p = self._first
        square = np.zeros((p, p))
        end = p * (p + 1) // 2
        square[np.triu_indices(p)] = numbers[:end]
        matrices = []
        for layer in self.layers:
            B = layer.width
            Z = np.zeros((p + B, p + B))
            Z[:p, :p] = square
            start = end
            end = start + p * B
            Z[:p, p:] = numbers[start:end].reshape(p, B)
            start = end
            end = start + B * (B + 1) // 2
            Z[p:, p:][np.triu_indices(B)] = numbers[start:end]
            matrices.append(Z + np.triu(Z, 1).T)
        return matrices


@dataclass(frozen=True)
class Split:
    """Rows to learn from, about their means, and rows to be scored, about the same means."""

    G: Array  # of the features of the rows to learn from
    P: Array  # of their features and targets
    means: Array  # of targets and features
    scored: Array  # Z of the rows to be scored, without the constant

    @classmethod
    def of(cls, learned: Array, scored: Array, outputs: int, *, centred: bool) -> Split:
        """Return the split of Z of the rows to learn from and Z of those to be scored."""
        means = np.zeros(len(learned) - 1)
        if centred and learned[0, 0] > 0:
            means = learned[0, 1:] / learned[0, 0]
        about = _about(learned, means)
        return cls(
            about[outputs:, outputs:], about[outputs:, :outputs], means, _about(scored, means)
        )


def _size(G: Array) -> float:
    """Return the mean eigenvalue; 1 if it is 0."""
    mean = float(np.trace(G)) / max(len(G), 1)
    return mean if mean > 0 else 1.0


def _about(Z: Array, means: Array) -> Array:
    """Return sum w (a - m)(a - m)' of all columns but the constant one."""
    weight = Z[0, 0]
    sums = Z[0, 1:]
    moved = np.outer(sums, means)
    about: Array = Z[1:, 1:] - moved - moved.T + weight * np.outer(means, means)
    return about


def splits_of(folds: Sequence[Array], outputs: int, *, centred: bool) -> list[Split]:
    """Return one split per fold, except for folds without rows or with all of them."""
    whole = np.sum(folds, axis=0)
    least = 1e-9 * whole[0, 0]
    splits = []
    for own in folds:
        rest = whole - own
        if own[0, 0] > least and rest[0, 0] > least:
            splits.append(Split.of(rest, own, outputs, centred=centred))
    return splits


def held_out_errors(splits: Sequence[Split], outputs: int, alpha: float | None) -> Array:
    """Return the summed squared error of held-out rows for each alpha.

    alpha: the only one; None tries RATIOS times the mean eigenvalue.
    """
    errors = np.zeros(len(RATIOS) if alpha is None else 1)
    for split in splits:
        alphas = RATIOS * _size(split.G) if alpha is None else np.array([alpha])
        g, U = np.linalg.eigh(split.G)
        g = np.maximum(g, np.finfo(np.float64).eps * max(g.max(initial=0.0), 1e-300))
        p = U.T @ split.P
        targets = np.trace(split.scored[:outputs, :outputs])
        S = U.T @ split.scored[outputs:, :outputs]
        Q = U.T @ split.scored[outputs:, outputs:] @ U
        for i, value in enumerate(alphas):
            b = p / (g + value)[:, None]
            error = targets - 2 * np.sum(b * S) + np.sum(b * (Q @ b))
            errors[i] += max(error, 0.0)
    return errors


def readout_without(
    folds: Sequence[Array], left_out: int, outputs: int, alpha: float, *, centred: bool
) -> Array:
    """Return constant and coefficients, (1 + B) x M, learned from all folds except one.

    folds: Z of each fold, for the same features. With no other rows all numbers are 0.
    """
    rest = np.sum([Z for fold, Z in enumerate(folds) if fold != left_out], axis=0)
    split = Split.of(rest, rest, outputs, centred=centred)
    # Kept above 0, because the rows of four folds may determine less than those of all five.
    least = np.finfo(np.float64).eps * max(float(np.trace(split.G)), 1e-300)
    b = np.linalg.solve(split.G + max(alpha, least) * np.eye(len(split.G)), split.P)
    constant = split.means[:outputs] - split.means[outputs:] @ b
    return np.vstack([constant, b])


def best_candidate(
    candidates: Sequence[Sequence[Array]], outputs: int, alpha: float | None, *, centred: bool
) -> tuple[int, float]:
    """Return the place of the candidate of least error, and its alpha for all rows.

    candidates: Z of each fold, for each candidate.
    alpha: the only one to try; None tries many.
    """
    any_of_them = np.sum(candidates[0], axis=0)
    split = Split.of(any_of_them, any_of_them, outputs, centred=centred)
    least = FLOOR * float(np.trace(split.scored[:outputs, :outputs]))
    errors = []
    for folds in candidates:
        splits = splits_of(folds, outputs, centred=centred)
        errors.append(held_out_errors(splits, outputs, alpha) + least)
    place = least_place(np.array([own.min() for own in errors]))
    if alpha is not None:
        return place, alpha
    whole = np.sum(candidates[place], axis=0)
    size = _size(Split.of(whole, whole, outputs, centred=centred).G)
    return place, float(RATIOS[least_place(errors[place])] * size)


def least_place(errors: Array) -> int:
    """Return where the least error is; of those that differ by rounding only, the first."""
    least = errors.min()
    if not least > 0:
        return int(np.argmin(errors))
    return int(np.argmin(np.round(errors / least, DIGITS)))
