"""Errors about what is refused under secrecy."""

from __future__ import annotations

from peerlearn.errors import InputError


def secret_error(who: str, why: str, instead: str) -> InputError:
    """Return the error about something that would show more than totals.

    who: what would. why: what it does. instead: what to do.
    """
    return InputError(
        f"this network keeps sums secret, and {who} {why}: {instead}, or use a network without "
        "secrecy; nothing was sent"
    )
