"""A check of gradients against differences of values.

    (h_k(w + t e_j) - h_k(w - t e_j)) / 2t  =  j-th entry of grad h_k(w) + O(t^2)

The error of the left side is about eps |h_k| / t by rounding, and t^2 times a third derivative.
Both are small for t = eps^(1/3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peerlearn.arrays import Array, per_agent
from peerlearn.errors import InputError
from peerlearn.local.losses import EPS, Losses

__all__ = ["check_gradient"]

STEP = EPS ** (1 / 3)


def check_gradient(losses: Losses, w: Any = None, *, tolerance: float = 1e-5) -> float:
    """Compare the gradients of losses with differences of their values.

    Parameters
    ----------
    losses : Losses
        Any object with `agents`, `dimension`, `value` and `gradient`. It is evaluated twice for
        each of the d entries.
    w : array-like or None, default None
        Where to compare: agents x d. None draws a point at random, always the same.
    tolerance : float, default 1e-5
        Largest error, relative to the agent's largest difference, or to 1 if that is larger.

    Returns
    -------
    float
        The largest error of all agents and entries.

    Raises
    ------
    InputError
        If an error is above tolerance. The message names the worst agent and entry.

    Examples
    --------
    >>> from peerlearn import check_gradient
    >>> from peerlearn.local.margin_losses import LogisticLosses
    >>> check_gradient(LogisticLosses([[[0.0, 1.0]], [[2.0, 3.0]]], [[1], [-1]])) < 1e-9
    True
    """
    if w is None:
        w = np.random.default_rng(0).standard_normal((losses.agents, losses.dimension))
    w = per_agent(w, losses.agents, "w")
    gradient = np.asarray(losses.gradient(w), dtype=np.float64)
    if gradient.shape != w.shape:
        raise InputError(
            f"{type(losses).__name__}.gradient returns an array of shape {gradient.shape} "
            f"instead of {w.shape}: return one row per agent"
        )
    slopes = _differences(losses, w)
    scales = np.maximum(1.0, np.abs(slopes).max(axis=1, initial=0.0))[:, None]
    errors = np.abs(gradient - slopes) / scales
    errors = np.where(np.isfinite(errors), errors, np.inf)
    worst = float(errors.max(initial=0.0))
    if worst > tolerance:
        k, j = np.unravel_index(int(np.argmax(errors)), errors.shape)
        raise InputError(
            f"{type(losses).__name__}.gradient is wrong: at agent {k} entry {j} is "
            f"{gradient[k, j]:.6g}, but values change by {slopes[k, j]:.6g} per unit there; "
            "check the derivative of this entry"
        )
    return worst


def _differences(losses: Losses, w: Array) -> Array:
    """Return the derivatives of all agents' values, entry by entry: (agents, d)."""
    slopes = np.empty_like(w)
    for j in range(losses.dimension):
        step = np.zeros_like(w)
        step[:, j] = STEP * np.maximum(1.0, np.abs(w[:, j]))
        there = w + step
        back = w - step
        slopes[:, j] = (losses.value(there) - losses.value(back)) / (there - back)[:, j]
    return slopes
