"""Links that fail: which messages get lost in each round, and the mixing matrix that is left.

Both ends notice when either of their two messages is lost (real engines acknowledge within the
round). The link then carries nothing in that round and its weight falls back on both ends,

    C_kk + C_kj   and   C_jj + C_jk       for every dead link {k, j},

which keeps C symmetric with rows that sum to one, so that plain averaging keeps the exact mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from peerlearn import weights as weightings
from peerlearn.arrays import Array, Indices
from peerlearn.errors import InputError

__all__ = ["Faults"]

Dead = NDArray[np.bool_]  # one entry per link


@dataclass(frozen=True)
class Faults:
    """Each message is lost independently with probability `loss`, reproducibly from `seed`."""

    loss: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise InputError(
                f"loss is a probability from 0 to below 1 per message, not {self.loss}"
            )

    @property
    def alive(self) -> float:
        """The probability that a link works in a round: both of its messages arrive."""
        return (1 - self.loss) ** 2


class FaultyLinks:
    """The mixing matrix C of a network, losing links from round to round."""

    def __init__(self, faults: Faults, C: Any) -> None:
        self.faults = faults
        self._C = C
        self._rng = np.random.default_rng(faults.seed)
        row = np.repeat(np.arange(C.shape[0]), np.diff(C.indptr))
        above = np.flatnonzero(
            row < C.indices
        )  # one entry per link {k, j}, k < j; sorted by (k, j)
        below = np.flatnonzero(row > C.indices)
        k, j = row[above], C.indices[above]
        # C is symmetric, so sorting the lower entries by (column, row) pairs them with the upper
        # ones.
        self._kj, self._jk = above, below[np.lexsort((row[below], C.indices[below]))]
        diagonal = np.flatnonzero(row == C.indices)
        self._kk, self._jj = diagonal[k], diagonal[j]
        self._links = np.stack([k, j], axis=1)

    def next_round(self) -> Dead:
        """Which links fail in the next round."""
        luck = self._rng.random((2, len(self._kj)))
        dead: Dead = luck.min(axis=0) < self.faults.loss
        return dead

    def left(self, dead: Dead) -> Array:
        """The values of C, in its sparse order, with the weight of dead links back on both ends."""
        data: Array = self._C.data.copy()
        back = data[self._kj[dead]]
        data[self._kj[dead]] = data[self._jk[dead]] = 0.0
        np.add.at(data, self._kk[dead], back)
        np.add.at(data, self._jj[dead], back)
        return data

    def entries(self, dead: Dead) -> Indices:
        """Where, in the sparse order of C, the dead links stand."""
        return np.concatenate([self._kj[dead], self._jk[dead]])

    def pairs(self, dead: Dead) -> set[tuple[int, int]]:
        """The dead links as (sender, receiver), in both directions."""
        return {pair for k, j in self._links[dead].tolist() for pair in ((k, j), (j, k))}

    @cached_property
    def contraction(self) -> float:
        """In the mean square: sqrt(rho(E[C_n^2] - 11'/L)).

        C_n = I - sum of w_e b_e b_e' over the links alive, each with probability q, so
        E[C_n^2] = (I - q Lap(w))^2 + 2 q (1 - q) Lap(w^2), where Lap(w) is the Laplacian with link
        weights w.
        """
        q = self.faults.alive
        mean = sp.eye_array(self._C.shape[0]) - q * _laplacian(self._C)
        expected = mean @ mean + 2 * q * (1 - q) * _laplacian(self._C.multiply(self._C))
        return float(np.sqrt(weightings.contraction(sp.csr_array(expected))))

    def flood_rounds(self, diameter: int) -> int:
        """Enough rounds that a flooded value misses anybody with probability below 1e-12.

        Along a shortest way of at most `diameter` links the value advances whenever the next link
        is alive, so P(missed by one of L^2 pairs) <= L^2 P(Binomial(rounds, q) < diameter), the
        tail of a negative binomial law.
        """
        if diameter == 0:
            return 0
        from scipy.stats import nbinom  # takes .3 s; networks without faults do without

        failures = nbinom.isf(1e-12 / self._C.shape[0] ** 2, diameter, self.faults.alive)
        return diameter + int(failures)


def _laplacian(link_weights: Any) -> Any:
    links = sp.csr_array(link_weights - sp.diags_array(link_weights.diagonal()))
    return sp.diags_array(np.asarray(links.sum(axis=1)).ravel()) - links
