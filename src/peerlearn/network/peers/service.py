"""The connections of one agent: gRPC streams with mutual TLS, one per neighbor.

Of two neighbors the one with the lower number dials, and dials again, with growing pauses, whenever
the stream ends or the other end has been silent for too long. What is said on a stream is the
business of `Link`; here bytes come and go, silence is noticed, and strangers are turned away: an
agent speaks only with the identities that are its neighbors.

All this runs in an event loop that the algorithm's own thread drives while it waits for a round:
handing each message from thread to thread took as long as all the rest. While the algorithm
computes, a keeper thread drives the loop from time to time, so that neighbors see signs of life.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from peerlearn.errors import NetworkError, PeerlearnError, Stopped, WireError
from peerlearn.network.peers.callers import TWICE, Callers
from peerlearn.network.peers.door import Door, most_connections
from peerlearn.network.peers.frame import Kind
from peerlearn.network.peers.grpc_errors import short
from peerlearn.network.peers.identity import Identity
from peerlearn.network.peers.link import Left, Link, Refusal, Refused, Speaker
from peerlearn.network.peers.streams import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    METHOD,
    SERVICE,
    Wire,
    channel,
    grpc,
    serve,
)
from peerlearn.network.peers.timeouts import Timeouts

log = logging.getLogger("peerlearn.peers")

TWINS = 6  # times the limit of silence for which a second process waits for the first one to go
READ_AHEAD = (
    1 << 24
)  # bytes of rounds ahead that are read; the rest waits outside, where HTTP/2 holds the sender back
DRAIN = 0.1  # seconds for what gRPC still has to say of streams that were closed: it complains of a closed loop
FLUSH = 2.0  # seconds for the last words when connections are closed


class Service:
    """Keeps the links of an agent connected; `failed` is called when all is over."""

    def __init__(
        self,
        me: Speaker,
        links: Mapping[int, Link],
        *,
        listen: str,
        addresses: Mapping[int, str],
        identity: Identity | None,
        patience: Timeouts,
        failed: Callable[[PeerlearnError], None],
        tick: Callable[[], None],
    ) -> None:
        self._me, self._links, self._addresses = me, links, addresses
        self._listen, self._identity, self._patience = listen, identity, patience
        self._failed, self._tick = failed, tick
        self._end_of_stream = grpc().aio.EOF
        self._callers = Callers(
            me, links, secure=identity is not None, speaks=self._speaks, talk=self._talk
        )
        self._wires: dict[int, Wire] = {}
        self._heard: dict[int, float] = {}
        self._silent: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._last_words = b""
        self._told: set[int] = set()  # who has heard them
        self.loop = asyncio.new_event_loop()
        self.driving = (
            threading.Lock()
        )  # held by whoever drives the loop: nothing of a link changes without it
        self._driven = time.monotonic()
        self._awaited: Callable[[], bool] | None = None
        self._pauses: list[
            asyncio.Future[None]
        ] = []  # of readers that have enough for the next round
        self._keeper = threading.Thread(target=self._keep, name="peerlearn-keeper", daemon=True)
        self.port = 0

    @property
    def silent(self) -> dict[str, float]:
        """Neighbors that have not been heard for too long, and for how many seconds."""
        now = self.loop.time()
        return {self._links[k].name: now - self._heard[k] for k in sorted(self._silent)}

    def drive(self, ready: Callable[[], bool]) -> None:
        """Let connections do their work until `ready` says so: it is asked whenever something came."""
        self._awaited = ready
        self._read_on()
        try:
            while not ready():
                self.loop.run_forever()  # until `look` stops it
        finally:
            self._awaited, self._driven = None, time.monotonic()

    def drive_on(self) -> None:
        """Let connections begin what is due, without waiting for anything."""
        for _ in range(2):  # writers wake in the first turn and write in the second
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def _read_on(self) -> None:
        for pause in self._pauses:
            if not pause.done():  # the reader's connection may have ended meanwhile
                pause.set_result(None)
        self._pauses.clear()

    def look(self) -> None:
        """Something came: is it what is waited for?"""
        if self._awaited is not None and self._awaited():
            self.loop.stop()

    def start(self) -> None:
        with self.driving:
            self.loop.run_until_complete(self._start())
        self._keeper.start()

    def write(self, neighbor: int, frames: Sequence[bytes]) -> None:
        """Frames for a neighbor; those of rounds are kept elsewhere until it has them, so none is lost here."""
        if frames and (wire := self._wires.get(neighbor)):
            wire.put(frames)

    @property
    def running(self) -> bool:
        return bool(self._tasks) and not self._stopping

    def say_last(self, words: bytes, within: float) -> None:
        """Tell this to every neighbor, also to those that connect now; return when all know it, or after some time.

        Who hears it hangs up and does not call again. A stream that ends for another reason is
        opened anew at once.
        """
        self._last_words = words
        for neighbor in self._wires:
            self._tell_last(neighbor)
        deadline = self.loop.time() + within
        quiet = math.inf  # since when nobody is connected

        def all_know() -> bool:
            nonlocal quiet
            now = self.loop.time()
            alone = self._told == set(self._links) and not self._wires
            quiet = min(quiet, now) if alone else math.inf
            return now >= deadline or now - quiet > 2 * FIRST_PAUSE

        for moment in range(1, math.ceil(within / FIRST_PAUSE) + 1):
            self.loop.call_later(moment * FIRST_PAUSE, self.look)
        self.drive(all_know)

    def _tell_last(self, neighbor: int) -> None:
        self._told.add(neighbor)
        self.write(neighbor, [self._last_words])

    def reset(self, neighbor: int, reason: str) -> None:
        """Give this connection up, because of what came on it; the next one starts afresh."""
        log.warning(
            "agent %s: %s; the connection is opened anew", self._links[neighbor].name, reason
        )
        if wire := self._wires.get(neighbor):
            wire.hang_up()

    def stop(self) -> None:
        """Write what is still waiting, and close everything."""
        if self.running:
            with self.driving:
                self.loop.run_until_complete(self._stop())
            self._keeper.join()
            self.loop.close()

    def _keep(self) -> None:
        """Drive the loop when nobody else has done so for a while."""
        pause = min(0.25, self._patience.silence / 8)
        while not self._stopping:
            time.sleep(pause)
            if time.monotonic() - self._driven > pause and self.driving.acquire(blocking=False):
                try:
                    if not self._stopping:
                        self.loop.call_later(0.02, self.loop.stop)
                        self.loop.run_forever()
                finally:
                    self.driving.release()

    # In the loop
    # -----------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        self._server, self.port = await serve(
            self._callers.accept,
            self._listen,
            self._identity,
            self._patience,
            most_connections(len(self._links)),
        )
        self._door = self._callers.door = Door(self.port, len(self._links))
        self._heard = dict.fromkeys(self._links, self.loop.time())
        self._tasks = [self.loop.create_task(self._beat())]
        for neighbor, link in self._links.items():
            if neighbor > self._me.number:
                self._tasks.append(
                    self.loop.create_task(self._dial(link, self._addresses[neighbor]))
                )
        for task in self._tasks:
            task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """End the run if a task died of an error: without it this agent would seem silent, or never connect."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(
                NetworkError(
                    f"a connection's task died ({type(error).__name__}: {error}): please report this"
                )
            )

    async def _stop(self) -> None:
        self._stopping = self._callers.stopping = True
        deadline = self.loop.time() + FLUSH
        while not all(wire.idle for wire in self._wires.values()) and self.loop.time() < deadline:
            await asyncio.sleep(0.01)
        for end in [wire.hang_up for wire in self._wires.values()] + [
            task.cancel for task in self._tasks
        ]:
            end()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.stop(grace=0.2)
        await asyncio.sleep(DRAIN)

    async def _dial(self, link: Link, address: str) -> None:
        pause, said, twice = (
            FIRST_PAUSE,
            "",
            math.inf,
        )  # twice: since when the other end has had a second one of us
        async with channel(link.name, address, self._identity, self._patience) as calls:
            while True:
                stream = calls.stream_stream(f"/{SERVICE}/{METHOD}")()
                greetings = link.greetings
                try:
                    if await self._talk(stream, link, stream.cancel):
                        return  # the run is over
                    reason = "the connection ended"
                except asyncio.CancelledError:
                    if self._stopping:
                        raise
                    reason = "the connection was given up"  # by `hang_up`
                except (
                    Exception
                ) as error:  # gRPC has half a dozen kinds for a stream that is broken
                    reason = short(str(error.details() if hasattr(error, "details") else error))
                    told_twice = hasattr(error, "code") and error.code() is getattr(
                        grpc().StatusCode, TWICE
                    )
                    twice = min(twice, self.loop.time()) if told_twice else math.inf
                finally:
                    stream.cancel()
                if self.loop.time() - twice > TWINS * self._patience.silence:
                    self._failed(
                        Refused(
                            f"{reason}; stop one of the two, and start this one again if it is the right one"
                        )
                    )
                    return
                if link.greetings > greetings:
                    pause, said, twice = FIRST_PAUSE, "", math.inf
                if reason != said:
                    log.warning(
                        "no connection to agent %s at %s (%s); trying again",
                        link.name,
                        address,
                        reason,
                    )
                    said = reason
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _speaks(self, link: Link) -> bool:
        """Whether the neighbor is connected, greeted, and not silent."""
        quiet = self.loop.time() - self._heard[link.neighbor]
        return link.neighbor in self._wires and link.up and quiet <= self._patience.silence

    async def _talk(
        self, stream: Any, link: Link, hang_up: Callable[[], object], first: bytes | None = None
    ) -> bool:
        """One connection, from hello to its end; whether the run ended with it."""
        wire = Wire(stream, hang_up)
        old, self._wires[link.neighbor] = self._wires.get(link.neighbor), wire
        link.closed()
        if old is not None:
            old.hang_up()  # the neighbor has given it up: it would not call again otherwise
        writer = self.loop.create_task(wire.write())
        try:
            await stream.write(link.hello())
            if self._last_words:
                self._tell_last(link.neighbor)
            data = first if first is not None else await stream.read()
            while data is not self._end_of_stream and self._wires.get(link.neighbor) is wire:
                self._take_in(wire, link, data)
                if link.inbox.bytes > READ_AHEAD and link.inbox.has(self._me.done + 1):
                    self._pauses.append(self.loop.create_future())
                    await self._pauses[-1]
                data = await stream.read()
        except WireError as error:
            log.warning("agent %s: %s; the connection is opened anew", link.name, error)
        except PeerlearnError as error:
            writer.cancel()
            return await self._part(stream, link, error)
        finally:
            writer.cancel()
            if self._wires.get(link.neighbor) is wire:
                del self._wires[link.neighbor]
                link.closed()
        return False

    def _take_in(self, wire: Wire, link: Link, data: bytes) -> None:
        came_up = not link.up
        if answers := link.heard(data):
            wire.put(answers)
        self._heard[link.neighbor] = self.loop.time()
        if link.neighbor in self._silent:
            self._silent.discard(link.neighbor)
            log.warning("agent %s is back", link.name)
        if came_up and link.up:
            log.info("connected to agent %s", link.name)
        self.look()

    async def _part(self, stream: Any, link: Link, error: PeerlearnError) -> bool:
        """The run cannot go on with this neighbor: tell it why, unless it told us; whether it is over for all."""
        log.error("%s", error)
        over = not isinstance(error, Refusal)
        if over:
            self._told.add(link.neighbor)
        try:
            if not isinstance(error, Left):
                await stream.write(self._me.text(Kind.LEAVE if over else Kind.REFUSE, str(error)))
                if hasattr(stream, "done_writing"):
                    await stream.done_writing()
                await asyncio.wait([asyncio.ensure_future(stream.read())], timeout=FLUSH)
        except Exception as broken:  # it found the same, and has hung up already
            log.debug("agent %s could not be told: %s", link.name, broken)
        finally:
            if over:
                self._failed(error)
        return over

    async def _beat(self) -> None:
        """Signs of life to neighbors, and an eye on theirs."""
        while True:
            began, pause = self.loop.time(), min(self._patience.silence / 4, 1.0)
            await asyncio.sleep(pause)
            slept = self.loop.time() - began
            if (
                slept > pause + self._patience.silence / 2
            ):  # this process stood still: its neighbors were not silent
                self._heard = {k: heard + slept for k, heard in self._heard.items()}
            for neighbor, wire in self._wires.items():
                link = self._links[neighbor]
                if link.up and wire.idle:
                    wire.put([link.word(Kind.ALIVE)])
            for neighbor, link in self._links.items():
                self._watch(link, self.loop.time() - self._heard[neighbor])
            if closed := self._door.close_idle():
                log.warning(
                    "closed %d connections of callers that did not show a certificate: more than %d were open",
                    closed, self._door.most,
                )  # fmt: skip
            self._tick()
            self.look()  # whoever waits may be waiting for a time
            self._read_on()

    def _watch(self, link: Link, quiet: float) -> None:
        if link.finished or quiet <= self._patience.silence:
            return
        if link.neighbor not in self._silent:
            self._silent.add(link.neighbor)
            log.warning(
                "agent %s has been silent for %.1f s (it had %d rounds behind it); waiting for it, up to %g s",
                link.name, quiet, link.done, self._patience.give_up_after,
            )  # fmt: skip
        wire = self._wires.get(link.neighbor)
        if (
            wire is not None
            and link.neighbor > self._me.number
            and wire.age > self._patience.silence
        ):
            wire.hang_up()  # `_dial` dials again: the other end may have forgotten this stream
        if quiet > self._patience.give_up_after:
            self._failed(
                Stopped(f"gave up after agent {link.name} had been silent for {quiet:.0f} s")
            )
