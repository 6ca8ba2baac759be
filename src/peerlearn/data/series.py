"""Series drawn from a formula, for networks that learn in time (thesis, section 9.4.1).

Each gives X and y as an `ESNRegressor` takes them: one array of inputs (length x inputs) and one of
targets (length) per sequence. The constant input that the thesis adds is the model's own and is not
among them.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.integrate import solve_ivp

from peerlearn.arrays import Array, is_real, is_whole
from peerlearn.errors import DataError

Series: TypeAlias = tuple[list[Array], list[Array]]  # inputs and targets, sequence by sequence

RUNAWAY = 10.0  # a NARMA-10 output this large never comes back; others stay below 2
STEP = 0.1  # of Mackey-Glass
ALPHA, BETA, GAMMA = 0.2, -0.1, 10  # of Mackey-Glass
LONGEST_DELAY = 10_000.0
SIGMA, ETA, ZETA = 10.0, 28.0, 8 / 3  # of Lorenz
FORGOTTEN = {
    "mackey_glass": 1000,
    "lorenz": 20,
}  # samples until a start off the attractor no longer shows


def narma10(
    sequences: int = 50,
    length: int = 2000,
    *,
    variant: Literal["sum", "product"] = "sum",
    seed: int = 0,
) -> Series:
    """A system of order ten to identify, driven by noise x uniform on [0, 0.5]; everything is 0 before the start.

        d[n] = 0.1 + 0.3 d[n-1] + 0.05 d[n-1] sum_{i=1..10} d[n-i] + 1.5 x[n] x[n-9]
        y[n] = tanh(d[n] - mean d)            the mean over all sequences

    Jaeger, Adaptive nonlinear system identification with echo state networks, 2002. The thesis
    prints a product in place of the sum (`variant="product"`), a term of some 1e-6, which makes the
    task an easy one. About one sequence of a hundred runs away from every bound; it is drawn again.
    """
    _checked("narma10", seed, sequences=(sequences, 1), length=(length, 1))
    if variant not in ("sum", "product"):
        raise DataError(f"variant {variant!r} of narma10 is not known: it is 'sum' or 'product'")
    x, d = np.empty((sequences, length)), np.empty((sequences, length))
    missing, generators = np.arange(sequences), _generators(seed, sequences)
    while len(missing):
        x[missing] = np.stack([generators[j].uniform(0.0, 0.5, length) for j in missing])
        d[missing] = _narma10(x[missing], np.sum if variant == "sum" else np.prod)
        missing = np.flatnonzero(~(d.max(axis=1) < RUNAWAY))
    return _series(x[:, :, None], _squashed(d))


def _narma10(x: Array, gathered: Any) -> Array:
    past = np.zeros((len(x), 9))
    both, d = x * np.hstack([past, x])[:, : x.shape[1]], np.zeros((10 + x.shape[1], len(x)))
    for n, products in enumerate(both.T):  # d[n] stands in row n + 10
        last = d[n + 9]
        d[n + 10] = np.minimum(
            0.1 + 0.3 * last + 0.05 * last * gathered(d[n : n + 10], axis=0) + 1.5 * products,
            RUNAWAY,
        )
    return d[10:].T


def extended_polynomial(
    sequences: int = 50, length: int = 2000, *, degree: int = 7, lag: int = 7, seed: int = 0
) -> Series:
    """A polynomial of the input and of the input `lag` samples ago; x is uniform on [-1, 1], and 0 before the start.

        d[n] = sum_{i=0..p} sum_{j=0..p-i} a_ij x[n]^i x[n-lag]^j            p: the degree
        y[n] = tanh(d[n] - mean d)            the mean over all sequences

    The a_ij are drawn once for the whole data set, uniform on [-1, 1]. How hard the task is depends
    on them: errors of data sets with different seeds cannot be compared. Butcher et al., Reservoir
    computing and extreme learning machines for non-linear time-series data analysis, 2013.
    """
    _checked(
        "extended_polynomial",
        seed,
        sequences=(sequences, 1),
        length=(length, 1),
        degree=(degree, 0),
        lag=(lag, 0),
    )
    common, *generators = _generators(seed, sequences + 1)
    a = common.uniform(-1.0, 1.0, (degree + 1, degree + 1))
    a[np.add.outer(np.arange(degree + 1), np.arange(degree + 1)) > degree] = 0.0
    x = np.stack([generator.uniform(-1.0, 1.0, length) for generator in generators])
    d = np.polynomial.polynomial.polyval2d(
        x, np.hstack([np.zeros((sequences, lag)), x])[:, :length], a
    )
    return _series(x[:, :, None], _squashed(np.asarray(d, dtype=np.float64)))


def mackey_glass(
    sequences: int = 50, length: int = 2000, *, tau: float = 30.0, ahead: int = 10, seed: int = 0
) -> Series:
    """A chaotic series to predict `ahead` samples before it comes: y[n] = x[n + ahead], one sample per unit of time.

        x'(t) = 0.2 x(t - tau) / (1 + x(t - tau)^10) - 0.1 x(t)

    Runge-Kutta of order four with steps of 0.1. What it needs of x(t - tau) half way through a step
    comes from the cubic through the values and slopes at the step's ends (Hermite), so that the
    whole is of order four; held constant over a step, as often done, it would be of order one.
    Sequences start from constants uniform on [0.5, 1.5], and their first 1000 samples are left out.
    All are scaled to [-1, 1] together. Chaotic for tau above 16.8.
    """
    _checked("mackey_glass", seed, sequences=(sequences, 1), length=(length, 1), ahead=(ahead, 1))
    delay = round(tau / STEP) if is_real(tau) and 0 < tau <= LONGEST_DELAY else 0
    if delay < 1 or abs(delay * STEP - tau) > 1e-9 * tau:
        raise DataError(
            f"tau of mackey_glass must be a multiple of its step of {STEP}, above 0 and at most {LONGEST_DELAY:g}, not "
            f"{tau!r}"
        )
    start = np.array([generator.uniform(0.5, 1.5) for generator in _generators(seed, sequences)])
    forgotten, per_sample = FORGOTTEN["mackey_glass"], round(1 / STEP)
    x = integrate_mackey_glass(start, delay, tau / delay, (forgotten + length + ahead) * per_sample)
    x = _to_unit_range(x[:, forgotten * per_sample :: per_sample, None])
    return _series(x[:, :length], x[:, ahead : ahead + length, 0])


def integrate_mackey_glass(start: Array, delay: int, h: float, steps: int) -> Array:
    """x at the ends of `steps` steps of length h, for constant starts: sequences x (steps + 1).

    Over a time of tau = delay h all delayed values are known: what is left, x' = beta x + g(t), is
    linear, and a step
    of Runge-Kutta is  x[n+1] = R x[n] + h (w0 g[n] + w1 g[n+1/2] + w2 g[n+1]),  a recursive filter.
    """
    from scipy.signal import lfilter  # takes .1 s; no other series needs it

    z = BETA * h
    R = 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24
    w0, w1, w2 = (1 + z + z**2 / 2 + z**3 / 4) / 6, (4 + 2 * z + z**2 / 2) / 6, 1 / 6
    x = np.repeat(start[:, None], delay + 1, axis=1)
    slope, blocks = np.zeros_like(x), [start[:, None]]
    for _ in range(-(-steps // delay)):
        half = (x[:, :-1] + x[:, 1:]) / 2 + h / 8 * (slope[:, :-1] - slope[:, 1:])
        g, g_half = _production(x), _production(half)
        force = h * (w0 * g[:, :-1] + w1 * g_half + w2 * g[:, 1:])
        new, _ = lfilter([1.0], [1.0, -R], force, axis=1, zi=R * x[:, -1:])
        x = np.hstack([x[:, -1:], new])
        slope = BETA * x + g
        blocks.append(new)
    return np.hstack(blocks)[:, : steps + 1]


def _production(delayed: Array) -> Array:
    return ALPHA * delayed / (1 + delayed**GAMMA)


def lorenz(sequences: int = 50, length: int = 2000, *, seed: int = 0) -> Series:
    """A chaotic system in three dimensions, seen once a second; its x_1 is to be predicted a second ahead.

        x_1' = 10 (x_2 - x_1)      x_2' = x_1 (28 - x_3) - x_2      x_3' = x_1 x_2 - 8/3 x_3      y[n] = x_1[n + 1]

    By the Runge-Kutta pair of Dormand and Prince (`scipy.integrate.solve_ivp`, RK45, as the
    thesis's ODE45 is) with a relative tolerance of 1e-4, all sequences with the same steps: asked
    for more of them, chaos makes all of them others. They start uniform on a box around the
    attractor, and their first 20 samples are left out. Each of the three is scaled to [-1, 1], the
    target as x_1.
    """
    _checked("lorenz", seed, sequences=(sequences, 1), length=(length, 1))
    start = np.stack(
        [g.uniform([-15.0, -20.0, 5.0], [15.0, 20.0, 45.0]) for g in _generators(seed, sequences)]
    )
    forgotten = FORGOTTEN["lorenz"]
    x = _to_unit_range(integrate_lorenz(start, forgotten + length)[:, forgotten:])
    return _series(x[:, :-1], x[:, 1:, 0])


def integrate_lorenz(start: Array, seconds: int) -> Array:
    """The three coordinates at the end of every second: sequences x (seconds + 1) x 3."""
    found = solve_ivp(
        _flow, (0, seconds), start.T.ravel(), t_eval=np.arange(seconds + 1), rtol=1e-4
    )
    states: Array = found.y.reshape(3, len(start), -1).transpose(1, 2, 0)
    return states


def _flow(_: float, state: Array) -> Array:
    x1, x2, x3 = state.reshape(3, -1)
    return np.concatenate([SIGMA * (x2 - x1), x1 * (ETA - x3) - x2, x1 * x2 - ZETA * x3])


def _generators(seed: int, number: int) -> list[np.random.Generator]:
    """One per sequence, the same however many there are."""
    return np.random.default_rng(seed).spawn(number)


def _squashed(d: Array) -> Array:
    squashed: Array = np.tanh(d - d.mean())
    return squashed


def _to_unit_range(x: Array) -> Array:
    """Each channel (last axis) from its range over all sequences to [-1, 1]."""
    low, high = x.min(axis=(0, 1)), x.max(axis=(0, 1))
    scaled: Array = 2 * (x - low) / np.where(high > low, high - low, 1.0) - 1
    return scaled


def _series(x: Array, y: Array) -> Series:
    return [np.ascontiguousarray(each) for each in x], [np.ascontiguousarray(each) for each in y]


def _checked(name: str, seed: Any, **numbers: tuple[Any, int]) -> None:
    for what, (value, least) in (("seed", (seed, 0)), *numbers.items()):
        if not is_whole(value) or value < least:
            raise DataError(
                f"{what} of {name} must be a whole number of {least} or more, not {value!r}"
            )
