"""Admission of incoming streams: only neighbors are admitted, and one process of each.

A caller shows its certificate, then says hello. A new stream replaces the old one of the same
neighbor in two cases: it comes from the same process, which has given up the old one, or the old
one is silent. Any other second stream is refused: the agent was started twice, or somebody else has
its certificate.

A refused or replaced stream ends with a gRPC status. Merely cancelling its handler would send none,
and the other end would wait for ever.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from peerlearn.errors import PeerlearnError, WireError
from peerlearn.network.peers.door import Door
from peerlearn.network.peers.link import Link, Speaker
from peerlearn.network.peers.streams import caller_names, grpc

log = logging.getLogger("peerlearn.peers")

TWICE = "ALREADY_EXISTS"  # the status for a second process of an agent
HELLO_WITHIN = 10.0  # seconds for a caller to say hello
LOG_AGAIN_AFTER = 1.0  # seconds before a sentence is logged again: callers must not fill the disk

# Name of a gRPC status and a reason; both are empty if the conversation ended in order.
Ending = tuple[str, str]
# Function of the stream, the link, a function that hangs up, and the first frame.
Talk = Callable[[Any, Link, Callable[[], object], bytes], Awaitable[bool]]


class Callers:
    """Handler of the streams that others open.

    me: this agent.
    links: the links to all neighbors, by number.
    secure: whether callers have certificates.
    speaks: tells whether a neighbor is connected and not silent.
    talk: holds the conversation with a neighbor.
    """

    def __init__(
        self,
        me: Speaker,
        links: Mapping[int, Link],
        *,
        secure: bool,
        speaks: Callable[[Link], bool],
        talk: Talk,
    ) -> None:
        self._me = me
        self._links = links
        self._secure = secure
        self._by_name = {link.name: link for link in links.values()}
        self._speaks = speaks
        self._talk = talk
        self._log_times: dict[str, float] = {}  # when each sentence about callers was logged
        self.door: Door | None = None  # set when the port is known
        self.stopping = False

    async def accept(self, _: Any, context: Any) -> None:
        """Handle one stream; end it with a status unless it ended in order."""
        code, reason = await self._answer(context)
        if reason and not self.stopping:
            await context.abort(getattr(grpc().StatusCode, code), reason)

    async def _answer(self, context: Any) -> Ending:
        """Talk with a caller that is a neighbor, or refuse the caller."""
        names = caller_names(context) if self._secure else []
        if self._secure and (len(names) != 1 or names[0] not in self._by_name):
            who = f"agent {', '.join(names) or 'without a name'}, which is not a neighbor"
            return self._refuse("PERMISSION_DENIED", who, context)
        try:
            first = await asyncio.wait_for(context.read(), HELLO_WITHIN)
        except TimeoutError:
            first = None
        if not isinstance(first, bytes):
            who = f"a caller with the certificate of {names[0]}" if names else "a caller"
            return self._refuse("UNAVAILABLE", f"{who} that did not say hello", context)
        try:
            link = self._by_name[names[0]] if names else self._sender_of(first)
            instance = link.caller_instance(first)
        except WireError as error:
            log.debug("a caller could not be understood: %s", error)
            return self._refuse("INVALID_ARGUMENT", "a caller that cannot be understood", context)
        except PeerlearnError:
            # Settings differ. The conversation will find that too, and report it to the neighbor.
            instance = ""
        if self._speaks(link) and link.instance != instance:
            who = (
                f"a second process of agent {link.name}, whose first one is connected "
                "(started twice?)"
            )
            return self._refuse(TWICE, who, context)
        return await self._converse(context, link, first)

    async def _converse(self, context: Any, link: Link, first: bytes) -> Ending:
        """Talk until the stream ends or is replaced by another one of the same neighbor."""
        peer = context.peer()
        handler = asyncio.current_task()
        assert handler is not None
        assert self.door is not None
        talk = asyncio.ensure_future(self._talk(context, link, lambda: talk.cancel(), first))
        self.door.known[peer] += 1
        try:
            await talk
        except asyncio.CancelledError:
            if handler.cancelling():  # the caller has hung up, or the server is stopped
                raise
            return "UNAVAILABLE", f"agent {self._me.name} gave this connection up"
        finally:
            self.door.known[peer] -= 1
        return "", ""

    def _sender_of(self, first: bytes) -> Link:
        """Return the neighbor that a hello without certificates claims to come from."""
        sender = self._me.read(first).sender
        if sender not in self._links:
            raise WireError(f"agent number {sender} is not a neighbor of {self._me.name}")
        return self._links[sender]

    def _refuse(self, code: str, whom: str, context: Any) -> Ending:
        """Log that this caller is refused, unless the same was logged just now."""
        sentence = f"refused {whom}, calling from {context.peer().rpartition(':')[0]}"
        now = time.monotonic()
        for known, when in list(self._log_times.items()):
            if now - when >= LOG_AGAIN_AFTER:
                del self._log_times[known]
        if sentence not in self._log_times:
            self._log_times[sentence] = now
            log.warning("%s", sentence)
        return code, f"agent {self._me.name} refused {whom}"
