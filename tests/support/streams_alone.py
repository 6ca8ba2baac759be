"""Streams that one agent learns from by itself."""

from __future__ import annotations

import numpy as np

B, M, AGENTS, NEVER = 24, 2, 5, 10**9


def rows_of(sizes, width=B, seed=0):
    """Features and targets of agents with so many rows each."""
    rng = np.random.default_rng(seed)
    H = [rng.standard_normal((n, width)) for n in sizes]
    return H, [np.sin(h[:, :M]) + 0.1 * rng.standard_normal((len(h), M)) for h in H]


def stream_of(sizes, chunks, agents=AGENTS, width=B, seed=0):
    rng = np.random.default_rng(seed)
    return [rows_of(rng.choice(list(sizes), agents), width, (seed, i)) for i in range(chunks)]
