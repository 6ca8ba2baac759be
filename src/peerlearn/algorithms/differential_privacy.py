"""Differential privacy of sums: rows on a grid, noise in shares, and what it costs.

    a_i = whole numbers of row i, with |a_i| <= 2^16                     alone
    S_k = sum_i of products of a_i, exactly                              alone
    Z_k = discrete Gaussian noise of variance s^2 / (L - t)              alone
    sum_k S_k + Z_k                                                      secret sum, at the root

Nobody sees a sum without noise. A coalition of t agents knows its own noise, and the noise of the
others still has the variance s^2 that the promise needs (Kairouz, Liu and Steinke, The distributed
discrete Gaussian mechanism, 2021). With a trusted curator the variance of all noise would be s^2;
here it is s^2 L / (L - t).

Rows are rounded, towards zero, before anything is summed. Sums of whole numbers are exact, so what
one row can change is exact too, with all rounding included: no floating-point sum is involved.

The sum of several discrete Gaussians is not one exactly; with deviations of LEAST_DEVIATION or more
the difference is below e^-1000000. `peerlearn.secret.accounting` computes what it costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from peerlearn.arrays import Array, is_real
from peerlearn.errors import DataError, InputError
from peerlearn.network.base import Network
from peerlearn.secret.accounting import compute_epsilon, find_noise_multiplier
from peerlearn.secret.discrete_gaussian import Whole, draw_discrete_gaussian
from peerlearn.secret.keys import Words, digest
from peerlearn.secret.privacy_statement import Payment, PrivacyStatement

__all__ = ["DifferentialPrivacy"]

Neighbors = Literal["add-remove", "replace"]

GRID = 1 << 16  # length of the longest row, in units of the grid
ROUNDING = 2.0**-30  # relative: rows are shortened by more than float64 is wrong by
MOST_ROWS = 1 << 28  # of all agents: sums stay below 2^62
LEAST_DEVIATION = 1 << 10  # of one agent's noise
EPSILON = (1e-3, 1e3)
DELTA = (1e-15, 0.1)


@dataclass(frozen=True)
class DifferentialPrivacy:
    """Differential privacy of one row, for models that agents train by secret sums.

    Whether one row is in the data changes the probability of any result by a factor of at most
    exp(epsilon), except with probability delta. That holds for everything that agents and users
    learn, also if `colluders` agents of the network put together what they know.

    Parameters
    ----------
    epsilon : float
        How much one row may change the probabilities of results: the smaller, the more private.
        Values around 1 are common.
    delta : float, default 1e-6
        Probability with which the promise may fail. It should be far below 1 / number of rows.
    neighbors : {"add-remove", "replace"}, default "add-remove"
        Which data sets differ by one row: one has a row more, or one has another row in its place.
        The second also hides a row's values if somebody knows how many rows there are; it takes
        more noise.
    feature_norm : float, default 1.0
        Rows of features that are longer are shortened to this length, also in predictions. It may
        not be chosen by looking at the data. If all rows are longer, only their directions count.
    target_bounds : tuple of float or None, default None
        Smallest and largest target of a regressor; targets outside are moved to the nearest one.
        They may not be computed from the data. Classifiers have none.

    Examples
    --------
    >>> from peerlearn import DifferentialPrivacy, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> g50c = data.load("g50c")
    >>> network = SimulatedNetwork(graphs.ring(5), secrecy="sums")
    >>> model = RVFLClassifier(
    ...     50,
    ...     alpha=1.0,
    ...     activation="tanh",
    ...     classes=sorted(set(g50c.y.tolist())),
    ...     solver="gram",
    ...     differential_privacy=DifferentialPrivacy(epsilon=5.0),
    ...     network=network,
    ...     random_state=0,
    ... )
    >>> model.fit(g50c.X, g50c.y).report_.privacy.epsilon <= 5.0
    True
    """

    epsilon: float
    delta: float = 1e-6
    neighbors: Neighbors = "add-remove"
    feature_norm: float = 1.0
    target_bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name, (least, most) in (("epsilon", EPSILON), ("delta", DELTA)):
            value = getattr(self, name)
            if not is_real(value) or not least <= value <= most:
                raise InputError(
                    f"{name} of DifferentialPrivacy is {value!r:.60}: give a number from "
                    f"{least:g} to {most:g}"
                )
        if self.neighbors not in ("add-remove", "replace"):
            raise InputError(
                f"neighbors of DifferentialPrivacy is {self.neighbors!r:.60}: give 'add-remove' or "
                "'replace'"
            )
        if not is_real(self.feature_norm) or not 0 < self.feature_norm < math.inf:
            raise InputError(
                f"feature_norm of DifferentialPrivacy is {self.feature_norm!r:.60}: give a number "
                "above 0"
            )
        if self.target_bounds is not None:
            self._check_bounds(self.target_bounds)

    def _check_bounds(self, bounds: Any) -> None:
        is_pair = isinstance(bounds, Sequence) and len(bounds) == 2 and all(map(is_real, bounds))
        if not is_pair or not -math.inf < bounds[0] < bounds[1] < math.inf:
            raise InputError(
                f"target_bounds of DifferentialPrivacy is {bounds!r:.60}: give the smallest and "
                "the largest target, such as (0, 100)"
            )
        # TOML has lists, which cannot be compared as settings.
        object.__setattr__(self, "target_bounds", (float(bounds[0]), float(bounds[1])))

    @property
    def noise_multiplier(self) -> float:
        """Deviation of the noise, relative to what one row can change."""
        return find_noise_multiplier(float(self.epsilon), float(self.delta))


@dataclass(frozen=True)
class NoisePlan:
    """Noise of one agent for sums of several parts, and what the sums then promise.

    deviations: of one agent's noise in each part, in units of the grid. statement: the promise.
    """

    deviations: tuple[int, ...]
    statement: PrivacyStatement

    def total_deviation(self, part: int) -> float:
        """Return the deviation of all agents' noise in a part."""
        return self.deviations[part] * math.sqrt(self.statement.agents)

    @property
    def scales(self) -> bytes:
        """What all agents must have alike, as bytes."""
        return repr((self.deviations, self.statement)).encode()

    def add_noise(self, key: bytes, parts: Sequence[Whole]) -> Words:
        """Return the sums of one agent's parts with noise, as words: numbers x 1.

        key: of the agent's noise, 32 bytes. parts: as many as there are deviations.
        """
        noisy = []
        for number, (own, deviation) in enumerate(zip(parts, self.deviations, strict=True)):
            part_key = digest(key, b"noise of part %d" % number)
            noise = draw_discrete_gaussian(part_key, deviation, own.size)
            noisy.append(own.ravel() + noise)
        return np.concatenate(noisy).view(np.uint64)[:, None]


