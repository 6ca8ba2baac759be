"""Blocks of features of agents that hold columns: H_k, all rows in the B_k features of agent k.

    H = [H_1 | .. | H_L],   f(x) = sum_k b_k'h_k(x_k)       x_k: the columns of agent k
                                                            h_k: its own random features

(thesis, section 6.1). All agents hosted here are computed together: blocks of similar width are
padded with columns of zeros, which change nothing, and stacked. Widths differ between agents, so
coefficients are a list with one (B_k x M) array per agent, or one stack per group while a solver
runs. An agent without columns has a block of width 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from peerlearn.arrays import Array, Indices, product
from peerlearn.local.features import RandomFeatures
from peerlearn.local.least_squares import round_up
from peerlearn.local.normal_equations import inverse, solve_ridge

Stacks = list[Array]  # for each group: its agents x padded width x M


@dataclass(frozen=True)
class FeatureMaps:
    """Rule by which every agent draws its own features. All know it, so features are never sent."""

    hidden: tuple[int, ...]  # hidden units of each agent
    seed: int
    activation: str = "sigmoid"
    direct_links: bool = False

    def draw(self, agent: int, inputs: int) -> RandomFeatures:
        """Return the features of one agent's columns; none if it has no columns."""
        sequence = np.random.SeedSequence((self.seed, agent))
        own = int(sequence.generate_state(1, np.uint64)[0])
        hidden = self.hidden[agent] if inputs else 0
        return RandomFeatures.draw(
            inputs,
            hidden,
            seed=own,
            activation=self.activation,
            direct_links=self.direct_links,
        )


@dataclass(frozen=True)
class Group:
    """Agents whose blocks have similar widths. Columns of zeros fill up the stack."""

    agents: Indices  # their positions among the hosted ones
    H: Array  # agents x N x width

    @property
    def transposed(self) -> Array:
        """H_k', agents x width x N."""
        return self.H.transpose(0, 2, 1)


