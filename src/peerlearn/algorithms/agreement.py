"""Agreement that needs no arithmetic: on a set of labels, and on what must be the same everywhere.

    S_k <- S_k and all S_j of the neighbors j            over the network, as long as a flood takes; only news is sent

An agent whose rows lack a class must still train an output for it.

What must be the same is compared by one flood of its largest and smallest values: settings and what
is drawn from the
seed before training, coefficients after it. Agents draw the same random features only if their
releases of peerlearn and numpy draw alike, and compute the same from them only if their machines
do. If not, training would end without an error and leave every agent with another model. Random
numbers are compared to the last bit, by a checksum. What is computed from them is not: the last
bits of exp, tanh or a matrix product may differ between machines and do no harm. Of such arrays a
weighted norm is compared, with a tolerance. Arrays that are near each other have norms that are
near each other, so that rounding alone never raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from numbers import Real
from typing import Any
from zlib import crc32

import numpy as np

from peerlearn.algorithms.flooding import maximum
from peerlearn.arrays import Array, all_finite, sendable
from peerlearn.errors import DataError, InputError, Mismatch, WireError
from peerlearn.local.features import RandomFeatures
from peerlearn.network.base import Message, Network

Labels = np.ndarray[Any, Any]
CHECKSUMS = 1e300  # and above: stand for what is no number
ROUNDING = 1e-9  # how far agents may be apart in what they compute from the same numbers, relative to its size
MARGIN = 10  # two agents may be on two sides of the answer, weights may double that, and a tolerance is no hard limit
WAY_OUT = (
    "their releases or machines differ; install the same peerlearn, numpy and scipy at every agent, and use machines "
    "of one kind if that is not enough"
)
LAST = 0x10FFFF  # code point of a text
TRUTHS, WHOLE, REAL, TEXT = (
    1,
    2,
    4,
    8,
)  # kinds of labels; the kinds heard of are added up as bits, 0 for no label yet


def union(network: Network, labels: Sequence[Labels]) -> Labels:
    """The sorted labels of all agents, from those of the hosted ones; of the same type at every agent.

    An agent may have none.
    """
    known = [{"labels": _encode(own), "kinds": np.array([_kind(own)])} for own in labels]
    news = [True] * len(known)  # whether an agent knows more than its neighbors have heard from it
    for _ in range(network.flood_rounds):
        inbox = network.exchange([own if new else {} for own, new in zip(known, news, strict=True)])
        for sender, heard in (pair for box in inbox for pair in box.items()):
            _must_be_labels(heard, sender)
        merged = [_merge(own, box) for own, box in zip(known, inbox, strict=True)]
        news = [
            not network.reliable or _differ(own, more)
            for own, more in zip(known, merged, strict=True)
        ]
        known = merged
    return _decode(
        known[0]["labels"], int(known[0]["kinds"][0])
    )  # the first hosted agent knows what all know


@dataclass(frozen=True)
class Drawn:
    """What each agent draws from the common seed by itself, and all must have alike.

    what: how the error message calls it. numbers: compared to the last bit. computed: what follows
    from the numbers on
    fixed inputs (`probe`), compared up to rounding. Give the same number of these to every agent,
    empty where there is nothing to draw.
    """

    what: str
    numbers: tuple[np.ndarray[Any, Any], ...] = ()
    computed: Array | None = None

    @classmethod
    def of_features(cls, features: RandomFeatures) -> Drawn:
        """Return what agents compare of random features."""
        return cls(
            "the random features", (features.W, features.b), features(probe(4, len(features.W)))
        )


def probe(rows: int, columns: int) -> Array:
    """Return fixed inputs of size one or less, on which agents compare what they compute."""
    inputs: Array = np.linspace(-1.0, 1.0, rows * columns).reshape(rows, columns) / np.sqrt(columns)
    return inputs


def check_same_settings(
    network: Network, settings: Mapping[str, Any], *drawn: Drawn, rows: Sequence[int] | None = None
) -> None:
    """Refuse, at every agent and with the same sentence, to go on where settings or draws differ between agents.

    Of anything but a number a checksum of its text is compared. rows: of the hosted agents, where
    somebody in the network must have some.
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
    (low, bits_low, size_low), (high, bits_high, size_high) = (
        np.split(smallest[:-1], ends),
        np.split(largest[:-1], ends),
    )
    for name, least, most in zip(settings, low, high, strict=True):
        if least != most:
            values = f", from {least:g} to {most:g}" if most < CHECKSUMS else ""
            raise InputError(f"agents disagree on {name}{values}: give all of them the same")
    for each, differ in zip(drawn, bits_low != bits_high, strict=True):
        if differ:
            raise Mismatch(f"agents disagree on {each.what} drawn from the same seed: {WAY_OUT}")
    for each, least, most in zip(drawn, size_low, size_high, strict=True):
        if most - least > ROUNDING * most:
            raise Mismatch(
                f"agents disagree on what they compute from {each.what}, by {(most - least) / most:.1e} of its size, "
                f"where rounding explains {ROUNDING:g}: {WAY_OUT}"
            )


