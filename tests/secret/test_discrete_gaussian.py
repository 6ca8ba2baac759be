"""The noise of differential privacy has exactly the probabilities of the discrete Gaussian."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, norm

from peerlearn.errors import InputError
from peerlearn.secret import discrete_gaussian
from peerlearn.secret.discrete_gaussian import _Trials, draw_discrete_gaussian


def key(number):
    return hashlib.sha256(b"%d" % number).digest()


@pytest.mark.parametrize("s", [1, 2, 3, 4, 7, 20])
def test_small_deviations_have_the_probabilities_of_the_formula(s):
    drawn = draw_discrete_gaussian(key(s), s, 200_000)
    x = np.arange(-60 * s, 60 * s + 1)
    p = np.exp(-(x**2) / (2 * s**2))
    p /= p.sum()
    often = p * len(drawn) >= 10
    counts = np.array([np.count_nonzero(drawn == each) for each in x[often]])
    rest = len(drawn) - counts.sum()
    expected = np.append(p[often], 1 - p[often].sum()) * len(drawn)
    assert chisquare(np.append(counts, rest), expected).pvalue > 1e-3


@pytest.mark.parametrize("s", [1000, 2**31 - 1, 2**31, 2**45 + 12345])
def test_large_deviations_are_as_good_as_gaussian(s):
    drawn = draw_discrete_gaussian(key(s), s, 100_000)
    uniform = norm.cdf((drawn + 0.5) / s)
    assert kstest(uniform, "uniform").pvalue > 1e-3
    # The low digits are uniform: no rounding of floating-point numbers shows in them.
    low = np.bincount(drawn % 16, minlength=16)
    assert chisquare(low).pvalue > 1e-3


def test_a_wrong_noise_fails_the_test():
    """The tests above have the power to see 3 % more deviation."""
    drawn = draw_discrete_gaussian(key(0), 1030, 100_000)
    assert kstest(norm.cdf((drawn + 0.5) / 1000), "uniform").pvalue < 1e-3


def test_the_same_key_has_the_same_noise_and_others_have_another():
    first = draw_discrete_gaussian(key(1), 50, 1000)
    assert (draw_discrete_gaussian(key(1), 50, 1000) == first).all()
    assert (draw_discrete_gaussian(key(2), 50, 1000) != first).any()
    # These bits are part of what a resumed run has to send again: they never change.
    digest = hashlib.sha256(first.astype("<i8").tobytes()).hexdigest()
    assert digest.startswith("a929888e7a5cf0c2")


def test_exact_arithmetic_decides_as_floating_point_does(monkeypatch):
    quick = draw_discrete_gaussian(key(3), 12345, 300)
    monkeypatch.setattr(discrete_gaussian, "MARGIN", 0.2)
    asked = []
    decide = _Trials._decide
    monkeypatch.setattr(
        _Trials, "_decide", lambda self, *given: asked.append(given) or decide(self, *given)
    )
    assert (draw_discrete_gaussian(key(3), 12345, 300) == quick).all()
    assert len(asked) > 50


def test_a_word_that_does_not_decide_is_settled_by_more_bits():
    """exp(-1) has these 64 bits: with more bits a fair share of numbers is below it."""
    word = int(Fraction(np.e**-1) * 2**64)
    exact = 0x5E2D58D8B3BCDF1A  # floor(2^64 / e)
    assert abs(word - exact) < 2**12
    trials = _Trials(key(4))
    below = [trials._decide(exact, Fraction(1), place) for place in range(400)]
    # 2^64 / e is exact + .7300: a uniform rest is below it with this probability.
    assert abs(np.mean(below) - 0.7300) < 4 * np.sqrt(0.73 * 0.27 / 400)


@pytest.mark.parametrize("s", [0, -3, 2**51])
def test_deviations_that_cannot_be_drawn_are_refused(s):
    with pytest.raises(InputError, match="the deviation of the noise is"):
        draw_discrete_gaussian(key(0), s, 1)


def test_no_numbers():
    assert draw_discrete_gaussian(key(0), 5, 0).shape == (0,)
