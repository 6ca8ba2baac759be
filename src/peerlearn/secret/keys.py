"""Keys of one session: who shares which secret, and one key per pair of agents and sum.

    s_ij = X25519(private key of i, public key of j) = X25519(private key of j, public key of i)
    p_ij = HKDF-SHA256(s_ij, salt: session id, info: i and j)              32 bytes
    k_ij = HKDF-Expand-SHA256(p_ij, info: `SumContext` of the sum)         32 bytes, one per sum
    stream = ChaCha20(k_ij, nonce 0)                                       64-byte blocks

RFC 7748, RFC 5869 and RFC 8439. Keys are drawn for every session and never used in another one.
The nonce is zero on purpose. In this library the low bytes of the nonce are the block counter, so
a nonce that counts sums would make stream n + 1 the stream n without its first block. The number
of a sum is in its key instead.

A `SumContext` has everything that two agents must agree on before their masks may cancel. If they
differ in any of it, the total is a random number, and its check fails.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from peerlearn.errors import InputError, MissingExtra, WireError

Words = NDArray[np.uint64]

KEY_BYTES = 32
LABEL = b"peerlearn secret sums 1"
MOST_WORDS = 1 << 32  # of one stream: its block counter has 32 bits, and a block 8 words
_NUMBER = struct.Struct("<Q")


def need_cryptography() -> None:
    """Raise MissingExtra if the package cryptography is not installed."""
    if find_spec("cryptography") is None:
        raise MissingExtra("secrecy", "cryptography", "peers")


@dataclass(frozen=True)
class SumContext:
    """What identifies one sum of a session.

    epoch: version of the list of agents. number: of the sum, from 0. quantity: what is summed.
    shape: of one agent's numbers. limbs: words of 64 bits per number. scales: public scales, as
    bytes. history: digest of everything that all agents know of earlier sums.
    """

    epoch: int
    number: int
    quantity: str
    shape: tuple[int, ...]
    limbs: int
    scales: bytes
    history: bytes

    def encode(self) -> bytes:
        """Return bytes that differ if any part differs: each part comes after its length."""
        shape = b"".join(map(_NUMBER.pack, self.shape))
        numbers = _NUMBER.pack(self.epoch) + _NUMBER.pack(self.number) + _NUMBER.pack(self.limbs)
        return join_parts(
            [LABEL, numbers, self.quantity.encode(), shape, self.scales, self.history]
        )


def join_parts(parts: Sequence[bytes]) -> bytes:
    """Return all parts, each after its length, so that no other parts give the same bytes."""
    return b"".join(_NUMBER.pack(len(part)) + part for part in parts)


class SessionKey:
    """Private key of one agent for one session. It is not shown by `repr`.

    private: 32 random bytes.
    """

    def __init__(self, private: bytes) -> None:
        need_cryptography()
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        if len(private) != KEY_BYTES:
            raise InputError(
                f"a session key has {KEY_BYTES} bytes, not {len(private)}: draw so many from the "
                "system"
            )
        self._key = X25519PrivateKey.from_private_bytes(private)

    @property
    def public(self) -> bytes:
        """Public key, 32 bytes."""
        return self._key.public_key().public_bytes_raw()

    def agree(self, public: bytes, whose: str) -> bytes:
        """Return the secret that this key shares with the owner of a public key.

        whose: name of the owner, for error messages. A point of low order is refused: the secret
        would be zero, whatever this key is.
        """
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        if len(public) != KEY_BYTES:
            raise WireError(
                f"agent {whose} sent a session key of {len(public)} bytes, not {KEY_BYTES}: it "
                "probably runs another version"
            )
        try:
            return self._key.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise WireError(
                f"agent {whose} sent a session key with which every secret is zero (a point of "
                "low order): somebody wants to read the sums; do not train with it"
            ) from None


def derive_pair_key(secret: bytes, session: bytes, first: int, second: int) -> bytes:
    """Return the key of two agents for one session. session: its id."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    ends = _NUMBER.pack(min(first, second)) + _NUMBER.pack(max(first, second))
    return HKDF(SHA256(), KEY_BYTES, salt=session, info=LABEL + ends).derive(secret)


def derive_sum_key(pair_key: bytes, context: SumContext) -> bytes:
    """Return the key of two agents for one sum."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

    return HKDFExpand(SHA256(), KEY_BYTES, info=context.encode()).derive(pair_key)


def draw_stream(key: bytes, words: int) -> Words:
    """Return the first words of the ChaCha20 stream of a key, little-endian, with nonce zero."""
    if words > MOST_WORDS:
        raise InputError(
            f"a secret sum of {words} words is too long, {MOST_WORDS} at most: use fewer units"
        )
    return open_stream(key)(words)


def open_stream(key: bytes) -> Callable[[int], Words]:
    """Return a function that returns the next words of the ChaCha20 stream of a key."""
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    encryptor = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()

    def take(words: int) -> Words:
        stream = np.frombuffer(encryptor.update(bytes(8 * words)), dtype="<u8")
        return stream.astype(np.uint64, copy=False)

    return take


def digest(*parts: bytes) -> bytes:
    """Return the SHA-256 of parts of any length, 32 bytes."""
    return sha256(join_parts(parts)).digest()
