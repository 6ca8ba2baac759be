"""Those who call at an agent's door and have no business there."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from peerlearn.network.peers.frame import Kind
from peerlearn.network.peers.link import Speaker
from peerlearn.network.peers.streams import METHOD, SERVICE

QUIET = 5.0  # seconds to wait for an answer


def call(port: int, folder: Path, identity: Path | None = None) -> str:
    """A TLS handshake with this certificate, or with none; tells whether the other end hung up."""
    context = ssl.create_default_context(cafile=folder / "authority.pem")
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    if identity is not None:
        context.load_cert_chain(f"{identity}.pem", f"{identity}.key")
    with (
        socket.create_connection(("127.0.0.1", port), QUIET) as plain,
        hanging_up() as ended,
        context.wrap_socket(plain, server_hostname="agent") as secured,
    ):
        read_to_the_end(secured)
    return ended[0]


def call_in_the_clear(port: int) -> str:
    """HTTP/2 without TLS, as gRPC without certificates speaks it; tells whether the other end hung
    up.
    """
    with socket.create_connection(("127.0.0.1", port), QUIET) as plain, hanging_up() as ended:
        plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        read_to_the_end(plain)
    return ended[0]


@contextlib.contextmanager
def hanging_up() -> Iterator[list[str]]:
    """Gives how a connection ended: it was closed or reset, or nothing came for too long."""
    ended = ["hung up"]
    try:
        yield ended
    except TimeoutError:
        ended[0] = "timed out"
    except OSError:  # reset, or an alert of TLS
        pass


def read_to_the_end(connection: socket.socket) -> None:
    while connection.recv(1000):
        pass


def call_as_agent(
    port: int,
    folder: Path,
    name: str,
    frames: Iterable[bytes] = (),
    *,
    to: str = "agent-2",
    within: float = QUIET,
) -> str:
    """Open a stream with a valid certificate and send these frames; return the status with which
    the other end ends it.

    A stream that the other end leaves open is no way to end: DEADLINE_EXCEEDED, or CANCELLED if the
    frames stop coming.
    """
    root, own, key = (
        (folder / file).read_bytes() for file in ("authority.pem", f"{name}.pem", f"{name}.key")
    )
    trust = grpc.ssl_channel_credentials(root, key, own)
    with grpc.secure_channel(
        f"127.0.0.1:{port}", trust, options=[("grpc.ssl_target_name_override", to)]
    ) as channel:
        answers = channel.stream_stream(f"/{SERVICE}/{METHOD}")(iter(frames), timeout=within)
        with contextlib.suppress(grpc.RpcError):
            for _ in answers:
                pass
        return str(answers.code().name)


def speaker_of_agent_1(**more: Any) -> Speaker:
    """What agent 1 of the ring would say, or somebody with its certificate."""
    from tests.support.fault_agents import GRAPH, settings_of

    return Speaker("run", 1, "agent-1", settings_of(GRAPH), **more)


def nonsense_of_agent_1() -> Iterator[list[bytes]]:
    """Conversations that begin well or not, and end badly."""
    me = speaker_of_agent_1()
    other = replace(me, number=4, name="agent-4")
    row = np.zeros(300)
    yield [b"nonsense"]
    yield [me.frames(Kind.ROW, row, 1)[0]]  # before it said hello
    yield [me.text(Kind.LEAVE, "the run is over")]
    yield [other.hello()]  # as somebody else
    yield [me.hello(), me.hello()]
    yield [me.hello(), me.frames(Kind.ROW, row, 10**9)[0]]  # of a future that nobody has seen
    yield [me.hello(), me.frames(Kind.ROW, row, 1)[0][:-1] + b"x"]  # damaged
    yield [me.hello(), me.frames(Kind.LETTER, np.frombuffer(b"\xff" * 40, np.uint8), 10**6)[0]]
    yield from ([me.hello(), *lies] for lies in lies_of_agent_1(me))


def lies_of_agent_1(me: Speaker) -> Iterator[list[bytes]]:
    """Claims that cannot be true, or that would make the real agent unwelcome if they were
    believed.
    """
    for claimed in (1, 50, 200, 10**6, 2**48 - 1, 2**48, 2**64 - 1):
        liar = replace(me, done=claimed)
        for kind in (Kind.ALIVE, Kind.DONE, Kind.SEEN):
            yield [liar.word(kind, claimed, 7)]
        yield [liar.word(Kind.ALIVE, claimed, 0)]


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
