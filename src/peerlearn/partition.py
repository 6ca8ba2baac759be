"""Data to one share per agent: nothing lost, nothing twice, and in the kind it came (arrays, lists, pandas, sparse).

Each way of dealing is a function of row numbers (`even_rows`, ..) and a thin one that hands out the
rows (`even`, ..) as a list of shares (X_k, y_k), one per agent. The same seed deals the same way.
Rows of a share are in random order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import ArrayLike
from scipy import sparse

from peerlearn.arrays import Indices
from peerlearn.errors import DataError

Share: TypeAlias = tuple[Any, Any]


def even(X: ArrayLike, y: ArrayLike, agents: int, *, seed: int = 0) -> list[Share]:
    """Rows at random; sizes differ by at most one."""
    return _shares(X, y, even_rows(_rows(X, y), agents, default_rng(seed)))


def stratified(X: ArrayLike, y: ArrayLike, agents: int, *, seed: int = 0) -> list[Share]:
    """Every class spread over the agents as evenly as possible; sizes differ by at most one."""
    _rows(X, y)
    return _shares(X, y, stratified_rows(y, agents, default_rng(seed)))


def sized(X: ArrayLike, y: ArrayLike, sizes: Sequence[int], *, seed: int = 0) -> list[Share]:
    """Rows at random, sizes[k] of them to agent k."""
    return _shares(X, y, sized_rows(_rows(X, y), sizes, default_rng(seed)))


def dirichlet(
    X: ArrayLike, y: ArrayLike, agents: int, *, concentration: float = 0.5, seed: int = 0
) -> list[Share]:
    """Classes skewed over the agents, the more the smaller the concentration (see `dirichlet_rows`)."""
    _rows(X, y)
    return _shares(X, y, dirichlet_rows(y, agents, concentration, default_rng(seed)))


def columns(
    X: ArrayLike, agents: int, *, seed: int | None = 0, sizes: Sequence[int] | None = None
) -> list[Any]:
    """One block of columns per agent, those of `column_blocks`; all agents hold all rows."""
    return _pick_columns(X, column_blocks(_width(X), agents, seed=seed, sizes=sizes))


def column_blocks(
    n_columns: int, agents: int, *, seed: int | None = 0, sizes: Sequence[int] | None = None
) -> list[Indices]:
    """The columns of each agent, ascending: drawn at random, or in runs from the left with seed=None."""
    _check_counts(n_columns, agents, "columns")
    order = np.arange(n_columns) if seed is None else default_rng(seed).permutation(n_columns)
    if sizes is not None and len(sizes) != agents:
        raise DataError(
            f"{len(sizes)} sizes are given for {agents} agents: give one size per agent"
        )
    blocks = np.array_split(order, agents) if sizes is None else _cut(order, sizes, "columns")
    return [np.sort(block) for block in blocks]


def even_rows(n: int, agents: int, rng: Generator) -> list[Indices]:
    """n row numbers in random order, cut into as many runs as agents; the first n mod agents are one longer."""
    _check_counts(n, agents, "rows")
    return np.array_split(rng.permutation(n), agents)


def sized_rows(n: int, sizes: Sequence[int], rng: Generator) -> list[Indices]:
    """n row numbers in random order, cut into runs of the given sizes."""
    return _cut(rng.permutation(n), sizes, "rows")


def stratified_rows(y: ArrayLike, agents: int, rng: Generator) -> list[Indices]:
    """Rows laid out class by class and dealt like cards.

    A class is a run of that line, so its counts differ by at most one between agents, and so do the
    sizes. A class rarer than the agents is missing at some of them.
    """
    classes = _classes(y)
    _check_counts(len(classes), agents, "rows")
    shuffled = rng.permutation(len(classes))
    line = shuffled[np.argsort(classes[shuffled], kind="stable")]
    return [rng.permutation(line[agent::agents]) for agent in range(agents)]


def dirichlet_rows(
    y: ArrayLike, agents: int, concentration: float, rng: Generator
) -> list[Indices]:
    """Each class is cut among the agents by its own draw of proportions.

        p_c ~ Dirichlet(concentration, .., concentration)      agent k gets the fraction p_ck of class c

    Yurochkin et al., Bayesian nonparametric federated learning of neural networks, 2019; Hsu et
    al., Measuring the effects of non-identical data distribution, 2019, draw the classes of each
    agent instead. An agent left without rows is given one, chosen at random, of the agent that then
    has most: at most agents - 1 rows move so.
    """
    classes = _classes(y)
    _check_counts(len(classes), agents, "rows")
    if not 0 < concentration < math.inf:
        raise DataError(
            f"concentration is {concentration}: give a positive finite number, 0.1 is skewed, 100 is even"
        )
    parts = [
        _cut_at_random(rng.permutation(rows), agents, concentration, rng)
        for rows in _by_class(classes)
    ]
    dealt = [rng.permutation(np.concatenate(of_agent)) for of_agent in zip(*parts, strict=True)]
    return _none_empty(dealt)


def _cut_at_random(
    rows: Indices, agents: int, concentration: float, rng: Generator
) -> list[Indices]:
    proportions = rng.dirichlet(np.full(agents, concentration))
    ends = np.rint(np.cumsum(proportions)[:-1] * len(rows)).astype(np.intp)
    return np.split(rows, ends)


def _none_empty(dealt: list[Indices]) -> list[Indices]:
    for agent, rows in enumerate(dealt):
        if len(rows) == 0:
            richest = max(range(len(dealt)), key=lambda other: len(dealt[other]))
            dealt[agent], dealt[richest] = dealt[richest][-1:], dealt[richest][:-1]
    return dealt


def _by_class(classes: Indices) -> list[Indices]:
    return np.split(np.argsort(classes, kind="stable"), np.cumsum(np.bincount(classes))[:-1])


def _classes(y: Any) -> Indices:
    """The number of each row's class, in the order of the sorted labels."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(
            f"labels have shape {labels.shape}, but one per row is needed: give class labels, or use even"
        )
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError as error:
        raise DataError(
            f"labels cannot be sorted ({error}): give labels of one type, none missing"
        ) from error


