"""Short reasons for failed connections, in place of gRPC's long ones."""

from __future__ import annotations

import re

REASONS = (
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "the caller has no certificate"),
    ("certificate has expired", "the other end's certificate has expired"),
    (
        "certificate is not yet valid",
        "the other end's certificate is not valid yet: are the clocks right?",
    ),
    ("CERTIFICATE_VERIFY_FAILED", "the other end's certificate is not signed by our authority"),
    ("Hostname Verification Check failed", "the certificate there is of another agent"),
    ("WRONG_VERSION_NUMBER", "the other end does not speak TLS"),
    ("HTTP_REQUEST", "the other end does not speak TLS"),
    ("Connection refused", "connection refused"),
    ("Connection reset", "connection reset"),
    ("Socket closed", "the other end hung up"),
    ("Endpoint closing", "no answer"),
    ("Handshake timed out", "no answer"),
    ("Timeout occurred", "no answer"),
    ("timed out", "no answer"),
    ("keepalive watchdog timeout", "no answer"),
    ("ping timeout", "no answer"),
    ("No route to host", "no route to that host"),
    ("Network is unreachable", "the network cannot be reached"),
    ("Domain name not found", "no host of that name is known"),
    ("errors resolving", "the name of the host cannot be looked up"),
    ("DNS resolution failed", "the name of the host cannot be looked up"),
    ("GOAWAY", "the other end hung up"),
)
_WRAPPING = re.compile(
    r"^(failed to connect to all addresses; last error: )?(UN[A-Z]+: )?(ipv[46]:\S+: )?"
)
LONGEST = 160  # characters kept of an unknown reason


def short_reason(details: str) -> str:
    """Return a short reason for the details of a failed call or handshake, as gRPC gives them."""
    text = "".join(letter for letter in " ".join(details.split()) if letter.isprintable())
    for sign, reason in REASONS:
        if sign in text:
            return reason
    text = _WRAPPING.sub("", text).strip()
    if len(text) > LONGEST:
        text = text[:LONGEST] + ".."
    return text or "no reason given"
