"""Images as how similar their parts are to patches that are common in other images.

    p <- (p - mean p) / sqrt(var p + e)        a patch of all colours, of even brightness and contrast
    p <- V (D + 0.1 I)^-1/2 V' (p - m)         whitened; m and V D V': mean and covariance of patches
    c_1 .. c_K                                 the centres of K-means of whitened patches
    f_k(p) = max(0, mean_j |p - c_j| - |p - c_k|)
    f(image) = the sums of f(p) over all patches of each quarter of the image: 4 K numbers

Coates, Lee and Ng, An analysis of single-layer networks in unsupervised feature learning, 2011,
sections 3 and 4.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from peerlearn.arrays import Array, is_whole
from peerlearn.errors import DataError, InputError

COLOURS = 3
CONTRAST, WHITENING = (
    10 / 255**2,
    0.1,
)  # e above, for values from 0 to 1, and what is added to the variances
AT_ONCE = (
    50  # images in memory as patches: single precision, which pictures of 256 shades do not exceed
)

Patch = NDArray[np.float32]


class Patches(TransformerMixin, BaseEstimator):
    """Square images of three colours, one per row, to features that a linear readout can use.

    Parameters
    ----------
    n_patches: K above.
    size: of a patch, in pixels a side.
    step: pixels from one patch of an image to the next.
    n_samples: patches of each image, at random places, that the centres are found from.
    random_state: of these places, and of the search for centres.
    """

    def __init__(
        self,
        n_patches: int = 400,
        *,
        size: int = 6,
        step: int = 1,
        n_samples: int = 5,
        random_state: Any = None,
    ) -> None:
        self.n_patches = n_patches
        self.size = size
        self.step = step
        self.n_samples = n_samples
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        for name in ("n_patches", "size", "step", "n_samples"):
            if not is_whole(value := getattr(self, name)) or value < 1:
                raise InputError(f"{name} of Patches is {value!r}: give a whole number, 1 or more")
        images = self._images(validate_data(self, X, dtype=np.float64))
        rng = check_random_state(self.random_state)
        places = images.shape[1] - self.size + 1
        self.low_, self.high_ = float(images.min()), float(images.max())
        i, top, left = (
            rng.randint(n, size=max(self.n_samples * len(images), self.n_patches))
            for n in (len(images), places, places)
        )
        windows = sliding_window_view(images, (self.size, self.size), axis=(1, 2))
        p = self._even(windows[i, top, left].reshape(len(i), -1))
        self.mean_ = p.mean(axis=0)
        variances, V = np.linalg.eigh(np.cov(p, rowvar=False, dtype=np.float64))
        self.whitening_ = ((V / np.sqrt(np.maximum(variances, 0.0) + WHITENING)) @ V.T).astype(
            np.float32
        )
        means = MiniBatchKMeans(self.n_patches, batch_size=4096, n_init=1, random_state=rng)
        self.centres_ = means.fit((p - self.mean_) @ self.whitening_).cluster_centers_.astype(
            np.float32
        )
        return self

    def transform(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        images = self._images(validate_data(self, X, dtype=np.float64, reset=False))
        pieces = [
            self._features(images[at : at + AT_ONCE]) for at in range(0, len(images), AT_ONCE)
        ]
        return np.concatenate(pieces)

    def _images(self, X: Array) -> Array:
        """Images x rows x columns x colours."""
        side = math.isqrt(X.shape[1] // COLOURS)
        if side * side * COLOURS != X.shape[1] or side < self.size:
            raise DataError(
                f"rows of {X.shape[1]} columns are no square images of {COLOURS} colours with patches of {self.size} x "
                f"{self.size} pixels: give rows of side x side x {COLOURS} values, and a smaller size if they are small"
            )
        return X.reshape(len(X), side, side, COLOURS)

    def _even(self, p: Array) -> Patch:
        """Patches of even brightness and contrast, one per row."""
        values = ((p - self.low_) / ((self.high_ - self.low_) or 1.0)).astype(np.float32)
        values -= values.mean(axis=1, keepdims=True)
        values /= np.sqrt(values.var(axis=1, keepdims=True) + np.float32(CONTRAST))
        return values

    def _features(self, images: Array) -> Array:
        windows = sliding_window_view(images, (self.size, self.size), axis=(1, 2))[
            :, :: self.step, :: self.step
        ]
        n, places = windows.shape[:2]
        p = (self._even(windows.reshape(n * places * places, -1)) - self.mean_) @ self.whitening_
        c = self.centres_
        squares = np.sum(p * p, axis=1)[:, None] + np.sum(c * c, axis=1) - 2 * (p @ c.T)
        away = np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)
        similar = np.maximum(away.mean(axis=1, keepdims=True) - away, 0.0).reshape(
            n, places, places, len(c)
        )
        half = (places + 1) // 2
        rows = (slice(half), slice(half, None))
        quarters = [similar[:, top, left].sum(axis=(1, 2)) for top in rows for left in rows]
        return np.concatenate(quarters, axis=1, dtype=np.float64)
