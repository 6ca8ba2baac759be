"""Real numbers as whole numbers, so that sums are exact and masks can hide them.

Sums of whole numbers modulo 2^64 do not depend on their order, so all engines have the same bits.
The unit of each number must be public, and fine enough. Agents cannot agree on it by their largest
number: the first hop of a flood would show a neighbor that of a single agent. For a Gram matrix
G = sum_k A_k'A_k it follows from sums alone:

    D_j >= G_jj = sum_k (A_k'A_k)_jj          in units of 2^-128, modulo 2^256, rounded up
    |G_ij| <= sqrt(D_i D_j) <= 2^e_ij         by Cauchy and Schwarz
    unit of entry ij = 2^(e_ij - 62)

The bound holds for the total and for each agent's part of it, so no room for the number of agents
is needed. Sums on the way to the total may wrap around; they are masked, and have no meaning.

Why numbers are rounded by chance: an exact total of float64 numbers shows more than their
sum. Numbers of 1 are multiples of 2^-52, so whatever the total has below that is from agents with
smaller numbers; if there is one such agent, its number can be read. So each agent adds a random
number of up to half a unit in the last place of its own number, or rounds to a neighboring whole
number at random. What is below the last place of the largest number then has no meaning. The
random numbers follow from a hash of all numbers of the agent: nobody else knows these, and every
engine, and an agent that was restarted, has the same bits. Whole numbers stay exact, so counts do.

    |error of G_ij| <= (2^-53 + 2^-53 + L 2^-60.5) sqrt(G_ii G_jj)       for L agents

by the last places of the agents' numbers, that of the total as a float64, and whole units. The
first and the last are worst cases of L random numbers; totals of 3 to 200 agents are right to
2e-16.

Diagonals have 256 bits, not the 128 that would do for columns of one size: a column of 1e-12
and one of 1e12 are 2^160 apart in the diagonal. That is 4 words for each of B columns, beside
B^2 / 2 words of the matrix.

Other numbers, which have no such bound, have 256 bits as well (`encode_wide`): their totals are
exact to the last places of the agents' numbers, or 2^-129, and rounded once to float64. No unit has
to be agreed on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError
from peerlearn.secret import wide
from peerlearn.secret.keys import LABEL, Words, digest, draw_stream

Exponents = NDArray[np.int64]

DIAGONAL_LIMBS = 4
DIAGONAL_BITS = 128  # after the binary point, of 256
ENTRY_BITS = 62  # of an entry as large as its bound; one more is left for rounding, one for signs
LARGEST_SUM = 2.0**127  # of squares in one column, or of other numbers, over all agents
MANTISSA = 53  # bits of a float64
MOST_COUNTED = 1 << MANTISSA  # whole numbers below it are exact as float64
NOTHING = -(1 << 20)  # exponent of a column of zeros
ROUNDING = LABEL + b": rounding"


def encode_diagonal(diagonal: Array, agents: int) -> Words:
    """Return one agent's sums of squares as words, rounded up.

    agents: number of agents of the network. Numbers whose total could overflow are refused.
    """
    numbers = diagonal.tolist()
    for column, number in enumerate(numbers):
        if not 0 <= number < LARGEST_SUM / agents:
            raise DataError(
                f"column {column} of features and targets has a sum of squares of {number:.3g}, "
                f"and secret sums of {agents} agents take 0 to {LARGEST_SUM / agents:.3g}: scale "
                "the inputs or targets"
            )
    return _words_of(diagonal, rounds_up=True)


def encode_wide(numbers: Array, agents: int, what: str) -> Words:
    """Return one agent's numbers as words, in units of 2^-128.

    agents: number of agents of the network. Numbers whose total could overflow, NaN and infinity
    are refused. what: what the numbers are, for the error message.
    """
    outside = ~(np.abs(numbers) < LARGEST_SUM / agents)  # NaN is not below either
    if outside.any():
        place = int(np.argmax(outside))
        raise DataError(
            f"number {place} of {what} is {numbers[place]:.3g}, and secret sums of {agents} agents "
            f"take numbers up to {LARGEST_SUM / agents:.3g} in size: scale the inputs or targets"
        )
    return _words_of(numbers, rounds_up=False)


def decode_wide(total: Words) -> Array:
    """Return the numbers of a total of `encode_wide`, each rounded once to float64."""
    bits = DIAGONAL_LIMBS * wide.BITS
    whole = wide.to_whole(total)
    signed = [number - (number >> (bits - 1) << bits) for number in whole]
    numbers: Array = np.ldexp(np.array(signed, dtype=np.float64), -DIAGONAL_BITS)
    return numbers


def _words_of(numbers: Array, *, rounds_up: bool) -> Words:
    """Return numbers below 2^127 in size as DIAGONAL_LIMBS words each, with chance in their ends.

    rounds_up: whether the words are never less than the numbers.
    """
    scaled = np.ldexp(numbers, DIAGONAL_BITS)
    whole = np.ceil(scaled) if rounds_up else np.rint(scaled)
    fractions, exponents = np.frexp(np.abs(whole))
    digits = np.ldexp(fractions, MANTISSA).astype(np.uint64)
    shifts = exponents.astype(np.int64) - MANTISSA
    rows = np.arange(len(whole))
    ends = _draw_chances(numbers, DIAGONAL_LIMBS) & _low_bits(
        np.where(_are_whole(numbers), 0, shifts)
    )
    if not rounds_up:
        # The end is from 0 to 1 of the last place. If it is above 1/2, it is the end of the number
        # before, so that it is from -1/2 to 1/2.
        limbs, bits = np.divmod(np.maximum(shifts, 1) - 1, wide.BITS)
        digits -= ends[rows, limbs] >> bits.astype(np.uint64) & np.uint64(1)
    digits >>= np.maximum(-shifts, 0).astype(np.uint64)  # small numbers have zeros there
    limbs, bits = np.divmod(np.maximum(shifts, 0), wide.BITS)
    places = bits.astype(np.uint64)
    words = np.zeros((len(whole), DIAGONAL_LIMBS + 1), dtype=np.uint64)
    words[rows, limbs] = digits << places
    # A shift by 64 is not defined, so it is done in two steps.
    words[rows, limbs + 1] = digits >> np.uint64(1) >> (np.uint64(wide.BITS - 1) - places)
    words = words[:, :DIAGONAL_LIMBS] | ends
    words[whole < 0] = wide.negate(words[whole < 0])
    return words


def _low_bits(count: NDArray[np.int64]) -> Words:
    """Return words whose lowest bits are ones, so many of each row; none if `count` is negative."""
    bits = np.clip(count[:, None] - wide.BITS * np.arange(DIAGONAL_LIMBS), 0, wide.BITS)
    ones = np.uint64(2**wide.BITS - 1)
    return np.where(bits > 0, ones >> (wide.BITS - np.maximum(bits, 1)).astype(np.uint64), 0)


def _are_whole(numbers: Array) -> NDArray[np.bool_]:
    """Return which numbers are whole, and not just because a float64 has no more digits."""
    whole: NDArray[np.bool_] = numbers == np.rint(numbers)
    whole &= np.abs(numbers) < 2.0**MANTISSA
    return whole


def _draw_chances(numbers: Array, words: int) -> Words:
    """Return random words for each number, the same ones for the same numbers."""
    stream = draw_stream(digest(ROUNDING, numbers.tobytes()), words * numbers.size)
    return stream.reshape(*numbers.shape, words)


def exponents_of(total: Words) -> Exponents:
    """Return, for each column, the least p with D <= 2^p. total: of `encode_diagonal`."""
    exponents = [
        (number - 1).bit_length() - DIAGONAL_BITS if number else NOTHING
        for number in wide.to_whole(total)
    ]
    return np.array(exponents, dtype=np.int64)


def entry_exponents(rows: Exponents, columns: Exponents) -> Exponents:
    """Return e with sqrt(D_i D_j) <= 2^e for pairs of columns, from their exponents p."""
    halves = -((-(rows + columns)) // 2)
    empty = (rows == NOTHING) | (columns == NOTHING)
    return np.where(empty, 0, halves)


def encode_entries(entries: Array, exponents: Exponents) -> Words:
    """Return numbers as words, in units of 2^(exponent - 62).

    A number that is larger than 2^exponent is refused.
    """
    scaled = np.ldexp(entries, ENTRY_BITS - exponents)
    largest = np.abs(scaled).max(initial=0.0)
    # Rounding may carry a number a little over its bound. There is room for that.
    if not largest <= 1.5 * 2.0**ENTRY_BITS:
        raise DataError(
            "some number is larger than its public bound, by which all agents encode theirs: "
            "check that rows did not change during training, and that bounds are right"
        )
    return _round_by_chance(scaled, _are_whole(entries))


def _round_by_chance(scaled: Array, are_whole: NDArray[np.bool_]) -> Words:
    """Return one of the two nearest whole numbers, or one within half a last place, as words.

    are_whole: which numbers are whole before they are scaled. They stay as they are.
    """
    chances = _draw_chances(scaled, 1)[..., 0]
    parts = (chances >> np.uint64(64 - MANTISSA)) * 2.0**-MANTISSA
    # Small numbers have digits after the point: the nearer of two is taken more often.
    rounded: NDArray[np.int64] = np.floor(scaled + parts).astype(np.int64)
    # Large ones have none, and the last of their bits are zero.
    places = np.frexp(scaled)[1] - MANTISSA
    large = (places > 0) & ~are_whole
    half = np.left_shift(1, places[large] - 1, dtype=np.int64)
    rounded[large] = scaled[large].astype(np.int64) - half
    rounded[large] += (chances[large] >> (64 - places[large]).astype(np.uint64)).astype(np.int64)
    return rounded.view(np.uint64)


def decode_entries(total: Words, exponents: Exponents) -> Array:
    """Return the numbers of a total of `encode_entries`."""
    numbers: Array = np.ldexp(total.view(np.int64).astype(np.float64), exponents - ENTRY_BITS)
    return numbers


def encode_counts(counts: Sequence[int] | NDArray[np.int64], agents: int) -> Words:
    """Return whole numbers, of which a total is exact as float64, as words of 64 bits.

    agents: number of agents of the network.
    """
    numbers = np.asarray(counts)
    most = MOST_COUNTED // agents
    if numbers.size and numbers.max() > most:
        raise DataError(
            f"a count of {numbers.max()} is more than secret sums of {agents} agents take, {most}: "
            "give fewer rows"
        )
    if numbers.dtype.kind not in "iu" or (numbers.size and numbers.min() < 0):
        raise InputError("counts must be whole numbers of 0 or more: give rows or events, counted")
    return numbers.astype(np.uint64)


def bound_exponent(bound: float) -> int:
    """Return the exponent for entries whose total is known to be at most `bound` in size."""
    if not 0 < bound < math.inf:
        raise InputError(f"the bound of a secret sum is {bound!r}: give a number above 0")
    fraction, exponent = math.frexp(bound)
    return exponent - 1 if fraction == 0.5 else exponent
