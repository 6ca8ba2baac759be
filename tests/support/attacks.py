"""Attacks on what agents send: each takes recorded messages, and returns what they give away."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares


def invert_landmarks(centre, scale, table, basis):
    """Return all rows, from their squared distances to a centre and to landmarks around it.

    table: one row per row, the distance to the centre first. basis: directions of the landmarks.
    """
    return centre + (table[:, :1] + scale**2 - table[:, 1:]) / (2 * scale) @ basis


def solve_gossip(mixtures, received):
    """Return the values of all agents by least squares, and which of them are certain.

    mixtures: what was received, as rows over all agents' values. A value is certain if its unit
    vector is in the space of these rows.
    """
    inverse = np.linalg.pinv(mixtures, rcond=1e-10)
    return inverse @ received, np.diag(inverse @ mixtures) > 1 - 1e-9


def subtract_totals(with_agent, without):
    """Return the numbers of an agent that took part in one of two sums."""
    return with_agent - without


def unmask_twice(before, after):
    """Return the difference of two contents that one mask of single words covers."""
    return (after - before)[:, 0].view(np.int64)


def rows_behind(G, n, h, tries=None):
    """The n rows whose sigmoid features h have the Gram matrix G, or those that were found."""
    found, rng = [], np.random.default_rng(0)
    for _ in range(tries or 2 * n):
        N = np.linalg.eigh(G)[1][:, : len(G) - n + len(found)]
        start = rng.standard_normal(len(h.W))
        end = least_squares(outside, start, slope, args=(N, h), method="lm")
        if end.cost < 1e-16:
            H = h(end.x[None])
            found.append(end.x)
            G = G - H.T @ H
        if len(found) == n:
            break
    return found


def outside(x, N, h):
    """N'h(x)"""
    return h(x[None])[0] @ N


def slope(x, N, h):
    H = h(x[None])
    return ((H * (1 - H) * h.W) @ N).T
