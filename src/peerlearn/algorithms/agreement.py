"""Agreement without arithmetic: on a set of labels, and on what must be the same at all agents.

    S_k <- S_k and all S_j of the neighbors j            over the network, as long as a flood takes

Only news is sent. An agent whose rows lack a class must still train an output for it.

Theory of operation. What must be the same is compared by one flood of its largest and smallest
values: settings and what is drawn from the seed before training, coefficients after it. Agents draw
the same random features only if their releases of peerlearn and numpy draw alike, and compute the
same from them only if their machines do. If not, training would end without an error and leave
every agent with another model.

Random numbers are compared to the last bit, by a checksum. What is computed from them is not: the
last bits of exp, tanh or a matrix product may differ between machines and do no harm. Such arrays
are compared by a weighted norm, with a tolerance. Arrays that are close have norms that are close,
so rounding alone never raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from numbers import Real
from typing import Any
from zlib import crc32

import numpy as np

from peerlearn.algorithms.sums import maximum
from peerlearn.algorithms.unexpected import LIKELY_CAUSE, unexpected_message
from peerlearn.arrays import Array, all_finite, sendable
from peerlearn.errors import DataError, InputError, Mismatch, WireError
from peerlearn.local.features import RandomFeatures
from peerlearn.network.base import Message, Network

Labels = np.ndarray[Any, Any]
CHECKSUMS = 1e300  # numbers from here on are checksums of settings that are not numbers
# How far agents may differ in what they compute from the same numbers, relative to its size.
ROUNDING = 1e-9
# Two agents may be on two sides of the answer, weights may double that, and a tolerance is not a
# hard limit.
MARGIN = 10
WAY_OUT = (
    "their releases or machines differ; install the same peerlearn, numpy and scipy at every "
    "agent, and use machines of one kind if that is not enough"
)
LAST = 0x10FFFF  # the largest code point
# Kinds of labels, as bits: kinds received are or-ed together; 0 means no label yet.
TRUTHS = 1
WHOLE = 2
REAL = 4
TEXT = 8


def union(network: Network, labels: Sequence[Labels]) -> Labels:
    """Return the sorted labels of all agents, from those of the hosted ones.

    The result has the same type at every agent. An agent may have no labels.
    """
    known = [{"labels": _encode(own), "kinds": np.array([_kind(own)])} for own in labels]
    news = [True] * len(known)  # whether an agent knows more than its neighbors have heard from it
    for _ in range(network.flood_rounds):
        outbox = [own if new else {} for own, new in zip(known, news, strict=True)]
        inbox = network.exchange(outbox)
        for box in inbox:
            for sender, message in box.items():
                _check_labels(message, sender)
        merged = [_merge(own, box) for own, box in zip(known, inbox, strict=True)]
        news = [
            not network.reliable or _differ(own, more)
            for own, more in zip(known, merged, strict=True)
        ]
        known = merged
    # After the flood the first hosted agent knows what all know.
    return _decode(known[0]["labels"], int(known[0]["kinds"][0]))


@dataclass(frozen=True)
class Drawn:
    """Numbers that all agents draw from the same seed, to be compared.

    what: their name, for error messages. numbers: compared to the last bit. computed: the result of
    the numbers on fixed inputs (`probe`), compared up to rounding. Every agent must give the same
    number of these, empty ones included. rounding: how far agents may differ in what they compute,
    relative to its size. way_out: what to do if they differ by more.
    """

    what: str
    numbers: tuple[np.ndarray[Any, Any], ...] = ()
    computed: Array | None = None
    rounding: float = ROUNDING
    way_out: str = WAY_OUT

    @classmethod
    def of_features(cls, features: RandomFeatures) -> Drawn:
        """Return what agents compare of random features."""
        return cls(
            "the random features", (features.W, features.b), features(probe(4, len(features.W)))
        )


def probe(rows: int, columns: int) -> Array:
    """Return fixed inputs of size one or less, on which agents compare what they compute."""
    steps = np.linspace(-1.0, 1.0, rows * columns)
    inputs: Array = steps.reshape(rows, columns) / np.sqrt(columns)
    return inputs


def check_same_settings(
    network: Network, settings: Mapping[str, Any], *drawn: Drawn, rows: Sequence[int] | None = None
) -> None:
    """Refuse to go on, at every agent with the same sentence, if settings or draws differ.

    Settings that are not numbers are compared by a checksum of their text. rows: the row counts of
    the hosted agents, for algorithms that need rows somewhere in the network.
    """
    given = [_number(value) for value in settings.values()]
    if drawn:
        drawn = (_sample(), *drawn)
    checksums = [_checksum(*each.numbers) for each in drawn]
    sizes = [0.0 if each.computed is None else _size(each.computed) for each in drawn]
    own = np.array([*given, *checksums, *sizes])
    some = np.ones(len(network.hosted)) if rows is None else np.array(rows) > 0
    both = np.column_stack([np.tile(own, (len(network.hosted), 1)), some])
    smallest, largest = _extremes(network, both)
    if largest[-1] == 0:
        raise no_rows()
    ends = [len(given), len(given) + len(drawn)]
    low, bits_low, size_low = np.split(smallest[:-1], ends)
    high, bits_high, size_high = np.split(largest[:-1], ends)
    for name, least, most in zip(settings, low, high, strict=True):
        if least != most:
            values = f", from {least:g} to {most:g}" if most < CHECKSUMS else ""
            raise InputError(f"agents disagree on {name}{values}: give all of them the same")
    for each, differ in zip(drawn, bits_low != bits_high, strict=True):
        if differ:
            raise Mismatch(f"agents disagree on {each.what} drawn from the same seed: {WAY_OUT}")
    for each, least, most in zip(drawn, size_low, size_high, strict=True):
        if most - least > each.rounding * most:
            share = (most - least) / most
            raise Mismatch(
                f"agents disagree on what they compute from {each.what}, by {share:.1e} of its "
                f"size, where rounding explains {each.rounding:g}: {each.way_out}"
            )


def check_coefficients(network: Network, coefficients: Array, apart: float | None) -> None:
    """Refuse, at every agent, coefficients that should be the same and differ.

    coefficients: those of the hosted agents, along the first axis. apart: how far each may be from
    the common answer, relative to its size; 0 asks for the same bits; None checks nothing.
    """
    if apart is None:
        return
    own = [_checksum(each) if apart == 0 else _size(each) for each in coefficients]
    (least,), (most,) = _extremes(network, np.array(own)[:, None])
    if most - least > MARGIN * apart * most:
        far = f", by {(most - least) / most:.1e} of their size" if apart else ""
        raise Mismatch(
            f"agents end with coefficients that differ{far}, where the solver gives the same to "
            f"all of them, and the model is as it was before: {WAY_OUT}"
        )


def _extremes(network: Network, own: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest of all agents' numbers, the same at every agent."""
    smallest, largest = np.split(maximum(network, np.hstack([-own, own]))[0], 2)
    return -smallest, largest


