"""Making of certificates, by which agents identify each other.

One authority signs one certificate per agent. TLS then proves to both ends of a connection that the
other end has the name it claims. A process without a certificate of the same authority cannot send
a single message. The authority's key is needed only to sign. Keep it off the sites: whoever has it
can admit strangers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from peerlearn.errors import InputError
from peerlearn.network.peers.identity import Identity as Identity
from peerlearn.network.peers.identity import (
    key_as_pem,
    load_authority,
    load_key,
    must_fit,
    need_cryptography,
    now,
)
from peerlearn.private_files import make_private_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        EllipticCurvePrivateKey,
        EllipticCurvePublicKey,
    )
    from cryptography.x509 import Certificate, ExtensionType, KeyUsage, Name

AUTHORITY = "authority"
LONGEST_DAYS = 3650  # an authority lasts so long, and no certificate outlives it
CLOCKS_DIFFER = timedelta(minutes=5)  # new certificates are valid at once on slow clocks too
# Names are used as file names and as host names in TLS. There a leading dot would match other
# hosts, and four numbers are an address.
NAME = re.compile(r"(?!\d+(\.\d+){3}$)[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
KEY_USES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
    "key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


def make(folder: str | os.PathLike[str], names: Sequence[str], *, days: int = 825) -> list[Path]:
    """Make NAME.pem and NAME.key for every agent and return the new files.

    The authority of the folder signs them. It is made if it is missing. Existing files are never
    overwritten, and an error leaves no new file behind.
    """
    need_cryptography()
    if not 1 <= days <= LONGEST_DAYS:
        raise InputError(
            f"certificates cannot be valid for {days} days: choose 1 to {LONGEST_DAYS}"
        )
    _must_be_names(names)
    place = Path(folder).expanduser()
    new_files: list[Path] = []
    try:
        make_private_folder(place)
        _must_be_new(names, place)
        authority, signer = _load_or_make_authority(place, new_files)
        for name in names:
            key = _new_key()
            certificate = _sign_identity(name, key.public_key(), authority, signer, days)
            _store(place / name, key, certificate, new_files)
    except OSError as error:
        for path in new_files:
            with suppress(OSError):
                path.unlink()
        raise InputError(
            f"certificates cannot be written to {place} ({error.strerror}): "
            "make room or name another folder"
        ) from error
    return new_files


def _must_be_names(names: Sequence[str]) -> None:
    if not names:
        raise InputError("there is no name to make a certificate for: name at least one agent")
    for k, name in enumerate(names):
        if not NAME.fullmatch(name) or ".." in name or name.lower() == AUTHORITY:
            raise InputError(
                f"{name!r} cannot be the name of an agent: use 1 to 63 letters and digits, between "
                f"them '-', '_' and single dots, but no numeric address and not {AUTHORITY!r}"
            )
        if name.lower() in (other.lower() for other in names[:k]):
            raise InputError(
                f"two agents cannot be called {name!r}, where case does not count: "
                "rename one of them"
            )


def _must_be_new(names: Sequence[str], place: Path) -> None:
    existing = {
        path.stem.lower(): path for path in place.iterdir() if path.suffix in (".pem", ".key")
    }
    for name in names:
        if name.lower() in existing:
            raise InputError(
                f"{existing[name.lower()]} exists and is not overwritten, because {name} may be "
                f"using it: leave {name} out, move its files away, or name another folder"
            )


def _load_or_make_authority(
    place: Path, new_files: list[Path]
) -> tuple[Certificate, EllipticCurvePrivateKey]:
    """Load the authority in the folder, which needs both of its files, or make a new one."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    pem = place / f"{AUTHORITY}.pem"
    key = place / f"{AUTHORITY}.key"
    if not (pem.exists() or key.exists()):
        new = _new_key()
        certificate = _sign_authority(new)
        _store(place / AUTHORITY, new, certificate, new_files)
        return certificate, new
    certificate = load_authority(pem)
    private = load_key(key)
    must_fit(private, key, certificate, pem)
    if not isinstance(private, EllipticCurvePrivateKey):
        raise InputError(
            f"{key} is not an elliptic-curve key as made here: "
            "name another folder for a new authority"
        )
    return certificate, private


def _sign_authority(key: EllipticCurvePrivateKey) -> Certificate:
    """Sign the authority's certificate with its own key."""
    from cryptography.x509 import BasicConstraints

    name = _x509_name(f"peerlearn {AUTHORITY}")
    until = now() + timedelta(days=LONGEST_DAYS)
    signs = (
        (BasicConstraints(ca=True, path_length=0), True),
        (_key_usage("key_cert_sign", "crl_sign"), True),
    )
    return _sign(name, key.public_key(), until, name, key, signs)


def _sign_identity(
    name: str,
    public: EllipticCurvePublicKey,
    authority: Certificate,
    signer: EllipticCurvePrivateKey,
    days: int,
) -> Certificate:
    """Sign a certificate for both ends of a connection.

    An agent calls some of its neighbors and is called by the others.
    """
    from cryptography.x509 import (
        BasicConstraints,
        DNSName,
        ExtendedKeyUsage,
        SubjectAlternativeName,
    )
    from cryptography.x509.oid import ExtendedKeyUsageOID

    talks: tuple[tuple[ExtensionType, bool], ...] = (
        (BasicConstraints(ca=False, path_length=None), True),
        (_key_usage("digital_signature"), True),
        (
            ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]),
            False,
        ),
        (SubjectAlternativeName([DNSName(name)]), False),
    )
    # A signature proves nothing after the authority has expired.
    until = min(now() + timedelta(days=days), authority.not_valid_after_utc)
    return _sign(_x509_name(name), public, until, authority.subject, signer, talks)


def _sign(
    name: Name,
    public: EllipticCurvePublicKey,
    until: datetime,
    issuer: Name,
    signer: EllipticCurvePrivateKey,
    extensions: Sequence[tuple[ExtensionType, bool]],
) -> Certificate:
    """Sign a certificate with these extensions and with key identifiers.

    extensions: pairs of an extension and whether it is critical.
    """
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.x509 import (
        AuthorityKeyIdentifier,
        CertificateBuilder,
        SubjectKeyIdentifier,
        random_serial_number,
    )

    builder = CertificateBuilder(
        issuer, name, public, random_serial_number(), now() - CLOCKS_DIFFER, until
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    builder = builder.add_extension(SubjectKeyIdentifier.from_public_key(public), critical=False)
    issued_by = AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return builder.add_extension(issued_by, critical=False).sign(signer, SHA256())


def _x509_name(common_name: str) -> Name:
    from cryptography.x509 import Name, NameAttribute
    from cryptography.x509.oid import NameOID

    return Name([NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*purposes: str) -> KeyUsage:
    from cryptography.x509 import KeyUsage

    return KeyUsage(**{use: use in purposes for use in KEY_USES})


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _store(
    stem: Path, key: EllipticCurvePrivateKey, certificate: Certificate, new_files: list[Path]
) -> None:
    """Write two new files. Only the owner can read the key, from the moment it exists."""
    from cryptography.hazmat.primitives.serialization import Encoding

    for suffix, content, mode in (
        (".key", key_as_pem(key), 0o600),
        (".pem", certificate.public_bytes(Encoding.PEM), 0o644),
    ):
        path = stem.with_name(stem.name + suffix)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        new_files.append(path)
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
