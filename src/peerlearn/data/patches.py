"""Features of images: how similar their parts are to patches that are common in other images.

    p <- (p - mean p) / sqrt(var p + e)        a patch with even brightness and contrast
    p <- V (D + 0.1 I)^-1/2 V' (p - m)         whitened; m, V D V': mean, covariance of patches
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
CONTRAST = 10 / 255**2  # e above, for values from 0 to 1
WHITENING = 0.1  # added to the variances
# Images in memory as patches. They are in single precision, which is enough for 256 shades.
AT_ONCE = 50

Patch = NDArray[np.float32]


class Patches(TransformerMixin, BaseEstimator):
    """Transformer of square colour images to features that a linear readout can use.

    Parameters
    ----------
    n_patches : int, default 400
        Number of centres, K in the formulas of the module.
    size : int, default 6
        Side of a patch in pixels.
    step : int, default 1
        Pixels from one patch of an image to the next.
    n_samples : int, default 5
        Patches of each image, at random places, from which the centres are found.
    random_state : int, RandomState or None, default None
        Seed of these places and of the search for centres.

    Attributes
    ----------
    low_, high_ : float
        Smallest and largest value of the images seen in fit.
    mean_ : ndarray
        Mean patch, m in the formulas.
    whitening_ : ndarray
        The whitening matrix.
    centres_ : ndarray
        The centres c, one per row.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn.data.patches import Patches
    >>> images = np.random.default_rng(0).random((20, 8 * 8 * 3))
    >>> Patches(5, size=4, random_state=0).fit_transform(images).shape
    (20, 20)
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
        """Find the centres from patches of the images X, one image per row; y is ignored."""
        for name in ("n_patches", "size", "step", "n_samples"):
            value = getattr(self, name)
            if not is_whole(value) or value < 1:
                raise InputError(f"{name} of Patches is {value!r}: give a whole number, 1 or more")
        images = self._images(validate_data(self, X, dtype=np.float64))
        rng = check_random_state(self.random_state)
        self.low_ = float(images.min())
        self.high_ = float(images.max())
        p = self._even(self._sample_patches(images, rng))
        self.mean_ = p.mean(axis=0)
        variances, V = np.linalg.eigh(np.cov(p, rowvar=False, dtype=np.float64))
        whitening = (V / np.sqrt(np.maximum(variances, 0.0) + WHITENING)) @ V.T
        self.whitening_ = whitening.astype(np.float32)
        means = MiniBatchKMeans(self.n_patches, batch_size=4096, n_init=1, random_state=rng)
        means.fit((p - self.mean_) @ self.whitening_)
        self.centres_ = means.cluster_centers_.astype(np.float32)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the features of the images X, rows x 4 K."""
        check_is_fitted(self)
        images = self._images(validate_data(self, X, dtype=np.float64, reset=False))
        pieces = [
            self._features(images[at : at + AT_ONCE]) for at in range(0, len(images), AT_ONCE)
        ]
        return np.concatenate(pieces)

    def _sample_patches(self, images: Array, rng: np.random.RandomState) -> Array:
        """Return patches at random places, one per row."""
        count = max(self.n_samples * len(images), self.n_patches)
        places = images.shape[1] - self.size + 1
        i = rng.randint(len(images), size=count)
        top = rng.randint(places, size=count)
        left = rng.randint(places, size=count)
        windows = sliding_window_view(images, (self.size, self.size), axis=(1, 2))
        return np.asarray(windows[i, top, left].reshape(count, -1))

    def _images(self, X: Array) -> Array:
        """Return the rows as images x rows x columns x colours."""
        side = math.isqrt(X.shape[1] // COLOURS)
        if side * side * COLOURS != X.shape[1] or side < self.size:
            raise DataError(
                f"rows of {X.shape[1]} columns are no square images of {COLOURS} colours with "
                f"patches of {self.size} x {self.size} pixels: give rows of side x side x "
                f"{COLOURS} values, and a smaller size if they are small"
            )
        return X.reshape(len(X), side, side, COLOURS)

    def _even(self, p: Array) -> Patch:
        """Return patches of even brightness and contrast, one per row."""
        values = ((p - self.low_) / ((self.high_ - self.low_) or 1.0)).astype(np.float32)
        values -= values.mean(axis=1, keepdims=True)
        values /= np.sqrt(values.var(axis=1, keepdims=True) + np.float32(CONTRAST))
        return values

    def _features(self, images: Array) -> Array:
        windows = sliding_window_view(images, (self.size, self.size), axis=(1, 2))
        windows = windows[:, :: self.step, :: self.step]
        n, places = windows.shape[:2]
        p = self._even(windows.reshape(n * places * places, -1))
        p = (p - self.mean_) @ self.whitening_
        c = self.centres_
        squares = np.sum(p * p, axis=1)[:, None] + np.sum(c * c, axis=1) - 2 * (p @ c.T)
        away = np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)
        similar = np.maximum(away.mean(axis=1, keepdims=True) - away, 0.0)
        similar = similar.reshape(n, places, places, len(c))
        half = (places + 1) // 2
        halves = (slice(half), slice(half, None))
        quarters = [similar[:, top, left].sum(axis=(1, 2)) for top in halves for left in halves]
        return np.concatenate(quarters, axis=1, dtype=np.float64)
