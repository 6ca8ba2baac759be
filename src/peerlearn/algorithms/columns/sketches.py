"""Preconditioners from a sketch of what all agents have: P close to A^-1, A = H'H + alpha I, H = [H_1 | .. | H_L].

All agents assign the rows to s buckets and give each row a sign, from a common seed; agent k adds
up its signed rows in each bucket, and sends these s sums: S H_k instead of H_k. The sums of
different agents belong to the same rows, so that (S H)'(S H) is H'H on average, also between the
columns of different agents.

    features    P = ((S H)'(S H) + alpha I)^-1,  s = 2 B: good for whatever features; s B numbers are sent, once.
    inputs      The same sketch of the inputs, less their mean and scaled to their variance: s D numbers, D columns in
                all. Everybody knows the seeds of everybody's features, so all draw the same
                Gaussian inputs
                x~ = (S X)'g + mean with g ~ N(0, I), and invert  N/n~ h(X~)'h(X~) + alpha I.  For many features.

Clarkson and Woodruff, Low-rank approximation and regression in input sparsity time, 2013 (the
sketch); Rokhlin and Tygert, A fast randomized algorithm for overdetermined linear least-squares
regression, 2008 (as a preconditioner). Buckets are of equal size, at least MIXED rows: a sum of
fewer would all but show the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from peerlearn.algorithms.flooding import maximum
from peerlearn.arrays import Array
from peerlearn.errors import InputError, WireError
from peerlearn.local.column_blocks import ColumnBlocks
from peerlearn.local.least_squares import PerAgent
from peerlearn.local.ridge import inverse
from peerlearn.network.base import Network

MIXED = 8  # rows at least behind every number that is sent
PER_FEATURE = 2  # buckets: with fewer, iterations are more than they save; with more, the sketch is
FOR_INPUTS = 500  # buckets: beyond that the covariance is known well enough
SYNTHETIC_ROWS = 4000
MOST = 1e6  # columns or features of an agent


@dataclass(frozen=True)
class Layout:
    """How many columns and features each agent of the network has, and so where its own stand among all."""

    inputs: tuple[int, ...]  # d_k of every agent
    widths: tuple[int, ...]  # B_k of every agent
    hosted: tuple[int, ...]

    @property
    def D(self) -> int:
        return sum(self.inputs)

    @property
    def B(self) -> int:
        return sum(self.widths)

    @classmethod
    def of(cls, network: Network, blocks: ColumnBlocks) -> Layout:
        """Flooded: each agent puts its own numbers in its own place."""
        here = np.arange(blocks.agents)
        own = np.zeros((blocks.agents, 2, network.size))
        own[here, 0, list(network.hosted)] = [X.shape[1] for X in blocks.inputs] or [
            0
        ] * blocks.agents
        own[here, 1, list(network.hosted)] = blocks.widths
        heard = maximum(network, own)[0]
        if len(np.flatnonzero(~((heard >= 0) & (heard <= MOST)))):
            raise WireError(
                "an agent says to have a number of columns that there cannot be: it runs something else"
            )
        inputs, widths = heard.astype(int).tolist()
        return cls(tuple(inputs), tuple(widths), network.hosted)

    def columns(self, here: int) -> slice:
        """Where the columns of one hosted agent stand among those of all."""
        return _place(self.inputs, self.hosted[here])

    def features(self, here: int) -> slice:
        """Where the features of one hosted agent stand among those of all."""
        return _place(self.widths, self.hosted[here])


class Sketch(Protocol):
    def buckets(self, rows: int, layout: Layout) -> int:
        """How many sums each agent sends of each of its columns."""
        ...

    def numbers(self, rows: int, layout: Layout) -> int:
        """How many numbers are summed over the network, once."""
        ...

    def prepare(
        self, blocks: ColumnBlocks, layout: Layout, alpha: float, total: PerAgent
    ) -> PerAgent:
        """r -> P r at every agent; `total` sums over the network, with the same bits at every agent."""
        ...


@dataclass(frozen=True)
class OfFeatures(Sketch):
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
                "sketch='inputs' needs the inputs and the seeds of all agents' features, and these blocks have only "
                "features: use sketch='features'"
            )
        S = _sums(blocks.rows, self.buckets(blocks.rows, layout), self.seed)
        parts = np.zeros((blocks.agents, 1 + S.shape[0], layout.D))
        for k, X in enumerate(blocks.inputs):
            parts[k, :, layout.columns(k)] = _mean_and_sums(X, S)
        mean, *sums = total(parts)[0]
        rows = max(SYNTHETIC_ROWS, 4 * layout.B)
        X = (
            np.random.default_rng(self.seed).standard_normal((rows, len(sums))) @ np.array(sums)
            + mean
        )
        ends = np.cumsum(layout.inputs)[:-1]
        H = np.hstack(
            [blocks.maps.draw(k, x.shape[1])(x) for k, x in enumerate(np.split(X, ends, axis=1))]
        )
        P = inverse(H.T @ H * (blocks.rows / rows), alpha)
        return lambda r: P @ r


SKETCHES: dict[str, Sketch] = {"features": OfFeatures(), "inputs": OfInputs()}


def _place(sizes: tuple[int, ...], agent: int) -> slice:
    start = sum(sizes[:agent])
    return slice(start, start + sizes[agent])


def _limit_buckets(wanted: int, rows: int) -> int:
    return max(min(wanted, rows // MIXED), 1)


def _sums(rows: int, buckets: int, seed: int) -> sp.csr_array:
    """S: buckets x rows, one sign per row, as many rows in each bucket."""
    rng = np.random.default_rng(seed)
    signs, bucket = rng.choice([-1.0, 1.0], rows), rng.permutation(rows) % buckets
    return sp.csr_array((signs, (bucket, np.arange(rows))), shape=(buckets, rows))


def _mean_and_sums(X: Array, S: sp.csr_array) -> Array:
    """The mean of each column, and sums of its signed deviations, scaled to have the column's variance in all."""
    mean = X.sum(axis=0) / len(X)
    deviations = X - mean
    sums = S @ deviations
    wanted, found = (np.einsum("nd,nd->d", x, x) for x in (deviations / np.sqrt(len(X)), sums))
    return np.vstack(
        [mean, sums * np.sqrt(np.divide(wanted, found, out=np.zeros_like(found), where=found > 0))]
    )
