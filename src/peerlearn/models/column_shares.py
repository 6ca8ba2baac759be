"""What a vertical model is given, turned into the checked columns of each hosted agent, with targets and identifiers.

A table is dealt by columns if all agents are hosted here, and is the agent's own if one is. A list
of tables has one for each hosted agent. Identifiers of rows are `ids`, else the index of a data
frame, else the rows' positions.
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
from peerlearn.models.shares import checked_targets
from peerlearn.models.targets import finite_rows
from peerlearn.network.base import Network


class Columns(BaseEstimator):
    """The number and names of one agent's columns, kept and compared by scikit-learn."""


@dataclass(frozen=True)
class Given:
    """How the columns of a fit were given, and so how those of a prediction are to be."""

    agents: tuple[int, ...]
    tables: list[Columns]  # one per hosted agent where each had a table of its own
    columns: list[Indices] | None  # of the one table, where it was dealt here

    def inputs(self, model: BaseEstimator, X: Any) -> list[Array]:
        """Each hosted agent's columns of new rows, if they are such as the model was fitted on."""
        if not self.tables:
            return _dealt(
                _checked(model, _unwrapped(len(self.agents), X)[0], "", first=False), self.columns
            )
        if not are_tables(X) or len(X) != len(self.agents):
            raise DataError(
                f"the model was fitted on one table per agent: give a list of {len(self.agents)} tables, the columns "
                f"of agents {', '.join(map(str, self.agents))}"
            )
        given = zip(self.tables, X, self.agents, strict=True)
        return [_checked(known, X_k, _whose(agent), first=False) for known, X_k, agent in given]


@dataclass(frozen=True)
class ColumnShares:
    given: Given
    inputs: list[Array]
    targets: list[Any]
    texts: list[list[str]]  # of each agent's identifiers
    named: bool  # whether rows had identifiers, or only positions

    def must_be_told_apart(self) -> None:
        """Refuse rows that cannot be found at other agents."""
        if not self.named:
            raise InputError(
                "rows='intersection' needs identifiers: give ids, or data frames with an index that is not just 0, 1, 2"
            )
        for agent, texts in zip(self.given.agents, self.texts, strict=True):
            all_different(texts, agent)

    @property
    def different_targets(self) -> dict[int, Any]:
        """Each y once: agents dealt from one table have the same."""
        return {id(y): y for y in self.targets}


def column_shares(
    model: BaseEstimator, network: Network, X: Any, y: Any, ids: Any, *, seed: int
) -> ColumnShares:
    """Inputs, targets and identifiers of each hosted agent, from fit(X, y) or from fit(tables, y)."""
    hosted, (X, y, ids) = network.hosted, _unwrapped(len(network.hosted), X, y, ids)
    if y is None:
        raise DataError(
            f"{type(model).__name__} requires y to be passed, but the target y is None: all agents must know y, call "
            "fit(X, y)"
        )
    if are_tables(X):
        return _from_tables(model, hosted, X, y, ids)
    if 1 < len(hosted) < network.size:
        raise InputError(
            f"this process hosts {len(hosted)} of {network.size} agents: call fit(tables, y) with the columns of each"
        )
    names = _identifiers(X, ids)
    X = _checked(model, X, "", first=True, fewest=1 if len(hosted) == network.size else 0)
    y, texts = _rows(model, X, y, names, "")
    columns = column_blocks(X.shape[1], network.size, seed) if len(hosted) > 1 else None
    agents = len(hosted)
    named = names is not None or agents == network.size  # of one table, positions say all
    return ColumnShares(
        Given(hosted, [], columns), _dealt(X, columns), [y] * agents, [texts] * agents, named
    )


def column_blocks(n_columns: int, agents: int, seed: int) -> list[Indices]:
    """The columns of each agent; where there are fewer columns than agents, the last ones have none."""
    having = min(n_columns, agents)
    none = [np.zeros(0, dtype=np.intp) for _ in range(agents - having)]
    return partition.column_blocks(n_columns, having, seed=seed) + none


