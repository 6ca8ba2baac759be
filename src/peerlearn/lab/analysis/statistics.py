"""Tests between models over blocks: Wilcoxon in pairs, Friedman over all, Nemenyi between ranks.

    chi2 = 12 N / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4)
           Friedman, 1937: N blocks, k models of mean ranks R_j
    F    = (N - 1) chi2 / (N (k - 1) - chi2)
           Iman, Davenport, 1980: F with k - 1, (k - 1)(N - 1) degrees of freedom
    CD   = q sqrt(k (k + 1) / (6 N))
           Nemenyi, 1963: q of the studentized range / sqrt 2

as in Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 2006. Ties share
their mean rank, which makes Friedman's test a little careful. In a signed-rank test (Wilcoxon,
1945) the ranks of zero differences go half to either side. Pairs are corrected for their number by
Holm's method (1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from peerlearn.arrays import Array

DIGITS = 12  # of a value; what differs less is a rounding error, and a tie
FEWEST = 3  # blocks of Friedman's test: what F says of two is no use


@dataclass(frozen=True)
class Pair:
    """Two models in one signed-rank test; the first is the better one."""

    first: str
    second: str
    blocks: int
    wins: int  # blocks in which the first is better
    losses: int
    statistic: float  # the smaller of the two sums of ranks
    p: float
    corrected: float  # by Holm


@dataclass(frozen=True)
class Friedman:
    """Mean ranks, 1 the best, and whether they are further apart than chance explains."""

    models: tuple[str, ...]
    ranks: tuple[float, ...]
    blocks: int
    level: float
    chi2: float
    chi2_p: float
    f: float
    p: float  # of F
    difference: float  # the critical one: models whose ranks are further apart differ at this level

    @property
    def freedom(self) -> tuple[int, int]:
        k = len(self.models)
        return k - 1, (k - 1) * (self.blocks - 1)

    @property
    def order(self) -> list[int]:
        """The models from the best."""
        return sorted(range(len(self.models)), key=lambda k: self.ranks[k])

    @property
    def alike(self) -> list[tuple[str, ...]]:
        """The largest groups of neighbors in rank that Nemenyi's test does not tell apart."""
        order = self.order
        groups: list[tuple[int, int]] = []
        for start in range(len(order)):
            end = start
            while (
                end + 1 < len(order)
                and self.ranks[order[end + 1]] - self.ranks[order[start]] <= self.difference
            ):
                end += 1
            if end > start and (not groups or end > groups[-1][1]):
                groups.append((start, end))
        return [tuple(self.models[k] for k in order[start : end + 1]) for start, end in groups]

    def nemenyi(self, first: str, second: str) -> float:
        """Return the probability that chance takes the ranks of any two models this far apart."""
        k = len(self.models)
        apart = abs(self.ranks[self.models.index(first)] - self.ranks[self.models.index(second)])
        scaled = apart / math.sqrt(k * (k + 1) / (6 * self.blocks)) * math.sqrt(2)
        return float(stats.studentized_range.sf(scaled, k, np.inf))


def ranks(values: Array, *, smaller: bool = True) -> Array:
    """Rank the models (columns) in each block (line): 1 the best; equal ones share the mean."""
    rounded = _drop_rounding(values, _largest(values, axis=1))
    return np.asarray(stats.rankdata(rounded if smaller else -rounded, axis=1))


def friedman(
    models: Sequence[str], values: Array, level: float, *, smaller: bool = True
) -> Friedman:
    N, k = values.shape
    mean = ranks(values, smaller=smaller).mean(axis=0)
    chi2 = max(0.0, float(12 * N / (k * (k + 1)) * (np.sum(mean**2) - k * (k + 1) ** 2 / 4)))
    left = N * (k - 1) - chi2
    if left > 1e-9 * N * k:
        f = (N - 1) * chi2 / left
        p = float(stats.f.sf(f, k - 1, (k - 1) * (N - 1)))
    else:  # all blocks rank the models alike: of all ways to rank them, k! in (k!)^N
        f = math.inf
        p = float(math.factorial(k)) ** (1 - N)
    chi2_p = float(stats.chi2.sf(chi2, k - 1))
    return Friedman(
        tuple(models), tuple(mean), N, level, chi2, chi2_p, f, p, critical_difference(k, N, level)
    )


