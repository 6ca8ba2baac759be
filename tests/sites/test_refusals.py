"""Refused connections in words, from what gRPC writes."""

from __future__ import annotations

import logging
import os
import sys

import pytest

from peerlearn.sites.refusals import refusals_in_the_log, sentence

LINE = (
    "I1116 04:38:30.631531   28937 ssl_transport_security.cc:2563] Handshake failed with error "
    "SSL_ERROR_SSL: "
)
PORT_IN_USE = b"E1118 00:42:31.401874   10515 add_port.cc:83] Failed to add port to server\n" * 2
OPENSSL = "error:1000007d:SSL routines:OPENSSL_internal:"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            f"{LINE}{OPENSSL}CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate",
            "the other end's certificate is not signed by our authority",
        ),
        (
            f"{LINE}{OPENSSL}CERTIFICATE_VERIFY_FAILED: certificate has expired",
            "the other end's certificate has expired",
        ),
        (
            (
                f"{LINE}{OPENSSL}PEER_DID_NOT_RETURN_A_CERTIFICATE: Invalid certificate "
                "verification context"
            ),
            "the caller has no certificate",
        ),
        (
            f"{LINE}{OPENSSL}WRONG_VERSION_NUMBER: Invalid certificate verification context",
            "the other end does not speak TLS",
        ),
        (
            f"{LINE}{OPENSSL}HTTP_REQUEST: Invalid certificate verification context",
            "the other end does not speak TLS",
        ),
        (f"{LINE}{OPENSSL}SOMETHING_NEW: Words", "SOMETHING_NEW: Words"),
        (
            (
                "E1116 04:38:30.638399   28936 ssl_transport_security.cc:3238] No match found "
                "for server name: west"
            ),
            "the process that listens there is not agent west",
        ),
    ],
)
def test_refusals_in_words(line, said):
    assert sentence(line) == f"refused a connection: {said}"


@pytest.mark.parametrize(
    "line", ["", "Traceback (most recent call last):", "I1116 chttp2_transport.cc] Handshake done"]
)
def test_other_lines_are_no_refusals(line):
    assert sentence(line) is None


def test_standard_error_is_read_for_refusals_and_restored(tmp_path, caplog):
    own, saved, noted = sys.stderr, os.dup(2), []
    refusal = f"{LINE}{OPENSSL}HTTP_REQUEST: Invalid certificate verification context\n".encode()
    try:
        with (tmp_path / "stderr").open("wb") as file:
            os.dup2(file.fileno(), 2)
        before = os.fstat(2).st_ino
        opened = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
        with caplog.at_level(logging.WARNING, "peerlearn"), refusals_in_the_log(noted.append):
            assert os.fstat(2).st_ino != before
            os.write(
                2, b"one line\n" + refusal + refusal + PORT_IN_USE + b"\xff another, without an end"
            )
            print("from Python", file=sys.stderr)
        assert os.fstat(2).st_ino == before
        assert opened == (len(os.listdir("/proc/self/fd")) if opened else 0)
    finally:
        os.dup2(saved, 2)
        os.close(saved)
    assert sys.stderr is own
    text = (tmp_path / "stderr").read_text()
    assert "one line\n" in text
    assert "another, without an end" in text
    assert "from Python\n" in text
    assert "HTTP_REQUEST" not in text
    assert ".cc" not in text
    assert noted == ["gRPC: add_port.cc:83: Failed to add port to server"]  # once as well
    assert caplog.messages == [
        "refused a connection: the other end does not speak TLS"
    ]  # once, however often
