"""Those who call at an agent's door and have no business there."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from peerlearn.network.peers.frame import Kind
from peerlearn.network.peers.link import Speaker
from peerlearn.network.peers.streams import METHOD, SERVICE

QUIET = 5.0  # seconds to wait for an answer


def call(port: int, folder: Path, identity: Path | None = None) -> None:
    """A TLS handshake with this certificate, or with none; whatever comes of it."""
    context = ssl.create_default_context(cafile=folder / "authority.pem")
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    if identity is not None:
        context.load_cert_chain(f"{identity}.pem", f"{identity}.key")
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), QUIET) as plain,
        context.wrap_socket(plain, server_hostname="agent") as secured,
    ):
        secured.recv(1)


def call_in_the_clear(port: int) -> None:
    """HTTP/2 without TLS, as gRPC without certificates speaks it."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), QUIET) as plain:
        plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        plain.recv(100)


def call_as_agent(port: int, folder: Path, name: str, frames: Sequence[bytes] = ()) -> None:
    """A gRPC stream with a valid certificate: send these frames and wait until the other end hangs up."""
    root, own, key = ((folder / file).read_bytes() for file in ("authority.pem", f"{name}.pem", f"{name}.key"))
    trust = grpc.ssl_channel_credentials(root, key, own)
    number = "agent-2"
    with grpc.secure_channel(
        f"127.0.0.1:{port}", trust, options=[("grpc.ssl_target_name_override", number)]
    ) as channel:
        answers = channel.stream_stream(f"/{SERVICE}/{METHOD}")(iter(frames), timeout=QUIET)
        with contextlib.suppress(grpc.RpcError):
            for _ in answers:
                pass


def nonsense_of_agent_1() -> Iterator[list[bytes]]:
    """Conversations that begin well or not, and end badly."""
    from tests.fault_agents import GRAPH, settings_of

    me, other = (Speaker("run", number, f"agent-{number}", settings_of(GRAPH)) for number in (1, 4))
    row = np.zeros(300)
    yield [b"nonsense"]
    yield [me.frames(Kind.ROW, row, 1)[0]]  # before it said hello
    yield [other.hello()]  # as somebody else
    yield [me.hello(), me.hello()]
    yield [me.hello(), me.frames(Kind.ROW, row, 10**9)[0]]  # of a future that nobody has seen
    yield [me.hello(), me.frames(Kind.ROW, row, 1)[0][:-1] + b"x"]  # damaged
    yield [me.hello(), me.frames(Kind.LETTER, np.frombuffer(b"\xff" * 40, np.uint8), 1)[0]]


def expired_identity(folder: Path, to: Path, name: str) -> None:
    """An identity of the same authority whose time is over."""
    to.mkdir()
    authority = x509.load_pem_x509_certificate((folder / "authority.pem").read_bytes())
    signer = serialization.load_pem_private_key((folder / "authority.key").read_bytes(), None)
    old = x509.load_pem_x509_certificate((folder / f"{name}.pem").read_bytes())
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(old.subject)
        .issuer_name(authority.subject)
        .public_key(old.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=20))
        .not_valid_after(now - timedelta(days=10))
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    signed = builder.sign(signer, hashes.SHA256())
    (to / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    shutil.copy(folder / f"{name}.key", to / f"{name}.key")