class ColumnBlocks:
    """Blocks H_k of all hosted agents."""

    def __init__(
        self,
        groups: Sequence[Group],
        rows: int,
        widths: Indices,
    ) -> None:
        self.groups = groups
        self.rows = rows  # N
        self.widths = widths  # B_k
        self.centred = False  # whether the means of columns were subtracted
        self.inputs: list[Array] = []
        self.maps: FeatureMaps | None = None

    @classmethod
    def of_features(cls, H: Sequence[Array]) -> ColumnBlocks:
        """Return the blocks of each agent's features; all agents have the same rows."""
        widths = [h.shape[1] for h in H]
        return cls._of(widths, len(H[0]), lambda k, out: np.copyto(out, H[k]))

    @classmethod
    def of_inputs(
        cls,
        maps: FeatureMaps,
        agents: Sequence[int],
        X: Sequence[Array],
    ) -> ColumnBlocks:
        """Return the blocks of each agent's columns; `agents` are the numbers of the hosted."""
        features = [maps.draw(agent, x.shape[1]) for agent, x in zip(agents, X, strict=True)]
        widths = [each.width for each in features]
        blocks = cls._of(widths, len(X[0]), lambda k, out: features[k](X[k], out))
        blocks.inputs = list(X)
        blocks.maps = maps
        return blocks

    @classmethod
    def _of(
        cls,
        widths: Sequence[int],
        rows: int,
        fill: Callable[[int, Array], Any],
    ) -> ColumnBlocks:
        """Return blocks that `fill(agent, out)` writes to memory."""
        own = np.array(widths, dtype=np.intp)
        wide = round_up(own)
        groups = []
        for width in np.unique(wide).tolist():
            agents = np.flatnonzero(wide == width)
            H = np.zeros((len(agents), rows, width))
            for i, k in enumerate(agents.tolist()):
                fill(k, H[i, :, : own[k]])
            groups.append(Group(agents, H))
        return cls(groups, rows, own)

    @property
    def agents(self) -> int:
        """Number of hosted agents."""
        return len(self.widths)

    @property
    def own_units(self) -> float:
        """Units of rounding in the columns themselves, and in targets about their mean."""
        return 2.0 if self.centred else 0.0  # two differences

    def block(self, agent: int) -> Array:
        """Return H_k of one hosted agent, without padding."""
        group = next(group for group in self.groups if agent in group.agents)
        place = int(np.flatnonzero(group.agents == agent)[0])
        own: Array = group.H[place, :, : self.widths[agent]]
        return own

    def centre(self) -> list[Array]:
        """Subtract the mean of every column, in place, and return each agent's means."""
        means = [np.empty(0)] * self.agents
        for group in self.groups:
            for k, H in zip(group.agents.tolist(), group.H, strict=True):
                means[k] = subtract_means(H)[: self.widths[k]]
        self.centred = True
        return means

    def outputs(self, b: Stacks) -> Array:
        """Return H_k b_k: agents x N x M."""
        M = b[0].shape[2]
        outputs = np.empty((self.agents, self.rows, M))
        for group, own in zip(self.groups, b, strict=True):
            outputs[group.agents] = product(group.H, own)
        return outputs

    def moments(self, a: Array) -> Stacks:
        """Return H_k'a_k, from agents x N x M."""
        return [product(group.transposed, a[group.agents]) for group in self.groups]

    def kernel(self, a: Array) -> Array:
        """Return H_k H_k'a_k: agents x N x M."""
        return self.outputs(self.moments(a))

    def ridge_map(self, shift: float) -> Callable[[Array], Stacks]:
        """Return v -> argmin_b |H_k b - v_k|^2 + shift |b|^2 at every agent, factorised once.

        (H'H + s I)^-1 H'v = H'(H H' + s I)^-1 v: the smaller of the two matrices is inverted.
        """
        few_rows = [self.rows < group.H.shape[2] for group in self.groups]
        inverses = []
        for group, few in zip(self.groups, few_rows, strict=True):
            grams = [h @ h.T if few else h.T @ h for h in group.H]
            inverses.append(np.stack([_inverse(G, shift) for G in grams]))

        def apply(v: Array) -> Stacks:
            stacks = []
            for group, K, few in zip(self.groups, inverses, few_rows, strict=True):
                own = v[group.agents]
                if few:
                    stacks.append(group.transposed @ (K @ own))
                else:
                    stacks.append(K @ (group.transposed @ own))
            return stacks

        return apply

    def ridge(self, Y: Array, alpha: float) -> list[Array]:
        """Return argmin_b 1/2 |H_k b - Y|^2 + alpha/2 |b|^2 of each agent alone."""
        return [_ridge(self.block(k), Y, alpha) for k in range(self.agents)]

    def squares(self) -> Array:
        """Return |H_k|^2, the sum of the eigenvalues of H_k'H_k."""
        sums = np.empty(self.agents)
        for group in self.groups:
            sums[group.agents] = [np.vdot(H, H) for H in group.H]
        return sums

    def separate(self, b: Stacks) -> list[Array]:
        """Return each agent's own coefficients, B_k x M, without padding."""
        own = [np.empty(0)] * self.agents
        for group, stack in zip(self.groups, b, strict=True):
            for k, coefficients in zip(group.agents.tolist(), stack, strict=True):
                own[k] = coefficients[: self.widths[k]].copy()
        return own


def subtract_means(columns: Array) -> Array:
    """Subtract the mean of every column, in place, and return the means.

    Twice: what rounding left of a large mean is small beside the column then. A difference is
    rounded relative to itself, so that columns about their means have one unit of rounding.
    """
    means = columns.mean(axis=0)
    columns -= means
    rest = columns.mean(axis=0)
    columns -= rest
    found: Array = means + rest
    return found


def _inverse(G: Array, shift: float) -> Array:
    return inverse(G, shift) if len(G) else G  # empty for an agent without columns


def _ridge(
    H: Array,
    Y: Array,
    alpha: float,
) -> Array:
    N, B = H.shape
    if B == 0:
        return np.zeros((0, Y.shape[1]))
    if N < B:
        return H.T @ solve_ridge(H @ H.T, Y, alpha)
    return solve_ridge(H.T @ H, H.T @ Y, alpha)
