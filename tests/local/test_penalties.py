"""Penalties are their proximal formulas."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn.local.penalties import Lasso, Ridge


def test_penalties_are_their_proximal_formulas():
    v = np.array([-3.0, -0.5, 0.0, 0.2, 4.0])
    np.testing.assert_allclose(Ridge(2.0).prox(v, 0.25), v / 1.5)
    np.testing.assert_allclose(Lasso(2.0).prox(v, 0.25), [-2.5, 0, 0, 0, 3.5])
    grid = np.linspace(-5, 5, 100_001)
    for penalty, g in ((Ridge(2.0), grid**2), (Lasso(2.0), 2 * np.abs(grid))):
        for value in v:
            best = grid[np.argmin(g + (grid - value) ** 2 / 0.5)]
            assert penalty.prox(np.array([value]), 0.25)[0] == pytest.approx(best, abs=2e-4)
