"""Which algorithms can be used under secrecy.

An algorithm that can has a `claim`: what it promises then (peerlearn.secret.statement). It may have
a method `check_secrecy`, which refuses some of its settings. Others may say in `leaks` what they
would show.
"""

from __future__ import annotations

from typing import Any

from peerlearn.algorithms.averaging import Averaging
from peerlearn.network import Network
from peerlearn.secret.refusals import secret_error

LEAKS = "would show numbers of single agents to their neighbors"


def check_secret_part(part: Any, network: Network, instead: str) -> None:
    """Refuse an algorithm that would show more than totals, before anything is sent.

    instead: what to do if it cannot be used.
    """
    name = type(part).__name__
    if getattr(part, "claim", None) is None:
        raise secret_error(name, getattr(part, "leaks", LEAKS), instead)
    averaging = getattr(part, "averaging", None)
    if averaging is not None and Averaging.of(averaging).method_on(network) != "tree":
        raise secret_error(
            f"{name} by gossip", "would mix numbers of single agents", "use averaging='tree'"
        )
    if hasattr(part, "check_secrecy"):
        part.check_secrecy()


def check_classes_given(model: Any) -> None:
    """Refuse a classifier that would have to find its classes, because labels are not sent."""
    if getattr(model, "classes", ()) is None:
        raise secret_error(
            type(model).__name__,
            "would have to send labels to find the classes",
            "give all classes as classes=[..]",
        )