def critical_difference(models: int, blocks: int, level: float) -> float:
    q = float(stats.studentized_range.ppf(1 - level, models, np.inf)) / math.sqrt(2)
    return q * math.sqrt(models * (models + 1) / (6 * blocks))


def wilcoxon(models: Sequence[str], values: Array, *, smaller: bool = True) -> list[Pair]:
    """Test all pairs; a block counts for a pair if it has values of both (others are NaN)."""
    signed = values if smaller else -values
    found = []
    for i, j in combinations(range(len(models)), 2):
        both = signed[~np.isnan(signed[:, (i, j)]).any(axis=1)][:, (i, j)]
        apart = _drop_rounding(_differences(both), _largest(both))  # above zero where i is better
        statistic, p = _signed_rank_probability(apart)
        wins = int(np.sum(apart > 0))
        losses = int(np.sum(apart < 0))
        first_is_better = np.sum(np.sign(apart) * stats.rankdata(abs(apart))) >= 0
        names, counts = (
            ((models[i], models[j]), (wins, losses))
            if first_is_better
            else ((models[j], models[i]), (losses, wins))
        )
        found.append(Pair(*names, len(apart), *counts, statistic, p, math.nan))
    corrected = holm([pair.p for pair in found])
    return [Pair(*_but_last(pair), each) for pair, each in zip(found, corrected, strict=True)]


def _differences(both: Array) -> Array:
    """Return differences: 0 between infinite values, the largest where one is infinite."""
    one, other = both.T
    apart = np.subtract(other, one, out=np.zeros(len(both)), where=one != other)
    return np.asarray(np.where(np.isinf(apart), np.sign(apart) * (4 * _largest(both) + 1), apart))


def _but_last(pair: Pair) -> tuple[str, str, int, int, int, float, float]:
    return pair.first, pair.second, pair.blocks, pair.wins, pair.losses, pair.statistic, pair.p


def _signed_rank_probability(apart: Array) -> tuple[float, float]:
    if not apart.any():
        n = len(apart)
        return n * (n + 1) / 4, 1.0  # nothing speaks for either
    found = stats.wilcoxon(apart, zero_method="zsplit")
    return float(found.statistic), float(found.pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """Correct p-values: the smallest times m, the next times m - 1, none below the one before."""
    order = np.argsort(p)
    corrected = [0.0] * len(p)
    before = 0.0
    for place, k in enumerate(order):
        before = max(before, min(1.0, (len(p) - place) * p[k]))
        corrected[k] = before
    return corrected


def fewest_for_wilcoxon(level: float, pairs: int = 1) -> int:
    """Return how many blocks a pair needs before it can be significant.

    With fewer, even a model that always wins has 2 / 2^N > level; of several pairs as Holm
    corrects it.
    """
    return math.ceil(1 + math.log2(pairs / level))


def fewest_for_friedman(models: int, level: float) -> int:
    """Return how many blocks there must be: with fewer, (k!)^(1 - N) > level at best."""
    return max(FEWEST, math.ceil(1 - math.log(level) / math.log(math.factorial(models))))


def _largest(values: Array, axis: int | None = None) -> Array:
    """Return the size of the largest finite number."""
    sizes = np.where(np.isfinite(values), np.abs(values), 0.0)
    return np.asarray(sizes.max(axis=axis, initial=0.0, keepdims=axis is not None))


def _drop_rounding(values: Array, largest: Any) -> Array:
    """Return numbers with 0 for what is a rounding error next to the largest."""
    unit = np.maximum(largest, 1e-300) * 10.0**-DIGITS
    return np.asarray(np.round(values / unit) * unit)
