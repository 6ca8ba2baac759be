"""Least mean squares of one agent."""

from __future__ import annotations

import numpy as np
import pytest

from peerlearn.local import lms
from peerlearn.local.chunks import Chunk
from tests.support.streams_alone import AGENTS, B, M, rows_of, stream_of


class TestLeastMeanSquares:
    def by_hand(self, b, H, Y, step, normalised):
        b = b.copy()
        for h, y in zip(H, Y, strict=True):
            size = h @ h if normalised else 1.0
            if size > 0:
                b += step / size * np.outer(h, y - h @ b)
        return b

    @pytest.mark.parametrize("normalised", [True, False])
    def test_is_a_loop_over_the_rows(self, normalised):
        step, stream = 0.5 if normalised else 0.01, stream_of([0, 1, 2, 7, 30], 10)
        stream[3][0][1][:1] = 0.0  # a row without features tells nothing
        b = np.zeros((AGENTS, B, M))
        expected = b.copy()
        for H, Y in stream:
            before = b.copy()
            moved = lms.descend(b, Chunk.of_rows(H, Y), step, normalised)
            np.testing.assert_array_equal(b, before)
            b, expected = (
                moved,
                [self.by_hand(expected[k], H[k], Y[k], step, normalised) for k in range(AGENTS)],
            )
            np.testing.assert_allclose(b, expected, atol=1e-12)

    def test_the_bits_of_an_agent_do_not_depend_on_the_others(self):
        H, Y = rows_of([3, 0, 1, 50, 3])
        together = lms.descend(np.ones((AGENTS, B, M)), Chunk.of_rows(H, Y), 0.5, True)
        for k in range(AGENTS):
            alone = lms.descend(np.ones((1, B, M)), Chunk.of_rows([H[k]], [Y[k]]), 0.5, True)
            np.testing.assert_array_equal(together[k], alone[0])