def plan_noise(
    privacy: DifferentialPrivacy,
    sensitivities: Sequence[float],
    network: Network,
    clipping: str,
) -> NoisePlan:
    """Return the noise for parts of a sum that are released together; each has an equal share.

    sensitivities: the most that one row changes each part by, in units of the grid. clipping: what
    rows are clipped to, in words.
    """
    honest = network.size - network.colluders
    spread = privacy.noise_multiplier * math.sqrt(len(sensitivities) / honest)
    deviations = tuple(max(math.ceil(spread * each), LEAST_DEVIATION) for each in sensitivities)
    ratios = [each / own for each, own in zip(sensitivities, deviations, strict=True)]
    multiplier = math.sqrt(honest) / math.hypot(*ratios)
    statement = PrivacyStatement(
        compute_epsilon([multiplier], privacy.delta),
        privacy.delta,
        privacy.neighbors,
        clipping,
        network.colluders,
        network.size,
        multiplier,
    )
    return NoisePlan(deviations, statement)


def begin_release(network: Network, privacy: DifferentialPrivacy, what: str) -> list[bytes]:
    """Pay for a release, and return the keys of the hosted agents' noise.

    It comes before anything that depends on rows is sent. Raises InputError if a site's budget is
    too small. A release that is resumed has the same keys, and is not paid again.

    what: what is released, in words.
    """
    keys = [network.noise_key(agent) for agent in network.hosted]
    for key in keys:
        network.pay_for_privacy(
            Payment(
                digest(b"payment", key).hex(),
                what,
                privacy.epsilon,
                privacy.delta,
                privacy.neighbors,
                privacy.noise_multiplier,
            )
        )
    return keys


def round_rows(H: Array, norm: float) -> Array:
    """Return rows as whole numbers: those of length `norm` or more have a length of nearly GRID.

    Numbers are rounded towards zero, so that no row is longer than GRID. They are float64, in which
    sums of products of them are exact.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", H, H))
    scales = GRID * (1 - ROUNDING) / np.maximum(lengths, norm)
    whole: Array = np.trunc(H * scales[:, None])
    return whole


def check_row_count(rows: int, agents: int) -> None:
    """Refuse so many rows at one agent that sums could overflow."""
    if rows > MOST_ROWS // agents:
        raise DataError(
            f"{rows} rows are more than private sums of {agents} agents take, "
            f"{MOST_ROWS // agents} each: give fewer"
        )
