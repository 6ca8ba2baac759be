"""Normal equations of some rows, in the smaller of two forms, and how to add them up.

    few rows:   R, the triangular factor of [H Y] = Q R          n x (B + M), n < B
    many rows:  H'H and H'Y                                      B (B + 1) / 2 + B M numbers

Both hold the same information, since R'R = [H Y]'[H Y]. Q is never formed.

    Factor:     R whatever the number of rows                    up to (B + M) x (B + M)

H'H has the square of the condition of H, R does not. A factor has as many numbers as H'H and H'Y.

Rounding. With u = 2^-53, |h| the length of a column of H, and c in `units`,

    |error of (H'H)_ij| <= c u |h_i| |h_j|,      |error of (H'Y)_im| <= c u |h_i| |y_m|.

A sum of n products has c = 4 + 2 sqrt(n): Higham and Mary, A new approach to probabilistic rounding
error analysis, 2019. The worst case would be n. Matrix products work in blocks (arrays.product), so
that errors which do not cancel, in columns with few different values, are those of one block: n / 4
at most. Measured with such columns: 62 for 254 rows, 176 for up to 200,000.
Householder's QR is columnwise backward stable; the errors of R'R were at most 9 u |h_i| |h_j|. The
lengths of columns in a sum of parts are at least those of the parts, in the sense of
Cauchy-Schwarz, so the c of a sum is the largest c of its parts and what the addition adds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.linalg

from peerlearn.arrays import Array, product
from peerlearn.errors import DataError
from peerlearn.local.lasso import lasso

UNIT = 2.0**-53  # unit roundoff, u above
BLOCK = 384  # rows that matrix products add up at a time, at most
QR_UNITS = 12.0  # of rounding, by one factorisation


@dataclass(frozen=True)
class NormalEquations:
    """Normal equations, as R or as G = H'H and P = H'Y."""

    shape: tuple[int, int]  # B, M
    R: Array | None = None
    G: Array | None = None
    P: Array | None = None
    squares: float = 0.0  # |Y|^2 where there is no R
    units: float = 0.0  # of rounding, c above

    @classmethod
    def of_rows(cls, HY: Array, shape: tuple[int, int], units: float = 0.0) -> Self:
        """Return the normal equations of rows [H Y]. units: rounding in the rows already."""
        B = shape[0]
        if len(HY) >= B:
            H = HY[:, :B]
            Y = HY[:, B:]
            units += product_units(len(HY))
            G = product(H.T, H)
            P = product(H.T, Y)
            return cls(shape, G=G, P=P, squares=sum_of_squares(Y), units=units)
        if len(HY) == 0:
            return cls(shape, R=HY)
        (R,) = scipy.linalg.qr(HY, mode="r", check_finite=False)
        return cls(shape, R=R[: len(HY)], units=units + QR_UNITS)

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
            units = max(part.units for part in parts if part.R is not None)
            joint = NormalEquations.of_rows(np.vstack(few), self.shape, units)
            if not many:
                return joint
            many.append(joint)
        pairs = [part.gram() for part in many]
        G = np.sum(np.stack([G for G, _ in pairs]), axis=0)
        P = np.sum(np.stack([P for _, P in pairs]), axis=0)
        squares = sum(part.squares_of_targets for part in many)
        units = max(part.gram_units for part in many) + sum_units(len(many))
        return NormalEquations(self.shape, G=G, P=P, squares=squares, units=units)

    @property
    def squares_of_targets(self) -> float:
        """|Y|^2."""
        return self.squares if self.R is None else sum_of_squares(self.R[:, self.shape[0] :])

    @property
    def gram_units(self) -> float:
        """Units of rounding in H'H and H'Y as `gram` returns them."""
        return self.units if self.R is None else self.units + product_units(len(self.R))

    @property
    def rounding_error(self) -> float:
        """Bound on the rounding errors of H'H and H'Y together."""
        trace = float(np.trace(self.gram()[0]))
        return UNIT * self.gram_units * (trace + math.sqrt(trace * self.squares_of_targets))

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

    def lasso_gap(self, b: Array, alpha: float) -> float:
        """Return how far the lasso objective at b may be above the least one, relative to that.

        By duality: for r = Y - H b and any s with  s |H'r| <= alpha  entry by entry, the least
        objective is at least  s Y'r - s^2 |r|^2 / 2.  Rounding is added. Infinite if |Y|^2 is not
        known, or nothing can be said.
        """
        squares = self.squares_of_targets
        G, P = self.gram()
        d = np.sqrt(np.diagonal(G))
        # Errors of the products below are relative to these sizes.
        size = float(np.linalg.norm(d @ np.abs(b))) + math.sqrt(squares)
        error = UNIT * (self.gram_units + product_units(len(G)))
        slopes = np.abs(P - G @ b) + error * size * d[:, None]
        s = min(1.0, alpha / float(slopes.max(initial=alpha)))
        fitted = float(np.vdot(P, b))
        left = max(squares - 2 * fitted + float(np.vdot(b, G @ b)), 0.0)
        penalty = alpha * float(np.abs(b).sum())
        gap = left * (1 + s * s) / 2 + penalty - s * (squares - fitted)
        gap = max(gap, 0.0) + 4 * error * size**2
        least = left / 2 + penalty - gap
        return gap / least if squares > 0 and least > 0 else math.inf

    def pack(self) -> dict[str, Array]:
        """Return the arrays to send: upper triangles only."""
        if self.R is not None:
            n, width = self.R.shape
            return {"R": np.append(self.R[np.triu_indices(n, m=width)], self.units)}
        G, P = self.gram()
        about = [self.squares, self.units]
        return {"G": np.append(G[np.triu_indices(self.shape[0])], about), "P": P}

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
            R = _unpack_triangle(message["R"][:-1], width, B)
            if R is None or message["R"][-1] < 0:
                return None
            return cls(shape, R=R, units=float(message["R"][-1]))
        if (
            message.keys() != {"G", "P"}
            or message["P"].shape != shape
            or message["G"].shape != (B * (B + 1) // 2 + 2,)
            or message["G"][-2:].min() < 0
        ):
            return None
        squares, units = message["G"][-2:].tolist()
        numbers = np.concatenate([message["G"][:-2], message["P"].ravel()])
        return replace(cls.of_numbers(numbers, shape), squares=squares, units=units)

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
        return product(H.T, H), product(H.T, Y)


@dataclass(frozen=True)
class Factor:
    """Triangular factor R of [H Y], for any number of rows."""

    shape: tuple[int, int]  # B, M
    R: Array
    units: float = 0.0  # of rounding, c above

    @classmethod
    def of_blocks(cls, blocks: Iterable[Array], shape: tuple[int, int], units: float = 0.0) -> Self:
        """Return the factor of rows [H Y], which come in blocks."""
        R = np.zeros((0, sum(shape)))
        for HY in blocks:
            if len(HY):
                (R,) = scipy.linalg.qr(np.vstack([R, HY]), mode="r", check_finite=False)
                R = R[: sum(shape)]
                units += QR_UNITS
        return cls(shape, R, units)

    @property
    def empty(self) -> bool:
        """Whether there are no rows."""
        return len(self.R) == 0

    def plus_rows(self, blocks: Sequence[Array]) -> Factor:
        """Return the factor of these rows and more rows [H Y]."""
        return Factor.of_blocks([np.vstack([self.R, *blocks])], self.shape, self.units)

    def plus(self, others: Sequence[Factor]) -> Factor:
        """Return the factor of all these rows together."""
        parts = [self, *others]
        stack = np.vstack([part.R for part in parts])
        return Factor.of_blocks([stack], self.shape, max(part.units for part in parts))

    def pack(self) -> dict[str, Array]:
        """Return the array to send: the upper triangle, and the units of rounding."""
        n, width = self.R.shape
        return {"R": np.append(self.R[np.triu_indices(n, m=width)], self.units)}

    @classmethod
    def unpack(
        cls, message: Mapping[str, np.ndarray[Any, Any]], shape: tuple[int, int]
    ) -> Self | None:
        """Return the factor that was sent, or None if the message is invalid."""
        sent = message.get("R")
        if (
            sent is None
            or len(message) > 1
            or sent.ndim != 1
            or sent.dtype != np.float64
            or not np.isfinite(sent).all()
        ):
            return None
        R = _unpack_triangle(sent[:-1], sum(shape), sum(shape))
        if R is None or sent[-1] < 0:
            return None
        return cls(shape, R, float(sent[-1]))


def product_units(n: float) -> float:
    """Return the units of rounding of a sum of n products, by `arrays.product`."""
    return 4.0 + max(min(n, BLOCK) / 4, 2.0 * math.sqrt(n))


def sum_units(n: float) -> float:
    """Return the units of rounding of a sum of n parts."""
    return 2.0 * math.sqrt(n)


def sum_of_squares(Y: Array) -> float:
    """Return |Y|^2."""
    return float(np.vdot(Y, Y))


def _unpack_triangle(numbers: Array, width: int, most: int) -> Array | None:
    """Return the triangular factor with these numbers, or None if there is none."""
    n = _rows_of_triangle(len(numbers), width, most)
    if n is None:
        return None
    R = np.zeros((n, width))
    R[np.triu_indices(n, m=width)] = numbers
    return R


def _rows_of_triangle(numbers: int, width: int, most: int) -> int | None:
    """Return how many rows a triangular factor of this width and so many numbers has, or None."""
    for n in range(1, most + 1):
        if n * width - n * (n - 1) // 2 == numbers:
            return n
    return None


def solve_ridge(
    G: Array,
    HY: Array,
    alpha: float | Array,
) -> Array:
    """Return (G + alpha I)^-1 HY by Cholesky, or raise DataError if it is not determined.

    alpha: one number, or one per row of G.
    """
    solution: Array = scipy.linalg.cho_solve(_factor(G, alpha), HY, check_finite=False)
    return solution


def inverse(G: Array, alpha: float | Array) -> Array:
    """Return (G + alpha I)^-1, for solvers that apply it in every iteration."""
    identity = np.eye(len(G))
    result: Array = scipy.linalg.cho_solve(_factor(G, alpha), identity, check_finite=False)
    return result


def augment(R: Array, B: int, alpha: float) -> tuple[Array, Array]:
    """Return the triangle T and the right sides t of the ridge problem that R stands for.

    [R_H R_Y; sqrt(alpha) I 0] = Q [T t1; 0 t2], so that  b = T^-1 t1  and the residual of the
    pooled problem has length |t2|. t: t1 above t2. The condition is not squared.
    """
    n, width = R.shape
    stack = np.zeros((n + B, width))
    stack[:n] = R
    stack[n:, :B].flat[:: B + 1] = np.sqrt(alpha)
    (joint,) = scipy.linalg.qr(stack, mode="r", overwrite_a=True, check_finite=False)
    return joint[:B, :B], joint[:, B:]


def undetermined_error(alpha: float) -> DataError:
    """Return the error for features that do not determine the coefficients."""
    return DataError(
        f"the features are linearly dependent, so that alpha={alpha:g} leaves the coefficients "
        "undetermined: raise alpha, or use fewer units (n_hidden, or n_reservoir)"
    )


def _factor(G: Array, alpha: float | Array) -> tuple[Array, bool]:
    A = G.copy()
    A.flat[:: len(A) + 1] += alpha
    try:
        factor: tuple[Array, bool] = scipy.linalg.cho_factor(
            A, overwrite_a=True, check_finite=False
        )
    except np.linalg.LinAlgError:
        raise undetermined_error(float(np.max(alpha))) from None
    diagonal = np.abs(np.diagonal(factor[0]))
    if np.max(alpha) == 0 and diagonal.min() <= 1e-7 * diagonal.max():
        raise undetermined_error(float(np.max(alpha)))
    return factor
