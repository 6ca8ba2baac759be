"""Connections of one agent: gRPC streams with mutual TLS, one per neighbor.

Theory of operation:

Of two neighbors, the one with the lower number dials. It dials again, with growing pauses, whenever
the stream ends or the other end has been silent for too long. `Link` decides what is said on a
stream. This file moves the bytes, notices silence, and refuses strangers (callers.py).

Everything runs in one asyncio event loop. There is no thread for it: the algorithm's own thread
drives the loop while it waits for a round (`drive`), because handing each message from thread to
thread took as long as all the rest. `drive` runs the loop until `look` stops it. `look` is called
whenever something has come, and stops the loop if the awaited condition holds.

While the algorithm computes, nobody would drive the loop. So a keeper thread drives it for a moment
several times a second (`_keep`), and neighbors see signs of life. `driving` is a lock that the
driver holds. Links and connections change only in the thread that holds it. (One exception:
replay.py sets `Link.saved` without it, in one assignment.)

Tasks in the loop: `_dial` per neighbor with a higher number; `_talk` per connection, dialled or
accepted, with a writer task of its `Wire`; and `_beat`, which sends signs of life, watches for
silence and calls `tick`. A connection ends in one of three ways:

    WireError, or the stream breaks     `_dial` (here or at the neighbor) opens the next one
    Refusal                             this neighbor is told why; others go on
    any other PeerlearnError            the neighbors are told why (`_part`), and the run ends

The end of a run must reach neighbors that are just connecting, too: `say_last` keeps talking for a
few seconds, so that they do not wait for this agent until they give up.
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
from peerlearn.network.peers.grpc_errors import short_reason
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

TWINS = 6  # times the limit of silence that a second process waits for the first one to go
READ_AHEAD = 1 << 24  # bytes of later rounds to read; HTTP/2 then holds the sender back
DRAIN = 0.1  # seconds for gRPC to finish with closed streams, or it complains of a closed loop
FLUSH = 2.0  # seconds to send the last frames when connections are closed


class Service:
    """Connections of an agent to all of its neighbors.

    me: this agent.
    links: the links to its neighbors, by number.
    listen: where neighbors with lower numbers connect to.
    addresses: where neighbors with higher numbers listen.
    identity: certificate and key; None for no encryption.
    patience: how long to wait.
    on_failure: called with the error that ends the run.
    tick: called about once a second.
    """

    def __init__(
        self,
        me: Speaker,
        links: Mapping[int, Link],
        *,
        listen: str,
        addresses: Mapping[int, str],
        identity: Identity | None,
        patience: Timeouts,
        on_failure: Callable[[PeerlearnError], None],
        tick: Callable[[], None],
    ) -> None:
        self._me = me
        self._links = links
        self._addresses = addresses
        self._listen = listen
        self._identity = identity
        self._patience = patience
        self._on_failure = on_failure
        self._tick = tick
        self._end_of_stream = grpc().aio.EOF
        self._callers = Callers(
            me, links, secure=identity is not None, speaks=self._speaks, talk=self._talk
        )
        self._wires: dict[int, Wire] = {}  # open connections, by neighbor
        self._last_heard: dict[int, float] = {}  # loop time of the last frame of each neighbor
        self._silent: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._last_words = b""  # frame that tells neighbors why the run is over
        self._informed: set[int] = set()  # neighbors that were told, or told us
        self.loop = asyncio.new_event_loop()
        self.driving = threading.Lock()  # held by the thread that drives the loop
        self._last_drive = time.monotonic()
        self._ready: Callable[[], bool] | None = None  # condition that `drive` waits for
        self._pauses: list[asyncio.Future[None]] = []  # of readers that have read enough
        self._keeper = threading.Thread(target=self._keep, name="peerlearn-keeper", daemon=True)
        self.port = 0

    @property
    def silent(self) -> dict[str, float]:
        """Neighbors that have been silent for too long, and for how many seconds."""
        now = self.loop.time()
        return {self._links[k].name: now - self._last_heard[k] for k in sorted(self._silent)}

    def drive(self, ready: Callable[[], bool]) -> None:
        """Run the event loop until `ready` is true. It is asked whenever something has come."""
        self._ready = ready
        self._read_on()
        try:
            while not ready():
                self.loop.run_forever()  # until `look` stops it
        finally:
            self._ready = None
            self._last_drive = time.monotonic()

    def drive_on(self) -> None:
        """Run the event loop for a moment, so that waiting frames are written."""
        for _ in range(2):  # writers wake in the first turn and write in the second
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def _read_on(self) -> None:
        """Wake the readers that paused because they had read enough."""
        for pause in self._pauses:
            if not pause.done():  # the reader's connection may have ended meanwhile
                pause.set_result(None)
        self._pauses.clear()

    def look(self) -> None:
        """Stop the event loop if what `drive` waits for has come."""
        if self._ready is not None and self._ready():
            self.loop.stop()

    def start(self) -> None:
        """Listen, dial neighbors, and start the keeper thread."""
        with self.driving:
            self.loop.run_until_complete(self._start())
        self._keeper.start()

    def write(self, neighbor: int, frames: Sequence[bytes]) -> None:
        """Write frames to a neighbor if it is connected.

        Otherwise they are discarded: its link keeps frames of rounds and sends them again.
        """
        wire = self._wires.get(neighbor)
        if frames and wire is not None:
            wire.put(frames)

    @property
    def running(self) -> bool:
        """Whether the service was started and not stopped."""
        return bool(self._tasks) and not self._stopping

    def say_last(self, words: bytes, within: float) -> None:
        """Send this frame to every neighbor, also to those that connect now.

        Returns when all have it, or after some time. A neighbor that gets it hangs up and does not
        call again. A stream that ends for another reason is opened anew at once.
        """
        self._last_words = words
        for neighbor in self._wires:
            self._tell_last(neighbor)
        deadline = self.loop.time() + within
        quiet_since = math.inf  # when the last informed neighbor hung up

        def all_know() -> bool:
            nonlocal quiet_since
            now = self.loop.time()
            alone = self._informed == set(self._links) and not self._wires
            quiet_since = min(quiet_since, now) if alone else math.inf
            return now >= deadline or now - quiet_since > 2 * FIRST_PAUSE

        for moment in range(1, math.ceil(within / FIRST_PAUSE) + 1):
            self.loop.call_later(moment * FIRST_PAUSE, self.look)
        self.drive(all_know)

    def _tell_last(self, neighbor: int) -> None:
        self._informed.add(neighbor)
        self.write(neighbor, [self._last_words])

    def reset(self, neighbor: int, reason: str) -> None:
        """Close this connection because of what came on it; another one is opened."""
        log.warning(
            "agent %s: %s; the connection is opened anew", self._links[neighbor].name, reason
        )
        wire = self._wires.get(neighbor)
        if wire is not None:
            wire.hang_up()

    def stop(self) -> None:
        """Write the frames that are still waiting, and close everything."""
        if self.running:
            with self.driving:
                self.loop.run_until_complete(self._stop())
            self._keeper.join()
            self.loop.close()

    def _keep(self) -> None:
        """Drive the loop if no other thread has done so for a while."""
        pause = min(0.25, self._patience.silence / 8)
        while not self._stopping:
            time.sleep(pause)
            idle = time.monotonic() - self._last_drive > pause
            if idle and self.driving.acquire(blocking=False):
                try:
                    if not self._stopping:
                        self.loop.call_later(0.02, self.loop.stop)
                        self.loop.run_forever()
                finally:
                    self.driving.release()

    # Everything below runs in the event loop
    # ---------------------------------------------------------------------------------

    async def _start(self) -> None:
        self._server, self.port = await serve(
            self._callers.accept,
            self._listen,
            self._identity,
            self._patience,
            most_connections(len(self._links)),
        )
        self._door = self._callers.door = Door(self.port, len(self._links))
        self._last_heard = dict.fromkeys(self._links, self.loop.time())
        self._tasks = [self.loop.create_task(self._beat())]
        for neighbor, link in self._links.items():
            if neighbor > self._me.number:
                self._tasks.append(
                    self.loop.create_task(self._dial(link, self._addresses[neighbor]))
                )
        for task in self._tasks:
            task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """End the run if a task failed: without it this agent would be silent or never connect."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._on_failure(
                NetworkError(
                    f"a connection's task died ({type(error).__name__}: {error}): "
                    "please report this"
                )
            )

    async def _stop(self) -> None:
        self._stopping = self._callers.stopping = True
        deadline = self.loop.time() + FLUSH
        while not all(wire.idle for wire in self._wires.values()) and self.loop.time() < deadline:
            await asyncio.sleep(0.01)
        for wire in list(self._wires.values()):
            wire.hang_up()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.stop(grace=0.2)
        await asyncio.sleep(DRAIN)

    async def _dial(self, link: Link, address: str) -> None:
        """Connect to a neighbor again and again, until the run is over."""
        pause = FIRST_PAUSE
        last_reason = ""  # so that the same one is not logged again
        twice_since = math.inf  # when the neighbor began to refuse us as a second process
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
                except Exception as error:  # gRPC has half a dozen kinds for a broken stream
                    details = error.details() if hasattr(error, "details") else error
                    reason = short_reason(str(details))
                    refused_as_twin = _is_twin_error(error)
                    twice_since = (
                        min(twice_since, self.loop.time()) if refused_as_twin else math.inf
                    )
                finally:
                    stream.cancel()
                if self.loop.time() - twice_since > TWINS * self._patience.silence:
                    self._on_failure(
                        Refused(
                            f"{reason}; stop one of the two, and start this one again if it is "
                            "the right one"
                        )
                    )
                    return
                if link.greetings > greetings:  # it was connected
                    pause = FIRST_PAUSE
                    last_reason = ""
                    twice_since = math.inf
                if reason != last_reason:
                    log.warning(
                        "no connection to agent %s at %s (%s); trying again",
                        link.name,
                        address,
                        reason,
                    )
                    last_reason = reason
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _speaks(self, link: Link) -> bool:
        """Return whether the neighbor is connected, said hello, and is not silent."""
        quiet = self.loop.time() - self._last_heard[link.neighbor]
        return link.neighbor in self._wires and link.up and quiet <= self._patience.silence

    async def _talk(
        self, stream: Any, link: Link, hang_up: Callable[[], object], first: bytes | None = None
    ) -> bool:
        """Handle one connection from hello to its end; return whether the run ended with it."""
        wire = Wire(stream, hang_up)
        old = self._wires.get(link.neighbor)
        self._wires[link.neighbor] = wire
        link.mark_down()
        if old is not None:
            old.hang_up()  # the neighbor has given it up, or it would not have called again
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
                link.mark_down()
        return False

    def _take_in(self, wire: Wire, link: Link, data: bytes) -> None:
        """Handle one frame of a neighbor."""
        was_down = not link.up
        answers = link.receive(data)
        if answers:
            wire.put(answers)
        self._last_heard[link.neighbor] = self.loop.time()
        if link.neighbor in self._silent:
            self._silent.discard(link.neighbor)
            log.warning("agent %s is back", link.name)
        if was_down and link.up:
            log.info("connected to agent %s", link.name)
        self.look()

    async def _part(self, stream: Any, link: Link, error: PeerlearnError) -> bool:
        """End the conversation because of an error, and return whether the run is over for all.

        The neighbor is told why, unless the error came from it.
        """
        log.error("%s", error)
        over = not isinstance(error, Refusal)
        if over:
            self._informed.add(link.neighbor)
        try:
            if not isinstance(error, Left):
                await stream.write(self._me.text(Kind.LEAVE if over else Kind.REFUSE, str(error)))
                if hasattr(stream, "done_writing"):
                    await stream.done_writing()
                await asyncio.wait([asyncio.ensure_future(stream.read())], timeout=FLUSH)
        except Exception as broken:  # it found the same error and has hung up already
            log.debug("agent %s could not be told: %s", link.name, broken)
        finally:
            if over:
                self._on_failure(error)
        return over

    async def _beat(self) -> None:
        """Send signs of life to neighbors and watch for theirs, about once a second."""
        while True:
            start = self.loop.time()
            pause = min(self._patience.silence / 4, 1.0)
            await asyncio.sleep(pause)
            slept = self.loop.time() - start
            if slept > pause + self._patience.silence / 2:
                # This process was suspended. Its neighbors were not silent.
                self._last_heard = {k: heard + slept for k, heard in self._last_heard.items()}
            for neighbor, wire in self._wires.items():
                link = self._links[neighbor]
                if link.up and wire.idle:
                    wire.put([link.word(Kind.ALIVE)])
            for neighbor, link in self._links.items():
                self._watch(link, self.loop.time() - self._last_heard[neighbor])
            closed = self._door.close_idle()
            if closed:
                log.warning(
                    "closed %d connections of callers that did not show a certificate: "
                    "more than %d were open",
                    closed, self._door.most,
                )  # fmt: skip
            self._tick()
            self.look()  # the awaited condition may depend on the time
            self._read_on()

    def _watch(self, link: Link, quiet: float) -> None:
        """Log, reconnect or give up if a neighbor has been quiet for too many seconds."""
        if link.finished or quiet <= self._patience.silence:
            return
        if link.neighbor not in self._silent:
            self._silent.add(link.neighbor)
            log.warning(
                "agent %s has been silent for %.1f s (it had %d rounds behind it); "
                "waiting for it, up to %g s",
                link.name, quiet, link.done, self._patience.give_up_after,
            )  # fmt: skip
        wire = self._wires.get(link.neighbor)
        dialled_here = link.neighbor > self._me.number
        if wire is not None and dialled_here and wire.age > self._patience.silence:
            wire.hang_up()  # `_dial` dials again: the other end may have forgotten this stream
        if quiet > self._patience.give_up_after:
            self._on_failure(
                Stopped(f"gave up after agent {link.name} had been silent for {quiet:.0f} s")
            )


def _is_twin_error(error: Exception) -> bool:
    """Return whether a neighbor refused this agent because another process of it is connected."""
    return hasattr(error, "code") and error.code() is getattr(grpc().StatusCode, TWICE)