def _shares(X: Any, y: Any, dealt: list[Indices]) -> list[Share]:
    return list(zip(_picked(X, dealt), _picked(y, dealt), strict=True))


def _pick_columns(X: Any, blocks: list[Indices]) -> list[Any]:
    """Return each block of columns, of the kind that X is."""
    if sparse.issparse(X):
        table = X.tocsc()
        return [table[:, block].asformat(X.format) for block in blocks]
    if hasattr(X, "iloc"):
        return [X.iloc[:, block] for block in blocks]
    if hasattr(X, "shape"):
        return [X[:, block] for block in blocks]
    return [[[row[j] for j in block] for row in X] for block in blocks]


def _picked(data: Any, dealt: list[Indices]) -> list[Any]:
    if sparse.issparse(data):
        table = data.tocsr()
        return [table[rows].asformat(data.format) for rows in dealt]
    if hasattr(data, "iloc"):
        return [data.iloc[rows] for rows in dealt]
    if hasattr(data, "shape"):
        return [data[rows] for rows in dealt]
    return [[data[row] for row in rows] for rows in dealt]


def _cut(order: Indices, sizes: Sequence[int], what: str) -> list[Indices]:
    for agent, size in enumerate(sizes):
        if not _positive(size):
            raise DataError(
                f"agent {agent} would get {size} {what}: give every agent a whole number of at least 1"
            )
    if sum(sizes) != len(order):
        raise DataError(
            f"sizes add up to {sum(sizes)}, but there are {len(order)} {what}: make them add up to that"
        )
    _check_counts(len(order), len(sizes), what)
    return np.split(order, np.cumsum(sizes)[:-1])


def _check_counts(n: int, agents: int, what: str) -> None:
    if not _positive(agents):
        raise DataError(
            f"agents is {agents!r}, but data is dealt to a whole number of agents: give 1 or more"
        )
    if n < agents:
        raise DataError(
            f"{n} {what} cannot be dealt to {agents} agents, one each at least: use fewer agents"
        )


def _positive(count: Any) -> bool:
    return isinstance(count, int | np.integer) and bool(count >= 1)


def _rows(X: Any, y: Any) -> int:
    n, labels = _length(X, "X"), _length(y, "y")
    if n != labels:
        raise DataError(f"X has {n} rows but y has {labels}: give one entry of y per row of X")
    return n


def _length(data: Any, what: str) -> int:
    try:
        return int(data.shape[0]) if hasattr(data, "shape") else len(data)
    except (TypeError, IndexError) as error:
        raise DataError(
            f"{what} is {data!r}, which has no rows: give an array, a list or a table"
        ) from error


def _width(X: Any) -> int:
    try:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
    except ValueError as error:
        raise DataError(
            "X has rows of unequal length, so it has no columns to deal: give a table"
        ) from error
    if len(shape) != 2:
        raise DataError(
            f"X has shape {tuple(shape)}, but columns are dealt from a table: give rows by columns"
        )
    return int(shape[1])
