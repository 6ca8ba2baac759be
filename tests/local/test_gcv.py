"""Generalised cross-validation: the alpha that brute force finds, and cases without a best one."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn.local.gcv import best_alpha

EPS = 1e-13


def problem(rows, columns, noise, seed=0):
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((rows, columns)) * np.logspace(0, -3, columns)
    return H, H @ rng.standard_normal((columns, 2)) + noise * rng.standard_normal((rows, 2))


def by_hand(H, Y, alphas, free):
    """V with the hat matrix itself, for centred rows."""
    scores = []
    for alpha in alphas:
        hat = H @ np.linalg.solve(H.T @ H + alpha * np.eye(H.shape[1]), H.T)
        scores.append(np.sum((Y - hat @ Y) ** 2) / (len(H) - free - np.trace(hat)) ** 2)
    return alphas[np.argmin(scores)]


@pytest.mark.parametrize("free", [0, 1])
@pytest.mark.parametrize(
    ("rows", "columns", "noise"),
    [(200, 20, 0.01), (200, 20, 0.3), (200, 20, 3.0), (25, 20, 0.01), (25, 20, 3.0), (12, 30, 3.0)],
)
def test_brute_force(rows, columns, noise, free):
    H, Y = problem(rows, columns, noise)
    if free:
        H = H - H.mean(axis=0)
        Y = Y - Y.mean(axis=0)
    found = best_alpha(H.T @ H, H.T @ Y, np.sum(Y**2), rows, free=free, rounding=EPS)
    largest = np.linalg.eigvalsh(H.T @ H)[-1]
    grid = largest * 10.0 ** np.arange(0, -13, -0.25)
    assert found == pytest.approx(by_hand(H, Y, grid, free))


def test_the_noisier_the_larger():
    found = []
    for noise in (0.01, 0.3, 10.0):
        H, Y = problem(60, 20, noise)
        found.append(best_alpha(H.T @ H, H.T @ Y, np.sum(Y**2), 60, free=0, rounding=EPS))
    assert found == sorted(found)
    assert found[0] < 0.1 * found[-1]


def test_nothing_to_choose_from():
    G = np.zeros((3, 3))
    assert best_alpha(G, np.zeros((3, 1)), 0.0, 0.0, free=1, rounding=EPS) == 1.0
    H, _ = problem(30, 3, 1.0)
    G = H.T @ H
    largest = np.linalg.eigvalsh(G)[-1]
    assert best_alpha(G, np.zeros((3, 1)), 0.0, 30.0, free=1, rounding=EPS) == largest
    assert best_alpha(G, H.T @ H[:, :1], 1.0, 1.0, free=1, rounding=EPS) == largest  # no row left


def test_rounding_limits_alpha():
    H, _ = problem(100, 20, 0.0)
    Y = H[:, :1]  # no noise at all
    G = H.T @ H
    largest = np.linalg.eigvalsh(G)[-1]
    found = [
        best_alpha(G, H.T @ Y, np.sum(Y**2), 100, free=0, rounding=rounding)
        for rounding in (1e-2, 1e-6, 1e-12)
    ]
    assert found[0] >= 1e-2 * largest
    assert found[0] > found[1] > found[2] >= 1e-12 * largest
