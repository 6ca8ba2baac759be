"""Families: their derivatives, and bounds of how fast their Hessians change."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn.local.families import Gamma, Gaussian, Logistic, Multinomial, Poisson

RNG = np.random.default_rng(0)
F = RNG.uniform(-3, 3, (50, 1))
FAMILIES = {
    "gaussian": (Gaussian(), F, RNG.standard_normal((50, 1))),
    "poisson": (Poisson(), F, RNG.poisson(2.0, (50, 1)).astype(float)),
    "gamma": (Gamma(), F, RNG.gamma(2.0, 1.0, (50, 1))),
    "logistic": (Logistic(), F, RNG.choice([-1.0, 1.0], (50, 1))),
    "multinomial": (Multinomial(), RNG.uniform(-3, 3, (50, 3)), np.eye(4)[RNG.integers(0, 4, 50)]),
}
STEP = 1e-5


@pytest.mark.parametrize("name", FAMILIES)
def test_derivatives(name):
    family, f, y = FAMILIES[name]
    for c in range(f.shape[1]):
        step = STEP * np.eye(f.shape[1])[c]
        rise = (family.values(f + step, y) - family.values(f - step, y)) / (2 * STEP)
        np.testing.assert_allclose(family.slopes(f, y)[:, c], rise, rtol=1e-5, atol=1e-7)
        turn = (family.slopes(f + step, y) - family.slopes(f - step, y)) / (2 * STEP)
        np.testing.assert_allclose(family.bends(f, y)[:, c], turn, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", FAMILIES)
def test_hessians_change_no_faster_than_stated(name):
    family, f, y = FAMILIES[name]
    u = RNG.standard_normal(f.shape)
    v = RNG.standard_normal(f.shape)
    change = (family.bends(f + STEP * u, y) - family.bends(f - STEP * u, y)) / (2 * STEP)
    third = np.abs(np.einsum("ia,iab,ib->i", v, change, v))
    second = np.einsum("ia,iab,ib->i", v, family.bends(f, y), v)
    sizes = np.linalg.norm(u, axis=1)
    assert (third <= family.concordance * sizes * second * (1 + 1e-6) + 1e-8).all()
    if name != "gaussian":
        assert (third > 0.2 * family.concordance * sizes * second).any()


@pytest.mark.parametrize("name", ["gaussian", "poisson", "gamma"])
def test_deviances_vanish_where_the_mean_is_right(name):
    family, f, _ = FAMILIES[name]
    np.testing.assert_allclose(family.deviances(f, family.mean(f)), 0.0, atol=1e-12)
    np.testing.assert_allclose(family.squares(f, family.mean(f)), 0.0, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_far_outputs_stay_finite(name):
    family, f, y = FAMILIES[name]
    for far in (f + 1e4, f - 1e4):
        assert np.isfinite(family.values(far, y)).all()
        assert np.isfinite(family.slopes(far, y)).all()
        assert np.isfinite(family.bends(far, y)).all()


def test_the_penalty_of_several_classes_is_that_of_one_output_each():
    W = RNG.standard_normal((5, 3))
    of_all = np.hstack([np.zeros((5, 1)), W])
    centred = of_all - of_all.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(np.vdot(W, Multinomial().spread(W)), np.vdot(centred, centred))
