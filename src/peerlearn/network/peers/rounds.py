"""Rounds over the links of one agent: send to some neighbors, wait for others, notice failures.

Theory of operation:

`RoundExchange.round` is the only place where rounds advance. It gives the frames of the round to
the links, and drives the event loop (service.py) until every expected neighbor's message is
complete. Then it takes the messages out of the inboxes and hands them to the caller. A message that
cannot be used is refused: the connection is opened anew, and the neighbor sends it again.

Errors come from everywhere: tasks of the event loop, other threads, signal handlers. They all call
`fail`, which keeps the first error and wakes the waiting thread. `_until` raises it there.

Rounds are not equal for all. An agent that only sends for some rounds would run ahead of neighbors
that only listen, and they would have to store its messages. So it waits when it is too far ahead of
what they have reported (`_behind`), and agents that only listen report from time to time how far
they are (`_tell_listeners`). The same report says which rounds the neighbor need not keep.

`_watch` is called about once a second. It logs the neighbors that delay a round, and ends the run
if they cannot send any more or take too long. A neighbor is *silent* if nothing comes from it, and
*late* if it shows signs of life and only its message is missing.
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
from peerlearn.network.peers.mailbox import Parcel
from peerlearn.network.peers.service import Service
from peerlearn.network.peers.timeouts import Timeouts

Take = Callable[[int, Parcel], None]  # uses what a neighbor sent, or raises WireError to refuse it

log = logging.getLogger("peerlearn.peers")

MOST_KEPT = 1 << 30  # bytes kept for a neighbor that does not save; it cannot restart beyond that
CLAIM_AT = 1 << 24  # tell a neighbor what it need not keep after taking this many bytes from it
CLAIM_AFTER = 256  # or after this many rounds, so that its frames stay in the processor's cache
MOST_REFUSED = 5  # unusable messages in one round that show that agents run different programs
LAST_WORDS = 3.0  # seconds to tell neighbors that are not connected why a run is over
FAREWELL = 10.0  # seconds to wait for a neighbor that cannot be reached when our work is done


@dataclass(frozen=True)
class Waiting:
    """Neighbors that this agent waits for.

    Parameters
    ----------
    names : tuple of str
        Names of the neighbors.
    since : float
        When the wait began, in seconds since 1970.
    silent : bool
        Whether they are silent. Otherwise they show signs of life, but their message is missing.

    Examples
    --------
    >>> import time
    >>> from peerlearn.network.peers.rounds import Waiting
    >>> print(Waiting(("north",), time.time() - 7, silent=True))
    waiting for north: silent for 7 s
    """

    names: tuple[str, ...]
    since: float
    silent: bool

    def __str__(self) -> str:
        lack = "silent" if self.silent else "no message of this round"
        return f"waiting for {', '.join(self.names)}: {lack} for {time.time() - self.since:.0f} s"


class RoundExchange:
    """Exchange of an agent's messages, round by round.

    me: this agent.
    links: the links to its neighbors, by number.
    patience: how long to wait.
    connections: further arguments of `Service`.
    """

    def __init__(
        self, me: Speaker, links: Mapping[int, Link], patience: Timeouts, **connections: Any
    ) -> None:
        self.me = me
        self.links = links
        self._patience = patience
        self._state = "connecting"
        self._failure: PeerlearnError | None = None
        self.bytes_sent = 0  # with headers
        self._last_told = dict.fromkeys(links, 0)  # last round in which each neighbor heard of us
        self._last_claim = dict.fromkeys(links, 0)  # last round it was told it need not keep
        self._taken_bytes = dict.fromkeys(links, 0)  # since that claim
        # Returns the neighbors without which the present round cannot end.
        self._late: Callable[[], list[Link]] | None = None
        self._since = 0.0  # when the wait for them began
        self._refusals = 0  # messages of this round that could not be used
        self._logged_names: set[str] = set()  # late neighbors that were logged in this round
        self._service = Service(
            me, links, patience=patience, on_failure=self.fail, tick=self._watch, **connections
        )
        self.driving = self._service.driving

    @property
    def port(self) -> int:
        """Port on which this agent listens."""
        return self._service.port

    @property
    def state(self) -> str:
        """State in a few words, for people."""
        waiting = self.waiting
        return self._state if waiting is None else str(waiting)

    @property
    def waiting(self) -> Waiting | None:
        """Neighbors that this agent has waited for longer than `silence` seconds, or None."""
        if self._state == "done":
            return None
        silent = self._service.silent
        if silent:
            quiet = max(silent.values())
            return Waiting(tuple(silent), time.time() - quiet, silent=True)
        waited, late = self._current_wait()
        if waited <= self._patience.silence or not late:
            return None
        return Waiting(tuple(link.late for link in late), time.time() - waited, silent=False)

    def start(self, *, meet: bool) -> None:
        """Connect. With `meet`, return only when all neighbors said hello and agree on settings.

        A run that resumes does not wait for them: it may have all that it needs from them, and they
        may be gone.
        """
        self._service.start()
        with self.driving:
            self._until(lambda: not meet or all(link.greetings for link in self.links.values()))
        self._state = "running"

    def fail(self, error: PeerlearnError) -> None:
        """End the run with this error when the algorithm next waits or sends."""
        self._failure = self._failure or error
        with suppress(RuntimeError):  # the loop is closed already
            self._service.loop.call_soon_threadsafe(self._service.look)

    def round(
        self, outgoing: Mapping[int, Sequence[bytes]], expected: Sequence[int], take: Take
    ) -> None:
        """Do one round: send these frames, and give each expected neighbor's message to `take`."""
        with self.driving:
            number = self.me.done + 1
            missing = list(expected)
            self._since = time.monotonic()
            self._refusals = 0
            self._send(number, outgoing)
            while missing:
                late = [self.links[k] for k in missing]
                self._late = partial(_lacking, late, number)
                self._until(partial(_all_have, late, number))
                missing = [k for k in missing if not self._accept(k, number, take)]
            self._late = None
            if not expected:
                self._service.drive_on()
            if self._failure is not None:
                raise self._failure
            self.me.done = number
            for link in self.links.values():
                link.inbox.finish(number)
            if self._logged_names:
                log.warning("round %d went on after %.0f s", number, time.monotonic() - self._since)
                self._logged_names.clear()
                self.me.waits_for = ""
            self._tell_listeners()

    def farewell(self) -> bool:
        """Stay until every neighbor is done too and knows that we are, or is gone.

        Call it when our work is done. Returns whether all neighbors are done, so that none of them
        will need us again.
        """
        self._state = "done"
        deadline = time.monotonic() + FAREWELL
        told_on: dict[int, int] = {}  # connection on which each neighbor was told

        def is_over() -> bool:
            for neighbor, link in self.links.items():
                if link.up and told_on.get(neighbor) != link.greetings:
                    told_on[neighbor] = link.greetings
                    self._service.write(neighbor, [link.word(Kind.DONE)])
            if time.monotonic() <= deadline:
                return all(link.finished and link.seen for link in self.links.values())
            return all(_has_parted(link) for link in self.links.values())

        with self.driving:
            self._until(is_over)
        return all(link.finished for link in self.links.values())

    def leave(self, reason: str) -> None:
        """Tell all neighbors why the run is over, also those that connect now."""
        if self._service.running:
            with self.driving:
                self._service.say_last(self.me.text(Kind.LEAVE, reason), within=LAST_WORDS)

    def close(self) -> None:
        """Close all connections."""
        self._service.stop()

    # ---------------------------------------------------------------------------------

    def _send(self, number: int, outgoing: Mapping[int, Sequence[bytes]]) -> None:
        receivers = [self.links[k] for k in outgoing]
        if _behind(receivers, number):
            self._late = partial(_behind, receivers, number)
            self._until(lambda: not _behind(receivers, number))
        for link, frames in zip(receivers, outgoing.values(), strict=True):
            self._service.write(link.neighbor, link.send(number, frames))
            self._last_told[link.neighbor] = number
            self.bytes_sent += sum(map(len, frames))
            if link.outbox.bytes > MOST_KEPT:
                link.outbox.keep_below(MOST_KEPT)
                log.warning(
                    "agent %s saves nothing: if it were killed now, it could not come back",
                    link.name,
                )

    def _accept(self, neighbor: int, number: int, take: Take) -> bool:
        """Give a neighbor's message to `take`, and return whether it could be used.

        If not, the neighbor has to send it again on a new connection.
        """
        link = self.links[neighbor]
        parcel = link.inbox.take(number)
        try:
            take(neighbor, parcel)
        except WireError as error:
            self._refusals += 1
            if self._refusals < MOST_REFUSED:
                self._service.reset(neighbor, str(error))
            else:
                self.fail(
                    NetworkError(
                        f"{error}: it probably runs another program; run the same one at all agents"
                    )
                )
            return False
        link.receipt = parcel.receipt(link.receipt)
        self._taken_bytes[neighbor] += parcel.size
        return True

    def _tell_listeners(self) -> None:
        """Tell neighbors how far we are and what they need not keep, if they have not heard it."""
        done = self.me.done
        for neighbor, link in self.links.items():
            saved = link.saved[0] - self._last_claim[neighbor]
            due = saved >= CLAIM_AFTER or (saved and self._taken_bytes[neighbor] >= CLAIM_AT)
            if due or done - self._last_told[neighbor] >= max(link.inbox.horizon // 4, 1):
                self._last_told[neighbor] = done
                self._last_claim[neighbor] = link.saved[0]
                self._taken_bytes[neighbor] = 0
                if link.up:
                    self._service.write(neighbor, [link.word(Kind.ALIVE)])

    def _current_wait(self) -> tuple[float, list[Link]]:
        """Return how long the present round has waited, and for which neighbors."""
        late = self._late
        return time.monotonic() - self._since, late() if late is not None else []

    def _watch(self) -> None:
        """Log the neighbors that delay the round; end the run if they are done or take too long."""
        if self._late is None:
            return
        number = self.me.done + 1
        early = [link.name for link in self._late() if link.ended_early]
        if early:
            self.fail(
                NetworkError(
                    f"agent {early[0]} has finished its work, and agent {self.me.name} waits for "
                    f"its message of round {number}: run the same program, with the same number of "
                    "calls, at all agents, and start them anew with empty checkpoint folders"
                )
            )
        waited, awaited = self._current_wait()
        silent = self._service.silent
        late = [link for link in awaited if link.name not in silent]
        if len(late) < len(awaited):
            self._since = time.monotonic()  # a neighbor that comes back gets the whole time again
            waited = 0.0
        if waited > self._patience.silence:
            self.me.waits_for = late[0].waits_for or late[0].name if late else ""
            for link in late:
                if link.name not in self._logged_names:
                    self._logged_names.add(link.name)
                    log.warning(
                        "round %d has waited for agent %s for %.1f s: it is there, but its message "
                        "has not come; it may compute for long, hang, or make fewer calls; "
                        "waiting for it, up to %g s",
                        number, link.late, waited, self._patience.longest,
                    )  # fmt: skip
        if late and waited > self._patience.longest:
            names = ", ".join(link.late for link in late)
            self.fail(
                Stopped(
                    f"gave up after round {number} had waited for agent {names} for {waited:.0f} s,"
                    " which is alive: see what it does, or raise longest_round in [patience]"
                )
            )

    def _until(self, ready: Callable[[], bool]) -> None:
        """Drive the connections until `ready` is true, or raise the error that ended the run."""
        self._service.drive(lambda: self._failure is not None or ready())
        if self._failure is not None:
            self._late = None
            raise self._failure


def _has_parted(link: Link) -> bool:
    """Return whether a neighbor is done and knows that we are, or has left.

    It has left if it cannot be reached and is done, or never came since we started again.
    """
    if link.finished and link.seen:
        return True
    return not link.up and (link.finished or not link.greetings)


def _all_have(links: Sequence[Link], number: int) -> bool:
    """Return whether the messages of this round have come from all of these neighbors."""
    return not _lacking(links, number)


def _lacking(links: Sequence[Link], number: int) -> list[Link]:
    """Return the neighbors whose message of this round has not come."""
    return [link for link in links if not link.inbox.has(number)]


def _behind(links: Sequence[Link], number: int) -> list[Link]:
    """Return the neighbors that are too far behind to be sent this round."""
    return [link for link in links if number - link.done > link.inbox.horizon // 2]
