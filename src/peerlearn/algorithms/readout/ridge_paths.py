"""Ridge readouts of all folds and all penalties, from one sum of Gram matrices per fold.

    m = mean of h and y over all agents' rows                          over the network
    Z_f = sum over the rows of fold f of  a a',   a = [1, y, h] - m    over the network, to the root
    b_f, c_f of the rows outside fold f, for every alpha               at the root
    all b_f and c_f                                                    over the network, to all

`peerlearn.local.cross_validation` has the formulas. Only the first sum is needed for the mean; it
keeps features that are far from zero from losing digits. A readout without an intercept has m = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.readout.means import TOLERANCE, common_sums
from peerlearn.algorithms.readout.solver import Solver
from peerlearn.algorithms.sums import broadcast_from_center, broadcast_from_root, sum_to_root
from peerlearn.arrays import Array, Indices
from peerlearn.local.cross_validation import Candidates, Split
from peerlearn.local.features import RandomFeatures
from peerlearn.local.frozen_features import FrozenFeatures
from peerlearn.local.normal_equations import undetermined_error
from peerlearn.network.base import Network

SINGULAR = 1e-14  # least eigenvalue relative to the largest, if alpha is 0


@dataclass(frozen=True)
class FoldRows:
    """Rows of all hosted agents, and the fold of each row.

    centred: whether the readout has an intercept.
    """

    features: RandomFeatures | FrozenFeatures
    inputs: Sequence[Any]
    outputs: Sequence[Array]
    folds: Sequence[Indices]
    centred: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of features and outputs, B and M."""
        return self.features.width, self.outputs[0].shape[1]

    def sums(self) -> Array:
        """Return the number of rows and the sums of features and targets of each hosted agent."""
        own = np.zeros((len(self.inputs), 1 + sum(self.shape)))
        for sums, X, Y in zip(own, self.inputs, self.outputs, strict=True):
            sums[0] = len(Y)
            for _, H in self.features.blocks(X):
                sums[1 : 1 + H.shape[1]] += H.sum(axis=0)
            sums[1 + self.shape[0] :] = Y.sum(axis=0)
        return own

    def gram(self, fold: int, means: Array) -> Array:
        """Return the numbers of Z_f of each hosted agent."""
        B, M = self.shape
        about_mean = Candidates(None, [replace(self.features, center=means[:B])], M)
        own = []
        for X, Y, of_rows in zip(self.inputs, self.outputs, self.folds, strict=True):
            used = of_rows == fold
            own.append(about_mean.sums(X[used], Y[used] - means[B:], None))
        return np.stack(own)


def ridge_paths(
    network: Network, solver: Solver, rows: FoldRows, folds: int, alphas: Sequence[float]
) -> Array:
    """Return the readouts of the rows outside each fold, for each alpha, at each hosted agent.

    The array has the axes agents, folds, alphas, 1 + B, M. The constant comes first.
    """
    B, M = rows.shape
    means = np.zeros(B + M)
    if rows.centred:
        sums = common_sums(network, solver, rows.sums())[0]  # the same at all agents
        means = sums[1:] / max(sums[0], 1.0)
    chosen = Averaging.of(getattr(solver, "averaging", "auto"))
    averaging = Averaging(chosen.method_on(network), TOLERANCE)
    exact = averaging.exact_on(network)
    at_root = []
    root = [k for k, agent in enumerate(network.hosted) if agent == network.tree.root]
    for fold in range(folds):
        own = rows.gram(fold, means)
        sums = sum_to_root(network, own) if exact else averaging.total(network, own)
        at_root.append([sums[k] for k in root])
    answers = np.zeros((len(network.hosted), folds * len(alphas) * (1 + B) * M + 1))
    for k, *of_folds in zip(root, *at_root, strict=True):
        answers[k] = _solve(rows, of_folds, means, alphas)
    broadcast = broadcast_from_root if exact else broadcast_from_center
    received = broadcast(network, answers)
    if received[0, -1]:  # all agents raise the error that the root found
        raise undetermined_error(min(alphas))
    paths: Array = received[:, :-1].reshape(-1, folds, len(alphas), 1 + B, M)
    return paths


def _solve(rows: FoldRows, sums: Sequence[Array], means: Array, alphas: Sequence[float]) -> Array:
    """Return all readouts as one row of numbers, and whether there is one that is not determined.

    sums: numbers of Z of each fold, of all agents.
    """
    B, M = rows.shape
    candidates = Candidates(None, [rows.features], M)
    Z = [candidates.matrices(own)[0] for own in sums]
    whole = np.sum(Z, axis=0)
    found = np.zeros((len(Z), len(alphas), 1 + B, M))
    for fold, own in enumerate(Z):
        split = Split.of(whole - own, own, M, centred=rows.centred)
        g, U = np.linalg.eigh(split.G)
        if min(alphas) == 0 and g[0] <= SINGULAR * g[-1]:
            return np.append(np.zeros(found.size), 1.0)
        p = U.T @ split.P
        for place, alpha in enumerate(alphas):
            b = U @ (p / (g + alpha)[:, None])
            found[fold, place, 1:] = b
            if rows.centred:
                target = means[B:] + split.means[:M]
                found[fold, place, 0] = target - (means[:B] + split.means[M:]) @ b
    return np.append(found.ravel(), 0.0)
