"""Data sets drawn from a formula, so that they need no file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from peerlearn.arrays import Array
from peerlearn.errors import DataError

Labels = NDArray[np.int64]
DIMENSIONS = 50


def g50c(n: int = 550, seed: int = 0) -> tuple[Array, Labels]:
    """Draw two Gaussian clouds in 50 dimensions whose best possible error is 5 %.

        y = -1 or +1, as equally often as n allows
        x | y ~ N(y m 1, I_50)      m = Phi^-1(0.95) / sqrt(50)

    The rule sign(1'x) is optimal: 1'x / sqrt(50) has mean y Phi^-1(0.95) and variance one, so it
    errs with probability Phi(-Phi^-1(0.95)) = 0.05. Chapelle and Zien, Semi-supervised
    classification by low density separation, 2005; also the G50C of Melacci and Belkin, Laplacian
    support vector machines trained in the primal, 2011.

    Parameters
    ----------
    n : int, default 550
        Number of rows, 2 or more.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    X : ndarray of float64
        n x 50.
    y : ndarray of int64
        -1 or +1.

    Examples
    --------
    >>> from peerlearn import data
    >>> X, y = data.g50c(100)
    >>> X.shape, int(y.sum())
    ((100, 50), 0)
    """
    _check_rows("g50c", n)
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.where(np.arange(n) % 2 == 0, 1, -1)).astype(np.int64)
    m = ndtri(0.95) / np.sqrt(DIMENSIONS)
    return rng.standard_normal((n, DIMENSIONS)) + m * y[:, None], y


def two_moons(n: int = 400, noise: float = 0.15, seed: int = 0) -> tuple[Array, Labels]:
    """Draw two interleaved half circles of radius one, with Gaussian noise.

    The default noise is the spread of the thesis's 2Moons (0.151) around its circles.

    Parameters
    ----------
    n : int, default 400
        Number of rows, 2 or more.
    noise : float, default 0.15
        Standard deviation of the noise.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    X : ndarray of float64
        n x 2.
    y : ndarray of int64
        +1 for the upper half circle, -1 for the lower.

    Examples
    --------
    >>> from peerlearn import data
    >>> X, y = data.two_moons(100)
    >>> X.shape, int(y.sum())
    ((100, 2), 0)
    """
    _check_rows("two-moons", n)
    if not noise >= 0:
        raise DataError(
            f"two-moons cannot be drawn with noise {noise}: give a standard deviation of zero or "
            "more"
        )
    from sklearn.datasets import make_moons  # takes .1 s; agents read files of their own

    X, lower = make_moons(n, noise=noise, random_state=seed)
    return np.ascontiguousarray(X, dtype=np.float64), np.where(lower == 0, 1, -1).astype(np.int64)


def _check_rows(name: str, n: int) -> None:
    if n < 2:
        raise DataError(
            f"{name} cannot be drawn with n={n} rows: it has two classes, so ask for at least 2"
        )
