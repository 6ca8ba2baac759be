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


def read_small_number(total, place):
    """What a total has below a power of 2, if all other numbers are multiples of it."""
    return (total + Fraction(2) ** (place - 1)) % Fraction(2) ** place - Fraction(2) ** (place - 1)


def test_a_small_number_cannot_be_read_from_the_last_bits_of_a_diagonal():
    """Sums of squares from 2^10 on are multiples of 2^-42. One agent has a sum of 1e-14."""
    rng = np.random.default_rng(0)
    large = rng.uniform(1024, 1900, (4, 100))
    small = rng.uniform(0.5e-14, 1e-14, 100)
    exact = [sum(map(Fraction, column)) for column in np.vstack([large, small]).T.tolist()]
    assert [read_small_number(number, -42) for number in exact] == list(map(Fraction, small))
    words = [encode_diagonal(own, 5) for own in [*large, small]]
    total = words[0]
    for own in words[1:]:
        total = wide.add(total, own)
    found = [read_small_number(Fraction(D, 2**128), -42) for D in wide.to_whole(total)]
    error = np.array(found, dtype=float) - small
    assert np.sqrt(np.mean(error**2)) > 0.25 * 2.0**-42  # 0.29 of random numbers
    assert abs(np.corrcoef(np.array(found, dtype=float), small)[0, 1]) < 0.3


def test_a_small_number_cannot_be_read_from_the_last_bits_of_an_entry():
    """Of the 62 bits of an entry, float64 numbers near their bound have 53."""
    rng = np.random.default_rng(0)
    large = rng.uniform(0.5, 0.9, (4, 1000)) * rng.choice([-1.0, 1.0], (4, 1000))
    small = rng.uniform(-1e-17, 1e-17, 1000)
    e = np.zeros(1000, dtype=np.int64)

    def read(words):
        total = words.view(np.int64).tolist()
        found = [read_small_number(Fraction(each, 2**62), -53) for each in total]
        return np.array(found, dtype=float)

    exact = np.rint(np.ldexp(np.vstack([large, small]), 62)).astype(np.int64)
    assert np.allclose(read(exact.sum(axis=0).view(np.uint64)), small, rtol=0, atol=2.0**-63)
    found = read(sum(encode_entries(own, e) for own in [*large, small]))
    assert abs(np.corrcoef(found, small)[0, 1]) < 0.1


def test_scales_that_are_too_coarse_do_not_count_the_agents_with_large_numbers():
    """If numbers were rounded to the nearest, those below half a unit would vanish."""
    e = np.full(2000, 62 + 4)  # units of 16
    words = encode_entries(np.full(2000, 5.0) + np.arange(2000) * 1e-9, e)
    assert set(words.tolist()) == {0, 1}
    assert abs(words.mean() - 5 / 16) < 0.04


def test_rounding_is_the_same_for_the_same_numbers():
    numbers = np.random.default_rng(0).standard_normal(50)
    e = np.full(50, 3)
    np.testing.assert_array_equal(encode_entries(numbers, e), encode_entries(numbers.copy(), e))
    changed = numbers.copy()
    changed[0] = np.nextafter(changed[0], 9.0)
    differ = encode_entries(numbers, e) != encode_entries(changed, e)
    assert np.count_nonzero(differ[1:]) > 30


def test_the_largest_sums_of_squares_are_taken_and_larger_ones_refused():
    agents = 5
    most = np.nextafter(fixed_point.LARGEST_SUM / agents, 0)
    words = encode_diagonal(np.array([most]), agents)
    total = words
    for _ in range(agents - 1):
        total = wide.add(total, words)
    found = Fraction(wide.to_whole(total)[0], 2**128)
    assert 1 <= found / (agents * Fraction(most)) < 1 + Fraction(2) ** -52
    for wrong in (fixed_point.LARGEST_SUM / agents, np.inf, np.nan, -1.0):
        with pytest.raises(DataError, match=r"column 1 .* scale the inputs"):
            encode_diagonal(np.array([1.0, wrong]), agents)


def test_the_smallest_number_is_rounded_up():
    total = encode_diagonal(np.array([5e-324, 0.0]), 3)
    assert wide.to_whole(total) == [1, 0]
    assert exponents_of(total).tolist() == [-128, fixed_point.NOTHING]


@pytest.mark.parametrize("power", [-20, 0, 1, 63, 90])
def test_an_exponent_is_the_least_that_covers_the_sum(power):
    D = np.array([np.nextafter(2.0**power, 0.0), np.nextafter(2.0**power, np.inf)])
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


def test_totals_of_plain_numbers_are_rational_sums_to_the_last_places():
    rng = np.random.default_rng(0)
    powers = 10.0 ** rng.integers(-20, 36, (9, 200))
    own = rng.standard_normal((9, 200)) * powers
    own[:, :3] = [[2.0**64, -(2.0**64), 0.0]]
    own[0, 3:] *= -1
    for found, column in zip(wide_total(own), own.T.tolist(), strict=True):
        exact = sum(map(Fraction, column))
        most = sum(abs(Fraction(x)) for x in column) + abs(exact)
        assert abs(Fraction(found) - exact) <= most * Fraction(2) ** -53
    assert wide_total(np.arange(600.0).reshape(3, 200)) == [3 * k + 600.0 for k in range(200)]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_small_number_cannot_be_read_from_the_last_bits_of_plain_numbers(sign):
    rng = np.random.default_rng(0)
    large = sign * rng.uniform(1024, 1900, (4, 1000))
    small = rng.uniform(0.5e-14, 1e-14, (1, 1000))
    words = [encode_wide(row, 5, "numbers") for row in [*large, *small]]
    total = words[0]
    for more in words[1:]:
        total = wide.add(total, more)
    ends = [read_small_number(Fraction(D, 2**128), -42) for D in wide.to_whole(total)]
    found = np.array(ends, dtype=float)
    assert np.sqrt(np.mean((found - small[0]) ** 2)) > 0.25 * 2.0**-42
    assert abs(np.corrcoef(found, small[0])[0, 1]) < 0.12
    errors = [
        Fraction(D, 2**128) % 2**128 - sum(map(Fraction, column)) % 2**128
        for D, column in zip(
            wide.to_whole(total), np.vstack([large, small]).T.tolist(), strict=True
        )
    ]
    assert abs(np.mean(np.array(errors, dtype=float))) < 0.1 * 2.0**-42  # not all to one side


def test_plain_numbers_below_the_unit_are_rounded_and_large_ones_refused():
    assert wide_total(np.array([[0.75 * 2.0**-128], [2.0**-130]])) == [2.0**-128]
    most = np.nextafter(fixed_point.LARGEST_SUM / 4, 0)
    for sign in (-1.0, 1.0):
        assert wide_total(np.full((4, 1), sign * most)) == [4 * sign * most]
    for wrong in (fixed_point.LARGEST_SUM / 4, -np.inf, np.nan):
        with pytest.raises(DataError, match=r"number 1 of the sums of columns is .* scale the"):
            encode_wide(np.array([1.0, wrong]), 4, "the sums of columns")
