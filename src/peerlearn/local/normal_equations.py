"""The normal equations of some rows, in the smaller of two forms, and how to add them up.

    few rows:   R, the triangular factor of [H Y] = Q R          n x (B + M), n < B
    many rows:  H'H and H'Y                                      B (B + 1) / 2 + B M numbers

Both say the same, since R'R = [H Y]'[H Y]. Q is never formed.
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
    """Either R, or G = H'H and P = H'Y."""

    shape: tuple[int, int]  # B, M
    R: Array | None = None
    G: Array | None = None
    P: Array | None = None

    @classmethod
    def of_rows(cls, HY: Array, shape: tuple[int, int]) -> Self:
        """From rows [H Y]."""
        if len(HY) >= shape[0]:
            return cls(
                shape,
                G=HY[:, : shape[0]].T @ HY[:, : shape[0]],
                P=HY[:, : shape[0]].T @ HY[:, shape[0] :],
            )
        if len(HY) == 0:
            return cls(shape, R=HY)
        (R,) = scipy.linalg.qr(HY, mode="r", check_finite=False)
        return cls(shape, R=R[: len(HY)])

    @property
    def empty(self) -> bool:
        """Whether there are no rows, so that there is nothing to say."""
        return self.R is not None and len(self.R) == 0

    def plus(self, others: Sequence[NormalEquations]) -> NormalEquations:
        """The normal equations of all these rows together."""
        parts = [self, *others]
        few = [part.R for part in parts if part.R is not None]
        summed = NormalEquations.of_rows(np.vstack(few), self.shape) if few else None
        many = [part for part in parts if part.R is None]
        if not many:
            assert summed is not None
            return summed
        pairs = [part.gram() for part in ([*many, summed] if summed else many)]
        G, P = (np.sum(np.stack(part), axis=0) for part in zip(*pairs, strict=True))
        return NormalEquations(self.shape, G=G, P=P)

    def ridge(self, alpha: float) -> Array:
        """(H'H + alpha I)^-1 H'Y"""
        B = self.shape[0]
        if self.R is not None and alpha > 0:
            H, Y = self.R[:, :B], self.R[:, B:]
            return H.T @ solve_ridge(H @ H.T, Y, alpha)
        return solve_ridge(*self.gram(), alpha)

    def lasso(self, alpha: float) -> tuple[Array, float]:
        """argmin 1/2 |H b - Y|^2 + alpha |b|_1, and how far it misses the conditions of a minimum."""
        return (self.ridge(0.0), 0.0) if alpha == 0 else lasso(*self.gram(), alpha)

    def packed(self) -> dict[str, Array]:
        """What is sent: upper triangles only."""
        if self.R is not None:
            return {"R": self.R[np.triu_indices(len(self.R), m=self.R.shape[1])]}
        G, P = self.gram()
        return {"G": G[np.triu_indices(self.shape[0])], "P": P}

    @classmethod
    def unpacked(
        cls, message: Mapping[str, np.ndarray[Any, Any]], shape: tuple[int, int]
    ) -> Self | None:
        """What was sent; None if it cannot be such equations."""
        B, width = shape[0], sum(shape)
        if any(
            array.dtype != np.float64 or not np.isfinite(array).all() for array in message.values()
        ):
            return None
        if message.keys() == {"R"} and message["R"].ndim == 1:
            numbers = len(message["R"])
            n = next((n for n in range(1, B + 1) if n * width - n * (n - 1) // 2 >= numbers), 0)
            if n * width - n * (n - 1) // 2 != numbers:
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
        return cls.of_numbers(np.concatenate([message["G"], message["P"].ravel()]), shape)

    def numbers(self) -> Array:
        """All that there is to sum up: the upper triangle of H'H row by row, then H'Y."""
        G, P = self.gram()
        return np.concatenate([G[np.triu_indices(self.shape[0])], P.ravel()])

    @classmethod
    def of_numbers(cls, numbers: Array, shape: tuple[int, int]) -> Self:
        B = shape[0]
        half = B * (B + 1) // 2
        G = np.zeros((B, B))
        G[np.triu_indices(B)] = numbers[:half]
        return cls(shape, G=G + np.triu(G, 1).T, P=numbers[half:].reshape(shape))

    def gram(self) -> tuple[Array, Array]:
        """H'H and H'Y"""
        if self.G is not None and self.P is not None:
            return self.G, self.P
        assert self.R is not None
        H, Y = self.R[:, : self.shape[0]], self.R[:, self.shape[0] :]
        return H.T @ H, H.T @ Y
