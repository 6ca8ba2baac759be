"""Dealing data: one share per agent, every row or column in exactly one of them.

Shares are of the kind that was dealt (arrays, lists, pandas, sparse). Each way of dealing rows is a
function of row numbers (`even_rows`, ..) and a thin one that hands out the rows (`even`, ..) as a
list of shares (X_k, y_k), one per agent. The same seed deals the same way. Rows of a share are in
random order.
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


def even(
    X: ArrayLike,
    y: ArrayLike,
    agents: int,
    *,
    seed: int = 0,
) -> list[Share]:
    """Deal rows at random, as many to each agent; sizes differ by at most one.

    Parameters
    ----------
    X : array_like, DataFrame or sparse matrix
        Rows.
    y : array_like
        One entry per row of X.
    agents : int
        Number of agents.
    seed : int, default 0
        Seed of the deal.

    Returns
    -------
    list of (X_k, y_k)
        One share per agent, of the same kind as X and y.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import partition
    >>> shares = partition.even(np.arange(10).reshape(5, 2), np.arange(5), agents=2)
    >>> [len(y) for X, y in shares]
    [3, 2]
    """
    return _shares(X, y, even_rows(_rows(X, y), agents, default_rng(seed)))


def stratified(
    X: ArrayLike,
    y: ArrayLike,
    agents: int,
    *,
    seed: int = 0,
) -> list[Share]:
    """Deal every class to the agents as evenly as possible; sizes differ by at most one.

    Parameters
    ----------
    X : array_like, DataFrame or sparse matrix
        Rows.
    y : array_like
        One entry per row of X, its class.
    agents : int
        Number of agents.
    seed : int, default 0
        Seed of the deal.

    Returns
    -------
    list of (X_k, y_k)
        One share per agent, of the same kind as X and y.

    Examples
    --------
    >>> from peerlearn import partition
    >>> rows = list(range(8))
    >>> shares = partition.stratified(rows, ["a", "a", "b", "b", "b", "b", "c", "c"], agents=2)
    >>> [sorted(y) for X, y in shares]
    [['a', 'b', 'b', 'c'], ['a', 'b', 'b', 'c']]
    """
    _rows(X, y)
    return _shares(X, y, stratified_rows(y, agents, default_rng(seed)))


def sized(
    X: ArrayLike,
    y: ArrayLike,
    sizes: Sequence[int],
    *,
    seed: int = 0,
) -> list[Share]:
    """Deal rows at random, sizes[k] of them to agent k.

    Parameters
    ----------
    X : array_like, DataFrame or sparse matrix
        Rows.
    y : array_like
        One entry per row of X.
    sizes : sequence of int
        Number of rows of each agent. They add up to the rows of X.
    seed : int, default 0
        Seed of the deal.

    Returns
    -------
    list of (X_k, y_k)
        One share per agent, of the same kind as X and y.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import partition
    >>> shares = partition.sized(np.eye(6), np.arange(6), [1, 2, 3])
    >>> [X.shape for X, y in shares]
    [(1, 6), (2, 6), (3, 6)]
    """
    return _shares(X, y, sized_rows(_rows(X, y), sizes, default_rng(seed)))


def dirichlet(
    X: ArrayLike,
    y: ArrayLike,
    agents: int,
    *,
    concentration: float = 0.5,
    seed: int = 0,
) -> list[Share]:
    """Deal rows so that the agents have different proportions of the classes.

    The formula is in `dirichlet_rows`.

    Parameters
    ----------
    X : array_like, DataFrame or sparse matrix
        Rows.
    y : array_like
        One entry per row of X, its class.
    agents : int
        Number of agents.
    concentration : float, default 0.5
        The smaller it is, the more the proportions differ: 0.1 is skewed, 100 is nearly even.
    seed : int, default 0
        Seed of the deal.

    Returns
    -------
    list of (X_k, y_k)
        One share per agent, of the same kind as X and y.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import partition
    >>> y = np.repeat([0, 1], 50)
    >>> shares = partition.dirichlet(np.eye(100), y, agents=3, concentration=0.1)
    >>> sum(len(y_k) for X_k, y_k in shares)
    100
    """
    _rows(X, y)
    return _shares(X, y, dirichlet_rows(y, agents, concentration, default_rng(seed)))


def columns(
    X: ArrayLike,
    agents: int,
    *,
    seed: int | None = 0,
    sizes: Sequence[int] | None = None,
) -> list[Any]:
    """Deal columns: one block per agent, with all rows.

    Parameters
    ----------
    X : array_like, DataFrame or sparse matrix
        A table, rows by columns.
    agents : int
        Number of agents.
    seed : int or None, default 0
        Seed of the deal. None deals the columns from left to right.
    sizes : sequence of int, optional
        Number of columns of each agent. By default they differ by at most one.

    Returns
    -------
    list
        One block of columns per agent, of the same kind as X.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import partition
    >>> left, right = partition.columns(np.arange(8).reshape(2, 4), 2, seed=None)
    >>> left
    array([[0, 1],
           [4, 5]])
    """
    return _pick_columns(X, column_blocks(_width(X), agents, seed=seed, sizes=sizes))


def column_blocks(
    n_columns: int,
    agents: int,
    *,
    seed: int | None = 0,
    sizes: Sequence[int] | None = None,
) -> list[Indices]:
    """Return the column numbers of each agent, in ascending order.

    Parameters
    ----------
    n_columns : int
        Number of columns.
    agents : int
        Number of agents.
    seed : int or None, default 0
        Seed of the deal. None deals the columns from left to right.
    sizes : sequence of int, optional
        Number of columns of each agent. By default they differ by at most one.

    Returns
    -------
    list of ndarray of int
        Column numbers, one array per agent.

    Examples
    --------
    >>> from peerlearn import partition
    >>> [block.tolist() for block in partition.column_blocks(5, 2, seed=None)]
    [[0, 1, 2], [3, 4]]
    """
    _check_counts(n_columns, agents, "columns")
    order = np.arange(n_columns) if seed is None else default_rng(seed).permutation(n_columns)
    if sizes is not None and len(sizes) != agents:
        raise DataError(
            f"{len(sizes)} sizes are given for {agents} agents: give one size per agent"
        )
    blocks = np.array_split(order, agents) if sizes is None else _cut(order, sizes, "columns")
    return [np.sort(block) for block in blocks]


def even_rows(
    n: int,
    agents: int,
    rng: Generator,
) -> list[Indices]:
    """Return n row numbers in random order, cut into as many runs as there are agents.

    The first n mod agents runs are longer by one.

    Parameters
    ----------
    n : int
        Number of rows.
    agents : int
        Number of agents.
    rng : numpy.random.Generator
        Where random numbers come from.

    Returns
    -------
    list of ndarray of int
        Row numbers, one array per agent.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import partition
    >>> [len(rows) for rows in partition.even_rows(7, 3, np.random.default_rng(0))]
    [3, 2, 2]
    """
    _check_counts(n, agents, "rows")
    return np.array_split(rng.permutation(n), agents)


def sized_rows(
    n: int,
    sizes: Sequence[int],
    rng: Generator,
) -> list[Indices]:
    """Return n row numbers in random order, cut into runs of the given sizes.

    Parameters
    ----------
    n : int
        Number of rows.
    sizes : sequence of int
        Number of rows of each agent. They add up to n.
    rng : numpy.random.Generator
        Where random numbers come from.

    Returns
    -------
    list of ndarray of int
        Row numbers, one array per agent.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import partition
    >>> [len(rows) for rows in partition.sized_rows(7, [1, 6], np.random.default_rng(0))]
    [1, 6]
    """
    return _cut(rng.permutation(n), sizes, "rows")


def stratified_rows(
    y: ArrayLike,
    agents: int,
    rng: Generator,
) -> list[Indices]:
    """Return row numbers with every class spread over the agents as evenly as possible.

    Rows are laid out class by class and dealt like cards. A class is a run of that line, so its
    counts differ by at most one between agents, and so do the sizes. If a class has fewer rows than
    there are agents, some agents have none of it.

    Parameters
    ----------
    y : array_like
        The class of each row.
    agents : int
        Number of agents.
    rng : numpy.random.Generator
        Where random numbers come from.

    Returns
    -------
    list of ndarray of int
        Row numbers, one array per agent.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import partition
    >>> y = np.array([0, 0, 1, 1, 1, 1])
    >>> dealt = partition.stratified_rows(y, 2, np.random.default_rng(0))
    >>> [np.bincount(y[rows]).tolist() for rows in dealt]
    [[1, 2], [1, 2]]
    """
    classes = _classes(y)
    _check_counts(len(classes), agents, "rows")
    shuffled = rng.permutation(len(classes))
    line = shuffled[np.argsort(classes[shuffled], kind="stable")]
    return [rng.permutation(line[agent::agents]) for agent in range(agents)]


def dirichlet_rows(
    y: ArrayLike,
    agents: int,
    concentration: float,
    rng: Generator,
) -> list[Indices]:
    """Return row numbers with different proportions of the classes at each agent.

        p_c ~ Dirichlet(concentration, .., concentration)    agent k gets p_ck of class c

    Yurochkin et al., Bayesian nonparametric federated learning of neural networks, 2019. Hsu et
    al., Measuring the effects of non-identical data distribution, 2019, draw the classes of each
    agent instead. An agent left without rows gets one row, chosen at random, of the agent that has
    most at that time. At most agents - 1 rows move in this way.

    Parameters
    ----------
    y : array_like
        The class of each row.
    agents : int
        Number of agents.
    concentration : float
        The smaller it is, the more the proportions differ: 0.1 is skewed, 100 is nearly even.
    rng : numpy.random.Generator
        Where random numbers come from.

    Returns
    -------
    list of ndarray of int
        Row numbers, one array per agent.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import partition
    >>> y = np.repeat([0, 1], 20)
    >>> dealt = partition.dirichlet_rows(y, 3, 0.1, np.random.default_rng(0))
    >>> sorted(np.concatenate(dealt)) == list(range(40))
    True
    """
    classes = _classes(y)
    _check_counts(len(classes), agents, "rows")
    if not 0 < concentration < math.inf:
        raise DataError(
            f"concentration is {concentration}: give a positive finite number, 0.1 is skewed, 100 "
            "is even"
        )
    parts = [
        _cut_at_random(rng.permutation(rows), agents, concentration, rng)
        for rows in _by_class(classes)
    ]
    dealt = [rng.permutation(np.concatenate(of_agent)) for of_agent in zip(*parts, strict=True)]
    return _fill_empty(dealt)


def _cut_at_random(
    rows: Indices,
    agents: int,
    concentration: float,
    rng: Generator,
) -> list[Indices]:
    proportions = rng.dirichlet(np.full(agents, concentration))
    ends = np.rint(np.cumsum(proportions)[:-1] * len(rows)).astype(np.intp)
    return np.split(rows, ends)


def _fill_empty(dealt: list[Indices]) -> list[Indices]:
    """Give each agent without rows the last row of the agent that has most."""
    for agent, rows in enumerate(dealt):
        if len(rows) == 0:
            richest = max(range(len(dealt)), key=lambda other: len(dealt[other]))
            dealt[agent] = dealt[richest][-1:]
            dealt[richest] = dealt[richest][:-1]
    return dealt


def _by_class(classes: Indices) -> list[Indices]:
    """Return the row numbers of each class."""
    order = np.argsort(classes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(classes))[:-1])


def _classes(y: Any) -> Indices:
    """Return the number of each row's class, in the order of the sorted labels."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise DataError(
            f"labels have shape {labels.shape}, but one per row is needed: give class labels, or "
            "use even"
        )
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError as error:
        raise DataError(
            f"labels cannot be sorted ({error}): give labels of one type, none missing"
        ) from error


