"""Totals of fixed-point numbers beside exact rational sums."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

from peerlearn.errors import DataError, InputError
from peerlearn.secret import fixed_point, wide
from peerlearn.secret.fixed_point import (
    bound_exponent,
    decode_entries,
    decode_wide,
    encode_counts,
    encode_diagonal,
    encode_entries,
    encode_wide,
    entry_exponents,
    exponents_of,
)

SIZES = {
    "ones": np.ones(5),
    "odd": 10.0 ** np.array([-12, -5, 0, 7, 12]),
    "tiny": 10.0 ** np.array([-12, -12, -11, -12, -12]),
    "huge": 10.0 ** np.array([12, 12, 11, 12, 12]),
}


def grams(agents, sizes, seed=0, rows=7):
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((rows, 5)) * sizes for _ in range(agents)]
    parts[0] = parts[0] + 3 * sizes  # agents differ
    parts[-1][:] = 0.0  # and one has nothing
    return [part.T @ part for part in parts]


def total_of(own, agents):
    """What the root computes from the words of all agents."""
    diagonal = encode_diagonal(np.diag(own[0]), agents)
    for G in own[1:]:
        diagonal = wide.add(diagonal, encode_diagonal(np.diag(G), agents))
    p = exponents_of(diagonal)
    e = entry_exponents(p[:, None], p)
    words = np.zeros((5, 5), dtype=np.uint64)
    for G in own:
        words += encode_entries(G, e)
    return decode_entries(words, e)


def root(square):
    """The root of a Fraction, rounded down in units of 2^-400."""
    return Fraction(isqrt(square.numerator * 2**800 // square.denominator), 2**400)


@pytest.mark.parametrize("agents", [2, 3, 20, 200])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_totals_are_exact_rational_sums_to_2e_16_of_the_diagonal(agents, sizes):
    own = grams(agents, sizes)
    exact = [[sum(Fraction(float(G[i, j])) for G in own) for j in range(5)] for i in range(5)]
    found = total_of(own, agents)
    worst = max(
        abs(Fraction(float(found[i, j])) - exact[i][j]) / root(exact[i][i] * exact[j][j])
        for i in range(5)
        for j in range(5)
    )
    assert worst < 2e-16


def test_totals_do_not_depend_on_the_order_of_agents():
    own = grams(20, SIZES["odd"])
    np.testing.assert_array_equal(total_of(own, 20), total_of(own[::-1], 20))


def test_a_column_of_zeros_stays_zero():
    sizes = np.array([1.0, 0.0, 1e-12, 1.0, 1e12])
    found = total_of(grams(4, sizes), 4)
    assert not found[1].any()
    assert not found[:, 1].any()
    assert found[2, 2] > 0


def test_the_largest_sums_of_squares_are_exact_and_larger_ones_refused():
    agents = 5
    most = np.nextafter(fixed_point.LARGEST_SUM / agents, 0)
    words = encode_diagonal(np.array([most]), agents)
    total = words
    for _ in range(agents - 1):
        total = wide.add(total, words)
    assert Fraction(wide.to_whole(total)[0], 2**128) == agents * Fraction(most)
    for wrong in (fixed_point.LARGEST_SUM / agents, np.inf, np.nan, -1.0):
        with pytest.raises(DataError, match=r"column 1 .* scale the inputs"):
            encode_diagonal(np.array([1.0, wrong]), agents)


def test_the_smallest_number_is_rounded_up():
    total = encode_diagonal(np.array([5e-324, 0.0]), 3)
    assert wide.to_whole(total) == [1, 0]
    assert exponents_of(total).tolist() == [-128, fixed_point.NOTHING]


@pytest.mark.parametrize("power", [-20, 0, 1, 63, 90])
def test_an_exponent_is_the_least_that_covers_the_sum(power):
    D = np.array([2.0**power, np.nextafter(2.0**power, np.inf)])
    assert exponents_of(encode_diagonal(D, 3)).tolist() == [power, power + 1]


def test_a_number_beyond_its_bound_is_refused():
    with pytest.raises(DataError, match="public bound"):
        encode_entries(np.array([1.0, 4.0]), np.array([0, 1]))
    with pytest.raises(DataError, match="public bound"):
        encode_entries(np.array([np.nan]), np.array([0]))


def test_counts_are_exact():
    counts = np.array([0, 1, 2**52])
    total = encode_counts(counts, 2) + encode_counts(counts, 2)
    assert total.tolist() == [0, 2, 2**53]
    for wrong in ([1.5], [-1]):
        with pytest.raises(InputError, match="whole numbers"):
            encode_counts(wrong, 2)
    with pytest.raises(DataError, match="more than secret sums of 3 agents take"):
        encode_counts([2**52], 3)


def test_numbers_with_a_known_bound():
    rng = np.random.default_rng(0)
    own = rng.uniform(-1, 1, (9, 4))
    e = np.full(4, bound_exponent(9.0))
    total = sum(encode_entries(row, e) for row in own)
    exact = [sum(map(Fraction, column)) for column in own.T.tolist()]
    errors = [
        abs(Fraction(x) - y) for x, y in zip(decode_entries(total, e).tolist(), exact, strict=True)
    ]
    assert max(errors) < 2e-16 * 9
    assert [bound_exponent(b) for b in (1.0, 1.5, 2.0, 2.5)] == [0, 1, 1, 2]
    with pytest.raises(InputError, match="above 0"):
        bound_exponent(0.0)


def wide_total(own):
    words = [encode_wide(row, len(own), "numbers") for row in own]
    total = words[0]
    for more in words[1:]:
        total = wide.add(total, more)
    return decode_wide(total).tolist()


def test_totals_of_plain_numbers_are_exact_rational_sums_rounded_once():
    rng = np.random.default_rng(0)
    powers = 10.0 ** rng.integers(-20, 36, (9, 200))
    own = rng.standard_normal((9, 200)) * powers
    own[:, :3] = [[2.0**64, -(2.0**64), 0.0]]
    own[0, 3:] *= -1
    exact = [float(sum(map(Fraction, column))) for column in own.T.tolist()]
    assert wide_total(own) == exact


def test_plain_numbers_below_the_unit_are_rounded_and_large_ones_refused():
    assert wide_total(np.array([[0.75 * 2.0**-128], [2.0**-130]])) == [2.0**-128]
    most = np.nextafter(fixed_point.LARGEST_SUM / 4, 0)
    for sign in (-1.0, 1.0):
        assert wide_total(np.full((4, 1), sign * most)) == [4 * sign * most]
    for wrong in (fixed_point.LARGEST_SUM / 4, -np.inf, np.nan):
        with pytest.raises(DataError, match=r"number 1 of the sums of columns is .* scale the"):
            encode_wide(np.array([1.0, wrong]), 4, "the sums of columns")