def check_coefficients(network: Network, coefficients: Array, apart: float | None) -> None:
    """Refuse, at every agent, coefficients that agents must have alike and have not. Send nothing if apart is None.

    coefficients: of the hosted agents, along the first axis. apart: how far each may be from the
    common answer,
    relative to its size; 0 asks for the same bits.
    """
    if apart is None:
        return
    own = [_checksum(each) if apart == 0 else _size(each) for each in coefficients]
    (least,), (most,) = _extremes(network, np.array(own)[:, None])
    if most - least > MARGIN * apart * most:
        far = f", by {(most - least) / most:.1e} of their size" if apart else ""
        raise Mismatch(
            f"agents end with coefficients that differ{far}, where the solver gives the same to all of them, and the "
            f"model is as it was before: {WAY_OUT}"
        )


def _extremes(network: Network, own: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest of all agents' numbers, entry by entry, the same at every agent."""
    smallest, largest = np.split(maximum(network, np.hstack([-own, own]))[0], 2)
    return -smallest, largest


def _sample() -> Drawn:
    """Draw a few numbers in each way that agents draw alike, for what is drawn later than it can be compared."""
    rng = np.random.default_rng(0)
    numbers = (
        rng.uniform(-1.0, 1.0, 8),
        rng.standard_normal(8),
        rng.choice([-1.0, 1.0], 8),
        rng.permutation(8),
    )
    return Drawn("the random numbers", numbers)


def _checksum(*arrays: np.ndarray[Any, Any]) -> float:
    found = 0
    for array in arrays:
        found = crc32(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data, found)
    return float(found)


def _size(values: Array) -> float:
    """Return a norm in which every entry has a weight of its own, from 1 to 2, so that their order matters too."""
    flat = sendable(values.ravel())
    return float(np.linalg.norm(flat * np.linspace(1.0, 2.0, flat.size)))


def no_rows() -> DataError:
    """The error where no agent of the whole network has anything to learn from."""
    return DataError("no agent of the network has a row: give rows to one of them at least")


def _number(value: Any) -> float:
    """A number as it is, and anything else as one that is larger than all numbers in use."""
    return (
        float(value)
        if isinstance(value, Real)
        else CHECKSUMS * (1 + crc32(_text(value).encode()) / 2**32)
    )


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
    if (
        labels is None
        or kinds is None
        or kinds.shape != (1,)
        or kinds.dtype != np.int64
        or labels.ndim != 2
    ):
        raise WireError(
            f"agent {sender} sent no labels where some were due: it runs something else"
        )
    # Where texts and numbers have met, an agent goes on to send its own.
    held = {TEXT: (np.uint32,)}.get(
        int(kinds[0]), (np.int64, np.float64) + ((np.uint32,) if kinds[0] & TEXT else ())
    )
    if (
        not 0 <= kinds[0] < 2 * TEXT
        or labels.dtype not in held
        or (kinds[0] == 0) != (len(labels) == 0)
    ):
        raise WireError(
            f"agent {sender} sent labels of a kind that there is not: it runs something else"
        )
    text = labels.dtype == np.uint32
    if (
        (not text and labels.shape[1] != 1)
        or not all_finite(labels)
        or np.count_nonzero(labels > (LAST if text else np.inf))
    ):
        raise WireError(f"agent {sender} sent labels that are none: it runs something else")


def _kind(labels: Labels) -> int:
    return (
        0
        if len(labels) == 0
        else {"b": TRUTHS, "i": WHOLE, "u": WHOLE, "f": REAL}.get(labels.dtype.kind, TEXT)
    )


def _encode(labels: Labels) -> Labels:
    """One row per label: a whole or real number, or the code points of a text, so that only numbers travel."""
    if len(labels) == 0:
        return np.zeros((0, 1), dtype=np.int64)
    if _kind(labels) == TEXT:
        text = np.unique(labels.astype(str))
        return (
            text.astype(f"<U{max(text.dtype.itemsize // 4, 1)}")
            .view(np.uint32)
            .reshape(len(text), -1)
        )
    if labels.dtype.kind == "u" and labels.size and labels.max() > np.iinfo(np.int64).max:
        raise DataError(
            f"the label {labels.max()} is larger than a whole number may be: give labels below 2^63"
        )
    return np.unique(labels).astype(np.float64 if _kind(labels) == REAL else np.int64)[:, None]


def _merge(own: dict[str, Labels], inbox: Mapping[int, Message]) -> dict[str, Labels]:
    """Own labels and all that were heard, sorted. Texts and numbers are not mixed: that they met is enough to know."""
    kinds = int(
        np.bitwise_or.reduce([own["kinds"][0], *(heard["kinds"][0] for heard in inbox.values())])
    )
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


def _decode(rows: Labels, kinds: int) -> Labels:
    if kinds & TEXT and kinds != TEXT:
        raise DataError("labels must be of one kind at all agents, but there are numbers and text")
    if kinds == TEXT:
        return np.ascontiguousarray(rows.astype(np.uint32)).view(f"<U{rows.shape[1]}").ravel()
    return rows[:, 0].astype(bool if kinds == TRUTHS else np.float64 if kinds & REAL else np.int64)
