"""Generated data sets follow their law."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn.data import g50c, load, two_moons
from peerlearn.errors import DataError


def test_the_best_rule_of_g50c_errs_in_five_percent():
    X, y = g50c(n=40_000, seed=1)
    error = np.mean(np.sign(X.sum(axis=1)) != y)
    assert abs(error - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 40_000)


def test_g50c_is_two_unit_gaussians_along_the_diagonal():
    X, y = g50c(n=40_000, seed=2)
    for sign in (-1, 1):
        cloud = X[y == sign]
        assert cloud.mean(axis=0) == pytest.approx(np.full(50, sign * 0.2326174), abs=0.04)
        assert np.cov(cloud.T) == pytest.approx(np.eye(50), abs=0.05)


@pytest.mark.parametrize("n", [2, 3, 550, 551])
def test_generated_classes_are_as_equal_as_possible(n):
    for _, y in (g50c(n), two_moons(n)):
        assert set(y.tolist()) == {-1, 1}
        assert abs(int(y.sum())) == n % 2


@pytest.mark.parametrize("draw", [g50c, two_moons])
def test_generated_sets_follow_the_seed_and_are_shuffled(draw):
    (X, y), (again, _), (other, _) = draw(seed=5), draw(seed=5), draw(seed=6)
    assert np.array_equal(X, again)
    assert not np.array_equal(X, other)
    assert np.count_nonzero(np.diff(y)) > len(y) / 4


def test_load_passes_the_seed_on():
    assert np.array_equal(load("g50c", seed=7, scaled=False).X, g50c(seed=7)[0])
    assert not np.array_equal(load("two-moons", seed=7).X, load("two-moons").X)


def test_two_moons_are_half_circles_with_the_noise_asked_for():
    X, y = two_moons(n=4000, noise=0.1)
    centres = np.where((y == 1)[:, None], [0.0, 0.0], [1.0, 0.5])
    radii = np.linalg.norm(X - centres, axis=1)
    assert np.sqrt(np.mean((radii - 1) ** 2)) == pytest.approx(0.1, rel=0.05)
    assert X[y == 1, 1].mean() > X[y == -1, 1].mean()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: g50c(n=1), "g50c cannot be drawn with n=1 rows"),
        (lambda: two_moons(n=0), "two-moons cannot be drawn with n=0 rows"),
        (lambda: two_moons(noise=-0.1), r"two-moons cannot be drawn with noise -0\.1"),
    ],
)
def test_what_cannot_be_drawn(call, expected):
    with pytest.raises(DataError, match=expected):
        call()
