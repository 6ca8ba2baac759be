"""Agreement that needs no arithmetic: on a set of labels, and on settings that must be the same everywhere.

    S_k <- S_k and all S_j of the neighbors j            over the network, as long as a flood takes; only news is sent

An agent whose rows lack a class must still train an output for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from numbers import Real
from typing import Any
from zlib import crc32

import numpy as np

from peerlearn.algorithms.consensus import maximum
from peerlearn.arrays import all_finite
from peerlearn.errors import DataError, InputError, WireError
from peerlearn.network.base import Message, Network

Labels = np.ndarray[Any, Any]
CHECKSUMS = 1e300  # and above: stand for what is no number
LAST = 0x10FFFF  # code point of a text
TRUTHS, WHOLE, REAL, TEXT = 1, 2, 4, 8  # kinds of labels; the kinds heard of are added up as bits, 0 for no label yet


def union(network: Network, labels: Sequence[Labels]) -> Labels:
    """The sorted labels of all agents, from those of the hosted ones; of the same type at every agent.

    An agent may have none.
    """
    known = [{"labels": _encoded(own), "kinds": np.array([_kind(own)])} for own in labels]
    news = [True] * len(known)  # whether an agent knows more than its neighbors have heard from it
    for _ in range(network.flood_rounds):
        inbox = network.exchange([own if new else {} for own, new in zip(known, news, strict=True)])
        for sender, heard in (pair for box in inbox for pair in box.items()):
            _must_be_labels(heard, sender)
        merged = [_merged(own, box) for own, box in zip(known, inbox, strict=True)]
        news = [not network.reliable or _differ(own, more) for own, more in zip(known, merged, strict=True)]
        known = merged
    return _decoded(known[0]["labels"], int(known[0]["kinds"][0]))  # the first hosted agent knows what all know


def same_everywhere(network: Network, settings: Mapping[str, Any]) -> None:
    """Refuse, at every agent and with the same sentence, to go on with settings that differ between agents.

    Of anything but a number a checksum of its text is compared.
    """
    own = np.array([_number(value) for value in settings.values()])
    both = np.tile(np.concatenate([own, -own]), (len(network.hosted), 1))
    largest, smallest = np.split(maximum(network, both)[0] * np.repeat([1.0, -1.0], len(own)), 2)
    for name, low, high in zip(settings, smallest, largest, strict=True):
        if low != high:
            values = f", from {low:g} to {high:g}" if high < CHECKSUMS else ""
            raise InputError(f"agents disagree on {name}{values}: give all of them the same")


def _number(value: Any) -> float:
    """A number as it is, and anything else as one that is larger than all numbers in use."""
    return float(value) if isinstance(value, Real) else CHECKSUMS * (1 + crc32(_text(value).encode()) / 2**32)


def _text(value: Any) -> str:
    """The same for what means the same: settings of 1 and 1.0, and two objects with the same settings."""
    if isinstance(value, Real):
        return repr(float(value))
    if is_dataclass(value):
        settings = [f"{field.name}={_text(getattr(value, field.name))}" for field in fields(value)]
        return f"{type(value).__name__}({', '.join(settings)})"
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))  # where it lives in memory


def _must_be_labels(heard: Message, sender: int) -> None:
    labels, kinds = heard.get("labels"), heard.get("kinds")
    if labels is None or kinds is None or kinds.shape != (1,) or kinds.dtype != np.int64 or labels.ndim != 2:
        raise WireError(f"agent {sender} sent no labels where some were due: it runs something else")
    # Where texts and numbers have met, an agent goes on to send its own.
    held = {TEXT: (np.uint32,)}.get(int(kinds[0]), (np.int64, np.float64) + ((np.uint32,) if kinds[0] & TEXT else ()))
    if not 0 <= kinds[0] < 2 * TEXT or labels.dtype not in held or (kinds[0] == 0) != (len(labels) == 0):
        raise WireError(f"agent {sender} sent labels of a kind that there is not: it runs something else")
    text = labels.dtype == np.uint32
    if (
        (not text and labels.shape[1] != 1)
        or not all_finite(labels)
        or np.count_nonzero(labels > (LAST if text else np.inf))
    ):
        raise WireError(f"agent {sender} sent labels that are none: it runs something else")


def _kind(labels: Labels) -> int:
    return 0 if len(labels) == 0 else {"b": TRUTHS, "i": WHOLE, "u": WHOLE, "f": REAL}.get(labels.dtype.kind, TEXT)


def _encoded(labels: Labels) -> Labels:
    """One row per label: a whole or real number, or the code points of a text, so that only numbers travel."""
    if len(labels) == 0:
        return np.zeros((0, 1), dtype=np.int64)
    if _kind(labels) == TEXT:
        text = np.unique(labels.astype(str))
        return text.astype(f"<U{max(text.dtype.itemsize // 4, 1)}").view(np.uint32).reshape(len(text), -1)
    if labels.dtype.kind == "u" and labels.size and labels.max() > np.iinfo(np.int64).max:
        raise DataError(f"the label {labels.max()} is larger than a whole number may be: give labels below 2^63")
    return np.unique(labels).astype(np.float64 if _kind(labels) == REAL else np.int64)[:, None]


def _merged(own: dict[str, Labels], inbox: Mapping[int, Message]) -> dict[str, Labels]:
    """Own labels and all that were heard, sorted. Texts and numbers are not mixed: that they met is enough to know."""
    kinds = int(np.bitwise_or.reduce([own["kinds"][0], *(heard["kinds"][0] for heard in inbox.values())]))
    if kinds & TEXT and kinds != TEXT:
        return {"labels": own["labels"], "kinds": np.array([kinds])}
    sets = [own["labels"], *(heard["labels"] for heard in inbox.values())]
    sets = [labels for labels in sets if len(labels)] or sets[:1]
    more = [labels for labels in sets[1:] if not np.array_equal(labels, sets[0])]
    if not more:
        return {"labels": sets[0], "kinds": np.array([kinds])}
    sets, width = [sets[0], *more], max(labels.shape[1] for labels in sets)
    if any(labels.shape[1] < width for labels in sets):  # texts of different length
        sets = [np.pad(labels, ((0, 0), (0, width - labels.shape[1]))) for labels in sets]
    return {"labels": np.unique(np.vstack(sets), axis=0), "kinds": np.array([kinds])}


def _differ(own: dict[str, Labels], more: dict[str, Labels]) -> bool:
    return len(more["labels"]) > len(own["labels"]) or bool(more["kinds"][0] != own["kinds"][0])


def _decoded(rows: Labels, kinds: int) -> Labels:
    if kinds & TEXT and kinds != TEXT:
        raise DataError("labels must be of one kind at all agents, but there are numbers and text")
    if kinds == TEXT:
        return np.ascontiguousarray(rows.astype(np.uint32)).view(f"<U{rows.shape[1]}").ravel()
    return rows[:, 0].astype(bool if kinds == TRUTHS else np.float64 if kinds & REAL else np.int64)
