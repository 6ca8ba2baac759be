"""Rounds over the links of one agent: send to some neighbors, wait for some, and notice when all is over.

An agent that hears nobody for some rounds would run ahead of neighbors that only listen: it waits
when it is too far
ahead of what they have told, and those who only listen tell from time to time how far they are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from peerlearn.errors import NetworkError, PeerlearnError, Stopped, WireError
from peerlearn.network.peers.frame import Kind
from peerlearn.network.peers.link import Link, Speaker
from peerlearn.network.peers.mailbox import Inbox, Parcel
from peerlearn.network.peers.service import Service
from peerlearn.network.peers.timeouts import Timeouts

Take = Callable[[int, Parcel], None]  # what is done with what a neighbor sent; WireError refuses it

log = logging.getLogger("peerlearn.peers")

MOST_KEPT = (
    1 << 30
)  # bytes kept for a neighbor that does not save: beyond, it could not be restarted any more
CLAIM_AT = 1 << 24  # tell a neighbor what it need not keep after taking this many bytes from it
CLAIM_AFTER = (
    64  # or after this many rounds: few enough frames that they stay in its processor's cache
)
MOST_REFUSED = (
    5  # unusable messages in one round, after which it is clear that agents run different programs
)
LAST_WORDS = 3.0  # seconds to tell neighbors that are not connected why a run is over
FAREWELL = 10.0  # seconds to wait for a neighbor that cannot be reached when our work is done


@dataclass(frozen=True)
class Waiting:
    """Whom this agent waits for, since when, and whether they are silent or only late."""

    names: tuple[str, ...]
    since: float  # seconds since 1970
    silent: bool

    def __str__(self) -> str:
        lack = "silent" if self.silent else "no message of this round"
        return f"waiting for {', '.join(self.names)}: {lack} for {time.time() - self.since:.0f} s"


class RoundExchange:
    """Carries an agent's messages, round by round."""

    def __init__(
        self, me: Speaker, links: Mapping[int, Link], patience: Timeouts, **connections: Any
    ) -> None:
        self.me, self.links, self._patience = me, links, patience
        self._state = "connecting"
        self._failure: PeerlearnError | None = None
        self.bytes_sent = 0  # with headers
        self._told = dict.fromkeys(links, 0)  # the last round in which each neighbor heard of us
        self._claimed = dict.fromkeys(
            links, 0
        )  # the last round that each neighbor was told it need not keep
        self._taken_bytes = dict.fromkeys(links, 0)  # since then
        self._late: Callable[[], list[Link]] | None = (
            None  # the neighbors without which the round cannot end
        )
        self._since = 0.0  # when we began to wait for them
        self._refused = 0  # messages of this round that could not be used
        self._named: set[str] = set()  # those of them that stand in the log
        self._service = Service(
            me, links, patience=patience, failed=self.fail, tick=self._watch, **connections
        )
        self.driving = self._service.driving

    @property
    def port(self) -> int:
        return self._service.port

    @property
    def state(self) -> str:
        """In a few words, for people."""
        waiting = self.waiting
        return self._state if waiting is None else str(waiting)

    @property
    def waiting(self) -> Waiting | None:
        """The neighbors that this agent waits for; None unless it has waited for longer than `silence`."""
        if self._state == "done":
            return None
        if silent := self._service.silent:
            quiet = max(silent.values())
            return Waiting(tuple(silent), time.time() - quiet, silent=True)
        waited, late = self._waited()
        if waited <= self._patience.silence or not late:
            return None
        return Waiting(tuple(link.late for link in late), time.time() - waited, silent=False)

    def start(self, *, meet: bool) -> None:
        """Connect; to meet is to return only when every neighbor has been greeted, and so agrees on all settings.

        A run that is taken up again need not: it may have all that it needs from them, and they may
        be gone.
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

    def round(
        self, outgoing: Mapping[int, Sequence[bytes]], expected: Sequence[int], take: Take
    ) -> None:
        """One round: these frames go out, one message of each expected neighbor comes in and is handed to `take`."""
        with self.driving:
            number, missing = self.me.done + 1, list(expected)
            self._since, self._refused = time.monotonic(), 0
            self._send(number, outgoing)
            while missing:
                inboxes = [self.links[k].inbox for k in missing]
                self._late = partial(_lacking, [self.links[k] for k in missing], number)
                self._until(partial(_all_have, inboxes, number))
                missing = [k for k in missing if not self._taken(k, number, take)]
            self._late = None
            if not expected:
                self._service.drive_on()
            if self._failure is not None:
                raise self._failure
            self.me.done = number
            for link in self.links.values():
                link.inbox.finish(number)
            if self._named:
                log.warning("round %d went on after %.0f s", number, time.monotonic() - self._since)
                self._named.clear()
                self.me.waits_for = ""
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
                    self._service.write(neighbor, [link.word(Kind.DONE)])
            waiting = [link for link in self.links.values() if not (link.finished and link.seen)]
            # Who is done and cannot be reached has left; who was never there since we started
            # again, too.
            gone = time.monotonic() > deadline
            return all(
                gone and not link.up and (link.finished or not link.greetings) for link in waiting
            )

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

    def _send(self, number: int, outgoing: Mapping[int, Sequence[bytes]]) -> None:
        links = self.links
        behind = partial(_behind, [links[k] for k in outgoing], number)
        if behind():
            self._late = behind
            self._until(lambda: not behind())
        for neighbor, frames in outgoing.items():
            self._service.write(neighbor, links[neighbor].send(number, frames))
            self._told[neighbor] = number
            if links[neighbor].outbox.keep_below(MOST_KEPT):
                log.warning(
                    "agent %s saves nothing: if it were killed now, it could not come back",
                    links[neighbor].name,
                )
            self.bytes_sent += sum(map(len, frames))

    def _taken(self, neighbor: int, number: int, take: Take) -> bool:
        """Whether what the neighbor sent can be used; if not, it has to send it again on a new connection."""
        link = self.links[neighbor]
        parcel = link.inbox.take(number)
        try:
            take(neighbor, parcel)
        except WireError as error:
            self._refused += 1
            if self._refused < MOST_REFUSED:
                self._service.reset(neighbor, str(error))
            else:
                self.fail(
                    NetworkError(
                        f"{error}: it runs another program: run the same one at all agents"
                    )
                )
            return False
        link.receipt = parcel.receipt(link.receipt)
        self._taken_bytes[neighbor] += parcel.size
        return True

    def _tell_listeners(self) -> None:
        """Tell neighbors how far we are, where rows have not told it for long, and what they need not keep."""
        done = self.me.done
        for neighbor, link in self.links.items():
            saved = link.saved[0] - self._claimed[neighbor]
            due = saved >= CLAIM_AFTER or (saved and self._taken_bytes[neighbor] >= CLAIM_AT)
            if due or done - self._told[neighbor] >= max(link.inbox.horizon // 4, 1):
                self._told[neighbor], self._claimed[neighbor] = done, link.saved[0]
                self._taken_bytes[neighbor] = 0
                if link.up:
                    self._service.write(neighbor, [link.word(Kind.ALIVE)])

    def _waited(self) -> tuple[float, list[Link]]:
        """For how long the present round has waited, and for whom."""
        late = self._late
        return time.monotonic() - self._since, late() if late is not None else []

    def _watch(self) -> None:
        """Log the neighbors that hold the round up. End the run if they have finished, or take too long."""
        if self._late is None:
            return
        number = self.me.done + 1
        if early := [link.name for link in self._late() if link.ended_early]:
            self.fail(
                NetworkError(
                    f"agent {early[0]} has finished its work, and agent {self.me.name} waits for its message of round "
                    f"{number}: run the same program, with the same number of calls, at all agents, and start them "
                    "anew with empty checkpoint folders"
                )
            )
        waited, awaited = self._waited()
        silent = self._service.silent
        late = [link for link in awaited if link.name not in silent]
        if len(late) < len(awaited):
            self._since = time.monotonic()  # a neighbor that comes back gets the whole time again
            waited = 0.0
        if waited > self._patience.silence:
            self.me.waits_for = late[0].waits_for or late[0].name if late else ""
            for link in late:
                if link.name not in self._named:
                    self._named.add(link.name)
                    log.warning(
                        "round %d has waited for agent %s for %.1f s: it is there, but its message has not come; it "
                        "may compute for long, hang, or make fewer calls; waiting for it, up to %g s",
                        number, link.late, waited, self._patience.longest,
                    )  # fmt: skip
        if late and waited > self._patience.longest:
            names = ", ".join(link.late for link in late)
            self.fail(
                Stopped(
                    f"gave up after round {number} had waited for agent {names} for {waited:.0f} s, which is alive: "
                    "see what it does, or raise longest_round in [patience]"
                )
            )

    def _until(self, ready: Callable[[], bool]) -> None:
        """Until `ready` says so, or the run is over."""
        self._service.drive(lambda: self._failure is not None or ready())
        if self._failure is not None:
            self._late = None
            raise self._failure


def _all_have(inboxes: Sequence[Inbox], number: int) -> bool:
    return all(inbox.has(number) for inbox in inboxes)


def _lacking(links: Sequence[Link], number: int) -> list[Link]:
    """The neighbors whose message of this round has not come."""
    return [link for link in links if not link.inbox.has(number)]


def _behind(links: Sequence[Link], number: int) -> list[Link]:
    """The neighbors that are too far behind to be sent this round."""
    return [link for link in links if number - link.done > link.inbox.horizon // 2]
