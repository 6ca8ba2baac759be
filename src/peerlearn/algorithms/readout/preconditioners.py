"""Preconditioners for the network's normal equations.

P is close to A^-1, where A = sum_k H_k'H_k + alpha I.

synthetic. All agents know the feature map h. They average the mean and covariance of their inputs
once, draw the same Gaussian inputs X~ from a common seed, and invert

    (N/n~) h(X~)'h(X~) + alpha I.

No other message is sent.

local. P = sum_k p_k (H_k'H_k / p_k + alpha I)^-1, and each agent applies its own part: one more
sum per iteration. It needs no feature map. P >= A^-1 whatever the shares p_k are, because the
inverse is a convex function of a matrix. p_k = N_k^2 / sum N_j^2: the part of an agent with few
rows is 1/alpha in nearly all directions, so it should weigh little. The first direction is not P c
but the mean of the agents' own readouts. It is nearer to the answer, and can be summed together
with c and the N_k^2. These readouts use less than the agent's share of alpha: Zhang, Duchi and
Wainwright, Divide and conquer kernel ridge regression, 2015.

none. P = I.

The answer is at most |e| = |A^-1 r| <= |r| / alpha away, r = c - A b. `local` has a slightly better
bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.sparse import issparse

from peerlearn.arrays import Array, dots, norms
from peerlearn.errors import InputError
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import LeastSquares, PerAgent
from peerlearn.local.normal_equations import inverse
from peerlearn.network.base import Network

SYNTHETIC_ROWS = 4000
# Part of its share of alpha that an agent uses: what each agent overfits is averaged out.
UNDERSMOOTHED = 0.25


class Preconditioner(Protocol):
    """The contract of a preconditioner. above_inverse: whether P >= A^-1."""

    above_inverse: ClassVar[bool] = False

    def extra_numbers(self, network: Network, problems: LeastSquares, alpha: float) -> Array:
        """Return what each agent adds to the sum of right sides: hosted agents x numbers."""
        return np.zeros((problems.agents, 0))

    def prepare(
        self, problems: LeastSquares, alpha: float, total: PerAgent, extra_sums: Array
    ) -> PerAgent:
        """Return the map r -> P r at every hosted agent.

        total: sums over the network, with the same bits at every agent. extra_sums: the sums of the
        extra numbers.
        """
        ...

    def first(self, problems: LeastSquares, extra_sums: Array) -> Array | None:
        """Return the first direction, or None for P c."""
        return None

    def distance(self, r: Array, z: Array, alpha: float) -> Array:
        """Return a bound on how far each agent's b is from the answer."""
        return norms(r) / alpha


@dataclass(frozen=True)
class Nothing(Preconditioner):
    """No preconditioner: P = I."""

    def prepare(
        self, problems: LeastSquares, alpha: float, total: PerAgent, extra_sums: Array
    ) -> PerAgent:
        return lambda r: r


@dataclass(frozen=True)
class LocalInverses(Preconditioner):
    """The preconditioner "local": a weighted sum of the agents' own inverses."""

    above_inverse: ClassVar[bool] = True

    def extra_numbers(self, network: Network, problems: LeastSquares, alpha: float) -> Array:
        """Return N_k^2 and the agent's own readout, weighted by N_k.

        The weight does not matter for the direction: it may have any length.
        """
        alone = problems.ridge(np.full(problems.agents, UNDERSMOOTHED * alpha / network.size))
        own = problems.rows[:, None, None] * alone
        return np.column_stack(
            [problems.rows.astype(np.float64) ** 2, own.reshape(problems.agents, -1)]
        )

    def prepare(
        self, problems: LeastSquares, alpha: float, total: PerAgent, extra_sums: Array
    ) -> PerAgent:
        share = problems.rows.astype(np.float64) ** 2 / np.maximum(extra_sums[:, 0], 1.0)
        some = np.where(share > 0, share, 1.0)  # an agent without rows has weight 0
        # (1/share H'H + alpha I)^-1 = share (H'H + share alpha I)^-1
        own = problems.shifted_inverse(some * alpha)
        return lambda r: total((share**2)[:, None, None] * own(r))

    def first(self, problems: LeastSquares, extra_sums: Array) -> Array:
        return extra_sums[:, 1:].reshape(-1, *problems.shape)

    def distance(self, r: Array, z: Array, alpha: float) -> Array:
        """Return the smaller of |r| / alpha and the bound by the energy of the error.

        |e|^2 <= e'A e / alpha = r'A^-1 r / alpha <= r'z / alpha
        """
        energy: Array = np.maximum(dots(r, z), 0.0)
        return np.minimum(norms(r) / alpha, np.sqrt(energy / alpha))


@dataclass(frozen=True)
class SyntheticGram(Preconditioner):
    """The preconditioner "synthetic": the inverse for Gaussian inputs like those of the agents."""

    seed: int = 0

    def extra_numbers(self, network: Network, problems: LeastSquares, alpha: float) -> Array:
        """Return no numbers, after a check that the feature map is known."""
        if problems.features is None:
            raise InputError(
                "the preconditioner 'synthetic' needs the inputs and the feature map, and this "
                "problem has only features: use preconditioner='local'"
            )
        return super().extra_numbers(network, problems, alpha)

    def prepare(
        self, problems: LeastSquares, alpha: float, total: PerAgent, extra_sums: Array
    ) -> PerAgent:
        features = problems.features
        assert features is not None
        moments = total(np.stack([_input_moments(X) for X in problems.inputs]))
        # The same at every agent, so it is computed once for all hosted ones.
        P = self._invert(features, moments[0], alpha)
        return lambda r: P @ r

    def _invert(self, features: RandomFeatures, moments: Array, alpha: float) -> Array:
        d = len(features.W)
        N = max(moments[0], 1.0)  # if nobody has rows, all other moments are 0
        mean = moments[1 : d + 1] / N
        covariance = np.zeros((d, d))
        covariance[np.triu_indices(d)] = moments[d + 1 :] / N
        covariance = covariance + np.triu(covariance, 1).T - np.outer(mean, mean)
        eigenvalues, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        rows = max(SYNTHETIC_ROWS, 4 * features.width)
        g = np.random.default_rng(self.seed).standard_normal((rows, d))
        H = features(g @ root.T + mean)
        return inverse(H.T @ H * (N / rows), alpha)


PRECONDITIONERS: dict[str, Preconditioner] = {
    "synthetic": SyntheticGram(),
    "local": LocalInverses(),
    "none": Nothing(),
}


def _input_moments(X: Any) -> Array:
    """Return N_k, sum x and the upper triangle of sum x x' of an agent's inputs."""
    triangle = np.triu_indices(X.shape[1])
    products = X.T @ X
    if issparse(products):
        products = products.toarray()
    return np.concatenate([[X.shape[0]], np.ravel(X.sum(axis=0)), products[triangle]])
