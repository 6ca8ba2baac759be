"""The error for messages that do not have the expected content."""

from __future__ import annotations

from peerlearn.errors import WireError

LIKELY_CAUSE = "it probably runs another version or configuration"


def unexpected_message(sender: int, expected: str) -> WireError:
    """Return the error for a message of `sender` that does not hold what was expected."""
    return WireError(
        f"agent {sender} sent an unexpected message (expected {expected}): {LIKELY_CAUSE}"
    )
