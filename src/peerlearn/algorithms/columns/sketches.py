"""Preconditioners from a sketch of all agents' columns.

P is close to A^-1, where A = H'H + alpha I, H = [H_1 | .. | H_L].

All agents assign the rows to s buckets and give each row a sign, from a common seed. Agent k adds
up its signed rows in each bucket, and sends these s sums: S H_k instead of H_k. The sums of
different agents belong to the same rows, so (S H)'(S H) is H'H on average, also between the columns
of different agents.

features. P = ((S H)'(S H) + alpha I)^-1 with s = 2 B. Good for any features; s B numbers are sent,
once.

inputs. The same sketch of the inputs, less their mean and scaled to their variance: s D numbers, D
columns in all. All agents know the seeds of all features, so they draw the same Gaussian inputs
x~ = (S X)'g + mean with g ~ N(0, I), and invert  N/n~ h(X~)'h(X~) + alpha I.  For many features.

Clarkson and Woodruff, Low-rank approximation and regression in input sparsity time, 2013 (the
sketch); Rokhlin and Tygert, A fast randomized algorithm for overdetermined linear least-squares
regression, 2008 (as a preconditioner). Buckets are of equal size, at least MIXED rows: a sum of
fewer would nearly show the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from peerlearn.algorithms.sums import maximum
from peerlearn.algorithms.unexpected import LIKELY_CAUSE
from peerlearn.arrays import Array
from peerlearn.errors import InputError, WireError
from peerlearn.local.column_blocks import ColumnBlocks
from peerlearn.local.least_squares import PerAgent
from peerlearn.local.ridge import inverse
from peerlearn.network.base import Network

MIXED = 8  # least number of rows behind every number that is sent
# Buckets per feature: fewer cost more in iterations than they save, more cost too much to send.
PER_FEATURE = 2
FOR_INPUTS = 500  # buckets: with more, the covariance would hardly be better known
SYNTHETIC_ROWS = 4000
MOST = 1e6  # columns or features of an agent


@dataclass(frozen=True)
class Layout:
    """How many columns and features each agent of the network has, and their places among all.

    inputs: d_k of every agent. widths: B_k of every agent. hosted: the agents hosted here.
    """

    inputs: tuple[int, ...]
    widths: tuple[int, ...]
    hosted: tuple[int, ...]

    @property
    def D(self) -> int:
        """Number of columns of all agents."""
        return sum(self.inputs)

    @property
    def B(self) -> int:
        """Number of features of all agents."""
        return sum(self.widths)

    @classmethod
    def of(cls, network: Network, blocks: ColumnBlocks) -> Layout:
        """Flood the sizes of all agents: each puts its own at its own place."""
        here = np.arange(blocks.agents)
        own = np.zeros((blocks.agents, 2, network.size))
        if blocks.inputs:
            own[here, 0, list(network.hosted)] = [X.shape[1] for X in blocks.inputs]
        own[here, 1, list(network.hosted)] = blocks.widths
        heard = maximum(network, own)[0]
        if len(np.flatnonzero(~((heard >= 0) & (heard <= MOST)))):
            raise WireError(f"an agent announced an impossible number of columns: {LIKELY_CAUSE}")
        inputs, widths = heard.astype(int).tolist()
        return cls(tuple(inputs), tuple(widths), network.hosted)

    def columns(self, here: int) -> slice:
        """Return where the columns of one hosted agent are among those of all."""
        return _place(self.inputs, self.hosted[here])

    def features(self, here: int) -> slice:
        """Return where the features of one hosted agent are among those of all."""
        return _place(self.widths, self.hosted[here])


class Sketch(Protocol):
    """The contract of a sketch."""

    def buckets(self, rows: int, layout: Layout) -> int:
        """Return how many sums each agent sends of each of its columns."""
        ...

    def numbers(self, rows: int, layout: Layout) -> int:
        """Return how many numbers are summed over the network, once."""
        ...

    def prepare(
        self, blocks: ColumnBlocks, layout: Layout, alpha: float, total: PerAgent
    ) -> PerAgent:
        """Return the map r -> P r at every hosted agent.

        total: sums over the network, with the same bits at every agent.
        """
        ...


@dataclass(frozen=True)
class OfFeatures(Sketch):
    """The sketch "features"."""

    seed: int = 0

    def buckets(self, rows: int, layout: Layout) -> int:
        return _limit_buckets(PER_FEATURE * layout.B, rows)

    def numbers(self, rows: int, layout: Layout) -> int:
        return self.buckets(rows, layout) * layout.B

    def prepare(
        self, blocks: ColumnBlocks, layout: Layout, alpha: float, total: PerAgent
    ) -> PerAgent:
        S = _sums(blocks.rows, self.buckets(blocks.rows, layout), self.seed)
        parts = np.zeros((blocks.agents, S.shape[0], layout.B))
        for k in range(blocks.agents):
            parts[k, :, layout.features(k)] = S @ blocks.block(k)
        SH = total(parts)[0]  # the same at every agent: inverted once for those hosted here
        P = inverse(SH.T @ SH, alpha)
        return lambda r: P @ r


@dataclass(frozen=True)
class OfInputs(Sketch):
    """The sketch "inputs"."""

    seed: int = 0

    def buckets(self, rows: int, layout: Layout) -> int:
        return _limit_buckets(FOR_INPUTS, rows)

    def numbers(self, rows: int, layout: Layout) -> int:
        return (1 + self.buckets(rows, layout)) * layout.D

    def prepare(
        self, blocks: ColumnBlocks, layout: Layout, alpha: float, total: PerAgent
    ) -> PerAgent:
        if blocks.maps is None:
            raise InputError(
                "sketch='inputs' needs the inputs and the seeds of all agents' features, and these "
                "blocks have only features: use sketch='features'"
            )
        S = _sums(blocks.rows, self.buckets(blocks.rows, layout), self.seed)
        parts = np.zeros((blocks.agents, 1 + S.shape[0], layout.D))
        for k, X in enumerate(blocks.inputs):
            parts[k, :, layout.columns(k)] = _mean_and_sums(X, S)
        mean, *sums = total(parts)[0]
        rows = max(SYNTHETIC_ROWS, 4 * layout.B)
        g = np.random.default_rng(self.seed).standard_normal((rows, len(sums)))
        X = g @ np.array(sums) + mean
        parts_of_X = np.split(X, np.cumsum(layout.inputs)[:-1], axis=1)
        H = np.hstack([blocks.maps.draw(k, x.shape[1])(x) for k, x in enumerate(parts_of_X)])
        if blocks.centred:
            H -= H.mean(axis=0)
        P = inverse(H.T @ H * (blocks.rows / rows), alpha)
        return lambda r: P @ r


SKETCHES: dict[str, Sketch] = {"features": OfFeatures(), "inputs": OfInputs()}


def _place(sizes: tuple[int, ...], agent: int) -> slice:
    start = sum(sizes[:agent])
    return slice(start, start + sizes[agent])


def _limit_buckets(wanted: int, rows: int) -> int:
    return max(min(wanted, rows // MIXED), 1)


def _sums(rows: int, buckets: int, seed: int) -> sp.csr_array:
    """Return S: buckets x rows, one sign per row, equally many rows in each bucket."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], rows)
    bucket = rng.permutation(rows) % buckets
    return sp.csr_array((signs, (bucket, np.arange(rows))), shape=(buckets, rows))


def _mean_and_sums(X: Array, S: sp.csr_array) -> Array:
    """Return the mean of each column, and sums of its signed deviations.

    The sums are scaled to have the column's variance together.
    """
    mean = X.sum(axis=0) / len(X)
    deviations = X - mean
    sums = S @ deviations
    scaled = deviations / np.sqrt(len(X))
    variance = np.einsum("nd,nd->d", scaled, scaled)
    found = np.einsum("nd,nd->d", sums, sums)
    ratio = np.divide(variance, found, out=np.zeros_like(found), where=found > 0)
    return np.vstack([mean, sums * np.sqrt(ratio)])
