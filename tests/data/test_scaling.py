"""Scaling of columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from peerlearn.data import Scaling
from peerlearn.errors import DataError

tables = arrays_of.arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 4)),
    elements=st.floats(-1e100, 1e100, allow_subnormal=False),
)


@given(tables, st.sampled_from([(-1.0, 1.0), (0.0, 1.0), (2.0, 5.0)]))
def test_scaling_reaches_both_ends_and_divides_by_no_zero(X, to):
    scaling = Scaling.of(X, to)
    scaled = scaling.apply(X)
    constant = X.min(axis=0) == X.max(axis=0)
    assert np.isfinite(scaled).all()
    assert np.array_equal(scaled.min(axis=0)[~constant], np.full((~constant).sum(), to[0]))
    assert np.array_equal(scaled.max(axis=0)[~constant], np.full((~constant).sum(), to[1]))
    assert np.array_equal(
        scaled[:, constant], np.full((len(X), constant.sum()), min(max(0.0, to[0]), to[1]))
    )


def test_scaling_new_rows_uses_the_old_range_and_leaves_the_input_alone():
    scaling = Scaling.of(np.array([[0.0, 5.0], [10.0, 5.0]]), (-1.0, 1.0))
    new = np.array([[5.0, 7.0], [20.0, 5.0]])
    assert np.array_equal(scaling.apply(new), [[0.0, 0.0], [3.0, 0.0]])
    assert np.array_equal(new, [[5.0, 7.0], [20.0, 5.0]])
    with pytest.raises(DataError, match=r"rows of shape \(2, 3\) cannot be scaled.* 2 columns: "):
        scaling.apply(np.zeros((2, 3)))
