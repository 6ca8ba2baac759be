"""Simulated message loss: the links that fail in a round, and the mixing matrix of that round.

Both ends notice when either of their two messages is lost (real engines acknowledge within the
round). The link then carries nothing in that round and both ends keep its weight for themselves:

    C_kk <- C_kk + C_kj   and   C_jj <- C_jj + C_jk       for every dead link {k, j}

C stays symmetric with rows that sum to one, so plain averaging keeps the exact mean.
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
    """Random loss of messages, for `SimulatedNetwork`.

    Each message is lost independently of all others. The same seed loses the same messages.

    Parameters
    ----------
    loss : float
        Probability that a message is lost, from 0 to below 1.
    seed : int, default 0
        Seed of the generator that draws the losses.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import Faults, SimulatedNetwork, graphs
    >>> network = SimulatedNetwork(graphs.ring(4), faults=Faults(loss=0.3, seed=1))
    >>> x = network.mix(np.array([4.0, 0.0, 0.0, 0.0]))
    >>> float(x.mean())
    1.0
    >>> network.ledger.lost > 0
    True
    """

    loss: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise InputError(
                f"loss is a probability from 0 to below 1 per message, not {self.loss}"
            )

    @property
    def alive(self) -> float:
        """Probability that both messages of a link arrive in a round."""
        return (1 - self.loss) ** 2


class FaultyLinks:
    """Mixing matrix C of a network whose links fail at random, differently in every round."""

    def __init__(self, faults: Faults, C: Any) -> None:
        self.faults = faults
        self._C = C
        self._rng = np.random.default_rng(faults.seed)
        row = np.repeat(np.arange(C.shape[0]), np.diff(C.indptr))
        # One entry per link {k, j} with k < j, sorted by (k, j).
        above = np.flatnonzero(row < C.indices)
        below = np.flatnonzero(row > C.indices)
        k = row[above]
        j = C.indices[above]
        self._kj = above
        # C is symmetric: sorted by (column, row), the lower entries pair with the upper ones.
        self._jk = below[np.lexsort((row[below], C.indices[below]))]
        diagonal = np.flatnonzero(row == C.indices)
        self._kk = diagonal[k]
        self._jj = diagonal[j]
        self._links = np.stack([k, j], axis=1)

    def next_round(self) -> Dead:
        """Draw the links that fail in the next round."""
        luck = self._rng.random((2, len(self._kj)))
        dead: Dead = luck.min(axis=0) < self.faults.loss
        return dead

    def left(self, dead: Dead) -> Array:
        """Return the values of C, in its sparse order, with dead links moved to the diagonal."""
        data: Array = self._C.data.copy()
        back = data[self._kj[dead]]
        data[self._kj[dead]] = data[self._jk[dead]] = 0.0
        np.add.at(data, self._kk[dead], back)
        np.add.at(data, self._jj[dead], back)
        return data

    def entries(self, dead: Dead) -> Indices:
        """Return the positions of the dead links in the sparse order of C."""
        return np.concatenate([self._kj[dead], self._jk[dead]])

    def pairs(self, dead: Dead) -> set[tuple[int, int]]:
        """Return the dead links as (sender, receiver), in both directions."""
        one_way = {(k, j) for k, j in self._links[dead].tolist()}
        return one_way | {(j, k) for k, j in one_way}

    @cached_property
    def contraction(self) -> float:
        """Contraction in the mean square: sqrt(rho(E[C_n^2] - 11'/L)).

        C_n = I - sum of w_e b_e b_e' over the links alive, each with probability q, so
        E[C_n^2] = (I - q Lap(w))^2 + 2 q (1 - q) Lap(w^2), where Lap(w) is the Laplacian with link
        weights w.
        """
        q = self.faults.alive
        mean = sp.eye_array(self._C.shape[0]) - q * _laplacian(self._C)
        expected = mean @ mean + 2 * q * (1 - q) * _laplacian(self._C.multiply(self._C))
        return float(np.sqrt(weightings.contraction(sp.csr_array(expected))))

    def flood_rounds(self, diameter: int) -> int:
        """Return enough rounds that flooding misses an agent with probability below 1e-12.

        Along a shortest path of at most `diameter` links the value advances whenever the next link
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
