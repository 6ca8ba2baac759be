"""Signatures with the keys of certificates: who signed, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding

from peerlearn.errors import InputError, WireError
from peerlearn.network.peers import certificates, identity, signing
from peerlearn.network.peers.identity import Identity
from peerlearn.network.peers.signing import CertificateSigner
from peerlearn.secret.signing import SessionSigner


def identity_of(folder, name):
    return Identity.load(
        folder / "authority.pem", folder / f"{name}.pem", folder / f"{name}.key", name
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs")
    certificates.make(folder, ["north", "south"])
    return folder


@pytest.fixture(scope="module")
def signers(folder):
    return {name: CertificateSigner(identity_of(folder, name)) for name in ("north", "south")}


def test_an_agent_knows_the_signature_of_another(signers):
    north, south = signers["north"], signers["south"]
    north.check("south", south.certificate, b"session", south.sign(b"session"))


@pytest.mark.parametrize("change", ["message", "signature", "signer"])
def test_a_signature_of_something_else_is_refused(signers, change):
    north, south = signers["north"], signers["south"]
    signature = south.sign(b"another session" if change == "message" else b"session")
    if change == "signature":
        signature = signature[:-1]
    if change == "signer":
        signature = north.sign(b"session")
    with pytest.raises(WireError, match="agent south did not sign this session"):
        north.check("south", south.certificate, b"session", signature)


def test_the_certificate_of_another_agent_is_refused(signers):
    north, south = signers["north"], signers["south"]
    with pytest.raises(WireError, match="for agent east is for another name"):
        north.check("east", south.certificate, b"session", south.sign(b"session"))


def test_an_agent_outside_the_list_is_refused(signers, tmp_path):
    """The same name, with a certificate of another authority; and bytes that are none."""
    certificates.make(tmp_path, ["south"])
    stranger = CertificateSigner(identity_of(tmp_path, "south"))
    for certificate in (stranger.certificate, b"nothing", stranger.certificate[:-5]):
        with pytest.raises(WireError, match="not from our authority"):
            signers["north"].check("south", certificate, b"s", stranger.sign(b"s"))


def test_an_expired_identity_is_refused(signers, monkeypatch):
    north, south = signers["north"], signers["south"]
    later = identity.now() + timedelta(days=1000)
    monkeypatch.setattr(signing, "now", lambda: later)
    with pytest.raises(WireError, match="is not valid now"):
        north.check("south", south.certificate, b"session", south.sign(b"session"))


def test_a_key_that_cannot_sign_is_refused_at_home(folder):
    known = identity_of(folder, "north")
    authority, signer = certificates._load_or_make_authority(folder, [])
    key = rsa.generate_private_key(65537, 2048)
    certificate = certificates._sign_identity("north", key.public_key(), authority, signer, 10)
    pem = certificate.public_bytes(Encoding.PEM)
    with pytest.raises(InputError, match="elliptic-curve keys"):
        CertificateSigner(Identity("north", known.authority, pem, identity.key_as_pem(key)))


def test_session_signers_know_each_other_by_their_keys():
    one, other = SessionSigner(b"1" * 32), SessionSigner(b"2" * 32)
    one.check("b", other.certificate, b"s", other.sign(b"s"))
    for certificate, signature in (
        (one.certificate, other.sign(b"s")),
        (other.certificate, other.sign(b"t")),
        (other.certificate[:-1], other.sign(b"s")),
    ):
        with pytest.raises(WireError, match="agent b did not sign"):
            one.check("b", certificate, b"s", signature)
