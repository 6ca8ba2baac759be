"""Gaps filled by one value per column, from the rows of all agents.

mean             2 sums
median           by quantiles
most frequent    all values are agreed on, then counted: one flood and one sum
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from peerlearn.algorithms.categories import Value, agree_on_categories
from peerlearn.algorithms.standardise import mean_and_deviation_with_gaps
from peerlearn.algorithms.summed_histograms import add_counts, quantiles
from peerlearn.arrays import Indices
from peerlearn.errors import InputError
from peerlearn.models.base import RandomState, number_between
from peerlearn.network import Network
from peerlearn.preparing.cells import gaps_of, value_of
from peerlearn.preparing.transformer import NetworkTransformer, Table, no_values, would_show

__all__ = ["NetworkImputer"]

STRATEGIES = ("mean", "median", "most_frequent")


class NetworkImputer(NetworkTransformer):
    """Filling of gaps by what all agents' rows have in common; rows stay at their agents.

    A gap is NaN; in tables of texts also None and an empty text.

    Parameters
    ----------
    strategy : {"mean", "median", "most_frequent"}, default "mean"
        The value of a column that fills its gaps. "most_frequent" also takes texts. It shows all
        agents all values of the columns, so it is for columns with few values. Of several most
        frequent values it takes the first, in the order of numbers or of the alphabet.
    add_indicator : bool, default False
        Whether there is a further column for each column that has gaps at any agent: 1 where the
        value was missing, 0 elsewhere.
    accuracy : float, default 1e-6
        Relative error of medians. 0 is exact. A coarser accuracy sends less, and shows less about
        single rows.
    network : Network or None, default None
        The graph of agents. None takes all rows in one place.
    random_state : int, RandomState or None, default None
        Seed of the dealing of rows.

    Attributes
    ----------
    statistics_ : ndarray of shape (n_columns,)
        What fills the gaps of each column.
    indicated_ : ndarray of int
        The columns that have an indicator.
    sent_ : Counts
        What was sent.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import NetworkImputer, SimulatedNetwork, graphs
    >>> network = SimulatedNetwork(graphs.ring(2))
    >>> shares = [(np.array([[1.0, np.nan], [3.0, 2.0]]), None), (np.array([[8.0, 4.0]]), None)]
    >>> imputer = NetworkImputer("median", add_indicator=True, network=network).fit(shares)
    >>> imputer.transform([[np.nan, np.nan]])
    array([[3., 3., 1.]])
    >>> imputer.get_feature_names_out().tolist()
    ['x0', 'x1', 'x1_missing']
    """

    statistics_: Table
    indicated_: Indices

    def __init__(
        self,
        strategy: str = "mean",
        *,
        add_indicator: bool = False,
        accuracy: float = 1e-6,
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.strategy = strategy
        self.add_indicator = add_indicator
        self.accuracy = accuracy
        self.network = network
        self.random_state = random_state

    def check_parameters(self) -> None:
        if self.strategy not in STRATEGIES:
            raise InputError(
                f"strategy {self.strategy!r} is not known: choose one of {', '.join(STRATEGIES)}"
            )
        number_between(self.accuracy, "accuracy", 0, 1)

    def check_secrecy(self, tables: Sequence[Table]) -> None:
        if self.strategy == "most_frequent":
            raise would_show(
                "the strategy 'most_frequent' shows all values of the columns to all agents",
                "use 'mean' or 'median', or declare the column as a category with a list of its "
                "categories",
            )

    def check_table(self, X: Any, *, first: bool, fewest: int) -> Table:
        if self.strategy != "most_frequent":
            return super().check_table(X, first=first, fewest=fewest)
        table: Table = validate_data(
            self,
            X,
            dtype=None,
            ensure_all_finite="allow-nan",
            reset=first,
            ensure_min_samples=fewest,
        )
        if table.dtype.kind in "biuf":
            return super().check_table(X, first=first, fewest=fewest)
        return table.astype(object)

    def learn(self, network: Network, tables: Sequence[Table]) -> None:
        gaps = [gaps_of(table) for table in tables]
        counts = [np.stack([np.sum(own, axis=0), np.sum(~own, axis=0)]) for own in gaps]
        missing, present = add_counts(
            network, np.array(counts, dtype=np.int64), "number of gaps and values of each column"
        )
        if not present.all():
            names = self.column_names()
            raise no_values([names[column] for column in np.flatnonzero(present == 0)])
        if self.strategy == "mean":
            self.statistics_ = mean_and_deviation_with_gaps(network, tables)[1]
        elif self.strategy == "median":
            self.statistics_ = quantiles(network, tables, [0.5], self.accuracy)[0]
        else:
            self.statistics_ = _most_frequent(network, tables)
        self.indicated_ = np.flatnonzero(missing) if self.add_indicator else np.zeros(0, np.intp)

    def transform_rows(self, table: Table) -> Table:
        gaps = gaps_of(table)
        filled = np.where(gaps, self.statistics_, table)
        if not len(self.indicated_):
            return filled
        indicators = gaps[:, self.indicated_].astype(np.float64)
        return np.hstack([filled, indicators])

    def get_feature_names_out(self, input_features: Any = None) -> Table:
        """Return the names of the columns, and of the indicators: name_missing."""
        check_is_fitted(self)
        names = self.names_in(input_features)
        indicators = [f"{names[column]}_missing" for column in self.indicated_]
        return np.array([*names, *indicators], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = self.strategy == "most_frequent"
        return tags


def _most_frequent(network: Network, tables: Sequence[Table]) -> Table:
    """Return the most frequent value of each column."""
    values = [[_count_values(column) for column in table.T] for table in tables]
    categories = agree_on_categories(network, [[set(own) for own in each] for each in values])
    counts = []
    for each in values:
        own = [
            columns.get(value, 0)
            for columns, known in zip(each, categories, strict=True)
            for value in known
        ]
        counts.append(own)
    totals = add_counts(network, np.array(counts, dtype=np.int64), None)
    ends = np.cumsum([len(known) for known in categories])[:-1]
    chosen = [
        known[int(np.argmax(own))]
        for known, own in zip(categories, np.split(totals, ends), strict=True)
    ]
    texts = any(isinstance(value, str) for value in chosen)
    return np.array(chosen, dtype=object if texts else np.float64)


def _count_values(column: Table) -> dict[Value, int]:
    """Return how often each value of a column occurs, without gaps."""
    counts: dict[Value, int] = {}
    for cell in column.tolist():
        value = value_of(cell)
        if value is not None:
            counts[value] = counts.get(value, 0) + 1
    return counts
