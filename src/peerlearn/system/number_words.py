"""Numbers in words: short, megabytes, durations."""

from __future__ import annotations


def short(number: float) -> str:
    """Return 1e-6 rather than 1e-06."""
    return f"{number:g}".replace("e-0", "e-")


def megabytes(number: float) -> str:
    """Return megabytes with two digits, or whole from 10 on."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def duration(seconds: float) -> str:
    """Return a time: 34 s, 2 min, 1 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