def _sample() -> Drawn:
    """Draw a few numbers in each way that agents draw alike.

    They stand for draws that happen too late to be compared.
    """
    rng = np.random.default_rng(0)
    numbers = (
        rng.uniform(-1.0, 1.0, 8),
        rng.standard_normal(8),
        rng.choice([-1.0, 1.0], 8),
        rng.permutation(8),
    )
    return Drawn("the random numbers", numbers)


def _checksum(*arrays: np.ndarray[Any, Any]) -> float:
    checksum = 0
    for array in arrays:
        little_endian = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        checksum = crc32(little_endian.data, checksum)
    return float(checksum)


def _size(values: Array) -> float:
    """Return a norm with weights from 1 to 2 on the entries, so that their order matters too."""
    flat = sendable(values.ravel())
    return float(np.linalg.norm(flat * np.linspace(1.0, 2.0, flat.size)))


def no_rows() -> DataError:
    """Return the error for a network in which no agent has a row."""
    return DataError("no agent of the network has a row: give rows to one of them at least")


def _number(value: Any) -> float:
    """Return a number as it is, and the checksum of anything else as a number above CHECKSUMS."""
    if isinstance(value, Real):
        return float(value)
    return CHECKSUMS * (1 + crc32(_text(value).encode()) / 2**32)


def _text(value: Any) -> str:
    """Return a text that is the same for values that mean the same.

    1 and 1.0 have the same text, and so have two objects with the same settings.
    """
    if isinstance(value, Real):
        return repr(float(value))
    if is_dataclass(value):
        settings = [f"{field.name}={_text(getattr(value, field.name))}" for field in fields(value)]
        return f"{type(value).__name__}({', '.join(settings)})"
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))  # without the address in memory


