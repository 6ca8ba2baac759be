"""Whole numbers from the discrete Gaussian, exactly, from the stream of a key.

    P(X = x) = exp(-x^2 / (2 s^2)) / sum_z exp(-z^2 / (2 s^2))            x any whole number

Noise that is rounded from floating-point numbers has gaps that show what it was added to. So the
noise is drawn on the grid of the sums, with whole numbers (Canonne, Kamath and Steinke, The
discrete Gaussian for differential privacy, 2020, algorithms 1 to 3):

    u         uniform on 0 .. t - 1, kept with probability exp(-u / t)
    v         number of successes of exp(-1) before the first failure
    x         u + t v, with a random sign; a negative zero is drawn again
    accepted  with probability exp(-(|x| - s^2/t)^2 / (2 s^2))

Each of these trials asks whether a uniform number U is below exp(-g), for a rational g. The first
64 bits of U and a float64 of exp(-g) decide nearly all of them. What is closer than MARGIN, far
more than rounding can be wrong by, is decided with more bits of U and exact arithmetic. So results
have exactly these probabilities, and the same bits on all machines.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.secret.keys import Words, open_stream

Whole = NDArray[np.int64]

BITS = 64
MARGIN = 2.0**-36  # relative; rounding of exp(-g) is below 2^-40 for g < 1000
LARGEST = 1 << 50  # of s: multiples of t stay below 2^63
FIRST_BITS = 256  # more bits of U where 64 do not decide


def draw_discrete_gaussian(key: bytes, deviation: int, count: int) -> Whole:
    """Return `count` numbers of the discrete Gaussian, the same ones for the same key.

    key: 32 bytes. deviation: s, a whole number.
    """
    if not 1 <= deviation <= LARGEST:
        raise InputError(
            f"the deviation of the noise is {deviation}: give a whole number from 1 to {LARGEST}"
        )
    trials = _Trials(key)
    found: list[Whole] = []
    missing = count
    while missing > 0:
        accepted = _propose(trials, deviation, 3 * missing + 32)
        found.append(accepted[:missing])
        missing -= len(found[-1])
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _propose(trials: _Trials, s: int, proposals: int) -> Whole:
    """Return those of so many proposals that are accepted."""
    bits = s.bit_length()
    t = 1 << bits
    words = trials.take(proposals)
    u = (words & np.uint64(t - 1)).astype(np.int64)
    negative = words >= np.uint64(1 << (BITS - 1))
    kept = trials.below_exp(u / t, lambda k: Fraction(int(u[k]), t))
    u = u[kept]
    negative = negative[kept]
    v = np.zeros_like(u)
    going = np.arange(len(u))
    while len(going):
        going = going[trials.below_exp(np.ones(len(going)), lambda k: Fraction(1))]
        v[going] += 1
    x = u + t * v
    real = ~(negative & (x == 0))
    x = x[real]
    negative = negative[real]
    g = ((x / s - s / t) ** 2) / 2
    kept = trials.below_exp(g, lambda k: Fraction(int(x[k]) * t - s**2, s * t) ** 2 / 2)
    signed: Whole = np.where(negative, -x, x)
    return signed[kept]


class _Trials:
    """Uniform words of a key's stream, and trials with probability exp(-g)."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._taken = 0
        self._stream = open_stream(key)

    def take(self, count: int) -> Words:
        """Return the next words."""
        self._taken += count
        return self._stream(count)

    def below_exp(self, g: Array, exactly: Callable[[int], Fraction]) -> NDArray[np.bool_]:
        """Return whether uniform numbers are below exp(-g), one new number for each g.

        exactly: returns g number k as a fraction.
        """
        first = self._taken
        words = self.take(len(g))
        p = np.exp(-g)
        least = words * 2.0**-BITS
        below = least + 2.0**-BITS <= p * (1 - MARGIN)
        above = least >= p * (1 + MARGIN)
        for k in np.flatnonzero(~(below | above)):
            below[k] = self._decide(int(words[k]), exactly(int(k)), first + int(k))
        return below

    def _decide(self, word: int, g: Fraction, place: int) -> bool:
        """Return whether a uniform number is below exp(-g), with as many bits as it takes.

        word: its first 64 bits. place: of that word in the stream. Further bits have a stream of
        their own, so that they do not change which words later trials take.
        """
        bits = FIRST_BITS
        while True:
            more = shake_256(self._key + place.to_bytes(8, "little")).digest(bits // 8)
            U = Fraction((word << bits) | int.from_bytes(more, "big"), 1 << (BITS + bits))
            with localcontext(prec=bits) as context:
                context.Emin = -(10**9)
                p = Fraction((-Decimal(g.numerator) / Decimal(g.denominator)).exp())
            margin = Fraction(1, 1 << bits)
            if U + Fraction(1, 1 << (BITS + bits)) <= p * (1 - margin):
                return True
            if p * (1 + margin) <= U:
                return False
            bits *= 2
