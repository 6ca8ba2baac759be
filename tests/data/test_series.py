"""Generated series: each follows its formula, integrators have the order they claim, and a seed
settles everything.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from peerlearn.data import extended_polynomial, lorenz, mackey_glass, narma10
from peerlearn.data.series import RUNAWAY, _narma10, integrate_lorenz, integrate_mackey_glass
from peerlearn.errors import DataError

ALL = [narma10, extended_polynomial, mackey_glass, lorenz]


@pytest.mark.parametrize("draw", ALL)
def test_a_seed_settles_a_series(draw):
    (X, y), (again, targets), (other, _) = (
        draw(3, 40, seed=5),
        draw(3, 40, seed=5),
        draw(3, 40, seed=6),
    )
    assert all(np.array_equal(a, b) for a, b in zip([*X, *y], [*again, *targets], strict=True))
    assert not np.array_equal(X[0], other[0])
    assert len({x.tobytes() for x in X}) == 3
    assert {(x.shape, t.shape) for x, t in zip(X, y, strict=True)} == {
        ((40, 3 if draw is lorenz else 1), (40,))
    }
    assert all(x.dtype == np.float64 and x.flags.c_contiguous for x in [*X, *y])


@pytest.mark.parametrize("draw", [narma10, extended_polynomial])
def test_more_sequences_are_further_sequences(draw):
    few, many = draw(2, 60)[0], draw(9, 60)[0]
    assert all(np.array_equal(a, b) for a, b in zip(few, many, strict=False))


@pytest.mark.parametrize("variant", ["sum", "product"])
def test_narma10_follows_its_formula(variant):
    X, y = narma10(4, 120, variant=variant, seed=1)
    d = np.zeros((4, 120))
    for j, x in enumerate(X):
        assert x.min() >= 0
        assert x.max() <= 0.5
        for n in range(120):
            past = [d[j, n - i] if n >= i else 0.0 for i in range(1, 11)]
            gathered = sum(past) if variant == "sum" else np.prod(past)
            before = x[n - 9, 0] if n >= 9 else 0.0
            d[j, n] = 0.1 + 0.3 * past[0] + 0.05 * past[0] * gathered + 1.5 * x[n, 0] * before
    assert np.allclose(np.tanh(d - d.mean()), y, rtol=0, atol=1e-13)


def test_sequences_that_run_away_are_drawn_again():
    first = np.stack([rng.uniform(0.0, 0.5, 2000) for rng in np.random.default_rng(0).spawn(1000)])
    away = _narma10(first, np.sum).max(axis=1) >= RUNAWAY
    assert 3 <= away.sum() <= 30  # 35 of 3000 are to be expected
    X, y = narma10(1000, 2000, seed=0)
    kept = np.array([np.array_equal(x[:, 0], drawn) for x, drawn in zip(X, first, strict=True)])
    assert np.array_equal(kept, ~away)
    assert np.max(y) < np.tanh(2.0)


def test_the_extended_polynomial_follows_its_formula():
    X, y = extended_polynomial(3, 50, degree=3, lag=4, seed=2)
    a = np.random.default_rng(2).spawn(1)[0].uniform(-1.0, 1.0, (4, 4))
    d = np.zeros((3, 50))
    for k, x in enumerate(X):
        for n in range(50):
            before = x[n - 4, 0] if n >= 4 else 0.0
            d[k, n] = sum(
                a[i, j] * x[n, 0] ** i * before**j for i in range(4) for j in range(4 - i)
            )
    assert np.allclose(np.tanh(d - d.mean()), y, rtol=0, atol=1e-13)


def slow_mackey_glass(start, tau, h, steps):
    """Runge-Kutta's four slopes one after the other, with the delayed value from the cubic of the
    step it lies in.
    """
    delay = round(tau / h)
    x, slope = [start], []

    def f(now, delayed):
        return 0.2 * delayed / (1 + delayed**10) - 0.1 * now

    def earlier(n):
        return x[n] if n >= 0 else start

    for n in range(steps):
        left, right = earlier(n - delay), earlier(n + 1 - delay)
        half = (left + right) / 2
        if n >= delay:
            inner = n - delay
            half += h / 8 * (slope[inner] - f(right, earlier(inner + 1 - delay)))
        k1 = f(x[n], left)
        k2 = f(x[n] + h / 2 * k1, half)
        k3 = f(x[n] + h / 2 * k2, half)
        k4 = f(x[n] + h * k3, right)
        slope.append(k1)
        x.append(x[n] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return np.array(x)


def test_mackey_glass_is_the_runge_kutta_method_that_it_says():
    quick = integrate_mackey_glass(np.array([0.6, 1.4]), 34, 0.5, 200)
    slow = np.stack([slow_mackey_glass(start, 17.0, 0.5, 200) for start in (0.6, 1.4)])
    assert np.allclose(quick, slow, rtol=0, atol=1e-13)


def test_mackey_glass_is_of_order_four():
    start = np.array([0.6, 1.2, 1.4])
    ends = [integrate_mackey_glass(start, 30 * m, 1 / m, 100 * m)[:, -1] for m in (1, 2, 4, 40)]
    errors = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
    assert 14 < errors[0] / errors[1] < 18
    assert 14 < errors[1] / errors[2] < 18


def test_mackey_glass_is_to_be_predicted_as_far_ahead_as_asked():
    X, y = mackey_glass(2, 200, tau=17.0, ahead=6)
    assert all(np.array_equal(x[6:, 0], target[:-6]) for x, target in zip(X, y, strict=True))
    assert (np.min([X, np.reshape(y, (2, 200, 1))]), np.max([X, np.reshape(y, (2, 200, 1))])) == (
        -1.0,
        1.0,
    )
    assert not np.array_equal(mackey_glass(2, 200)[0][0], X[0])


def lorenz_slopes(_, state):
    x1, x2, x3 = state
    return [10 * (x2 - x1), x1 * (28 - x3) - x2, x1 * x2 - 8 / 3 * x3]


def test_lorenz_follows_its_equations():
    start = np.array([[1.5, -2.0, 20.0], [3.0, 1.0, 25.0], [-8.0, 3.0, 30.0]])
    seen = integrate_lorenz(start, 200)
    exact = np.stack(
        [solve_ivp(lorenz_slopes, (0, 1), each, rtol=1e-10, atol=1e-12).y[:, -1] for each in start]
    )
    assert np.array_equal(seen[:, 0], start)
    assert np.allclose(seen[:, 1], exact, rtol=0, atol=0.03)  # of some 20
    assert seen[:, 20:, 2].mean() == pytest.approx(23.5, abs=1.0)
    assert seen[:, 20:, 0].std() == pytest.approx(7.9, abs=0.8)


def test_lorenz_is_scaled_and_to_be_predicted_a_second_ahead():
    X, y = lorenz(4, 300)
    assert all(np.array_equal(x[1:, 0], target[:-1]) for x, target in zip(X, y, strict=True))
    everything = np.concatenate([*X, *(np.column_stack([target] * 3) for target in y)])
    assert np.array_equal(everything.max(axis=0)[:1], [1.0])
    assert np.array_equal(everything.min(axis=0)[:1], [-1.0])
    assert np.allclose(np.abs(np.concatenate(X)).max(axis=0), 1.0, atol=0.05)


@pytest.mark.parametrize(
    ("draw", "settings", "sentence"),
    [
        (
            narma10,
            {"sequences": 0},
            "sequences of narma10 must be a whole number of 1 or more, not 0",
        ),
        (
            narma10,
            {"length": 2.5},
            "length of narma10 must be a whole number of 1 or more, not 2.5",
        ),
        (
            narma10,
            {"variant": "both"},
            "variant 'both' of narma10 is not known: it is 'sum' or 'product'",
        ),
        (
            extended_polynomial,
            {"degree": -1},
            "degree of extended_polynomial must be a whole number of 0 or more",
        ),
        (
            extended_polynomial,
            {"lag": True},
            "lag of extended_polynomial must be a whole number of 0 or more, not Tr",
        ),
        (
            mackey_glass,
            {"tau": 0.25},
            (
                "tau of mackey_glass must be a multiple of its step of 0.1, above 0 and at "
                "most 10000, not 0.25"
            ),
        ),
        (mackey_glass, {"tau": 1e308}, "tau of mackey_glass must be a multiple of its step"),
        (mackey_glass, {"tau": -30.0}, "tau of mackey_glass must be a multiple of its step"),
        (mackey_glass, {"tau": float("nan")}, "tau of mackey_glass must be a multiple of its step"),
        (
            mackey_glass,
            {"ahead": 0},
            "ahead of mackey_glass must be a whole number of 1 or more, not 0",
        ),
        (lorenz, {"seed": -1}, "seed of lorenz must be a whole number of 0 or more, not -1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, settings, sentence):
    with pytest.raises(DataError, match=sentence):
        draw(**settings)


def test_mackey_glass_as_the_equation_has_it():
    raw, target = mackey_glass(2, 300, tau=17.0, scale=None)
    scaled, _ = mackey_glass(2, 300, tau=17.0)
    assert 0.2 < min(x.min() for x in raw) < max(x.max() for x in raw) < 1.5
    slopes = [np.ptp(x) / np.ptp(z) for x, z in zip(raw, scaled, strict=True)]
    assert slopes[0] == pytest.approx(slopes[1])  # scaled together
    np.testing.assert_array_equal(raw[0][10:, 0], target[0][:-10])
    with pytest.raises(DataError, match="scale of mackey_glass must be 'unit' or None, not 2"):
        mackey_glass(scale=2)


def test_lorenz_in_small_steps():
    (x,), (y,) = lorenz(1, 400, dt=0.02)
    assert np.abs(np.diff(x, axis=0)).max() < 0.4  # smooth, where one sample a second is not
    (rough,), _ = lorenz(1, 400)
    assert np.abs(np.diff(rough, axis=0)).max() > 0.5
    np.testing.assert_array_equal(x[1:, 0], y[:-1])
    for dt in (0, -1.0, np.nan, "1", 1e9):
        with pytest.raises(DataError, match="dt of lorenz must be a number above 0"):
            lorenz(1, 10, dt=dt)
