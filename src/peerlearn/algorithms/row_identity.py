"""Do agents mean the same rows? They compare identifiers without showing them: what travels are keyed hashes.

    h(x) = BLAKE2b(x; key)                                                                                  alone
    same rows      the largest and the smallest N and h(all identifiers in their order)                     flooded
                   and where these differ, h(the first m of them), halving until the first that
                   differs is found
    common rows    S_k = {h(x): x an identifier of agent k};  S_k <- S_k and S_j of the neighbors j         exchanged

Aumasson, Neves, Wilcox-O'Hearn and Winnerlein, BLAKE2: simpler, smaller, fast as MD5, 2013. While
rows are compared nobody learns more than up to where they agree. For common rows every agent sends
one hash per row, as long as a flood takes and again only where it has fewer rows left: who knows
the key can find out whether a row it can name is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from hashlib import blake2b
from typing import Any

import numpy as np

from peerlearn.algorithms.flooding import maximum
from peerlearn.arrays import Array, Indices
from peerlearn.errors import DataError, WireError
from peerlearn.network.base import Message, Network

Texts = Sequence[str]  # one per row
Hashes = np.ndarray[Any, Any]  # sorted entries of 16 bytes
WIDTH = 16  # bytes: that two of 2^40 rows have the same hash is as likely as 1 in 2^49
KINDS = (
    (bool, "!"),
    (int | float, "#"),
    (str, " "),
    (bytes, "b"),
    (np.datetime64, "@"),
)  # marks of texts
EXACT = 6  # bytes of a hash in one float64, which holds whole numbers up to 2^53


def key_of(row_key: str | None, seed: int) -> bytes:
    """The key of all hashes: from what agents agreed on, or else from a seed that they share."""
    return blake2b(
        f"seed {seed}".encode() if row_key is None else b"key " + row_key.encode()
    ).digest()


def checksum(key: bytes) -> int:
    """A number that differs where keys differ, and gives none away."""
    return _to_integer(blake2b(b"checksum", key=key).digest())


def texts_of(ids: Any, what: str = "ids") -> list[str]:
    """Identifiers or labels, one per row, as texts: 7, 7.0 and a numpy 7 are the same, the text "7" is another."""
    if hasattr(ids, "dtype"):
        values = np.asarray(ids)
        if values.ndim != 1:
            raise DataError(
                f"{what} have shape {values.shape}, but one per row is needed: give a list or a column"
            )
        ids = list(values.astype("datetime64[ns]")) if values.dtype.kind == "M" else values.tolist()
    if not isinstance(ids, Iterable):
        raise DataError(
            f"{what} are {ids!r:.60}, but one per row is needed: give a list or a column"
        )
    texts = [_text(_plain(value)) for value in ids]
    if "" in texts:
        raise DataError(
            f"{what} are missing (None or NaN) at row {texts.index('')}: give every row one of its own"
        )
    return texts


def texts_of_numbers(Y: Array) -> list[str]:
    """Rows of numbers as texts: the same where all bits are."""
    return [row.tobytes().hex() for row in Y + 0.0]  # -0.0 is 0.0


def same_rows(network: Network, rows: Sequence[Texts], key: bytes, what: str, way_out: str) -> None:
    """Refuse, at every agent and with the same sentence, to go on where agents differ in a row's text or its place."""
    different = {id(own): own for own in rows}  # agents dealt from one table have the same list
    prefixes = {which: _Prefixes(own, key) for which, own in different.items()}
    hosted = [prefixes[id(own)] for own in rows]
    alike, fewest, most = _compare_prefixes(network, hosted, None)
    if alike:
        return
    agree, differ = (
        0,
        fewest + 1,
    )  # the first `agree` rows are alike, the first `differ` are not, or not everywhere
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
    """The rows that all agents have: positions among the rows of each hosted agent, in an order common to all."""
    for agent, own in zip(network.hosted, rows, strict=True):
        all_different(own, agent)
    hashes = [_hashes(own, key) for own in rows]
    known, news = [np.sort(own) for own in hashes], [True] * len(hashes)
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
            "no row is known to all agents: give identifiers of the same kind and spelling everywhere, and the same "
            "row_key"
        )
    return [_positions(own, common) for own, common in zip(hashes, known, strict=True)]


class _Prefixes:
    """Hashes of the first rows, however many."""

    def __init__(self, rows: Texts, key: bytes) -> None:
        parts = [_bytes(text) for text in rows]
        self._data, self._key = b"".join(parts), key
        self._ends = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __call__(self, m: int | None) -> list[int]:
        """Of the first m rows, or of all: two whole numbers of 48 bits."""
        data = memoryview(self._data)[: self._ends[len(self) if m is None else m]]
        digest = blake2b(data, key=self._key, person=b"prefix").digest()
        return [_to_integer(digest), _to_integer(digest[EXACT:])]


def _compare_prefixes(
    network: Network, hosted: Sequence[_Prefixes], m: int | None
) -> tuple[bool, int, int]:
    """Whether the first m rows are the same everywhere, or all of them; and the fewest and most rows."""
    own = np.array([[*prefix(m), len(prefix)] for prefix in hosted], dtype=np.float64)
    largest, smallest = np.split(maximum(network, np.hstack([own, -own]))[0], 2)
    fewest, most = -smallest[-1], largest[-1]
    if not (0 <= fewest <= most < np.inf):
        raise WireError(
            f"an agent says to have {fewest:g} to {most:g} rows: it runs something else"
        )
    counted = (
        len(own[0]) if m is None else len(own[0]) - 1
    )  # of a part of the rows, their number does not matter
    return np.array_equal(largest[:counted], -smallest[:counted]), int(fewest), int(most)


def _plain(value: Any) -> Any:
    """A Python value for one of numpy's, but for times, of which Python has no nanoseconds."""
    return (
        value.item()
        if isinstance(value, np.generic) and not isinstance(value, np.datetime64)
        else value
    )


def _text(value: Any) -> str:
    """A text that differs where values differ, also between kinds; empty for none."""
    if value is None or (str(value) in ("<NA>", "NaT", "nan") and not isinstance(value, str)):
        return ""
    if isinstance(value, tuple):
        parts = [_text(part) for part in value]
        return "(" + "".join(f"{len(part)}:{part}" for part in parts) if all(parts) else ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, date):
        value = np.datetime64(value, "ns")
    kind = next((mark for kinds, mark in KINDS if isinstance(value, kinds)), "?")
    return f"{kind}{value}"


def _bytes(text: str) -> bytes:
    """With its length before it, so that no two lists of texts give the same bytes."""
    content = text.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(content), content)


def _to_integer(digest: bytes) -> int:
    return int.from_bytes(digest[:EXACT], "little")


def all_different(rows: Texts, agent: int) -> None:
    """Refuse identifiers that stand for several rows."""
    if len(set(rows)) < len(rows):
        text, times = Counter(rows).most_common(1)[0]
        raise DataError(
            f"agent {agent} has {times} rows of the identifier {text[1:]!r}: to find the rows that all agents have, "
            "every identifier must be there once"
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
            raise WireError(
                f"agent {sender} sent no hashes of rows where some were due: it runs something else"
            )
        own = own[np.isin(own, np.ascontiguousarray(heard).view(f"S{WIDTH}").ravel())]
    return own


def _positions(hashes: Hashes, common: Hashes) -> Indices:
    order = np.argsort(hashes)
    positions: Indices = order[np.searchsorted(hashes[order], common)]
    return positions