def _shares(
    X: Any,
    y: Any,
    dealt: list[Indices],
) -> list[Share]:
    return list(zip(_pick(X, dealt), _pick(y, dealt), strict=True))


def _pick(data: Any, dealt: list[Indices]) -> list[Any]:
    if sparse.issparse(data):
        table = data.tocsr()
        return [table[rows].asformat(data.format) for rows in dealt]
    if hasattr(data, "iloc"):
        return [data.iloc[rows] for rows in dealt]
    if hasattr(data, "shape"):
        return [data[rows] for rows in dealt]
    return [[data[row] for row in rows] for rows in dealt]


def _cut(
    order: Indices,
    sizes: Sequence[int],
    what: str,
) -> list[Indices]:
    for agent, size in enumerate(sizes):
        if not _positive(size):
            raise DataError(
                f"agent {agent} would get {size} {what}: give every agent a whole number of at "
                "least 1"
            )
    if sum(sizes) != len(order):
        raise DataError(
            f"sizes add up to {sum(sizes)}, but there are {len(order)} {what}: make them add up to "
            "that"
        )
    _check_counts(len(order), len(sizes), what)
    return np.split(order, np.cumsum(sizes)[:-1])


def _check_counts(
    n: int,
    agents: int,
    what: str,
) -> None:
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
    """Check that X and y have as many rows, and return how many."""
    n = _length(X, "X")
    labels = _length(y, "y")
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


def _pick_columns(X: Any, blocks: list[Indices]) -> list[Any]:
    """Return each block of columns, of the same kind as X."""
    if sparse.issparse(X):
        table = X.tocsc()
        return [table[:, block].asformat(X.format) for block in blocks]
    if hasattr(X, "iloc"):
        return [X.iloc[:, block] for block in blocks]
    if hasattr(X, "shape"):
        return [X[:, block] for block in blocks]
    return [[[row[j] for j in block] for row in X] for block in blocks]
