"""Signatures over the id of a session, by keys that are made for it.

Agents of real sites sign with the keys of their certificates (`peerlearn.network.peers.signing`).
Agents of a simulation, of an MPI job, and those without certificates on one machine have none. They
run the same code with keys of their own for one session. Such a signature shows that a key was not
changed by accident. It does not show whose key it is.
"""

from __future__ import annotations

from typing import Protocol

from peerlearn.errors import WireError
from peerlearn.secret.keys import need_cryptography


class Signer(Protocol):
    """What signs for one agent, and checks the signatures of all others."""

    @property
    def certificate(self) -> bytes:
        """What others need to check signatures of this agent. It is sent to all of them."""
        ...

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        ...

    def check(self, name: str, certificate: bytes, message: bytes, signature: bytes) -> None:
        """Raise WireError unless the agent of this name signed the message."""
        ...


class SessionSigner:
    """Signer with a key for one session (Ed25519). Its certificate is the public key.

    seed: 32 random bytes, of which the key is made.
    """

    def __init__(self, seed: bytes) -> None:
        need_cryptography()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    @property
    def certificate(self) -> bytes:
        return self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)

    def check(self, name: str, certificate: bytes, message: bytes, signature: bytes) -> None:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(certificate).verify(signature, message)
        except (InvalidSignature, ValueError):
            raise wrong_signature(name) from None


def wrong_signature(name: str) -> WireError:
    """Return the error about a signature that does not fit."""
    return WireError(
        f"agent {name} did not sign this session with its own key: a key was replaced on the way, "
        "belongs to another session, or the agents have different settings; nothing was sent"
    )
