"""Limits on connections that have not shown a certificate.

gRPC accepts connections by itself and keeps each while its handshake lasts. At the usual limit of
1,024 open files, a thousand idle connections are enough to keep every neighbor out. Two limits
prevent that:

- gRPC closes every connection beyond `most_connections` at once, so that some files are left for
  checkpoints. It counts neighbors and strangers alike.
- `Door` keeps room for neighbors among these. It looks at the sockets of this process about once a
  second. If too many of them are not part of a conversation with a neighbor, it shuts down those
  that were already there at the last look. A handshake takes milliseconds, so a caller that is
  still silent after a second is not a neighbor.

The second limit needs /proc. Without it, the first limit and gRPC's time-out of handshakes remain.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

STRANGERS = 64  # connections without a conversation that may stay open, beside one per neighbor
USUAL_FILES = 1024
OPEN_FILES = Path("/proc/self/fd")

Address = tuple[str, int]


def allow_many_files() -> None:
    """Raise the number of files that this process may open to the system's limit.

    That leaves room for connections that have not shown a certificate yet.
    """
    with suppress(ImportError, OSError, ValueError):  # not on Windows
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_connections(neighbors: int) -> int:
    """Return how many connections to accept: half of the files that this process may open."""
    try:
        import resource

        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except ImportError:  # not on Windows
        files = USUAL_FILES
    bounded = files if 0 < files < 1 << 20 else 1 << 20  # -1: no limit
    return max(bounded // 2, neighbors + STRANGERS)


class Door:
    """Connections to one port of this process."""

    def __init__(self, port: int, neighbors: int) -> None:
        self.known: Counter[str] = Counter()  # conversations under way, by peer as gRPC writes it
        self.most = STRANGERS + neighbors
        self._port = port
        self._before: set[Address] = set()  # strangers at the last look

    def close_idle(self) -> int:
        """Shut down strangers that are still silent, if there are too many; return how many."""
        try:
            files = [int(name) for name in os.listdir(OPEN_FILES)]
        except OSError:
            return 0
        if len(files) <= self.most:
            self._before = set()
            return 0
        self.known = +self.known
        known = {_address_of(peer) for peer in self.known}
        found = {
            file: address
            for file in files
            if (address := self._caller(file)) and address not in known
        }
        idle = {file: address for file, address in found.items() if address in self._before}
        self._before = set(found.values())
        if len(found) <= self.most:
            return 0
        return sum(
            self._caller(file, shut_down=address) == address for file, address in idle.items()
        )

    def _caller(self, file: int, shut_down: Address | None = None) -> Address | None:
        """Return who is at the other end of an open file, if it is a connection to this port.

        gRPC may close the file at any moment and its number may be given to another one. So this
        works on a copy, and looks at the copy before it shuts anything down.
        """
        # OSError: the socket is not connected, or was closed meanwhile.
        with suppress(OSError), closing(_socket(file)) as connection:
            internet = connection.family in (socket.AF_INET, socket.AF_INET6)
            if internet and connection.getsockname()[1] == self._port:
                host, port = connection.getpeername()[:2]
                address = (host.removeprefix("::ffff:"), port)
                if address == shut_down:
                    connection.shutdown(socket.SHUT_RDWR)
                return address
        return None


def _socket(file: int) -> socket.socket:
    """Return a copy of an open file as a socket, or raise OSError if it is not a socket."""
    copy = os.dup(file)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise


def _address_of(peer: str) -> Address:
    """Return host and port of gRPC's "ipv4:127.0.0.1:7101" or "ipv6:%5B::1%5D:7101"."""
    host, _, port = peer.partition(":")[2].rpartition(":")
    plain = host.replace("%5B", "").replace("%5D", "").removeprefix("::ffff:")
    return plain, int(port) if port.isdecimal() else 0
