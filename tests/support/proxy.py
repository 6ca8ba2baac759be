"""A link that can be cut and healed: a small TCP proxy that stands between two agents."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Carries bytes between whoever calls its port and the target, as long as it is told to."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._open = threading.Event()  # bytes pass
        self._open.set()
        self._refusing = False
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End all connections, and every new one at once."""
        self._refusing = True
        self._close(self._sockets)

    def swallow(self) -> None:
        """Keep connections, and let nothing through: nobody is told."""
        self._open.clear()

    def heal(self) -> None:
        self._refusing = False
        self._open.set()

    def close(self) -> None:
        self._open.set()
        self._close([self._server, *self._sockets])

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._server.accept()
                if self._refusing:
                    caller.close()
                    continue
                try:
                    callee = socket.create_connection(("127.0.0.1", self._target))
                except OSError:  # nobody is there yet
                    caller.close()
                    continue
                self._sockets += [caller, callee]
                for way in ((caller, callee), (callee, caller)):
                    threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while content := source.recv(65536):
                self._open.wait()
                sink.sendall(content)
        self._close([source, sink])

    def _close(self, sockets: list[socket.socket]) -> None:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
