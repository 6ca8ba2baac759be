"""The Gaussian kernel of squared distances: k = exp(-D / 2 width^2)."""

from __future__ import annotations

import numpy as np

from peerlearn.arrays import Array


def gaussian(D: Array, width: float) -> Array:
    """Return the kernel of squared distances D."""
    K: Array = np.exp(D / (-2.0 * width**2))
    return K
