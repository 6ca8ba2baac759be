"""Series drawn from a formula, for models of sequences (thesis, section 9.4.1).

Each function returns X and y as an `ESNRegressor` takes them: for each sequence one array of inputs
(length x inputs) and one of targets (length). The constant input that the thesis adds is part of
the model and not of the data.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.integrate import solve_ivp

from peerlearn.arrays import Array, is_real, is_whole
from peerlearn.errors import DataError

Series: TypeAlias = tuple[list[Array], list[Array]]  # inputs and targets, sequence by sequence

RUNAWAY = 10.0  # a NARMA-10 output this large never comes back; others stay below 2
# The equation of Mackey and Glass.
STEP = 0.1
ALPHA = 0.2
BETA = -0.1
GAMMA = 10
LONGEST_DELAY = 10_000.0
LONGEST_STEP = 100.0  # seconds between samples of lorenz
Scale: TypeAlias = Literal["unit"] | None
# The equations of Lorenz.
SIGMA = 10.0
ETA = 28.0
ZETA = 8 / 3
# Samples that are left out, because a start off the attractor still shows in them.
FORGOTTEN = {"mackey_glass": 1000, "lorenz": 20}


def narma10(
    sequences: int = 50,
    length: int = 2000,
    *,
    variant: Literal["sum", "product"] = "sum",
    seed: int = 0,
) -> Series:
    """Draw a system of order ten to identify, driven by noise x uniform on [0, 0.5].

        d[n] = 0.1 + 0.3 d[n-1] + 0.05 d[n-1] sum_{i=1..10} d[n-i] + 1.5 x[n] x[n-9]
        y[n] = tanh(d[n] - mean d)            the mean over all sequences

    All values before the start are 0. Jaeger, Adaptive nonlinear system identification with echo
    state networks, 2002. The thesis prints a product in place of the sum (`variant="product"`), a
    term of about 1e-6, which makes the task easy. About one sequence of a hundred grows beyond
    every bound; it is drawn again.

    Parameters
    ----------
    sequences : int, default 50
        Number of sequences.
    length : int, default 2000
        Samples per sequence.
    variant : {"sum", "product"}, default "sum"
        The equation of Jaeger, or the one that the thesis prints.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    X : list of ndarray
        Inputs of each sequence, length x 1.
    y : list of ndarray
        Targets of each sequence, one per sample.

    Examples
    --------
    >>> from peerlearn import data
    >>> X, y = data.narma10(sequences=3, length=100)
    >>> len(X), X[0].shape, y[0].shape
    (3, (100, 1), (100,))
    """
    _check_settings("narma10", seed, sequences=(sequences, 1), length=(length, 1))
    if variant not in ("sum", "product"):
        raise DataError(f"variant {variant!r} of narma10 is not known: it is 'sum' or 'product'")
    combine = np.sum if variant == "sum" else np.prod
    x = np.empty((sequences, length))
    d = np.empty((sequences, length))
    missing = np.arange(sequences)
    generators = _generators(seed, sequences)
    while len(missing):
        x[missing] = np.stack([generators[j].uniform(0.0, 0.5, length) for j in missing])
        d[missing] = _narma10(x[missing], combine)
        missing = np.flatnonzero(~(d.max(axis=1) < RUNAWAY))
    return _series(x[:, :, None], _squash(d))


def _narma10(x: Array, combine: Any) -> Array:
    """Return d for the inputs x, sequences x length. `combine` is np.sum or np.prod."""
    past = np.zeros((len(x), 9))
    delayed = np.hstack([past, x])[:, : x.shape[1]]  # x[n-9]
    both = x * delayed
    d = np.zeros((10 + x.shape[1], len(x)))
    for n, products in enumerate(both.T):  # d[n] is in row n + 10
        last = d[n + 9]
        d[n + 10] = np.minimum(
            0.1 + 0.3 * last + 0.05 * last * combine(d[n : n + 10], axis=0) + 1.5 * products,
            RUNAWAY,
        )
    return d[10:].T


def extended_polynomial(
    sequences: int = 50, length: int = 2000, *, degree: int = 7, lag: int = 7, seed: int = 0
) -> Series:
    """Draw a polynomial of the input and of the input `lag` samples ago.

        d[n] = sum_{i=0..p} sum_{j=0..p-i} a_ij x[n]^i x[n-lag]^j            p: the degree
        y[n] = tanh(d[n] - mean d)            the mean over all sequences

    x is uniform on [-1, 1], and 0 before the start. The a_ij are drawn once for the whole data set,
    uniform on [-1, 1]. They decide how hard the task is, so errors of data sets with different
    seeds cannot be compared. Butcher et al., Reservoir computing and extreme learning machines for
    non-linear time-series data analysis, 2013.

    Parameters
    ----------
    sequences : int, default 50
        Number of sequences.
    length : int, default 2000
        Samples per sequence.
    degree : int, default 7
        p in the formula.
    lag : int, default 7
        Samples between the two inputs that the output depends on.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    X : list of ndarray
        Inputs of each sequence, length x 1.
    y : list of ndarray
        Targets of each sequence, one per sample.

    Examples
    --------
    >>> from peerlearn import data
    >>> X, y = data.extended_polynomial(sequences=3, length=100)
    >>> len(X), X[0].shape, y[0].shape
    (3, (100, 1), (100,))
    """
    _check_settings(
        "extended_polynomial",
        seed,
        sequences=(sequences, 1),
        length=(length, 1),
        degree=(degree, 0),
        lag=(lag, 0),
    )
    common, *generators = _generators(seed, sequences + 1)
    a = common.uniform(-1.0, 1.0, (degree + 1, degree + 1))
    powers = np.arange(degree + 1)
    a[np.add.outer(powers, powers) > degree] = 0.0
    x = np.stack([generator.uniform(-1.0, 1.0, length) for generator in generators])
    delayed = np.hstack([np.zeros((sequences, lag)), x])[:, :length]
    d = np.polynomial.polynomial.polyval2d(x, delayed, a)
    return _series(x[:, :, None], _squash(np.asarray(d, dtype=np.float64)))


def mackey_glass(
    sequences: int = 50,
    length: int = 2000,
    *,
    tau: float = 30.0,
    ahead: int = 10,
    scale: Scale = "unit",
    seed: int = 0,
) -> Series:
    """Draw a chaotic series to predict `ahead` samples before it comes.

        x'(t) = 0.2 x(t - tau) / (1 + x(t - tau)^10) - 0.1 x(t)
        y[n]  = x[n + ahead]                  one sample per unit of time

    The equation is integrated by Runge-Kutta of order four with steps of 0.1. The delayed value
    half way through a step comes from the cubic through the values and slopes at the step's ends
    (Hermite), so the whole is of order four. With a value that is constant over a step, as often
    done, it would be of order one. Sequences start from constants uniform on [0.5, 1.5], and their
    first 1000 samples are left out. The series is chaotic for tau above 16.8.

    Parameters
    ----------
    sequences : int, default 50
        Number of sequences.
    length : int, default 2000
        Samples per sequence.
    tau : float, default 30.0
        The delay, a multiple of 0.1.
    ahead : int, default 10
        How many samples ahead the target is.
    scale : "unit" or None, default "unit"
        "unit" scales all sequences together to [-1, 1]. None leaves the values of the equation.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    X : list of ndarray
        Inputs of each sequence, length x 1.
    y : list of ndarray
        Targets of each sequence, one per sample.

    Examples
    --------
    >>> from peerlearn import data
    >>> X, y = data.mackey_glass(sequences=3, length=100)
    >>> len(X), X[0].shape, y[0].shape
    (3, (100, 1), (100,))
    """
    _check_settings(
        "mackey_glass", seed, sequences=(sequences, 1), length=(length, 1), ahead=(ahead, 1)
    )
    if scale not in ("unit", None):
        raise DataError(f"scale of mackey_glass must be 'unit' or None, not {scale!r:.60}")
    delay = round(tau / STEP) if is_real(tau) and 0 < tau <= LONGEST_DELAY else 0
    if delay < 1 or abs(delay * STEP - tau) > 1e-9 * tau:
        raise DataError(
            f"tau of mackey_glass must be a multiple of its step of {STEP}, above 0 and at most "
            f"{LONGEST_DELAY:g}, not {tau!r}"
        )
    start = np.array([generator.uniform(0.5, 1.5) for generator in _generators(seed, sequences)])
    forgotten = FORGOTTEN["mackey_glass"]
    per_sample = round(1 / STEP)
    steps = (forgotten + length + ahead) * per_sample
    x = integrate_mackey_glass(start, delay, tau / delay, steps)
    x = x[:, forgotten * per_sample :: per_sample, None]
    if scale == "unit":
        x = _to_unit_range(x)
    return _series(x[:, :length], x[:, ahead : ahead + length, 0])


def integrate_mackey_glass(start: Array, delay: int, h: float, steps: int) -> Array:
    """Return x at the ends of `steps` steps of length h: sequences x (steps + 1).

    Each sequence starts from a constant. Over a time of tau = delay h all delayed values are known.
    What is left, x' = beta x + g(t), is linear, and a step of Runge-Kutta is a recursive filter:

        x[n+1] = R x[n] + h (w0 g[n] + w1 g[n+1/2] + w2 g[n+1])
    """
    from scipy.signal import lfilter  # takes .1 s; no other series needs it

    z = BETA * h
    R = 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24
    w0 = (1 + z + z**2 / 2 + z**3 / 4) / 6
    w1 = (4 + 2 * z + z**2 / 2) / 6
    w2 = 1 / 6
    x = np.repeat(start[:, None], delay + 1, axis=1)
    slope = np.zeros_like(x)
    blocks = [start[:, None]]
    for _ in range(-(-steps // delay)):
        half = (x[:, :-1] + x[:, 1:]) / 2 + h / 8 * (slope[:, :-1] - slope[:, 1:])
        g = _production(x)
        g_half = _production(half)
        force = h * (w0 * g[:, :-1] + w1 * g_half + w2 * g[:, 1:])
        new, _ = lfilter([1.0], [1.0, -R], force, axis=1, zi=R * x[:, -1:])
        x = np.hstack([x[:, -1:], new])
        slope = BETA * x + g
        blocks.append(new)
    return np.hstack(blocks)[:, : steps + 1]


def _production(delayed: Array) -> Array:
    return ALPHA * delayed / (1 + delayed**GAMMA)


def lorenz(sequences: int = 50, length: int = 2000, *, dt: float = 1.0, seed: int = 0) -> Series:
    """Draw a chaotic system in three dimensions; its x_1 is to be predicted a sample ahead.

        x_1' = 10 (x_2 - x_1)
        x_2' = x_1 (28 - x_3) - x_2
        x_3' = x_1 x_2 - 8/3 x_3
        y[n] = x_1[n + 1]                     one sample every dt seconds

    It is integrated by the Runge-Kutta pair of Dormand and Prince (`scipy.integrate.solve_ivp`,
    RK45, as the thesis's ODE45 is) with a relative tolerance of 1e-4. All sequences take the same
    steps, so another number of sequences changes all of them. They start uniform on a box around
    the attractor, and their first 20 seconds are left out. Each of the three coordinates is scaled
    to [-1, 1], and the target as x_1.

    Parameters
    ----------
    sequences : int, default 50
        Number of sequences.
    length : int, default 2000
        Samples per sequence.
    dt : float, default 1.0
        Seconds from one sample to the next. With 1 samples are all but unrelated; with 0.02 the
        system can be forecast for some seconds.
    seed : int, default 0
        Seed of the draw.

    Returns
    -------
    X : list of ndarray
        Inputs of each sequence, length x 3.
    y : list of ndarray
        Targets of each sequence, one per sample.

    Examples
    --------
    >>> from peerlearn import data
    >>> X, y = data.lorenz(sequences=3, length=100)
    >>> len(X), X[0].shape, y[0].shape
    (3, (100, 3), (100,))
    """
    _check_settings("lorenz", seed, sequences=(sequences, 1), length=(length, 1))
    start = np.stack(
        [g.uniform([-15.0, -20.0, 5.0], [15.0, 20.0, 45.0]) for g in _generators(seed, sequences)]
    )
    if not is_real(dt) or not 0 < dt <= LONGEST_STEP:
        raise DataError(
            f"dt of lorenz must be a number above 0 and at most {LONGEST_STEP:g}, not {dt!r:.60}"
        )
    forgotten = math.ceil(FORGOTTEN["lorenz"] / dt)
    x = _to_unit_range(integrate_lorenz(start, forgotten + length, float(dt))[:, forgotten:])
    return _series(x[:, :-1], x[:, 1:, 0])


def integrate_lorenz(start: Array, samples: int, dt: float = 1.0) -> Array:
    """Return the three coordinates every dt seconds: sequences x (samples + 1) x 3."""
    times = dt * np.arange(samples + 1)
    found = solve_ivp(_flow, (0, times[-1]), start.T.ravel(), t_eval=times, rtol=1e-4)
    states: Array = found.y.reshape(3, len(start), -1).transpose(1, 2, 0)
    return states


def _flow(_: float, state: Array) -> Array:
    x1, x2, x3 = state.reshape(3, -1)
    return np.concatenate([SIGMA * (x2 - x1), x1 * (ETA - x3) - x2, x1 * x2 - ZETA * x3])


def _generators(seed: int, number: int) -> list[np.random.Generator]:
    """Return one generator per sequence. They do not depend on how many there are."""
    return np.random.default_rng(seed).spawn(number)


def _squash(d: Array) -> Array:
    squashed: Array = np.tanh(d - d.mean())
    return squashed


def _to_unit_range(x: Array) -> Array:
    """Scale each channel (last axis) from its range over all sequences to [-1, 1]."""
    low = x.min(axis=(0, 1))
    high = x.max(axis=(0, 1))
    scaled: Array = 2 * (x - low) / np.where(high > low, high - low, 1.0) - 1
    return scaled


def _series(x: Array, y: Array) -> Series:
    inputs = [np.ascontiguousarray(each) for each in x]
    targets = [np.ascontiguousarray(each) for each in y]
    return inputs, targets


def _check_settings(name: str, seed: Any, **numbers: tuple[Any, int]) -> None:
    """Check that every number is whole and not below its least value."""
    for what, (value, least) in (("seed", (seed, 0)), *numbers.items()):
        if not is_whole(value) or value < least:
            raise DataError(
                f"{what} of {name} must be a whole number of {least} or more, not {value!r}"
            )
