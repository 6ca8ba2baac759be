"""Outputs and errors of a filter over recorded signals, and learning curves in decibels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.arrays import Array, is_whole
from peerlearn.errors import DataError, InputError
from peerlearn.models.filter_signals import real_array
from peerlearn.network.base import Counts


@dataclass(frozen=True)
class FilterRun:
    """Outputs, errors and deviations of a filter over recorded signals.

    All arrays are hosted agents x samples. Values at sample n belong to the filter as it was before
    it learned from d[n]. `decibels` turns them into learning curves.

    (a w, phi(s / a)) is the same filter for any a. The deviations use the a for which a w is
    nearest to w0.

    Attributes
    ----------
    outputs : ndarray
        y.
    errors : ndarray
        d - y.
    msd : ndarray or None
        |w0 - a w|^2; None if the truth was not given.
    msd_spline : ndarray or None
        Sum of (phi(t / a) - f0(t))^2 over the usable knots t; None if the truth was not given or
        the filter has no spline.
    sent : Counts
        What was sent during the run.

    Examples
    --------
    >>> from peerlearn import LMSFilter
    >>> run = LMSFilter(order=1, step_size=0.5).run([1.0, 1.0, 1.0], [3.0, 3.0, 3.0])
    >>> run.outputs
    array([[1. , 2. , 2.5]])
    >>> run.mse
    array([[4.  , 1.  , 0.25]])
    """

    outputs: Array
    errors: Array
    msd: Array | None
    msd_spline: Array | None
    sent: Counts

    @property
    def mse(self) -> Array:
        """Squared errors, (d - y)^2."""
        return self.errors**2

    def excess(self, clean: ArrayLike) -> Array:
        """Return (y - clean)^2, the part of the squared error that a filter can avoid.

        clean: the signals d without their noise, hosted agents x samples.
        """
        signal = real_array(clean)
        if signal is None:
            raise DataError(
                "clean is no array of real numbers: give the signals without noise, one row per "
                "agent"
            )
        if len(self.outputs) == 1 and signal.ndim == 1:
            signal = signal[None]
        if signal.shape != self.outputs.shape:
            raise DataError(
                f"clean has shape {np.shape(clean)}, but the outputs have shape "
                f"{self.outputs.shape}: give the signals without noise that belong to this run"
            )
        excess: Array = (self.outputs - signal) ** 2
        return excess


def decibels(powers: ArrayLike, window: int = 1) -> Array:
    """Return 10 log10 of mean powers, averaged over agents and repetitions.

    Powers are averaged, not their logarithms: the two differ by several decibels where powers
    scatter.

    Parameters
    ----------
    powers : array-like of shape (..., n_samples)
        Squared errors or deviations, such as those of `FilterRun`. The mean is taken over all axes
        except the last.
    window : int, default 1
        Number of samples of the moving average along the last axis.

    Returns
    -------
    ndarray of shape (n_samples - window + 1,)

    Examples
    --------
    >>> from peerlearn import decibels
    >>> decibels([[1.0, 1.0, 4.0], [1.0, 3.0, 4.0]], window=2).round(2).tolist()
    [1.76, 4.77]
    """
    array = real_array(powers)
    if array is None:
        raise InputError(
            f"powers are {powers!r:.60}: give an array of numbers, with the same number of samples "
            "in each row"
        )
    if array.ndim == 0 or not is_whole(window) or not 1 <= window <= array.shape[-1]:
        raise InputError(
            f"powers of shape {array.shape} have no mean over a window of {window!r} samples: give "
            "an array whose last axis is samples, and a window from 1 to the number of samples"
        )
    mean = array.reshape(-1, array.shape[-1]).mean(axis=0)
    smooth = np.convolve(mean, np.full(window, 1 / window), mode="valid")
    with np.errstate(divide="ignore"):  # a power of 0 is -inf decibels
        return np.asarray(10 * np.log10(smooth))