def _check_labels(message: Message, sender: int) -> None:
    """Refuse a message that does not hold labels."""
    labels = message.get("labels")
    kinds = message.get("kinds")
    if (
        labels is None
        or kinds is None
        or kinds.shape != (1,)
        or kinds.dtype != np.int64
        or labels.ndim != 2
    ):
        raise unexpected_message(sender, "labels")
    allowed: tuple[type, ...] = (np.int64, np.float64)
    if kinds[0] == TEXT:
        allowed = (np.uint32,)
    elif kinds[0] & TEXT:
        # An agent that knows of texts and of numbers goes on to send its own, of either type.
        allowed = (np.int64, np.float64, np.uint32)
    if (
        not 0 <= kinds[0] < 2 * TEXT
        or labels.dtype not in allowed
        or (kinds[0] == 0) != (len(labels) == 0)
    ):
        raise WireError(f"agent {sender} sent labels of an unknown kind: {LIKELY_CAUSE}")
    text = labels.dtype == np.uint32
    if (
        (not text and labels.shape[1] != 1)
        or not all_finite(labels)
        or np.count_nonzero(labels > (LAST if text else np.inf))
    ):
        raise WireError(f"agent {sender} sent an invalid label: {LIKELY_CAUSE}")


def _kind(labels: Labels) -> int:
    if len(labels) == 0:
        return 0
    return {"b": TRUTHS, "i": WHOLE, "u": WHOLE, "f": REAL}.get(labels.dtype.kind, TEXT)


def _encode(labels: Labels) -> Labels:
    """Return one row per label, so that only numbers travel.

    A row is a whole or real number, or the code points of a text.
    """
    if len(labels) == 0:
        return np.zeros((0, 1), dtype=np.int64)
    if _kind(labels) == TEXT:
        text = np.unique(labels.astype(str))
        width = max(text.dtype.itemsize // 4, 1)
        return text.astype(f"<U{width}").view(np.uint32).reshape(len(text), -1)
    if labels.dtype.kind == "u" and labels.size and labels.max() > np.iinfo(np.int64).max:
        raise DataError(
            f"the label {labels.max()} does not fit into 64 bits with a sign: "
            "give labels below 2^63"
        )
    dtype = np.float64 if _kind(labels) == REAL else np.int64
    return np.unique(labels).astype(dtype)[:, None]


def _merge(own: dict[str, Labels], inbox: Mapping[int, Message]) -> dict[str, Labels]:
    """Return own labels and all received ones, sorted.

    Texts and numbers are not merged: `kinds` alone records that there are both.
    """
    if not inbox:
        return own
    parts = [own, *inbox.values()]
    kinds = int(np.bitwise_or.reduce([part["kinds"][0] for part in parts]))
    if kinds & TEXT and kinds != TEXT:
        return {"labels": own["labels"], "kinds": np.array([kinds])}
    sets = [part["labels"] for part in parts]
    sets = [labels for labels in sets if len(labels)] or sets[:1]
    more = [labels for labels in sets[1:] if not np.array_equal(labels, sets[0])]
    if not more:
        return {"labels": sets[0], "kinds": np.array([kinds])}
    width = max(labels.shape[1] for labels in sets)
    sets = [sets[0], *more]
    if any(labels.shape[1] < width for labels in sets):  # texts of different length
        sets = [np.pad(labels, ((0, 0), (0, width - labels.shape[1]))) for labels in sets]
    return {"labels": np.unique(np.vstack(sets), axis=0), "kinds": np.array([kinds])}


def _differ(own: dict[str, Labels], more: dict[str, Labels]) -> bool:
    if len(more["labels"]) > len(own["labels"]):
        return True
    return bool(more["kinds"][0] != own["kinds"][0])


def _decode(rows: Labels, kinds: int) -> Labels:
    if kinds & TEXT and kinds != TEXT:
        raise DataError("labels must be of one kind at all agents, but there are numbers and text")
    if kinds == TEXT:
        return np.ascontiguousarray(rows.astype(np.uint32)).view(f"<U{rows.shape[1]}").ravel()
    if kinds == TRUTHS:
        return rows[:, 0].astype(bool)
    return rows[:, 0].astype(np.float64 if kinds & REAL else np.int64)
