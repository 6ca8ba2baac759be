"""What agents may do to their rows before they share anything of them. See docs/privacy.md for how little that hides.

    RandomProjection      u = R x / sqrt(m),                R: m x d, standard normal
    TanhTransform         v = (b + Q tanh(a + C x)) / s,    Q: m x t, C: t x d, all normal with mean 0

Inner products, and with them distances, are kept on average: E u_i'u_j = x_i'x_j. For v they are to
leading order where
C x is small: tanh(a + C x) = tanh a + (1 - tanh^2 a) C x + .., so that with the variances q of Q
and c of C

    s^2 = m q c sum_l (1 - tanh^2 a_l)^2,   which is m t q c for a = 0

and what does not depend on x falls out of all distances. Liu, Kargupta and Ryan, Random
projection-based multiplicative data perturbation for privacy preserving distributed data mining,
2006; Bhaduri, Stefanski and Srivastava, Privacy-preserving outlier detection through random
nonlinear data distortion, 2011; thesis, section 7.2.3, which does not divide by s. The numbers of
its table are variances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from peerlearn.arrays import Array, is_real, is_whole
from peerlearn.errors import InputError

__all__ = ["RandomProjection", "TanhTransform"]

AT_ONCE = 2**22  # values of tanh held at a time

Transform = Callable[[Array], Array]


class Privacy(Protocol):
    """Anything with `drawn` can be a model's `privacy`."""

    def drawn(self, d: int, seed: int) -> Transform:
        """The map from rows with d columns to what is shared in their place, the same for all who have the seed."""
        ...


@dataclass(frozen=True)
class RandomProjection:
    """m: columns to project to, at most as many as there are; a number below 1 is that share of them."""

    m: int | float

    name: ClassVar = "projection"

    def __post_init__(self) -> None:
        _columns(self.m, "RandomProjection")

    def drawn(self, d: int, seed: int) -> Transform:
        if self.m > d:
            raise InputError(
                f"RandomProjection to {self.m} columns of rows that have {d} hides nothing and sends more: give m of "
                f"{d} or less"
            )
        m = _of(self.m, d)
        R = np.random.default_rng(seed).standard_normal((m, d)) / np.sqrt(m)
        return lambda X: X @ R.T


@dataclass(frozen=True)
class TanhTransform:
    """m: columns of v; a number below 1 is that share of those of x. t: how many tanh; more make a better sum. a, b,
    Q, C: variances.

    Those of Q and b change no distance. C must be small against 1 / |x|^2 for distances to be kept.
    """

    m: int | float
    t: int = 20_000
    a: float = 0.0
    b: float = 0.0
    Q: float = 1.0
    C: float = 1e-6

    name: ClassVar = "tanh"

    def __post_init__(self) -> None:
        _columns(self.m, "TanhTransform")
        if not is_whole(self.t) or self.t < 1:
            raise InputError(f"t of TanhTransform is {self.t!r}: give a whole number of 1 or more")
        for what, least in (
            ("a", "0 or more"),
            ("b", "0 or more"),
            ("Q", "above 0"),
            ("C", "above 0"),
        ):
            given = getattr(self, what)
            if not is_real(given) or not 0 <= given < np.inf or (given == 0 and least == "above 0"):
                raise InputError(
                    f"{what} of TanhTransform is {given!r}: give its variance, a number {least}"
                )

    def drawn(self, d: int, seed: int) -> Transform:
        rng, m = np.random.default_rng(seed), _of(self.m, d)
        C = rng.standard_normal((self.t, d)) * np.sqrt(self.C)
        Q = rng.standard_normal((m, self.t)) * np.sqrt(self.Q)
        a, b = (
            rng.standard_normal(n) * np.sqrt(variance)
            for n, variance in ((self.t, self.a), (m, self.b))
        )
        slopes = 1 - np.tanh(a) ** 2
        s = np.sqrt(m * self.Q * self.C * np.vdot(slopes, slopes))

        def transform(X: Array) -> Array:
            step = max(AT_ONCE // self.t, 1)
            parts = [np.tanh(a + X[i : i + step] @ C.T) @ Q.T for i in range(0, len(X), step)]
            v: Array = (b + np.vstack([np.zeros((0, m)), *parts])) / s
            return v

        return transform


def _columns(m: Any, whose: str) -> None:
    if not (is_whole(m) and m >= 1) and not (is_real(m) and 0 < m < 1):
        raise InputError(
            f"m of {whose} is {m!r}: give a whole number of 1 or more, or the share of columns to keep, between 0 and 1"
        )


def _of(m: float, d: int) -> int:
    """How many columns m is, of d."""
    return int(m) if m >= 1 else max(round(m * d), 1)
