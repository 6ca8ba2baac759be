"""Numbers as people write them."""

from __future__ import annotations


def short(number: float) -> str:
    """1e-6 rather than 1e-06."""
    return f"{number:g}".replace("e-0", "e-")


def megabytes(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
