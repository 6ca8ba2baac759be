"""Wiener systems: the law of the signals, the two nonlinearities, and what is the same in another
recording.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline

from peerlearn.data import wiener
from peerlearn.data.wiener import KNOTS, MILD, mild, strong
from peerlearn.errors import DataError

LONG = 100_000


def test_inputs_have_unit_variance_and_the_agents_correlation():
    drawn = wiener(6, LONG, seed=3)
    assert drawn.x.shape == drawn.d.shape == drawn.clean.shape == (6, LONG)
    np.testing.assert_allclose(drawn.x.var(axis=1), 1.0, atol=0.05)
    for lag in (1, 3):
        products = (drawn.x[:, lag:] * drawn.x[:, :-lag]).mean(axis=1)
        np.testing.assert_allclose(products, drawn.correlation**lag, atol=0.04)
    innovations = drawn.x[:, 1:] - drawn.correlation[:, None] * drawn.x[:, :-1]
    np.testing.assert_allclose(innovations.var(axis=1), 1 - drawn.correlation**2, rtol=0.03)


def test_noise_has_the_agents_power_and_is_nobody_elses():
    drawn = wiener(6, LONG, seed=1)
    noise = drawn.d - drawn.clean
    np.testing.assert_allclose((noise**2).mean(axis=1), drawn.noise_power, rtol=0.03)
    np.testing.assert_allclose(np.corrcoef(np.vstack([noise, drawn.x])), np.eye(12), atol=0.02)


def test_settings_are_spread_as_printed():
    drawn = wiener(2000, 1)
    decibels = 10 * np.log10(drawn.noise_power)
    assert -25 <= decibels.min() < -24.8 < -10.2 < decibels.max() <= -10
    assert 0 <= drawn.correlation.min() < 0.01 < 0.79 < drawn.correlation.max() <= 0.8
    assert abs(decibels.mean() + 17.5) < 0.5
    assert abs(drawn.correlation.mean() - 0.4) < 0.02
    assert abs(np.corrcoef(decibels, drawn.correlation)[0, 1]) < 0.05


@pytest.mark.parametrize("nonlinearity", ["mild", "strong"])
def test_clean_is_the_system_after_a_buffer_of_zeros(nonlinearity):
    drawn = wiener(3, 50, order=4, nonlinearity=nonlinearity, seed=5)
    assert drawn.coefficients.shape == (4,)
    assert np.linalg.norm(drawn.coefficients) == pytest.approx(1, abs=1e-15)
    for k in range(3):
        buffer = np.zeros(4)
        for n in range(50):
            buffer = np.concatenate([[drawn.x[k, n]], buffer[:-1]])
            s = np.array([drawn.coefficients @ buffer])
            assert drawn.clean[k, n] == pytest.approx(drawn.f0(s)[0], abs=1e-13)


def test_another_recording_is_of_the_same_system_and_agents():
    first, second, again = (wiener(4, 200, seed=7, signals=run) for run in (0, 1, 0))
    for name in ("coefficients", "noise_power", "correlation", "control_points"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    for name in ("x", "d", "clean"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
        assert (
            abs(np.corrcoef(getattr(first, name).ravel(), getattr(second, name).ravel())[0, 1])
            < 0.2
        )
    other = wiener(4, 200, seed=8)
    assert not np.allclose(first.coefficients, other.coefficients)
    assert not np.allclose(first.correlation, other.correlation)


def test_an_agents_signals_are_its_own():
    """Whoever else is there, and however long all record."""
    few, many = wiener(3, 100, seed=2), wiener(9, 300, seed=2)
    for name in ("x", "d", "clean"):
        assert np.array_equal(getattr(few, name), getattr(many, name)[:3, :100])
    assert np.array_equal(few.noise_power, many.noise_power[:3])


def test_mild_is_the_catmull_rom_spline_of_its_control_points():
    """Cubic Hermite with the slopes of the neighbors' chord; beyond -2 and 2 along the tangent,
    which has slope one.
    """
    slopes = (MILD[2:] - MILD[:-2]) / (KNOTS[2:] - KNOTS[:-2])
    spline = CubicHermiteSpline(KNOTS[1:-1], MILD[1:-1], slopes)
    s = np.linspace(-2, 2, 1001)
    np.testing.assert_allclose(mild(s), spline(s), atol=1e-12)
    np.testing.assert_allclose(mild(KNOTS), MILD, atol=1e-14)
    bent = [-1.0, -0.8, -0.91, -0.4, 0.2, -0.05, 0.0, -0.15, 0.58, 1.0, 1.0]
    np.testing.assert_allclose(mild(np.linspace(-1, 1, 11)), bent, atol=1e-14)
    beyond = np.array([-7.3, -2.05, 2.0, 2.01, 1e300])
    np.testing.assert_allclose(mild(beyond), beyond, rtol=1e-14)


def test_strong_has_two_peaks_far_above_the_mild_ones():
    s = np.linspace(-3, 3, 6001)
    away = strong(s) - s
    np.testing.assert_allclose(strong(-s), -strong(s), atol=1e-15)
    assert s[away.argmax()] == pytest.approx(0.7, abs=2e-3)
    assert away.max() == pytest.approx(1.25, abs=1e-4)
    assert strong(np.array([0.7]))[0] == pytest.approx(1.95, abs=1e-4)
    assert (
        np.count_nonzero(np.diff(np.sign(np.gradient(strong(s), s)))) == 4
    )  # up, down, up: two extrema at each peak
    assert np.square(away).mean() > 4 * np.square(mild(s) - s).mean()


def test_control_points_are_the_nonlinearity_at_the_knots():
    drawn = wiener(2, 10, nonlinearity="strong")
    np.testing.assert_array_equal(drawn.control_points, strong(drawn.knots))
    np.testing.assert_allclose(np.diff(drawn.knots), 0.2)
    assert (drawn.knots[0], drawn.knots[-1], len(drawn.knots)) == (-2.2, 2.2, 23)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"agents": 0}, "agents=0: give a whole number, 1 or more"),
        ({"samples": 2.5}, "samples=2.5: give a whole number, 1 or more"),
        ({"order": True}, "order=True: give a whole number, 1 or more"),
        ({"seed": -1}, "seed=-1: give a whole number, 0 or more"),
        ({"signals": None}, "signals=None: give a whole number, 0 or more"),
        ({"nonlinearity": "weak"}, "no nonlinearity 'weak': choose 'mild' or 'strong'"),
        ({"nonlinearity": np.zeros(2)}, "no nonlinearity array"),
        ({"nonlinearity": []}, "no nonlinearity \\[\\]: choose 'mild' or 'strong'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(wrong, sentence):
    with pytest.raises(DataError, match=sentence):
        wiener(**wrong)
