"""Categories of columns that all agents agree on.

    C_j   all values of column j that any agent has        over the network

One flood serves all columns.
Values travel openly, as the labels of classifiers do. Whether a column has gaps is agreed in the
same flood.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from peerlearn.algorithms.agreement import union
from peerlearn.network.base import Network

Value: TypeAlias = float | str | None  # None is a gap
TEXT = "t"
NUMBER = "n"
GAP = "g"


def agree_on_categories(
    network: Network, values: Sequence[Sequence[set[Value]]]
) -> list[list[Value]]:
    """Return the values of each column, from those of each hosted agent and column.

    Numbers come first, then texts, each in ascending order; a gap is the last.
    """
    own = [_pack(columns) for columns in values]
    found: list[list[Value]] = [[] for _ in values[0]]
    for label in union(network, own).tolist():
        column, value = _unpack(label)
        found[column].append(value)
    return [sorted(each, key=_order) for each in found]


def _pack(columns: Sequence[set[Value]]) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """Return the values of all columns as texts: number of the column, kind, value."""
    labels = []
    for column, values in enumerate(columns):
        for value in values:
            if value is None:
                labels.append(f"{column}{GAP}")
            elif isinstance(value, str):
                # The mark keeps what numpy would cut off: zeros at the end of a text.
                labels.append(f"{column}{TEXT}{value}{TEXT}")
            else:
                labels.append(f"{column}{NUMBER}{value!r}")
    return np.array(labels, dtype=str)


def _unpack(label: str) -> tuple[int, Value]:
    digits = 0
    while label[digits].isdigit():
        digits += 1
    column = int(label[:digits])
    kind = label[digits]
    if kind == GAP:
        return column, None
    if kind == NUMBER:
        return column, float(label[digits + 1 :])
    return column, label[digits + 1 : -1]


def _order(value: Value) -> tuple[int, float, str]:
    if value is None:
        return (2, 0.0, "")
    if isinstance(value, str):
        return (1, 0.0, value)
    return (0, value, "")
