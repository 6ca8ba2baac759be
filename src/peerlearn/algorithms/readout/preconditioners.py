"""Preconditioners for the network's normal equations: P close to A^-1, where A = sum_k H_k'H_k + alpha I.

    synthetic   All agents know the feature map h. They average the mean and covariance of their inputs once, draw the
                same Gaussian inputs X~ from a common seed, and invert  (N/n~) h(X~)'h(X~) + alpha I.  No other message.
    local       P = sum_k p_k (H_k'H_k / p_k + alpha I)^-1, each part applied by its agent: one more average per
                iteration. Needs no feature map. P >= A^-1 whatever the shares p_k, because the
                inverse is a convex function of a matrix; p_k = N_k^2 / sum N_j^2, since an agent
                with few rows says 1/alpha of nearly all. The first direction is not P c but the
                mean of the agents' own readouts, which is nearer to the answer and can be summed
                together with c and the N_k^2. They use less than their share of alpha: Zhang, Duchi
                and Wainwright, Divide and conquer kernel ridge regression, 2015.
    none        P = I

The answer is at most |e| = |A^-1 r| <= |r| / alpha away, r = c - A b; `local` knows it a little
better.
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
from peerlearn.network.base import Network

SYNTHETIC_ROWS = 4000
UNDERSMOOTHED = 0.25  # of an agent's share of alpha: what each learns too closely is averaged out


class Preconditioner(Protocol):
    def extra_numbers(self, network: Network, problems: LeastSquares, alpha: float) -> Array:
        """What each agent adds to the sum of right sides: hosted agents x numbers."""
        return np.zeros((problems.agents, 0))

    def prepare(
        self, problems: LeastSquares, alpha: float, total: PerAgent, extra_sums: Array
    ) -> PerAgent:
        """r -> P r at every agent; `total` sums over the network, with the same bits at every agent.

        extra_sums: the sums of the extra numbers.
        """
        ...

    def first(self, problems: LeastSquares, extra_sums: Array) -> Array | None:
        """The first direction, if it is not to be P c."""
        return None

    def distance(self, r: Array, z: Array, alpha: float) -> Array:
        """A bound on how far each agent's b is from the answer."""
        return norms(r) / alpha


@dataclass(frozen=True)
class Nothing(Preconditioner):
    def prepare(
        self, problems: LeastSquares, alpha: float, total: PerAgent, extra_sums: Array
    ) -> PerAgent:
        return lambda r: r


@dataclass(frozen=True)
class LocalInverses(Preconditioner):
    def extra_numbers(self, network: Network, problems: LeastSquares, alpha: float) -> Array:
        """N_k^2, and the agent's readout weighted by N_k, since a direction may have any length."""
        alone = problems.ridge(np.full(problems.agents, UNDERSMOOTHED * alpha / network.size))
        own = problems.rows[:, None, None] * alone
        return np.column_stack(
            [problems.rows.astype(np.float64) ** 2, own.reshape(problems.agents, -1)]
        )

    def prepare(
        self, problems: LeastSquares, alpha: float, total: PerAgent, extra_sums: Array
    ) -> PerAgent:
        share = problems.rows.astype(np.float64) ** 2 / np.maximum(extra_sums[:, 0], 1.0)
        some = np.where(share > 0, share, 1.0)  # who has no rows says nothing
        mine = problems.shifted_inverse(
            some * alpha
        )  # (1/share H'H + alpha I)^-1 = share (H'H + share alpha I)^-1
        return lambda r: total((share**2)[:, None, None] * mine(r))

    def first(self, problems: LeastSquares, extra_sums: Array) -> Array:
        return extra_sums[:, 1:].reshape(-1, *problems.shape)

    def distance(self, r: Array, z: Array, alpha: float) -> Array:
        """|e|^2 <= e'A e / alpha = r'A^-1 r / alpha <= r'z / alpha"""
        energy: Array = np.maximum(dots(r, z), 0.0)
        return np.minimum(norms(r) / alpha, np.sqrt(energy / alpha))


@dataclass(frozen=True)
class SyntheticGram(Preconditioner):
    seed: int = 0

    def extra_numbers(self, network: Network, problems: LeastSquares, alpha: float) -> Array:
        """Nothing; but what is missing is said before the first message."""
        if problems.features is None:
            raise InputError(
                "the preconditioner 'synthetic' needs the inputs and the feature map, and this problem has only "
                "features: use preconditioner='local'"
            )
        return super().extra_numbers(network, problems, alpha)

    def prepare(
        self, problems: LeastSquares, alpha: float, total: PerAgent, extra_sums: Array
    ) -> PerAgent:
        features = problems.features
        assert features is not None
        moments = total(np.stack([_input_moments(X) for X in problems.inputs]))
        P = self._inverse(
            features, moments[0], alpha
        )  # the same at every agent: computed once for those hosted here
        return lambda r: P @ r

    def _inverse(self, features: RandomFeatures, moments: Array, alpha: float) -> Array:
        d = len(features.W)
        N = max(moments[0], 1.0)  # where nobody has rows, all else is 0
        mean = moments[1 : d + 1] / N
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
