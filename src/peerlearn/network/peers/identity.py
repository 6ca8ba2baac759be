"""An agent's papers, read from files and checked: what would make TLS fail without a reason is said here, with one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from peerlearn.errors import InputError, MissingExtra, PeerlearnError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
    from cryptography.x509 import Certificate

OTHERS = 0o077  # the rights of everybody but the owner


@dataclass(frozen=True)
class Identity:
    """An agent's name, its papers and those of the authority it trusts, as PEM."""

    name: str
    authority: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)  # so that no log ever holds it

    @classmethod
    def load(cls, authority: Path, certificate: Path, key: Path, name: str) -> Identity:
        """From three files that fit each other and the name."""
        need_cryptography()
        from cryptography.hazmat.primitives.serialization import Encoding

        root, own, private = authority_in(authority), certificate_in(certificate), key_in(key)
        must_fit(private, key, own, certificate)
        _must_name(name, own, certificate)
        _must_be_signed(own, certificate, root, authority)
        return cls(
            name,
            root.public_bytes(Encoding.PEM),
            own.public_bytes(Encoding.PEM),
            key_as_pem(private),
        )


def need_cryptography() -> None:
    if find_spec("cryptography") is None:
        raise MissingExtra("making or reading certificates", "cryptography", "peers")


def now() -> datetime:
    return datetime.now(UTC)


def certificate_in(path: Path) -> Certificate:
    """The only certificate of the file, valid today."""
    from cryptography.x509 import load_pem_x509_certificates

    with _understood(path, "a certificate"):
        found = load_pem_x509_certificates(_content(path))
        first, last = found[0].not_valid_before_utc, found[0].not_valid_after_utc
    if len(found) > 1:  # TLS would trust them all, and only one is checked here
        raise InputError(f"{path} holds {len(found)} certificates: give a file with one")
    if not first <= now() <= last:
        raise InputError(
            f"the certificate {path} is valid from {_day(first)} to {_day(last)}, but it is now {_day(now())}: "
            "set the clock if it is wrong, or make new certificates with peerlearn certs"
        )
    return found[0]


def authority_in(path: Path) -> Certificate:
    """A certificate that may sign others."""
    from cryptography.x509 import BasicConstraints, ExtensionNotFound

    certificate = certificate_in(path)
    with _understood(path, "a certificate"):
        try:
            signs = certificate.extensions.get_extension_for_class(BasicConstraints).value.ca
        except ExtensionNotFound:
            signs = False
    if not signs:
        raise InputError(
            f"{path} is the certificate of an agent, not of an authority: give authority.pem"
        )
    return certificate


def key_in(path: Path) -> PrivateKeyTypes:
    """The private key of a file that nobody else may read."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _content(path, secret=True)
    with _understood(path, "an unencrypted private key"):
        return load_pem_private_key(content, password=None)


def key_as_pem(key: PrivateKeyTypes) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def must_fit(key: PrivateKeyTypes, key_path: Path, certificate: Certificate, path: Path) -> None:
    with _understood(path, "a certificate"):
        fits = certificate.public_key() == key.public_key()
    if not fits:
        raise InputError(
            f"the key {key_path} does not belong to the certificate {path}: give two files made together"
        )


def _must_name(name: str, certificate: Certificate, path: Path) -> None:
    with _understood(path, "a certificate"):
        names = _names(certificate)
    if names != {name}:
        whose = ", ".join(sorted(names)) or "no name that TLS knows"
        raise InputError(
            f"the certificate {path} is for {whose}, but this agent is {name}: give the files of {name}"
        )


def _names(certificate: Certificate) -> set[str]:
    """All names it is good for; one that could pass for two agents is refused, as is one without a name for TLS."""
    from cryptography.x509 import DNSName, ExtensionNotFound, SubjectAlternativeName
    from cryptography.x509.oid import NameOID

    common = {
        str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    }
    try:
        others = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        return set()
    hosts = set(others.get_values_for_type(DNSName))
    return hosts | common if hosts else set()


def _must_be_signed(
    certificate: Certificate, path: Path, authority: Certificate, authority_path: Path
) -> None:
    try:
        certificate.verify_directly_issued_by(authority)
    except Exception as error:  # another issuer, another key, or a kind of key that signs nothing
        raise InputError(
            f"the certificate {path} was not signed by the authority {authority_path}: give the authority.pem that was "
            "made with it"
        ) from error


def _content(path: Path, *, secret: bool = False) -> bytes:
    try:
        with path.open("rb") as file:
            if secret and os.name == "posix" and os.fstat(file.fileno()).st_mode & OTHERS:
                raise InputError(
                    f"the key {path} can be read by other users of this machine: chmod 600 {path}"
                )
            return file.read()
    except FileNotFoundError:
        raise InputError(
            f"{path} is not there: copy it from the folder that peerlearn certs made"
        ) from None
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): let this user read it"
        ) from error


@contextmanager
def _understood(path: Path, what: str) -> Iterator[None]:
    """A damaged file fails in a dozen ways, each in the words of a parser."""
    try:
        yield
    except PeerlearnError:
        raise
    except Exception as error:
        raise InputError(
            f"{path} is not {what} in PEM form, or damaged: copy it again from where it was made"
        ) from error


def _day(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
