"""Loading of an agent's certificate, key and authority, with checks.

TLS would fail without a reason for most mistakes in these files. The checks here give one.
"""

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

OTHERS = 0o077  # file mode bits of everybody except the owner


@dataclass(frozen=True)
class Identity:
    """Name, certificate and key of an agent, and the certificate of the authority it trusts.

    Make the files with `peerlearn certs`, and read them with `Identity.load`.

    Parameters
    ----------
    name : str
        Name of the agent, as in its certificate.
    authority : bytes
        Certificate of the authority that signs all certificates of the network, as PEM.
    certificate : bytes
        Certificate of the agent, as PEM.
    key : bytes
        Private key of the agent, as PEM. It is not shown by `repr`, so that no log holds it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from peerlearn.network.peers import certificates
    >>> with TemporaryDirectory() as folder:
    ...     files = certificates.make(folder, ["north", "south"])
    ...     at = Path(folder)
    ...     Identity.load(at / "authority.pem", at / "north.pem", at / "north.key", "north")
    Identity(name='north')
    """

    name: str
    authority: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)

    @classmethod
    def load(cls, authority: Path, certificate: Path, key: Path, name: str) -> Identity:
        """Load three files and check that they fit each other and the name."""
        need_cryptography()
        from cryptography.hazmat.primitives.serialization import Encoding

        root = load_authority(authority)
        own = load_certificate(certificate)
        private = load_key(key)
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


def load_certificate(path: Path) -> Certificate:
    """Load a file with one certificate that is valid now."""
    from cryptography.x509 import load_pem_x509_certificates

    with _pem_errors(path, "a certificate"):
        found = load_pem_x509_certificates(_content(path))
        first = found[0].not_valid_before_utc
        last = found[0].not_valid_after_utc
    if len(found) > 1:  # TLS would trust them all, and only one is checked here
        raise InputError(f"{path} holds {len(found)} certificates: give a file with one")
    if not first <= now() <= last:
        raise InputError(
            f"the certificate {path} is valid from {_day(first)} to {_day(last)}, but it is now "
            f"{_day(now())}: set the clock if it is wrong, or make new certificates with "
            "peerlearn certs"
        )
    return found[0]


def load_authority(path: Path) -> Certificate:
    """Load a certificate that may sign others."""
    from cryptography.x509 import BasicConstraints, ExtensionNotFound

    certificate = load_certificate(path)
    with _pem_errors(path, "a certificate"):
        try:
            signs = certificate.extensions.get_extension_for_class(BasicConstraints).value.ca
        except ExtensionNotFound:
            signs = False
    if not signs:
        raise InputError(
            f"{path} is the certificate of an agent, not of an authority: give authority.pem"
        )
    return certificate


def load_key(path: Path) -> PrivateKeyTypes:
    """Load the private key of a file that only its owner may read."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _content(path, secret=True)
    with _pem_errors(path, "an unencrypted private key"):
        return load_pem_private_key(content, password=None)


def key_as_pem(key: PrivateKeyTypes) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def must_fit(key: PrivateKeyTypes, key_path: Path, certificate: Certificate, path: Path) -> None:
    with _pem_errors(path, "a certificate"):
        fits = certificate.public_key() == key.public_key()
    if not fits:
        raise InputError(
            f"the key {key_path} does not belong to the certificate {path}: "
            "give two files made together"
        )


def _must_name(name: str, certificate: Certificate, path: Path) -> None:
    with _pem_errors(path, "a certificate"):
        names = names_in(certificate)
    if names != {name}:
        whose = ", ".join(sorted(names)) or "no name that TLS knows"
        raise InputError(
            f"the certificate {path} is for {whose}, but this agent is {name}: "
            f"give the files of {name}"
        )


def names_in(certificate: Certificate) -> set[str]:
    """Return all names in a certificate; none if it has no name that TLS looks at."""
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
            f"the certificate {path} was not signed by the authority {authority_path}: "
            "give the authority.pem that was made with it"
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
def _pem_errors(path: Path, what: str) -> Iterator[None]:
    """Turn any error of the parser into one InputError: damaged files raise a dozen kinds."""
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
