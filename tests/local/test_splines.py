"""Splines: against scipy's, against finite differences, and where they go on as tangents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline, CubicHermiteSpline

from peerlearn.errors import InputError
from peerlearn.local.splines import BASES, Spline

INSIDE = np.linspace(
    -1.987, 1.983, 300
)  # no knot: there a Catmull-Rom spline has two second derivatives
OUTSIDE = np.array([-7.3, -2.2, -2.01, 2.01, 2.2, 3.0, 40.0])
EVERYWHERE = np.concatenate([OUTSIDE, INSIDE])


@pytest.fixture(params=list(BASES))
def spline(request):
    return Spline(2.2, 0.2, request.param)


@pytest.fixture
def q(spline):
    return spline.knots + np.random.default_rng(0).standard_normal(spline.size)


def slopes(spline, s, q):
    i, _, c = spline.rows(s)
    return (c * q[i[:, None] + np.arange(4)]).sum(axis=1)


def test_knots_are_equispaced_and_symmetric(spline):
    assert spline.size == 23
    np.testing.assert_allclose(spline.knots, np.linspace(-2.2, 2.2, 23), atol=1e-15)
    np.testing.assert_allclose(spline.usable, np.linspace(-2.0, 2.0, 21), atol=1e-15)


def test_the_diagonal_is_the_identity(spline):
    np.testing.assert_allclose(
        spline.value(EVERYWHERE, spline.knots), EVERYWHERE, rtol=1e-14, atol=1e-15
    )
    np.testing.assert_allclose(slopes(spline, EVERYWHERE, spline.knots), 1.0, rtol=1e-12)


def test_catmull_rom_is_the_hermite_spline_of_central_differences():
    spline = Spline(2.2, 0.2)
    q = np.random.default_rng(1).standard_normal(spline.size)
    hermite = CubicHermiteSpline(spline.usable, q[1:-1], (q[2:] - q[:-2]) / 0.4)
    np.testing.assert_allclose(spline.value(INSIDE, q), hermite(INSIDE), atol=1e-12)
    np.testing.assert_allclose(spline.value(spline.usable, q), q[1:-1], atol=1e-12)


def test_bspline_is_that_of_scipy():
    spline = Spline(2.2, 0.2, "bspline")
    q = np.random.default_rng(1).standard_normal(spline.size)
    reference = BSpline(0.2 * (np.arange(27) - 13), q, 3)
    np.testing.assert_allclose(spline.value(INSIDE, q), reference(INSIDE), atol=1e-12)


def test_no_square_of_a_row_is_below_the_least(spline):
    squares = (spline.rows(EVERYWHERE)[1] ** 2).sum(axis=1)
    assert spline.least <= squares.min() + 1e-15
    np.testing.assert_allclose(squares.min(), spline.least, rtol=1e-3)
    np.testing.assert_allclose(
        spline.least, {"catmull-rom": 164 / 256, "bspline": 1060 / 2304}[spline.basis]
    )


def test_spans_count_from_zero_and_stay_within(spline):
    i, _, _ = spline.rows([-90.0, -2.0, -1.9, 0.05, 1.95, 2.0, 90.0])
    assert i.tolist() == [0, 0, 0, 10, 19, 19, 19]


def test_slope_is_the_derivative_inside_and_outside(spline, q):
    eps = 1e-6
    difference = (spline.value(EVERYWHERE + eps, q) - spline.value(EVERYWHERE - eps, q)) / (2 * eps)
    np.testing.assert_allclose(slopes(spline, EVERYWHERE, q), difference, rtol=1e-6, atol=1e-6)


def test_rows_are_the_derivative_by_control_points_inside_and_outside(spline, q):
    i, b, _ = spline.rows(EVERYWHERE)
    gradient = np.zeros((len(EVERYWHERE), spline.size))
    np.put_along_axis(gradient, i[:, None] + np.arange(4), b, axis=1)
    for j in range(spline.size):
        bump = np.eye(spline.size)[j]
        difference = (spline.value(EVERYWHERE, q + bump) - spline.value(EVERYWHERE, q - bump)) / 2
        np.testing.assert_allclose(gradient[:, j], difference, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("factor", [0.9, 1.0, 1.3])
def test_stretched_points_give_the_stretched_function_at_the_knots(spline, q, factor):
    stretched = spline.stretch(factor, np.column_stack([q, 2 * q]))
    expected = spline.value(factor * spline.knots, q)
    np.testing.assert_allclose(spline.value(spline.knots, stretched[:, 0]), expected, atol=1e-11)
    np.testing.assert_allclose(stretched[:, 1], 2 * stretched[:, 0], atol=1e-11)
    if factor == 1:
        np.testing.assert_allclose(stretched[:, 0], q, atol=1e-11)


def test_beyond_the_ends_lies_the_tangent(spline, q):
    for end in (-2.0, 2.0):
        side = np.sign(end)
        near = [end - 1e-9, end + 1e-9]
        np.testing.assert_allclose(*spline.value(near, q), atol=1e-7)  # no jump
        np.testing.assert_allclose(*slopes(spline, near, q), atol=1e-5)  # no kink
        straight = spline.value(end + side * np.array([0.1, 0.6, 1.1]), q)
        np.testing.assert_allclose(
            np.diff(straight), side * 0.5 * slopes(spline, [end], q)[0], rtol=1e-9
        )


@pytest.mark.parametrize(
    ("end", "spacing", "basis", "says"),
    [
        (2.1, 0.2, "catmull-rom", "must be a whole number of times"),
        (0.2, 0.2, "catmull-rom", "two to a million"),
        (2.2, 0.0, "catmull-rom", "spacing is 0.0"),
        (-2.2, 0.2, "catmull-rom", "knots is -2.2"),
        (np.nan, 0.2, "catmull-rom", "knots is nan"),
        ("wide", 0.2, "catmull-rom", "knots is 'wide'"),
        (2.2, True, "catmull-rom", "spacing is True"),
        (1e9, 1e-9, "catmull-rom", "two to a million"),
        (2.2, 0.2, "bezier", "basis is 'bezier'"),
        (2.2, 0.2, 3, "basis is 3"),
    ],
)
def test_bad_knots(end, spacing, basis, says):
    with pytest.raises(InputError, match=says):
        Spline(end, spacing, basis)
