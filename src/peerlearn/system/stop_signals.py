"""Signals that stop a process in order, Ctrl-C among them, and their exit codes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from peerlearn.errors import Stopped

NAMES = {"SIGINT": "Ctrl-C", "SIGTERM": "SIGTERM", "SIGHUP": "the end of its terminal"}
KNOWN = {getattr(signal, name): said for name, said in NAMES.items() if hasattr(signal, name)}
CODES = frozenset(
    128 + number for number in KNOWN
)  # exit codes of programs that were asked to stop


class Ended(Stopped):
    """A request to stop this process."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"stopped by {KNOWN[signal.Signals(number)]}; the same command goes on where this ended"
        )
        self.exit_code = 128 + number


@contextmanager
def stop_on_signals() -> Iterator[Callable[[Callable[[str], None]], None]]:
    """Yield a place for the function that stops the work in order.

    A second signal, or one before there is such a function, stops at once.

    However the work then ends, it ends in `Ended`, unless it came to its end all the same.
    """
    stop: list[Callable[[str], None]] = []
    arrived: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        arrived.append(number)
        if not stop:
            raise KeyboardInterrupt
        stop.pop()(f"stopped by {KNOWN[signal.Signals(number)]}")

    here = threading.current_thread() is threading.main_thread()
    wanted = [
        number for number in KNOWN if here and signal.getsignal(number) is not signal.SIG_IGN
    ]  # as by nohup
    before = {number: signal.signal(number, handle) for number in wanted}
    try:
        yield stop.append
    except (Stopped, KeyboardInterrupt):
        if arrived:
            raise Ended(arrived[0]) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
