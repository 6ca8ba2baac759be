"""Comparison of row identifiers between agents, without showing them: keyed hashes travel.

    h(x) = BLAKE2b(x; key)                                                        alone

    same rows      the largest and the smallest N and h(all identifiers)          flooded
                   and, if these differ, h(the first m identifiers), halving
                   until the first that differs is found

    common rows    S_k = {h(x): x an identifier of agent k}
                   S_k <- S_k and S_j of the neighbors j                          exchanged

Aumasson, Neves, Wilcox-O'Hearn and Winnerlein, BLAKE2: simpler, smaller, fast as MD5, 2013. A
comparison of rows reveals only up to where they agree. For common rows every agent sends one hash
per row, for as many rounds as a flood takes, and again only if it has fewer rows left. Anybody who
knows the key can find out whether a row that they can name is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from hashlib import blake2b
from typing import Any

import numpy as np

from peerlearn.algorithms.sums import maximum
from peerlearn.algorithms.unexpected import LIKELY_CAUSE, unexpected_message
from peerlearn.arrays import Array, Indices
from peerlearn.errors import DataError, WireError
from peerlearn.network.base import Message, Network

Texts = Sequence[str]  # one per row
Hashes = np.ndarray[Any, Any]  # sorted entries of 16 bytes
WIDTH = 16  # bytes: two of 2^40 rows have the same hash with a probability of 2^-49
# The first letter of a text shows the type of its value.
KINDS = (
    (bool, "!"),
    (int | float, "#"),
    (str, " "),
    (bytes, "b"),
    (np.datetime64, "@"),
)
EXACT = 6  # bytes of a hash in one float64, which holds whole numbers up to 2^53


def key_of(row_key: str | None, seed: int) -> bytes:
    """Return the key of all hashes: from the text agreed on, or else from a common seed."""
    source = f"seed {seed}" if row_key is None else f"key {row_key}"
    return blake2b(source.encode()).digest()


def checksum(key: bytes) -> int:
    """Return a number that differs where keys differ, and does not reveal them."""
    return _to_integer(blake2b(b"checksum", key=key).digest())


def texts_of(ids: Any, what: str = "ids") -> list[str]:
    """Return identifiers or labels, one per row, as texts.

    7, 7.0 and a numpy 7 have the same text; the text "7" has another.
    """
    if hasattr(ids, "dtype"):
        values = np.asarray(ids)
        if values.ndim != 1:
            raise DataError(
                f"{what} have shape {values.shape}, but one per row is needed: "
                "give a list or a column"
            )
        ids = list(values.astype("datetime64[ns]")) if values.dtype.kind == "M" else values.tolist()
    if not isinstance(ids, Iterable):
        raise DataError(
            f"{what} are {ids!r:.60}, but one per row is needed: give a list or a column"
        )
    texts = [_text(_plain(value)) for value in ids]
    if "" in texts:
        raise DataError(
            f"{what} are missing (None or NaN) at row {texts.index('')}: "
            "give every row one of its own"
        )
    return texts


def texts_of_numbers(Y: Array) -> list[str]:
    """Return rows of numbers as texts: the same where all bits are the same."""
    return [row.tobytes().hex() for row in Y + 0.0]  # makes -0.0 to 0.0


def same_rows(network: Network, rows: Sequence[Texts], key: bytes, what: str, way_out: str) -> None:
    """Refuse to go on, at every agent with the same sentence, if rows differ in text or order."""
    different = {id(own): own for own in rows}  # agents dealt from one table have the same list
    prefixes = {which: _Prefixes(own, key) for which, own in different.items()}
    hosted = [prefixes[id(own)] for own in rows]
    alike, fewest, most = _compare_prefixes(network, hosted, None)
    if alike:
        return
    # The first `agree` rows are the same everywhere; the first `differ` rows are not.
    agree = 0
    differ = fewest + 1
    while differ - agree > 1:
        m = (agree + differ) // 2
        if _compare_prefixes(network, hosted, m)[0]:
            agree = m
        else:
            differ = m
    counts = (
        f"all have {fewest} rows" if fewest == most else f"they have from {fewest} to {most} rows"
    )
    raise DataError(
        f"agents disagree on {what}, first at row {agree} (counted from 0; {counts}): {way_out}"
    )


def common_rows(network: Network, rows: Sequence[Texts], key: bytes) -> list[Indices]:
    """Return the rows that all agents have, in an order common to all.

    The result has positions among the rows of each hosted agent.
    """
    for agent, own in zip(network.hosted, rows, strict=True):
        all_different(own, agent)
    hashes = [_hashes(own, key) for own in rows]
    known = [np.sort(own) for own in hashes]
    news = [True] * len(hashes)
    for _ in range(network.flood_rounds):
        inbox = network.exchange(
            [_message(own) if new else {} for own, new in zip(known, news, strict=True)]
        )
        left = [_intersect(own, box) for own, box in zip(known, inbox, strict=True)]
        news = [
            not network.reliable or len(more) < len(own)
            for own, more in zip(known, left, strict=True)
        ]
        known = left
    if len(known[0]) == 0:  # the first hosted agent knows what all know
        raise DataError(
            "no row is known to all agents: give identifiers of the same kind and spelling "
            "everywhere, and the same row_key"
        )
    return [_positions(own, common) for own, common in zip(hashes, known, strict=True)]


class _Prefixes:
    """Hashes of the first m rows, for any m."""

    def __init__(self, rows: Texts, key: bytes) -> None:
        parts = [_bytes(text) for text in rows]
        self._data = b"".join(parts)
        self._key = key
        lengths = [len(part) for part in parts]
        self._ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __call__(self, m: int | None) -> list[int]:
        """Return the hash of the first m rows, or of all, as two whole numbers of 48 bits."""
        data = memoryview(self._data)[: self._ends[len(self) if m is None else m]]
        digest = blake2b(data, key=self._key, person=b"prefix").digest()
        return [_to_integer(digest), _to_integer(digest[EXACT:])]


def _compare_prefixes(
    network: Network, hosted: Sequence[_Prefixes], m: int | None
) -> tuple[bool, int, int]:
    """Return whether the first m rows (or all) are the same, and the fewest and most rows."""
    own = np.array([[*prefix(m), len(prefix)] for prefix in hosted], dtype=np.float64)
    largest, smallest = np.split(maximum(network, np.hstack([own, -own]))[0], 2)
    fewest = -smallest[-1]
    most = largest[-1]
    if not (0 <= fewest <= most < np.inf):
        raise WireError(f"an agent announced {fewest:g} to {most:g} rows: {LIKELY_CAUSE}")
    # The row counts, which come last, are compared only if all rows are.
    width = len(own[0]) if m is None else len(own[0]) - 1
    return np.array_equal(largest[:width], -smallest[:width]), int(fewest), int(most)


def _plain(value: Any) -> Any:
    """Return a Python value for one of numpy's, except for times: Python has no nanoseconds."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        return value.item()
    return value


