"""Signatures with the keys of certificates, which all agents of a network can check.

An agent checks everything itself: that a certificate is from the authority that it trusts, is valid
now and has the name of the agent, and that the signature was made with its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peerlearn.errors import InputError, WireError
from peerlearn.network.peers.identity import Identity, names_in, now
from peerlearn.secret.signing import wrong_signature

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


class CertificateSigner:
    """Signer with the key of an agent's certificate: ECDSA with SHA-256, or Ed25519."""

    def __init__(self, identity: Identity) -> None:
        from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
        from cryptography.x509 import load_pem_x509_certificate

        self._authority = load_pem_x509_certificate(identity.authority)
        own = load_pem_x509_certificate(identity.certificate)
        self._certificate = own.public_bytes(Encoding.DER)
        self._key = load_pem_private_key(identity.key, password=None)
        message = b"can this key sign?"
        try:
            self.check(identity.name, self._certificate, message, self.sign(message))
        except WireError as error:
            raise InputError(
                f"the certificate of agent {identity.name} cannot be used for secret sums "
                f"({error}): make new certificates with peerlearn certs"
            ) from error

    @property
    def certificate(self) -> bytes:
        return self._certificate

    def sign(self, message: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.hashes import SHA256

        if isinstance(self._key, EllipticCurvePrivateKey):
            return self._key.sign(message, ECDSA(SHA256()))
        if isinstance(self._key, Ed25519PrivateKey):
            return self._key.sign(message)
        raise InputError(
            "secret sums need certificates with elliptic-curve keys: make new ones with "
            "peerlearn certs"
        )

    def check(self, name: str, certificate: bytes, message: bytes, signature: bytes) -> None:
        from cryptography.x509 import load_der_x509_certificate

        try:
            of_agent = load_der_x509_certificate(certificate)
            of_agent.verify_directly_issued_by(self._authority)
            has_name = names_in(of_agent) == {name}
            is_valid = of_agent.not_valid_before_utc <= now() <= of_agent.not_valid_after_utc
        except Exception:  # the parser raises a dozen kinds of errors for damaged bytes
            raise _wrong_certificate(name, "is not from our authority") from None
        if not has_name:
            raise _wrong_certificate(name, "is for another name")
        if not is_valid:
            raise _wrong_certificate(name, "is not valid now")
        _verify(of_agent, name, message, signature)


def _verify(certificate: Certificate, name: str, message: bytes, signature: bytes) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256

    key = certificate.public_key()
    try:
        if isinstance(key, EllipticCurvePublicKey):
            key.verify(signature, message, ECDSA(SHA256()))
        elif isinstance(key, Ed25519PublicKey):
            key.verify(signature, message)
        else:
            raise _wrong_certificate(name, "has a key that is not of an elliptic curve")
    except InvalidSignature:
        raise wrong_signature(name) from None


def _wrong_certificate(name: str, problem: str) -> WireError:
    return WireError(
        f"the certificate that came for agent {name} {problem}: secret sums are only made with "
        "the agents of the network's file"
    )
