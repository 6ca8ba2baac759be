"""Normal equations add up."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from peerlearn.local.normal_equations import NormalEquations
from tests.support.local_problems import shares
from tests.support.readout_problems import closed_form


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 15), min_size=1, max_size=5), st.integers(1, 10), st.integers(1, 3))
def test_normal_equations_add_up_and_survive_packing(sizes, B, M):
    H, Y = shares(sizes, B, M)
    parts = [NormalEquations.of_rows(np.hstack([h, y]), (B, M)) for h, y in zip(H, Y, strict=True)]
    sent = [NormalEquations.unpack(part.pack(), (B, M)) for part in parts]
    together = sent[0].plus(sent[1:])
    np.testing.assert_allclose(
        together.ridge(0.5), closed_form(np.vstack(H), np.vstack(Y), 0.5), atol=1e-8
    )
    for part, n in zip(parts, sizes, strict=True):
        numbers = sum(array.size for array in part.pack().values())
        # The units of rounding travel too, and |Y|^2 with a Gram matrix.
        assert numbers <= min(n * (B + M), B * (B + 1) // 2 + B * M) + 2