def _text(value: Any) -> str:
    """Return a text that differs where values or their kinds differ; empty for a missing value."""
    if value is None or (str(value) in ("<NA>", "NaT", "nan") and not isinstance(value, str)):
        return ""
    if isinstance(value, tuple):
        parts = [_text(part) for part in value]
        if not all(parts):
            return ""
        return "(" + "".join(f"{len(part)}:{part}" for part in parts)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, date):
        value = np.datetime64(value, "ns")
    kind = next((mark for kinds, mark in KINDS if isinstance(value, kinds)), "?")
    return f"{kind}{value}"


def _bytes(text: str) -> bytes:
    """Return the text after its length, so that no two lists of texts give the same bytes."""
    content = text.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(content), content)


def _to_integer(digest: bytes) -> int:
    return int.from_bytes(digest[:EXACT], "little")


def all_different(rows: Texts, agent: int) -> None:
    """Refuse identifiers that several rows have."""
    if len(set(rows)) < len(rows):
        text, times = Counter(rows).most_common(1)[0]
        raise DataError(
            f"agent {agent} has {times} rows of the identifier {text[1:]!r}: "
            "to find the rows that all agents have, every identifier must be there once"
        )


def _hashes(rows: Texts, key: bytes) -> Hashes:
    digests = b"".join(
        blake2b(_bytes(text), key=key, digest_size=WIDTH, person=b"one row").digest()
        for text in rows
    )
    return np.frombuffer(digests, dtype=f"S{WIDTH}")


def _message(hashes: Hashes) -> Message:
    return {"rows": hashes.view(np.uint8).reshape(-1, WIDTH)}


def _intersect(own: Hashes, inbox: dict[int, Message]) -> Hashes:
    for sender, message in inbox.items():
        heard = message.get("rows")
        if heard is None or heard.dtype != np.uint8 or heard.ndim != 2 or heard.shape[1] != WIDTH:
            raise unexpected_message(sender, "hashes of rows")
        own = own[np.isin(own, np.ascontiguousarray(heard).view(f"S{WIDTH}").ravel())]
    return own


def _positions(hashes: Hashes, common: Hashes) -> Indices:
    order = np.argsort(hashes)
    positions: Indices = order[np.searchsorted(hashes[order], common)]
    return positions
