"""Certificates: papers by which agents know each other.

One authority signs one identity per agent. TLS then shows both ends of a connection that the other
end has the name it claims; whoever has no paper of the same authority does not get as far as a
first message. The authority's key is only needed to sign: it stays off the sites, for whoever has
it can let strangers in.
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
    authority_in,
    key_as_pem,
    key_in,
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
LONGEST_DAYS = 3650  # how long an authority lasts, and so what it signs
CLOCKS_DIFFER = timedelta(
    minutes=5
)  # a new certificate is valid at once, also where the clock is late
# A file name, and a host name in TLS: a leading dot would match other hosts there, and four numbers
# are an address.
NAME = re.compile(r"(?!\d+(\.\d+){3}$)[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
KEY_USES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


def make(folder: str | os.PathLike[str], names: Sequence[str], *, days: int = 825) -> list[Path]:
    """NAME.pem and NAME.key of every agent, signed by the authority of the folder, which is made if it is missing.

    Returns the new files. What is there is never overwritten, and an error leaves no new file
    behind.
    """
    need_cryptography()
    if not 1 <= days <= LONGEST_DAYS:
        raise InputError(
            f"certificates cannot be valid for {days} days: choose 1 to {LONGEST_DAYS}"
        )
    _must_be_names(names)
    place, made = Path(folder).expanduser(), list[Path]()
    try:
        make_private_folder(place)
        _must_be_new(names, place)
        authority, signer = _authority(place, made)
        for name in names:
            key = _new_key()
            _store(
                place / name, key, _identity(name, key.public_key(), authority, signer, days), made
            )
    except OSError as error:
        for path in made:
            with suppress(OSError):
                path.unlink()
        raise InputError(
            f"certificates cannot be written to {place} ({error.strerror}): make room or name another folder"
        ) from error
    return made


def _must_be_names(names: Sequence[str]) -> None:
    if not names:
        raise InputError("there is nobody to make a certificate for: name one agent at least")
    for k, name in enumerate(names):
        if not NAME.fullmatch(name) or ".." in name or name.lower() == AUTHORITY:
            raise InputError(
                f"{name!r} cannot be the name of an agent: use 1 to 63 letters and digits, between them '-', '_' and "
                f"single dots, but no numeric address and not {AUTHORITY!r}"
            )
        if name.lower() in (other.lower() for other in names[:k]):
            raise InputError(
                f"two agents cannot be called {name!r}, where case does not count: rename one of them"
            )


def _must_be_new(names: Sequence[str], place: Path) -> None:
    held = {path.stem.lower(): path for path in place.iterdir() if path.suffix in (".pem", ".key")}
    for name in names:
        if name.lower() in held:
            raise InputError(
                f"{held[name.lower()]} exists and is not overwritten, because {name} may be using it: leave {name} "
                "out, move its files away, or name another folder"
            )


def _authority(place: Path, made: list[Path]) -> tuple[Certificate, EllipticCurvePrivateKey]:
    """The one in the folder, of which both files are needed, or a new one."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    pem, key = place / f"{AUTHORITY}.pem", place / f"{AUTHORITY}.key"
    if not (pem.exists() or key.exists()):
        new = _new_key()
        _store(place / AUTHORITY, new, certificate := _self_signed(new), made)
        return certificate, new
    certificate, private = authority_in(pem), key_in(key)
    must_fit(private, key, certificate, pem)
    if not isinstance(private, EllipticCurvePrivateKey):
        raise InputError(
            f"{key} is not an elliptic-curve key as made here: name another folder for a new authority"
        )
    return certificate, private


def _self_signed(key: EllipticCurvePrivateKey) -> Certificate:
    from cryptography.x509 import BasicConstraints

    name, until = _named(f"peerlearn {AUTHORITY}"), now() + timedelta(days=LONGEST_DAYS)
    signs = (
        (BasicConstraints(ca=True, path_length=0), True),
        (_uses("key_cert_sign", "crl_sign"), True),
    )
    return _signed(name, key.public_key(), until, name, key, signs)


def _identity(
    name: str,
    public: EllipticCurvePublicKey,
    authority: Certificate,
    signer: EllipticCurvePrivateKey,
    days: int,
) -> Certificate:
    """For both ends of a connection: an agent calls its neighbors and is called by them."""
    from cryptography.x509 import (
        BasicConstraints,
        DNSName,
        ExtendedKeyUsage,
        SubjectAlternativeName,
    )
    from cryptography.x509.oid import ExtendedKeyUsageOID

    talks: tuple[tuple[ExtensionType, bool], ...] = (
        (BasicConstraints(ca=False, path_length=None), True),
        (_uses("digital_signature"), True),
        (
            ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]),
            False,
        ),
        (SubjectAlternativeName([DNSName(name)]), False),
    )
    until = min(
        now() + timedelta(days=days), authority.not_valid_after_utc
    )  # later, its signature proves nothing
    return _signed(_named(name), public, until, authority.subject, signer, talks)


def _signed(
    name: Name,
    public: EllipticCurvePublicKey,
    until: datetime,
    issuer: Name,
    signer: EllipticCurvePrivateKey,
    extensions: Sequence[tuple[ExtensionType, bool]],
) -> Certificate:
    """Extensions come with whether they are critical; those that tell keys apart are added."""
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


def _named(common_name: str) -> Name:
    from cryptography.x509 import Name, NameAttribute
    from cryptography.x509.oid import NameOID

    return Name([NameAttribute(NameOID.COMMON_NAME, common_name)])


def _uses(*purposes: str) -> KeyUsage:
    from cryptography.x509 import KeyUsage

    return KeyUsage(**{use: use in purposes for use in KEY_USES})


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _store(
    stem: Path, key: EllipticCurvePrivateKey, certificate: Certificate, made: list[Path]
) -> None:
    """Two new files; the key is its owner's alone from the moment it exists."""
    from cryptography.hazmat.primitives.serialization import Encoding

    for suffix, content, mode in (
        (".key", key_as_pem(key), 0o600),
        (".pem", certificate.public_bytes(Encoding.PEM), 0o644),
    ):
        path = stem.with_name(stem.name + suffix)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        made.append(path)
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
