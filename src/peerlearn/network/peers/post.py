"""Rounds over the links of one agent: send to some neighbors, wait for some, and notice when all is over.

An agent that hears nobody for some rounds would run ahead of neighbors that only listen: it waits when it is too far
ahead of what they have told, and those who only listen tell from time to time how far they are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from peerlearn.errors import PeerlearnError, WireError
from peerlearn.network.peers.frame import Kind
from peerlearn.network.peers.link import Link, Speaker
from peerlearn.network.peers.mailbox import Inbox, Parcel
from peerlearn.network.peers.patience import Patience
from peerlearn.network.peers.service import Service

Take = Callable[[int, Parcel], None]  # what is done with what a neighbor sent; WireError refuses it

log = logging.getLogger("peerlearn.peers")

MOST_KEPT = 1 << 30  # bytes kept for a neighbor that does not save: beyond, it could not be restarted any more
LAST_WORDS = 3.0  # seconds to tell neighbors that are not connected why a run is over
FAREWELL = 10.0  # seconds to wait for a neighbor that cannot be reached when our work is done


class Post:
    """Carries an agent's messages, round by round."""

    def __init__(self, me: Speaker, links: Mapping[int, Link], patience: Patience, **connections: Any) -> None:
        self.me, self.links = me, links
        self._state = "connecting"
        self._failure: PeerlearnError | None = None
        self.bytes_sent = 0  # since this process started
        self._told = dict.fromkeys(links, 0)  # the last round in which each neighbor heard of us
        self._service = Service(me, links, patience=patience, failed=self.fail, **connections)
        self.driving = self._service.driving

    @property
    def port(self) -> int:
        return self._service.port

    @property
    def state(self) -> str:
        silent = self._service.silent
        return f"waiting for {', '.join(silent)}" if silent and self._state != "done" else self._state

    def start(self, *, meet: bool) -> None:
        """Connect; to meet is to return only when every neighbor has been greeted, and so agrees on all settings.

        A run that is taken up again need not: it may have all that it needs from them, and they may be gone.
        """
        self._service.start()
        with self.driving:
            self._until(lambda: not meet or all(link.greetings for link in self.links.values()))
        self._state = "running"

    def fail(self, error: PeerlearnError) -> None:
        """End the run with this error at the next moment that the algorithm waits or sends."""
        self._failure = self._failure or error
        with suppress(RuntimeError):  # the loop is closed: all is over anyway
            self._service.loop.call_soon_threadsafe(self._service.look)

    def round(self, outgoing: Mapping[int, list[bytes]], expected: Sequence[int], take: Take) -> None:
        """One round: these frames go out, one message of each expected neighbor comes in and is handed to `take`."""
        with self.driving:
            number, missing = self.me.done + 1, list(expected)
            self._send(number, outgoing)
            while missing:
                self._until(partial(_all_have, [self.links[k].inbox for k in missing], number))
                missing = [k for k in missing if not self._taken(k, number, take)]
            if not expected:
                self._service.drive_on()
            if self._failure is not None:
                raise self._failure
            self.me.done = number
            for link in self.links.values():
                link.inbox.finish(number)
            self._tell_listeners()

    def farewell(self) -> bool:
        """Our work is done: stay until every neighbor is done as well and knows that we are, or is gone.

        Says whether all are known to be done, so that nobody will need us again.
        """
        self._state = "done"
        deadline = time.monotonic() + FAREWELL
        said: dict[int, int] = {}  # on which connection to each neighbor

        def parted() -> bool:
            for neighbor, link in self.links.items():
                if link.up and said.get(neighbor) != link.greetings:
                    said[neighbor] = link.greetings
                    self._service.write(neighbor, [self.me.word(Kind.DONE)])
            waiting = [link for link in self.links.values() if not (link.finished and link.seen)]
            # Who is done and cannot be reached has left; who was never there since we started again, too.
            gone = time.monotonic() > deadline
            return all(gone and not link.up and (link.finished or not link.greetings) for link in waiting)

        with self.driving:
            self._until(parted)
        return all(link.finished for link in self.links.values())

    def leave(self, reason: str) -> None:
        """Tell all neighbors that the run is over, and why; those that are just coming, too."""
        if self._service.running:
            with self.driving:
                self._service.say_last(self.me.text(Kind.LEAVE, reason), within=LAST_WORDS)

    def close(self) -> None:
        self._service.stop()

    # -----------------------------------------------------------------------------------------------------------------

    def _send(self, number: int, outgoing: Mapping[int, list[bytes]]) -> None:
        links = self.links
        if ahead := [links[k] for k in outgoing if number - links[k].done > links[k].inbox.horizon // 2]:
            self._until(lambda: all(number - link.done <= link.inbox.horizon // 2 for link in ahead))
        for neighbor, frames in outgoing.items():
            self._service.write(neighbor, links[neighbor].send(number, frames))
            self._told[neighbor] = number
            if links[neighbor].outbox.keep_below(MOST_KEPT):
                log.warning(
                    "agent %s saves nothing: if it were killed now, it could not come back", links[neighbor].name
                )
            self.bytes_sent += sum(map(len, frames))

    def _taken(self, neighbor: int, number: int, take: Take) -> bool:
        """Whether what the neighbor sent can be used; if not, it has to send it again on a new connection."""
        try:
            take(neighbor, self.links[neighbor].inbox.take(number))
        except WireError as error:
            self._service.reset(neighbor, str(error))
            return False
        return True

    def _tell_listeners(self) -> None:
        done = self.me.done
        for neighbor, link in self.links.items():
            if done - self._told[neighbor] >= max(link.inbox.horizon // 4, 1):
                self._told[neighbor] = done
                if link.up:
                    self._service.write(neighbor, [self.me.word(Kind.ALIVE)])

    def _until(self, ready: Callable[[], bool]) -> None:
        """Until `ready` says so, or the run is over."""
        self._service.drive(lambda: self._failure is not None or ready())
        if self._failure is not None:
            raise self._failure


def _all_have(inboxes: Sequence[Inbox], number: int) -> bool:
    return all(inbox.has(number) for inbox in inboxes)
