"""Agreement on a set: every agent learns all the labels that occur anywhere in the network.

    S_k <- S_k and all S_j of the neighbors j            over the network, as long as a flood takes; only news is sent

An agent whose rows lack a class must still train an output for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from peerlearn.errors import DataError
from peerlearn.network.base import Message, Network

Labels = np.ndarray[Any, Any]


def union(network: Network, labels: Sequence[Labels]) -> Labels:
    """The sorted labels of all agents, from those of the hosted ones."""
    kinds = {_kind(own) for own in labels}
    if len(kinds) > 1:
        raise DataError(f"labels must be of one kind at all agents, but there are {' and '.join(sorted(kinds))}")
    known = [_encoded(own) for own in labels]
    news = [True] * len(known)  # whether an agent knows more than its neighbors have heard from it
    for _ in range(network.flood_rounds):
        inbox = network.exchange([{"labels": own} if new else {} for own, new in zip(known, news, strict=True)])
        merged = [_merged(own, box) for own, box in zip(known, inbox, strict=True)]
        news = [not network.reliable or len(more) > len(own) for own, more in zip(known, merged, strict=True)]
        known = merged
    return _decoded(known[0], labels[0])  # after the flood the first hosted agent knows what all know


def _kind(labels: Labels) -> str:
    return "text" if labels.dtype.kind in "OUS" else "numbers"


def _encoded(labels: Labels) -> Labels:
    """Numbers as they are; text as one row of code points per label, so that only numbers travel."""
    if _kind(labels) == "numbers":
        return np.unique(labels).astype(np.float64)[:, None]
    text = np.unique(labels.astype(str))
    return text.astype(f"<U{max(text.dtype.itemsize // 4, 1)}").view(np.uint32).reshape(len(text), -1)


def _merged(own: Labels, inbox: Mapping[int, Message]) -> Labels:
    """Own labels and all that were heard, sorted."""
    more = [labels for heard in inbox.values() if not np.array_equal(labels := heard["labels"], own)]
    if not more:
        return own
    width = max(labels.shape[1] for labels in (own, *more))
    if any(labels.shape[1] < width for labels in (own, *more)):  # texts of different length
        own, *more = (np.pad(labels, ((0, 0), (0, width - labels.shape[1]))) for labels in (own, *more))
    return np.unique(np.vstack([own, *more]), axis=0)


def _decoded(rows: Labels, like: Labels) -> Labels:
    if _kind(like) == "numbers":
        return rows[:, 0].astype(like.dtype)
    return np.ascontiguousarray(rows.astype(np.uint32)).view(f"<U{rows.shape[1]}").ravel()