def are_tables(X: Any) -> bool:
    """Whether X is a list of tables, and not a table of lists."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(np.ndim(x) == 2 for x in X)


def row_texts(X: Any, ids: Any, lengths: Sequence[int]) -> list[list[str]]:
    """The identifiers of the rows to predict, for each hosted agent."""
    X, ids = _unwrapped(len(lengths), X, ids)
    if not are_tables(X):  # dealt, or one agent's own
        return [_texts(_identifiers(X, ids), lengths[0], "")] * len(lengths)
    each = ids if _per_agent(ids, lengths) else [ids] * len(lengths)
    return [
        _texts(_identifiers(x, own), rows, "")
        for x, own, rows in zip(X, each, lengths, strict=True)
    ]


def _from_tables(
    model: BaseEstimator, hosted: tuple[int, ...], X: Any, y: Any, ids: Any
) -> ColumnShares:
    if len(X) != len(hosted):
        raise DataError(
            f"{len(X)} tables were given, but this process hosts {len(hosted)} agents: give the columns of each hosted "
            "agent, in ascending agent number"
        )
    tables = [Columns() for _ in hosted]
    given = zip(tables, X, hosted, strict=True)
    inputs = [_checked(known, X_k, _whose(agent), first=True) for known, X_k, agent in given]
    lengths = [len(own) for own in inputs]
    targets = y if _per_agent(y, lengths) else [y] * len(hosted)
    names = [
        _identifiers(X_k, own)
        for X_k, own in zip(
            X, ids if _per_agent(ids, lengths) else [ids] * len(hosted), strict=True
        )
    ]
    checked = [
        _rows(model, X_k, y_k, own, _whose(agent))
        for X_k, y_k, own, agent in zip(inputs, targets, names, hosted, strict=True)
    ]
    model.n_features_in_ = sum(own.shape[1] for own in inputs)
    named = all(own is not None for own in names)
    return ColumnShares(
        Given(hosted, tables, None), inputs, [y for y, _ in checked], [t for _, t in checked], named
    )


def _unwrapped(agents: int, X: Any, *others: Any) -> tuple[Any, ...]:
    """Of one agent, a list of one table is that table; what was given with it may come in a list too."""
    if agents > 1 or not are_tables(X) or len(X) > 1:
        return X, *others
    return X[0], *(other[0] if _per_agent(other, np.shape(X[0])[:1]) else other for other in others)


def _per_agent(given: Any, lengths: Sequence[int]) -> bool:
    """Whether this is a list with one entry for each agent, as long as its rows, and not one list for all."""
    if not isinstance(given, list | tuple) or len(given) != len(lengths):
        return False
    return [np.shape(own)[:1] for own in given] == [(rows,) for rows in lengths]


def _checked(known: BaseEstimator, X: Any, whose: str, *, first: bool, fewest: int = 0) -> Array:
    """Finite numbers; of the columns that are known, unless these are the first. One agent of many may have none."""
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
    finite_rows(checked, whose)
    return checked


def _rows(model: BaseEstimator, X: Array, y: Any, names: Any, whose: str) -> tuple[Any, list[str]]:
    """Targets and identifiers for these rows, one each."""
    try:
        y = checked_targets(model, y, 1)
        check_consistent_length(X, y)
    except ValueError as error:
        raise DataError(f"{whose}{error}") from error
    return y, _texts(names, len(X), whose)


def _identifiers(X: Any, ids: Any) -> Any:
    """What was given, or the index of a data frame, or None; an index of bare positions tells no rows apart."""
    if ids is not None or not hasattr(X, "iloc"):
        return ids
    positions = type(X.index).__name__ == "RangeIndex" and (X.index.start, X.index.step) == (0, 1)
    return None if positions else X.index


def _texts(names: Any, rows: int, whose: str) -> list[str]:
    texts = texts_of(np.arange(rows) if names is None else names)
    if len(texts) != rows:
        raise DataError(
            f"{whose}{len(texts)} ids were given for {rows} rows: give one for every row"
        )
    return texts


def _dealt(X: Array, columns: list[Indices] | None) -> list[Array]:
    return [X] if columns is None else [X[:, own] for own in columns]


def _whose(agent: int) -> str:
    return f"the columns of agent {agent}: "
