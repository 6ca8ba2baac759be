"""Preconditioners for the network's normal equations: P close to A^-1, where A = sum_k H_k'H_k + alpha I.

    synthetic   All agents know the feature map h. They average the mean and covariance of their inputs once, draw the
                same Gaussian inputs X~ from a common seed, and invert  (N/n~) h(X~)'h(X~) + alpha I.  No other message.
    local       P = sum_k N_k/N (N/N_k H_k'H_k + alpha I)^-1, each part applied by its agent: one more average per
                iteration. Needs no feature map. P >= A^-1, because the inverse is a convex function of a matrix.
    none        P = I

The answer is at most |e| = |A^-1 r| <= |r| / alpha away, r = c - A b; `local` knows it a little better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from peerlearn.arrays import Array, dots, norms
from peerlearn.errors import InputError
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares, PerAgent
from peerlearn.local.ridge import inverse

SYNTHETIC_ROWS = 4000


class Preconditioner(Protocol):
    def prepare(self, problems: LeastSquares, alpha: float, total: PerAgent) -> PerAgent:
        """r -> P r at every agent; `total` sums over the network, with the same bits at every agent."""
        ...

    def distance(self, r: Array, z: Array, alpha: float) -> Array:
        """A bound on how far each agent's b is from the answer."""
        return norms(r) / alpha


@dataclass(frozen=True)
class Nothing(Preconditioner):
    def prepare(self, problems: LeastSquares, alpha: float, total: PerAgent) -> PerAgent:
        return lambda r: r


@dataclass(frozen=True)
class LocalInverses(Preconditioner):
    def prepare(self, problems: LeastSquares, alpha: float, total: PerAgent) -> PerAgent:
        share = problems.rows / total(problems.rows.astype(np.float64))
        mine = problems.shifted_inverse(share * alpha)  # (1/share H'H + alpha I)^-1 = share (H'H + share alpha I)^-1
        return lambda r: total((share**2)[:, None, None] * mine(r))

    def distance(self, r: Array, z: Array, alpha: float) -> Array:
        """|e|^2 <= e'A e / alpha = r'A^-1 r / alpha <= r'z / alpha"""
        energy: Array = np.maximum(dots(r, z), 0.0)
        return np.minimum(norms(r) / alpha, np.sqrt(energy / alpha))


@dataclass(frozen=True)
class SyntheticGram(Preconditioner):
    seed: int = 0

    def prepare(self, problems: LeastSquares, alpha: float, total: PerAgent) -> PerAgent:
        features = problems.features
        if features is None:
            raise InputError(
                "the preconditioner 'synthetic' needs the inputs and the feature map, and this problem has only "
                "features: use preconditioner='local'"
            )
        moments = total(np.stack([_input_moments(X) for X in problems.inputs]))
        P = self._inverse(features, moments[0], alpha)  # the same at every agent: computed once for those hosted here
        return lambda r: P @ r

    def _inverse(self, features: RandomFeatures, moments: Array, alpha: float) -> Array:
        d = len(features.W)
        N, mean = moments[0], moments[1 : d + 1] / moments[0]
        covariance = np.zeros((d, d))
        covariance[np.triu_indices(d)] = moments[d + 1 :] / N
        covariance = covariance + np.triu(covariance, 1).T - np.outer(mean, mean)
        eigenvalues, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        rows = max(SYNTHETIC_ROWS, 4 * features.width)
        H = features(np.random.default_rng(self.seed).standard_normal((rows, d)) @ root.T + mean)
        return inverse(H.T @ H * (N / rows), alpha)


PRECONDITIONERS: dict[str, Preconditioner] = {
    "synthetic": SyntheticGram(),
    "local": LocalInverses(),
    "none": Nothing(),
}


def _input_moments(X: Array) -> Array:
    """Rows, sums and products of the inputs: N_k, sum x, upper triangle of sum x x'."""
    return np.concatenate([[len(X)], X.sum(axis=0), (X.T @ X)[np.triu_indices(X.shape[1])]])
