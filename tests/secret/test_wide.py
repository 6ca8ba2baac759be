"""Whole numbers of several words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peerlearn.secret import wide

EDGES = [0, 1, 2**64 - 1, 2**64, 2**128 - 1, 2**128 - 2**64, 2**191 + 5]
WHOLE = st.one_of(st.sampled_from(EDGES), st.integers(-(2**200), 2**200))


@given(st.lists(st.tuples(WHOLE, WHOLE), min_size=1), st.integers(1, 4))
def test_sums_are_those_of_whole_numbers(pairs, limbs):
    modulus = 2 ** (64 * limbs)
    a = wide.of_whole([first for first, _ in pairs], limbs)
    b = wide.of_whole([second for _, second in pairs], limbs)
    assert wide.to_whole(wide.add(a, b)) == [(x + y) % modulus for x, y in pairs]
    assert wide.to_whole(wide.negate(a)) == [-x % modulus for x, _ in pairs]


@pytest.mark.parametrize("limbs", [1, 3])
def test_the_addends_stay_as_they_are(limbs):
    a = wide.of_whole([2**64 - 1], limbs)
    before = a.copy()
    wide.add(a, a)
    wide.negate(a)
    np.testing.assert_array_equal(a, before)
