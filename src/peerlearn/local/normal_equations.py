"""Normal equations of some rows, in the smaller of two forms, and how to add them up.

    few rows:   R, the triangular factor of [H Y] = Q R          n x (B + M), n < B
    many rows:  H'H and H'Y                                      B (B + 1) / 2 + B M numbers

Both hold the same information, since R'R = [H Y]'[H Y]. Q is never formed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg

from peerlearn.arrays import Array
from peerlearn.local.lasso import lasso
from peerlearn.local.ridge import solve_ridge


@dataclass(frozen=True)
class NormalEquations:
    """Normal equations, as R or as G = H'H and P = H'Y."""

    shape: tuple[int, int]  # B, M
    R: Array | None = None
    G: Array | None = None
    P: Array | None = None

    @classmethod
    def of_rows(cls, HY: Array, shape: tuple[int, int]) -> Self:
        """Return the normal equations of rows [H Y]."""
        B = shape[0]
        if len(HY) >= B:
            H = HY[:, :B]
            Y = HY[:, B:]
            return cls(shape, G=H.T @ H, P=H.T @ Y)
        if len(HY) == 0:
            return cls(shape, R=HY)
        (R,) = scipy.linalg.qr(HY, mode="r", check_finite=False)
        return cls(shape, R=R[: len(HY)])

    @property
    def empty(self) -> bool:
        """Whether there are no rows."""
        return self.R is not None and len(self.R) == 0

    def plus(self, others: Sequence[NormalEquations]) -> NormalEquations:
        """Return the normal equations of all these rows together."""
        parts = [self, *others]
        few = [part.R for part in parts if part.R is not None]
        many = [part for part in parts if part.R is None]
        if few:
            joint = NormalEquations.of_rows(np.vstack(few), self.shape)
            if not many:
                return joint
            many.append(joint)
        pairs = [part.gram() for part in many]
        G = np.sum(np.stack([G for G, _ in pairs]), axis=0)
        P = np.sum(np.stack([P for _, P in pairs]), axis=0)
        return NormalEquations(self.shape, G=G, P=P)

    def ridge(self, alpha: float | Array) -> Array:
        """Return (H'H + alpha I)^-1 H'Y. alpha: one number, or one per feature."""
        B = self.shape[0]
        if self.R is not None and not isinstance(alpha, np.ndarray) and alpha > 0:
            H = self.R[:, :B]
            Y = self.R[:, B:]
            return H.T @ solve_ridge(H @ H.T, Y, alpha)
        return solve_ridge(*self.gram(), alpha)

    def lasso(self, alpha: float) -> tuple[Array, float]:
        """Return b = argmin 1/2 |H b - Y|^2 + alpha |b|_1, and its error as `lasso` does."""
        if alpha == 0:
            return self.ridge(0.0), 0.0
        return lasso(*self.gram(), alpha)

    def pack(self) -> dict[str, Array]:
        """Return the arrays to send: upper triangles only."""
        if self.R is not None:
            n, width = self.R.shape
            return {"R": self.R[np.triu_indices(n, m=width)]}
        G, P = self.gram()
        return {"G": G[np.triu_indices(self.shape[0])], "P": P}

    @classmethod
    def unpack(
        cls, message: Mapping[str, np.ndarray[Any, Any]], shape: tuple[int, int]
    ) -> Self | None:
        """Return the equations that were sent, or None if the message is invalid."""
        B = shape[0]
        width = sum(shape)
        for array in message.values():
            if array.dtype != np.float64 or not np.isfinite(array).all():
                return None
        if message.keys() == {"R"} and message["R"].ndim == 1:
            n = _rows_of_triangle(len(message["R"]), width, B)
            if n is None:
                return None
            R = np.zeros((n, width))
            R[np.triu_indices(n, m=width)] = message["R"]
            return cls(shape, R=R)
        if (
            message.keys() != {"G", "P"}
            or message["P"].shape != shape
            or message["G"].shape != (B * (B + 1) // 2,)
        ):
            return None
        numbers = np.concatenate([message["G"], message["P"].ravel()])
        return cls.of_numbers(numbers, shape)

    def numbers(self) -> Array:
        """Return the numbers to sum: the upper triangle of H'H row by row, then H'Y."""
        G, P = self.gram()
        triangle = G[np.triu_indices(self.shape[0])]
        return np.concatenate([triangle, P.ravel()])

    @classmethod
    def of_numbers(cls, numbers: Array, shape: tuple[int, int]) -> Self:
        """Return the equations whose `numbers` these are."""
        B = shape[0]
        half = B * (B + 1) // 2
        G = np.zeros((B, B))
        G[np.triu_indices(B)] = numbers[:half]
        G = G + np.triu(G, 1).T
        P = numbers[half:].reshape(shape)
        return cls(shape, G=G, P=P)

    def gram(self) -> tuple[Array, Array]:
        """Return H'H and H'Y."""
        if self.G is not None and self.P is not None:
            return self.G, self.P
        assert self.R is not None
        H = self.R[:, : self.shape[0]]
        Y = self.R[:, self.shape[0] :]
        return H.T @ H, H.T @ Y


def _rows_of_triangle(numbers: int, width: int, most: int) -> int | None:
    """Return how many rows a triangular factor of this width and so many numbers has, or None."""
    for n in range(1, most + 1):
        if n * width - n * (n - 1) // 2 == numbers:
            return n
    return None
