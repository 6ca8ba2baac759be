"""Transforms of rows that agents may apply before they share anything of them.

docs/privacy.md says how little that hides.

    RandomProjection      u = R x / sqrt(m),                R: m x d, standard normal
    TanhTransform         v = (b + Q tanh(a + C x)) / s,    Q: m x t, C: t x d, normal with mean 0

Inner products, and with them distances, are kept on average: E u_i'u_j = x_i'x_j. For v this holds
to leading order where C x is small: tanh(a + C x) = tanh a + (1 - tanh^2 a) C x + .., so with the
variances q of Q and c of C

    s^2 = m q c sum_l (1 - tanh^2 a_l)^2,   which is m t q c for a = 0

and what does not depend on x cancels in all distances. Liu, Kargupta and Ryan, Random
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

AT_ONCE = 2**22  # values of tanh in memory at a time

Transform = Callable[[Array], Array]


class Privacy(Protocol):
    """Protocol of a model's `privacy`: any object with `drawn`."""

    def drawn(self, d: int, seed: int) -> Transform:
        """Return the map from rows with d columns to the rows that are shared in their place.

        It is the same for all agents that have the seed.
        """
        ...


@dataclass(frozen=True)
class RandomProjection:
    """Random projection of rows to fewer columns, which keeps distances on average.

    Parameters
    ----------
    m : int or float
        Number of columns to project to, at most as many as the rows have. A number below 1 is the
        fraction of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import RandomProjection
    >>> project = RandomProjection(3).drawn(d=5, seed=0)
    >>> project(np.eye(5)).shape
    (5, 3)
    """

    m: int | float

    name: ClassVar = "projection"

    def __post_init__(self) -> None:
        _check_columns(self.m, "RandomProjection")

    def drawn(self, d: int, seed: int) -> Transform:
        """Return the projection of rows with d columns that this seed draws."""
        if self.m > d:
            raise InputError(
                f"RandomProjection to {self.m} columns of rows that have {d} hides nothing and "
                f"sends more: give m of {d} or less"
            )
        m = _count_columns(self.m, d)
        R = np.random.default_rng(seed).standard_normal((m, d)) / np.sqrt(m)
        return lambda X: X @ R.T


@dataclass(frozen=True)
class TanhTransform:
    """Random nonlinear transform of rows, which nearly keeps distances if C is small.

    Parameters
    ----------
    m : int or float
        Number of columns of v. A number below 1 is the fraction of the columns of x.
    t : int, default 20000
        Number of tanh units. More make the sum more accurate.
    a : float, default 0.0
        Variance of a.
    b : float, default 0.0
        Variance of b. It changes no distance.
    Q : float, default 1.0
        Variance of Q. It changes no distance.
    C : float, default 1e-6
        Variance of C. Distances are kept only if it is small against 1 / |x|^2.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import TanhTransform
    >>> transform = TanhTransform(4, t=100).drawn(d=5, seed=0)
    >>> transform(np.eye(5)).shape
    (5, 4)
    """

    m: int | float
    t: int = 20_000
    a: float = 0.0
    b: float = 0.0
    Q: float = 1.0
    C: float = 1e-6

    name: ClassVar = "tanh"

    def __post_init__(self) -> None:
        _check_columns(self.m, "TanhTransform")
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
        """Return the transform of rows with d columns that this seed draws."""
        rng = np.random.default_rng(seed)
        m = _count_columns(self.m, d)
        C = rng.standard_normal((self.t, d)) * np.sqrt(self.C)
        Q = rng.standard_normal((m, self.t)) * np.sqrt(self.Q)
        a = rng.standard_normal(self.t) * np.sqrt(self.a)
        b = rng.standard_normal(m) * np.sqrt(self.b)
        slopes = 1 - np.tanh(a) ** 2
        s = np.sqrt(m * self.Q * self.C * np.vdot(slopes, slopes))

        def transform(X: Array) -> Array:
            step = max(AT_ONCE // self.t, 1)
            parts = [np.zeros((0, m))]
            for i in range(0, len(X), step):
                parts.append(np.tanh(a + X[i : i + step] @ C.T) @ Q.T)
            v: Array = (b + np.vstack(parts)) / s
            return v

        return transform


def _check_columns(m: Any, whose: str) -> None:
    if not (is_whole(m) and m >= 1) and not (is_real(m) and 0 < m < 1):
        raise InputError(
            f"m of {whose} is {m!r}: give a whole number of 1 or more, or the share of columns to "
            "keep, between 0 and 1"
        )


def _count_columns(m: float, d: int) -> int:
    """Return how many of d columns m means."""
    return int(m) if m >= 1 else max(round(m * d), 1)
