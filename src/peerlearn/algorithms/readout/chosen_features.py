"""Features and penalty of a readout, chosen by K-fold cross-validation from sums.

    N, W = sum w, sum w x, then sum w (x - m)^2, thrice     over the network
    Z_f of candidates with few units, for some rows         over the network, to one agent
    kind and width of least error                           at that agent; all others take them
    Z_f of the chosen features, for all rows                over the network, to the same agent
    alpha of least error                                    at that agent; all others take it
    b_f, learned without fold f, where scores of rows that were held out are asked for:
                                                            at that agent; all others take them

`peerlearn.local.cross_validation` has the formulas of Z_f and of the error. Nothing is sent except
these sums and the choice. With the solver `Local` nothing is sent at all: every agent chooses an
alpha of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.readout.local import Local
from peerlearn.algorithms.readout.means import TOLERANCE, common_sums
from peerlearn.algorithms.readout.solver import Solver
from peerlearn.algorithms.sums import broadcast_from_center, broadcast_from_root, sum_to_root
from peerlearn.arrays import Array
from peerlearn.local.candidates import (
    CANDIDATES,
    Candidate,
    Directions,
    direct_links,
    first_sums,
    hash_rows,
    second_sums,
)
from peerlearn.local.cross_validation import Candidates, best_candidate, readout_without
from peerlearn.local.features import MOST, FeatureMap, RandomFeatures
from peerlearn.local.held_out import HeldOutScores
from peerlearn.network.base import Network

FOLDS = 5
FEW_UNITS = 64  # hidden units of a candidate while kinds and widths are compared
FEWEST_UNITS = 100  # hidden units of the chosen features, if their number follows the rows
RESCALINGS = 2  # each takes the weight of far values from mean and deviation
SOME_ROWS = 10_000  # rows of the network, about, by which kinds and widths are compared
MOST_LINKS = 2_000  # columns; with more of them "auto" leaves direct links out


@dataclass
class Rows:
    """Rows of all hosted agents, and how sums over all agents are made.

    weights: of each agent's rows; None if all are 1.
    seed: of the hash that gives each row its fold.
    centred: whether the readout has an intercept.
    """

    network: Network
    solver: Solver
    inputs: Sequence[Any]
    outputs: Sequence[Array]
    weights: Sequence[Array] | None
    seed: int
    centred: bool

    def __post_init__(self) -> None:
        # No cached_property: until Python 3.12 its lock is common to all instances, and agents that
        # are threads of one process would wait for each other.
        self.moments = self._sum_moments()
        _, means, scales = self.moments
        columns = zip(self.inputs, means, scales, strict=True)
        self.hashes = [hash_rows(X, mean, scale, self.seed) for X, mean, scale in columns]

    def _sum_moments(self) -> tuple[Array, Array, Array]:
        """Return the number of rows, and mean and scale of each column, at each hosted agent.

        The scale is 1 / s, and 0 where s is no more than the rounding of the mean. Squares are
        summed about the mean, as in `peerlearn.algorithms.standardise`. Then both are summed again,
        with no value further than MOST deviations from the mean: one wrong cell among many would
        otherwise be most of s, and the column would hardly vary.
        """
        weights = self.weights
        if weights is None:
            weights = [np.ones(X.shape[0]) for X in self.inputs]
        pairs = list(zip(self.inputs, weights, strict=True))
        own = np.stack([first_sums(X, w) for X, w in pairs])
        sums = common_sums(self.network, self.solver, own)
        weight = np.maximum(sums[:, 1:2], np.finfo(np.float64).tiny)
        mean = sums[:, 2:] / weight
        most: list[Array | None] = [None] * len(pairs)
        for _ in range(1 + RESCALINGS):
            own = np.stack(
                [second_sums(*pair, *about) for pair, *about in zip(pairs, mean, most, strict=True)]
            )
            D, S = np.split(common_sums(self.network, self.solver, own), 2, axis=1)
            deviation = np.sqrt(np.maximum(S - D**2 / weight, 0.0) / weight)
            mean = mean + D / weight
            most = list(MOST * deviation)
        varies = deviation > 2 * np.finfo(np.float64).eps * np.abs(mean)
        scale = np.zeros(mean.shape)
        np.divide(1.0, deviation, out=scale, where=varies)
        return sums[:, 0], mean, scale

    def sum_folds(self, candidates: Candidates, share: float = 1.0) -> list[Array]:
        """Return the sums of each fold, where the choice is made.

        share: of all rows that are used.
        """
        return [self._sum_fold(candidates, fold, share) for fold in range(FOLDS)]

    def choose(
        self, candidates: Candidates, folds: Sequence[Array], alpha: float | None
    ) -> tuple[Array, Array]:
        """Return the place of the best candidate and its alpha, for each hosted agent.

        folds: from `sum_folds`.
        alpha: the only one to try; None tries many.
        """
        choices = np.zeros((len(self.inputs), 2))
        for k in self._deciders():
            of_folds = [candidates.matrices(sums[k]) for sums in folds]
            choices[k] = best_candidate(
                list(zip(*of_folds, strict=True)), candidates.outputs, alpha, centred=self.centred
            )
        received = self._send_choice(choices)
        return received[:, 0].astype(np.intp), received[:, 1]

    def score_held_out(
        self, features: FeatureMap, folds: Sequence[Array], alphas: Array
    ) -> list[HeldOutScores]:
        """Return the scores of each agent's rows, each by a readout of all other folds.

        folds: from `sum_folds`, with these features as the only candidate.
        alphas: the penalty of each hosted agent.
        """
        M = self.outputs[0].shape[1]
        candidates = Candidates(None, [features], M)
        scores = [np.zeros(Y.shape) for Y in self.outputs]
        deciders = self._deciders()
        matrices = {k: [candidates.matrices(sums[k])[0] for sums in folds] for k in deciders}
        for fold in range(FOLDS):
            own = np.zeros((len(scores), 1 + features.width, M))
            for k in deciders:
                alpha = float(alphas[k])
                own[k] = readout_without(matrices[k], fold, M, alpha, centred=self.centred)
            readouts = self._send_choice(own.reshape(len(own), -1)).reshape(own.shape)
            for k, b in enumerate(readouts):
                held = np.flatnonzero(self.hashes[k] % FOLDS == fold)
                for block, H in features.blocks(self.inputs[k][held]):
                    scores[k][held[block]] = H @ b[1:] + b[0]
        if self.weights is None:
            return [HeldOutScores(*own) for own in zip(scores, self.outputs, strict=True)]
        return [HeldOutScores(*own) for own in zip(scores, self.outputs, self.weights, strict=True)]

    def _sum_fold(self, candidates: Candidates, fold: int, share: float) -> Array:
        """Return the sums of the rows of one fold, where the choice is made."""
        own = []
        for k, (X, Y) in enumerate(zip(self.inputs, self.outputs, strict=True)):
            hashes = self.hashes[k]
            used = (hashes % FOLDS == fold) & (hashes < share * 2**32)
            w = None if self.weights is None else self.weights[k][used]
            own.append(candidates.sums(X[used], Y[used], w))
        if isinstance(self.solver, Local):
            return np.stack(own)
        averaging = self._averaging()
        if averaging.exact_on(self.network):
            sums: Array = sum_to_root(self.network, np.stack(own))
            return sums
        return averaging.total(self.network, np.stack(own))

    def _deciders(self) -> list[int]:
        """Return the places of the hosted agents that choose: the root, or all with Local."""
        if isinstance(self.solver, Local):
            return list(range(len(self.inputs)))
        root = self.network.tree.root
        return [k for k, agent in enumerate(self.network.hosted) if agent == root]

    def _send_choice(self, choices: Array) -> Array:
        """Return the root's choice at every hosted agent; with Local, each agent's own."""
        if isinstance(self.solver, Local):
            return choices
        on_tree = self._averaging().exact_on(self.network)
        broadcast = broadcast_from_root if on_tree else broadcast_from_center
        received: Array = broadcast(self.network, choices)
        return received

    def _averaging(self) -> Averaging:
        chosen = Averaging.of(getattr(self.solver, "averaging", "auto"))
        return Averaging(chosen.method_on(self.network), TOLERANCE)


def sum_folds(rows: Rows, features: FeatureMap) -> list[Array]:
    """Return the sums of each fold for these features, where the choice is made."""
    return rows.sum_folds(Candidates(None, [features], rows.outputs[0].shape[1]))


def choose_alpha(rows: Rows, features: FeatureMap, folds: Sequence[Array]) -> Array:
    """Return the alpha of each hosted agent for these features. folds: from `sum_folds`."""
    candidates = Candidates(None, [features], rows.outputs[0].shape[1])
    _, alphas = rows.choose(candidates, folds, None)
    return alphas


def choose_features(
    rows: Rows, directions: Directions, alpha: float | None, *, links: bool, units: int | None
) -> tuple[Candidate, RandomFeatures]:
    """Return kind and width of the features, and the features.

    alpha: the penalty; None if it is chosen as well.
    links: whether the readout sees the inputs.
    units: number of hidden units; None takes as many as there are rows, but at least FEWEST_UNITS
        and at most those that were drawn.
    """
    count, mean, scale = (own[0] for own in rows.moments)  # the same at all agents
    shared = direct_links(mean, scale) if links else None
    kinds = CANDIDATES if links else CANDIDATES[1:]  # without links there is nothing linear
    layers = [directions.layer(kind, mean, scale, FEW_UNITS) for kind in kinds]
    candidates = Candidates(shared, layers, rows.outputs[0].shape[1])
    folds = rows.sum_folds(candidates, SOME_ROWS / max(float(count), SOME_ROWS))
    places, _ = rows.choose(candidates, folds, alpha)
    chosen = kinds[places[0]]
    layer = directions.layer(chosen, mean, scale, units or max(round(float(count)), FEWEST_UNITS))
    return chosen, replace(layer, direct_links=links)
