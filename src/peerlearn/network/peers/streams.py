"""gRPC servers, channels and streams of raw bytes: addresses, mutual TLS and our options."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from peerlearn.errors import InputError, MissingExtra
from peerlearn.network.peers.frame import CHUNK, HEADER
from peerlearn.network.peers.identity import Identity
from peerlearn.network.peers.timeouts import Timeouts

log = logging.getLogger("peerlearn.peers")

VERBOSITY = "GRPC_VERBOSITY"
LOOPBACK = ("127.0.0.1", "localhost")
SERVICE = "peerlearn.Peers"
METHOD = "Talk"
FIRST_PAUSE = 0.2  # seconds between attempts to connect, at first
LONGEST_PAUSE = 2.0  # and at last
HANDSHAKE = 10_000  # milliseconds for a caller to show its certificate
WINDOW = 1 << 24  # bytes on their way on one stream
HOUR = 3_600_000  # milliseconds after which streams are opened anew, so that certificates expire


class Wire:
    """One connection of a link, with a queue of frames to write."""

    def __init__(self, stream: Any, hang_up: Callable[[], object]) -> None:
        self.stream = stream
        self.hang_up = hang_up
        self._queue: deque[bytes] = deque()
        self._more: asyncio.Future[None] | None = None  # the idle writer waits for it
        self.idle = False
        self._start = time.monotonic()

    @property
    def age(self) -> float:
        """Seconds since the connection was opened."""
        return time.monotonic() - self._start

    def put(self, frames: Sequence[bytes]) -> None:
        """Queue frames and wake the writer."""
        self._queue.extend(frames)
        self.idle = False
        if self._more is not None and not self._more.done():
            self._more.set_result(None)

    async def write(self) -> None:
        """Write queued frames until the stream breaks or the task is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            while self._queue:
                try:
                    await self.stream.write(self._queue.popleft())
                except Exception as error:  # gRPC has half a dozen kinds for a broken stream
                    log.debug("a stream ended while writing: %s", error)
                    self.idle = True
                    self.hang_up()
                    return
            self.idle = True
            self._more = loop.create_future()
            await self._more


def grpc(*, quiet: bool = True) -> Any:
    """Import and return the gRPC package, or raise MissingExtra with the line that installs it.

    quiet: let its C++ core write nothing to standard error, unless GRPC_VERBOSITY is set. The
    errors it would write there are raised or logged as sentences of ours. gRPC reads that variable
    when it is first imported, so later calls cannot change it.
    """
    silenced = quiet and "grpc" not in sys.modules and VERBOSITY not in os.environ
    if silenced:
        os.environ[VERBOSITY] = "NONE"
    try:
        import grpc
        import grpc.aio
    except ImportError:
        raise MissingExtra("PeerNetwork", "grpcio", "peers") from None
    finally:
        if silenced:
            del os.environ[VERBOSITY]
    return grpc


async def serve(
    accept: Any, listen: str, identity: Identity | None, patience: Timeouts, most_connections: int
) -> tuple[Any, int]:
    """Start a server that gives every stream to `accept`, and return it with its port.

    Callers without a certificate of our authority are refused before that.
    """
    limit = ("grpc.max_allowed_incoming_connections", most_connections)
    server = grpc().aio.server(options=[*_options(patience, server=True), limit])
    handler = grpc().stream_stream_rpc_method_handler(accept)
    server.add_generic_rpc_handlers(
        (grpc().method_handlers_generic_handler(SERVICE, {METHOD: handler}),)
    )
    try:
        if identity is None:
            port = server.add_insecure_port(listen)
        else:
            pair = [(identity.key, identity.certificate)]
            trust = grpc().ssl_server_credentials(
                pair, identity.authority, require_client_auth=True
            )
            port = server.add_secure_port(listen, trust)
    except RuntimeError:
        raise InputError(
            f"this agent cannot listen on {listen}: the port is in use, or the address is not of "
            "this machine"
        ) from None
    await server.start()
    return server, int(port)


def channel(name: str, address: str, identity: Identity | None, patience: Timeouts) -> Any:
    """Return a channel to the agent of this name."""
    options = _options(patience)
    if identity is None:
        return grpc().aio.insecure_channel(address, options=options)
    trust = grpc().ssl_channel_credentials(identity.authority, identity.key, identity.certificate)
    # Certificates name agents, not hosts: the agent must prove its name, whatever the address.
    return grpc().aio.secure_channel(
        address, trust, options=[*options, ("grpc.ssl_target_name_override", name)]
    )


def caller_names(context: Any) -> list[str]:
    """Return the names in the certificate of the caller that opened a stream."""
    return [
        name.decode(errors="replace") for name in context.auth_context().get("x509_common_name", [])
    ]


def _options(patience: Timeouts, *, server: bool = False) -> list[tuple[str, int]]:
    milliseconds = max(int(1000 * patience.silence), 1000)
    options = [
        ("grpc.max_receive_message_length", HEADER + CHUNK),
        ("grpc.max_send_message_length", HEADER + CHUNK),
        ("grpc.keepalive_time_ms", milliseconds),
        ("grpc.keepalive_timeout_ms", milliseconds),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        # A wide window from the start. Probes for its best width cost 7 % of a small round.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", WINDOW),
    ]
    if server:
        return [
            *options,
            ("grpc.http2.min_ping_interval_without_data_ms", milliseconds // 2),
            ("grpc.so_reuseport", 0),  # or two agents could listen on one port
            ("grpc.server_handshake_timeout_ms", HANDSHAKE),
            ("grpc.max_connection_age_ms", HOUR),
            ("grpc.max_connection_age_grace_ms", 1000),
        ]
    return [
        *options,
        # A broken stream is opened anew by us. What gRPC keeps for retries costs 5 % of a round.
        ("grpc.enable_retries", 0),
        ("grpc.initial_reconnect_backoff_ms", int(1000 * FIRST_PAUSE)),
        ("grpc.min_reconnect_backoff_ms", int(1000 * FIRST_PAUSE)),
        ("grpc.max_reconnect_backoff_ms", int(1000 * LONGEST_PAUSE)),
        ("grpc.use_local_subchannel_pool", 1),
    ]


def check_address(address: str, whose: str) -> str:
    """Return the address, or raise InputError if it has no host or no port."""
    host, _, port = str(address).rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(
            f"the address of {whose} is {address!r}: write host:port, such as north.example:7101"
        )
    return str(address)


def only_loopback(addresses: Iterable[str]) -> None:
    """Raise InputError for an address of another machine, where unencrypted rows must not go."""
    for address in addresses:
        if address.rpartition(":")[0] not in LOOPBACK:
            raise InputError(
                f"the address {address} is not of this machine, and without certificates nothing "
                "may leave it: use 127.0.0.1, or make certificates with peerlearn certs"
            )
