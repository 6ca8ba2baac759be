"""Input of vertical models: columns, targets and row identifiers of each hosted agent.

    fit(X, y, ids)         all agents hosted here: columns are dealt; one agent hosted: its columns
    fit(tables, y, ids)    a list of tables, the columns of each hosted agent; y and ids may be
                           lists too

The identifiers of rows are `ids`, or the index of a data frame, or else the positions of the rows.
All input is checked before anything is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, validate_data

from peerlearn import partition
from peerlearn.algorithms.row_identity import all_different, texts_of
from peerlearn.arrays import Array, Indices
from peerlearn.errors import DataError, InputError
from peerlearn.models.row_model import check_targets
from peerlearn.models.targets import check_finite_rows
from peerlearn.network.base import Network


class Columns(BaseEstimator):
    """Number and names of one agent's columns, stored and compared by scikit-learn."""


@dataclass(frozen=True)
class Given:
    """Form of the input of `fit`, which the input of a prediction must have as well.

    agents: the hosted agents.
    tables: the columns of each hosted agent, if each had its own table; else empty.
    columns: the columns of each agent, if one table was dealt; else None.
    """

    agents: tuple[int, ...]
    tables: list[Columns]
    columns: list[Indices] | None

    def inputs(self, model: BaseEstimator, X: Any) -> list[Array]:
        """Return each hosted agent's columns of new rows, if they have the form of the fit."""
        if not self.tables:
            table = _unwrap_single_table(len(self.agents), X)[0]
            return _deal(_check_inputs(model, table, "", first=False), self.columns)
        if not are_tables(X) or len(X) != len(self.agents):
            raise DataError(
                "the model was fitted on one table per agent: give a list of "
                f"{len(self.agents)} tables, the columns of agents "
                f"{', '.join(map(str, self.agents))}"
            )
        return _check_tables(self.tables, X, self.agents, first=False)


@dataclass(frozen=True)
class ColumnShares:
    """Columns, targets and identifiers of the rows of each hosted agent.

    texts: the identifiers as texts.
    named: whether rows had identifiers; False if they are only positions.
    """

    given: Given
    inputs: list[Array]
    targets: list[Any]
    texts: list[list[str]]
    named: bool

    def check_identifiers(self) -> None:
        """Refuse rows without identifiers, and identifiers that occur twice at one agent."""
        if not self.named:
            raise InputError(
                "rows='intersection' needs identifiers: give ids, or data frames with an index "
                "that is not just 0, 1, 2"
            )
        for agent, texts in zip(self.given.agents, self.texts, strict=True):
            all_different(texts, agent)

    @property
    def different_targets(self) -> dict[int, Any]:
        """Each y once, by its id: agents that share one table share y as well."""
        return {id(y): y for y in self.targets}


def column_shares(
    model: BaseEstimator, network: Network, X: Any, y: Any, ids: Any, *, seed: int
) -> ColumnShares:
    """Return columns, targets and identifiers of each hosted agent, from the arguments of `fit`."""
    hosted = network.hosted
    X, y, ids = _unwrap_single_table(len(hosted), X, y, ids)
    if y is None:
        raise DataError(
            f"{type(model).__name__} requires y to be passed, but the target y is None: all agents "
            "must know y, call fit(X, y)"
        )
    if are_tables(X):
        return _from_tables(model, hosted, X, y, ids)
    if 1 < len(hosted) < network.size:
        raise InputError(
            f"this process hosts {len(hosted)} of {network.size} agents: call fit(tables, y) with "
            "the columns of each"
        )
    names = _identifiers(X, ids)
    agents = len(hosted)
    hosts_all = agents == network.size
    X = _check_inputs(model, X, "", first=True, fewest=1 if hosts_all else 0)
    y, texts = _check_rows(model, X, y, names, "")
    columns = column_blocks(X.shape[1], network.size, seed) if agents > 1 else None
    named = names is not None or hosts_all  # positions identify the rows of a single table
    given = Given(hosted, [], columns)
    return ColumnShares(given, _deal(X, columns), [y] * agents, [texts] * agents, named)


def column_blocks(n_columns: int, agents: int, seed: int) -> list[Indices]:
    """Return the columns of each agent. With fewer columns than agents, the last have none."""
    having = min(n_columns, agents)
    none = [np.zeros(0, dtype=np.intp) for _ in range(agents - having)]
    return partition.column_blocks(n_columns, having, seed=seed) + none


def are_tables(X: Any) -> bool:
    """Return whether X is a list of tables, and not a table of lists."""
    if not isinstance(X, list | tuple) or len(X) == 0:
        return False
    return all(np.ndim(x) == 2 for x in X)


