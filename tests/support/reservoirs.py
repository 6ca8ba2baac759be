"""A reservoir for tests of what comes after it."""

from __future__ import annotations

from peerlearn.local.reservoir import Reservoir


def reservoir(units):
    """One input, one output, no feedback."""
    return Reservoir.draw(
        1,
        1,
        units=units,
        spectral_radius=0.9,
        density=0.25,
        input_scaling=0.3,
        feedback_scaling=0.0,
        leak=1.0,
        seed=0,
    )
