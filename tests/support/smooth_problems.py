"""Smooth problems for tests: logistic regression and S3VM over agents, and their gradients in one
place.
"""

from __future__ import annotations

import warnings

import numpy as np

from peerlearn import graphs
from peerlearn.data import load
from peerlearn.errors import NotConverged
from peerlearn.local.margin_losses import S3VMLosses

GRAPH = graphs.erdos_renyi(7, 0.35, seed=0)
ALPHA = 2.0


def rows(agents, d=4, seed=0, unlike=0.3):
    """1 to 12 rows per agent around a centre of its own, and labels that some noise makes hard to
    separate.
    """
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    X = [
        rng.standard_normal((rng.integers(1, 13), d)) + unlike * rng.standard_normal(d)
        for _ in range(agents)
    ]
    return X, [np.where(x @ w + rng.standard_normal(len(x)) > 0, 1.0, -1.0) for x in X]


def logistic_value(w, X, y):
    return np.logaddexp(0, -y * (X @ w)).sum() + ALPHA / 2 * w @ w


def logistic_gradient(w, X, y):
    return -X.T @ (y / (1 + np.exp(y * (X @ w)))) + ALPHA * w


def s3vm_gradient(w, X, y, m):
    """With C1 = C2 = alpha = 1, s = 5, b = 0; the correct gradients."""
    Z, L, U = X - m, np.count_nonzero(y), np.count_nonzero(y == 0)
    f = Z @ w
    slope = np.where(y != 0, -np.maximum(1 - y * f, 0) * y / L, -5 / U * np.exp(-5 * f**2) * f)
    return Z.T @ slope + w


def quiet(solver, network, losses, alpha=ALPHA, start=None):
    with warnings.catch_warnings(action="ignore", category=NotConverged):
        return solver.minimise(network, losses, alpha, start)


def g50c_over(agents, skewed=False, seed=0):
    """Generated G50C with 40 labels: losses of the agents, and all rows in one place."""
    g50c = load("g50c")
    X = 2 * (g50c.X - g50c.X.min(axis=0)) / np.ptp(g50c.X, axis=0) - 1
    order = np.random.default_rng(seed).permutation(len(X))[:495]
    y = np.zeros(len(X))
    y[order[:40]] = np.where(g50c.y[order[:40]] > 0, 1.0, -1.0)
    m = X[order[40:]].mean(axis=0)
    order = order[np.argsort(X[order, 0])] if skewed else np.sort(order)
    parts = np.array_split(order, agents)
    losses = S3VMLosses(
        [X[own] for own in parts], [y[own] for own in parts], m, labelled=40, unlabelled=455
    )
    return losses, (X[order], y[order], m)
