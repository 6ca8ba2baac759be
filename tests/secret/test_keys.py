"""Keys of a session: published test vectors, and what is refused."""

from __future__ import annotations

import hmac
import os
from dataclasses import replace
from hashlib import sha256
from itertools import product

import numpy as np
import pytest

from peerlearn.errors import InputError, MissingExtra, WireError
from peerlearn.secret import keys
from peerlearn.secret.keys import (
    SessionKey,
    SumContext,
    derive_pair_key,
    derive_sum_key,
    draw_stream,
)

CONTEXT = SumContext(0, 0, "gram", (3,), 1, b"", b"h")
# All points of low order on the curve and on its twist: the value of each is known to all.
LOW_ORDER = [
    bytes(32),
    (1).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
]


def new_key():
    return SessionKey(os.urandom(32))


def test_x25519_agrees_with_rfc_7748():
    """Section 6.1."""
    alice = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
    bob = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"
    public_of_alice = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    public_of_bob = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    first, second = SessionKey(bytes.fromhex(alice)), SessionKey(bytes.fromhex(bob))
    assert (first.public.hex(), second.public.hex()) == (public_of_alice, public_of_bob)
    assert first.agree(second.public, "bob").hex() == shared
    assert second.agree(first.public, "alice").hex() == shared


def hkdf(secret, salt, info, length):
    """RFC 5869, section 2, written down once more."""
    key = hmac.digest(salt, secret, sha256)
    return expand(key, info, length)


def expand(key, info, length):
    blocks = [b""]
    while sum(map(len, blocks)) < length:
        blocks.append(hmac.digest(key, blocks[-1] + info + bytes([len(blocks)]), sha256))
    return b"".join(blocks)[:length]


def test_the_hkdf_of_these_tests_agrees_with_rfc_5869():
    """Appendix A.1."""
    info = bytes(range(0xF0, 0xFA))
    found = hkdf(b"\x0b" * 22, bytes(range(13)), info, 42)
    assert found.hex() == (
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    )


def test_keys_of_pairs_and_sums_are_made_by_hkdf():
    secret, session = b"s" * 32, b"i" * 32
    pair = derive_pair_key(secret, session, 5, 2)
    ends = (2).to_bytes(8, "little") + (5).to_bytes(8, "little")
    assert pair == hkdf(secret, session, b"peerlearn secret sums 1" + ends, 32)
    assert pair == derive_pair_key(secret, session, 2, 5)
    assert derive_sum_key(pair, CONTEXT) == expand(pair, CONTEXT.encode(), 32)


def test_the_stream_agrees_with_rfc_8439():
    """Appendix A.1, test vectors 1 and 2: key and nonce of zeros, block counters 0 and 1."""
    stream = draw_stream(bytes(32), 16).astype("<u8").tobytes()
    assert stream[:64].hex() == (
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    )
    assert stream[64:].hex() == (
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
    )


@pytest.mark.parametrize("point", LOW_ORDER, ids=lambda point: point.hex()[:8])
def test_points_of_low_order_are_refused(point):
    with pytest.raises(WireError, match=r"agent mallory .* low order"):
        new_key().agree(point, "mallory")


def test_keys_of_a_wrong_length_are_refused():
    with pytest.raises(WireError, match="31 bytes, not 32"):
        new_key().agree(bytes(31), "b")
    with pytest.raises(InputError, match="33"):
        SessionKey(bytes(33))


def test_keys_are_new_each_time_and_not_shown():
    private = os.urandom(32)
    assert new_key().public != new_key().public
    assert private.hex() not in repr(SessionKey(private)) + str(vars(SessionKey(private)))


CHANGES = {
    "epoch": 1,
    "number": 1,
    "quantity": "grams",
    "shape": (1, 3),
    "limbs": 2,
    "scales": b"\0",
    "history": b"",
}


def test_each_part_of_a_context_changes_the_key():
    contexts = [CONTEXT, *(replace(CONTEXT, **{name: new}) for name, new in CHANGES.items())]
    found = {derive_sum_key(b"p" * 32, context) for context in contexts}
    assert len(found) == len(contexts) == 8


def test_parts_of_a_context_cannot_be_moved_from_one_to_the_next():
    pairs = [("ab", b"c"), ("a", b"bc"), ("abc", b"")]
    texts = {SumContext(0, 0, q, (), 1, s, b"").encode() for q, s in pairs}
    assert len(texts) == 3


def test_no_block_repeats_across_sums_sessions_and_restarts():
    """A mask that occurs twice shows the difference of what it hid."""
    blocks = []
    for _restart in range(3):  # a restart draws new keys, also for the same session id
        secret = new_key().agree(new_key().public, "b")
        for session, number, history in product(range(2), range(12), range(3)):
            pair = derive_pair_key(secret, bytes([session]) * 32, 0, 1)
            context = replace(CONTEXT, number=number, history=bytes([history]))
            stream = draw_stream(derive_sum_key(pair, context), 8 * 40)
            blocks += [block.tobytes() for block in stream.reshape(-1, 8)]
    assert len(blocks) == 8640
    assert len(set(blocks)) == len(blocks)
    words = np.frombuffer(b"".join(blocks), dtype=np.uint64)
    assert len(np.unique(words)) == len(words)


def test_a_missing_package_is_named_with_its_install_line(monkeypatch):
    monkeypatch.setattr(keys, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install grpcio cryptography"):
        new_key()
