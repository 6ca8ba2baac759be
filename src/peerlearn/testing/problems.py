"""Small problems with known answers, for checks of solvers.

They are well conditioned, so that any correct method solves them in seconds. Agents have unequal
numbers of rows, and rows that differ from those of others.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np

from peerlearn import graphs
from peerlearn.arrays import Array
from peerlearn.local.least_squares import LeastSquares

GRAPHS: dict[str, nx.Graph] = {
    "a ring of 5": graphs.ring(5),
    "a star of 6": graphs.star(6),
    "a line of 4": graphs.linear(4),
    "a random graph of 8": graphs.erdos_renyi(8, 0.4, seed=0),
}
ALPHA = 4.0  # with the features below, conditions are some tens


@dataclass(frozen=True)
class Readout:
    """Ridge over the rows of several agents: features H_k and targets Y_k of each."""

    H: list[Array]
    Y: list[Array]

    @classmethod
    def draw(cls, agents: int, *, features: int = 6, outputs: int = 2, seed: int = 0) -> Readout:
        """Return rows of one linear model with noise; agents differ in their number and place."""
        rng = np.random.default_rng(seed)
        truth = rng.standard_normal((features, outputs))
        rows = rng.permutation(np.linspace(5, 40, agents).astype(int))
        H = []
        for n in rows:
            spread = rng.standard_normal((n, features))
            H.append(spread + 0.3 * rng.standard_normal(features))
        Y = []
        for h in H:
            noise = rng.standard_normal((len(h), outputs))
            Y.append(h @ truth + 0.3 * noise)
        return cls(H, Y)

    @property
    def agents(self) -> int:
        return len(self.H)

    def of(self, hosted: tuple[int, ...]) -> LeastSquares:
        """Return the problems of these agents."""
        H = [self.H[k] for k in hosted]
        Y = [self.Y[k] for k in hosted]
        return LeastSquares.of_rows(H, Y)

    def pooled(self, alpha: float) -> Array:
        """Return the coefficients that all rows give in one place."""
        return ridge(np.vstack(self.H), np.vstack(self.Y), alpha)

    def own(self, agent: int, alpha: float) -> Array:
        """Return the coefficients that one agent's rows give."""
        return ridge(self.H[agent], self.Y[agent], alpha)

    def with_targets(self, Y: list[Array]) -> Readout:
        return Readout(self.H, Y)


def ridge(H: Array, Y: Array, alpha: float) -> Array:
    """Solve min |H b - Y|^2 + alpha |b|^2 without any code of the package."""
    gram = H.T @ H + alpha * np.eye(H.shape[1])
    return np.asarray(np.linalg.solve(gram, H.T @ Y), dtype=np.float64)


def distance(found: Array, answer: Array) -> float:
    """Return how far off the worst agent is, relative to the answer."""
    squares = (found - answer) ** 2
    apart = np.sqrt(squares.reshape(len(found), -1).sum(axis=1))
    return float(apart.max() / max(np.linalg.norm(answer), 1e-300))