def row_texts(X: Any, ids: Any, lengths: Sequence[int]) -> list[list[str]]:
    """Return the identifiers of the rows to predict, for each hosted agent."""
    X, ids = _unwrap_single_table(len(lengths), X, ids)
    if not are_tables(X):  # one table that is dealt, or one agent's own
        return [_as_texts(_identifiers(X, ids), lengths[0], "")] * len(lengths)
    texts = []
    for X_k, own, rows in zip(X, _spread(ids, lengths), lengths, strict=True):
        texts.append(_as_texts(_identifiers(X_k, own), rows, ""))
    return texts


def _from_tables(
    model: BaseEstimator, hosted: tuple[int, ...], X: Any, y: Any, ids: Any
) -> ColumnShares:
    if len(X) != len(hosted):
        raise DataError(
            f"{len(X)} tables were given, but this process hosts {len(hosted)} agents: give the "
            "columns of each hosted agent, in ascending agent number"
        )
    tables = [Columns() for _ in hosted]
    inputs = _check_tables(tables, X, hosted, first=True)
    lengths = [len(own) for own in inputs]
    names = [_identifiers(X_k, own) for X_k, own in zip(X, _spread(ids, lengths), strict=True)]
    targets = []
    texts = []
    agents = zip(hosted, inputs, _spread(y, lengths), names, strict=True)
    for agent, X_k, y_k, own in agents:
        checked_y, own_texts = _check_rows(model, X_k, y_k, own, _whose(agent))
        targets.append(checked_y)
        texts.append(own_texts)
    model.n_features_in_ = sum(own.shape[1] for own in inputs)
    named = all(own is not None for own in names)
    return ColumnShares(Given(hosted, tables, None), inputs, targets, texts, named)


def _unwrap_single_table(agents: int, X: Any, *others: Any) -> tuple[Any, ...]:
    """Return the table itself if one agent gives a list of one table.

    The other arguments are then taken out of their lists as well, if they are in lists.
    """
    if agents > 1 or not are_tables(X) or len(X) > 1:
        return X, *others
    lengths = np.shape(X[0])[:1]
    bare = [other[0] if _is_per_agent(other, lengths) else other for other in others]
    return X[0], *bare


def _spread(given: Any, lengths: Sequence[int]) -> Sequence[Any]:
    """Return one entry per agent: those of a list per agent, else the same for all agents."""
    return given if _is_per_agent(given, lengths) else [given] * len(lengths)


def _is_per_agent(given: Any, lengths: Sequence[int]) -> bool:
    """Return whether it is a list with one entry per agent, and not one list for all agents.

    An entry must be as long as the agent's table.
    """
    if not isinstance(given, list | tuple) or len(given) != len(lengths):
        return False
    return [np.shape(own)[:1] for own in given] == [(rows,) for rows in lengths]


def _check_tables(
    known: Sequence[Columns], X: Any, agents: tuple[int, ...], *, first: bool
) -> list[Array]:
    """Check the tables of the hosted agents, and return them as numbers."""
    tables = zip(known, X, agents, strict=True)
    return [_check_inputs(own, X_k, _whose(agent), first=first) for own, X_k, agent in tables]


def _check_inputs(
    known: BaseEstimator, X: Any, whose: str, *, first: bool, fewest: int = 0
) -> Array:
    """Check one table, and return it as finite numbers.

    known: an estimator that has the number and names of the columns, or gets them if this is the
        first table.
    fewest: the smallest number of columns; one agent of many may have none.
    """
    try:
        checked: Array = validate_data(
            known,
            X,
            dtype=np.float64,
            ensure_all_finite=False,
            reset=first,
            ensure_min_features=fewest,
        )
    except ValueError as error:
        raise DataError(f"{whose}{error}") from error
    check_finite_rows(checked, whose)
    return checked


def _check_rows(
    model: BaseEstimator, X: Array, y: Any, names: Any, whose: str
) -> tuple[Any, list[str]]:
    """Return targets and identifiers, if there is one of each per row."""
    try:
        y = check_targets(model, y, 1)
        check_consistent_length(X, y)
    except ValueError as error:
        raise DataError(f"{whose}{error}") from error
    return y, _as_texts(names, len(X), whose)


def _identifiers(X: Any, ids: Any) -> Any:
    """Return the identifiers of rows: `ids`, or the index of a data frame, or None.

    An index 0, 1, 2, .. only counts the rows, and is no identifier.
    """
    if ids is not None or not hasattr(X, "iloc"):
        return ids
    index = X.index
    if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1:
        return None
    return index


def _as_texts(names: Any, rows: int, whose: str) -> list[str]:
    texts = texts_of(np.arange(rows) if names is None else names)
    if len(texts) != rows:
        raise DataError(
            f"{whose}{len(texts)} ids were given for {rows} rows: give one for every row"
        )
    return texts


def _deal(X: Array, columns: list[Indices] | None) -> list[Array]:
    return [X] if columns is None else [X[:, own] for own in columns]


def _whose(agent: int) -> str:
    return f"the columns of agent {agent}: "
