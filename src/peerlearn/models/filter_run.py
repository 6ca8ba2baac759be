"""What a filter did with recorded signals, and curves of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peerlearn.arrays import Array, is_whole
from peerlearn.errors import DataError, InputError
from peerlearn.models.signals import real_array
from peerlearn.network.base import Counts


@dataclass(frozen=True)
class FilterRun:
    """Hosted agents x samples. Everything at sample n belongs to the filter as it was before it learned from d[n].

    mse: e^2. msd: |w0 - a w|^2, and msd_spline: the sum of (phi(t / a) - f0(t))^2 over the usable
    knots t, where the
    truth was given. (a w, phi(s / a)) is the same filter for any a; it is compared with the a for
    which a w is nearest w0. `decibels` makes curves of them.
    """

    outputs: Array
    errors: Array  # d - y
    msd: Array | None
    msd_spline: Array | None
    sent: Counts

    @property
    def mse(self) -> Array:
        return self.errors**2

    def excess(self, clean: Any) -> Array:
        """(y - clean)^2, with the signals d without their noise: the part of the error that a filter can do without."""
        signal = real_array(clean)
        if signal is None:
            raise DataError(
                "clean is no array of real numbers: give the signals without noise, one row per agent"
            )
        if len(self.outputs) == 1 and signal.ndim == 1:
            signal = signal[None]
        if signal.shape != self.outputs.shape:
            raise DataError(
                f"clean has shape {np.shape(clean)}, but the outputs have shape {self.outputs.shape}: give the signals "
                "without noise that belong to this run"
            )
        excess: Array = (self.outputs - signal) ** 2
        return excess


def decibels(powers: Any, window: int = 1) -> Array:
    """10 log10 of the mean over all axes but the last (agents, repetitions), and over `window` samples at a time.

    Powers are averaged, never their logarithms: those differ by decibels where powers scatter.

    >>> decibels([[1.0, 1.0, 4.0], [1.0, 3.0, 4.0]], window=2).round(2).tolist()
    [1.76, 4.77]
    """
    array = real_array(powers)
    if array is None:
        raise InputError(
            f"powers are {powers!r:.60}: give an array of numbers, with the same number of samples in each row"
        )
    if array.ndim == 0 or not is_whole(window) or not 1 <= window <= array.shape[-1]:
        raise InputError(
            f"powers of shape {array.shape} have no mean over a window of {window!r} samples: give an array whose "
            "last axis is samples, and a whole number of them"
        )
    mean = array.reshape(-1, array.shape[-1]).mean(axis=0)
    smooth = np.convolve(mean, np.full(window, 1 / window), mode="valid")
    with np.errstate(divide="ignore"):  # a power of 0 is -inf decibels
        return np.asarray(10 * np.log10(smooth))
