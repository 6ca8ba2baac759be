"""Reasons of failed connections, from what gRPC really says."""

from __future__ import annotations

import pytest

from peerlearn.network.peers.grpc_errors import LONGEST, short_reason

ALL = "failed to connect to all addresses; last error: "
UNKNOWN = f"{ALL}UNKNOWN: ipv4:127.0.0.1:7101: "
SSL = (
    "Tls handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: error:1000007d:SSL "
    "routines:OPENSSL_internal:"
)


@pytest.mark.parametrize(
    ("details", "said"),
    [
        (
            f"{UNKNOWN}Failed to connect to remote host: Connection refused",
            "connection refused",
        ),
        (f"{ALL}UNAVAILABLE: ipv4:127.0.0.1:7101: Socket closed", "the other end hung up"),
        (
            f"{ALL}UNAVAILABLE: ipv4:127.0.0.1:7101: Handshake read failed (Endpoint closing)",
            "no answer",
        ),
        (
            (
                f"{ALL}UNAVAILABLE: ipv4:127.0.0.1:7101: Handshake read failed "
                "(recvmsg:Connection reset by peer (104))"
            ),
            "connection reset",
        ),
        (
            "errors resolving north.example:7101: [field:hostname lookup "
            "error:address lookup failed for "
            "north.example:7101: Domain name not found]",
            "no host of that name is known",
        ),
        (
            f"{UNKNOWN}{SSL}CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate: OK",
            "the other end's certificate is not signed by our authority",
        ),
        (
            f"{UNKNOWN}{SSL}CERTIFICATE_VERIFY_FAILED: certificate has expired: OK",
            "the other end's certificate has expired",
        ),
        (
            f"{UNKNOWN}{SSL}WRONG_VERSION_NUMBER: Invalid certificate verification context: OK",
            "the other end does not speak TLS",
        ),
        (
            f"{UNKNOWN}Custom verification check failed with error: UNAUTHENTICATED: Hostname "
            "Verification Check failed.",
            "the certificate there is of another agent",
        ),
        (f"{UNKNOWN}Something new", "Something new"),
        (f"{ALL}UNKNOWN: ipv6:%5B::1%5D:7101: Something new", "Something new"),
        (
            "agent east, which is not a neighbor of north",
            "agent east, which is not a neighbor of north",
        ),
        ("two\nlines\x1b[31m", "two lines[31m"),
        ("", "no reason given"),
    ],
)
def test_reasons_are_short(details, said):
    assert short_reason(details) == said


def test_what_is_long_and_unknown_is_cut():
    assert short_reason("x" * 5000) == "x" * LONGEST + ".."
