"""Categories as columns of 0 and 1, the same columns at all agents."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from peerlearn.algorithms.categories import Value, agree_on_categories
from peerlearn.algorithms.disputes import codes_of_all, count_codes, name_agents
from peerlearn.errors import DataError, InputError
from peerlearn.models.base import RandomState
from peerlearn.network import Network
from peerlearn.preparing.cells import category_of
from peerlearn.preparing.transformer import NetworkTransformer, Table, would_show

__all__ = ["NetworkEncoder"]

UNKNOWN = ("ignore", "error")


class NetworkEncoder(NetworkTransformer):
    """Columns of 0 and 1 for the categories that any agent has; rows stay at their agents.

    A category is a text. Numbers and truth values count as their texts: 1, 1.0 and "1" are one
    category. A gap (None, NaN or an empty text) is a category of its own where any agent has one.

    Parameters
    ----------
    categories : "auto" or list of lists, default "auto"
        "auto" takes all values that occur at any agent; all agents see them. Or the categories of
        each column, in the order of the columns, so that no values are sent. None among them
        stands for gaps.
    handle_unknown : {"ignore", "error"}, default "ignore"
        What to do with a category that was not there in `fit`: all columns 0, or an error.
    drop_first : bool, default False
        Whether the first category of each column gets no column of its own. A model with a
        constant and no penalty needs that.
    max_categories : int, default 100
        A column with more values at any agent, or in all, is refused, and its values are not sent.
    network : Network or None, default None
        The graph of agents. None takes all rows in one place.
    random_state : int, RandomState or None, default None
        Seed of the dealing of rows.

    Attributes
    ----------
    categories_ : list of list
        The categories of each column: texts, and None last where there are gaps.
    sent_ : Counts
        What was sent.

    Examples
    --------
    >>> from peerlearn import NetworkEncoder, SimulatedNetwork, graphs
    >>> shares = [([["red"], ["blue"]], None), ([["green"], ["red"]], None)]
    >>> encoder = NetworkEncoder(network=SimulatedNetwork(graphs.ring(2))).fit(shares)
    >>> encoder.categories_
    [['blue', 'green', 'red']]
    >>> encoder.transform([["green"], ["violet"]])
    array([[0., 1., 0.],
           [0., 0., 0.]])
    """

    categories_: list[list[Value]]

    def __init__(
        self,
        categories: Any = "auto",
        *,
        handle_unknown: str = "ignore",
        drop_first: bool = False,
        max_categories: int = 100,
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.categories = categories
        self.handle_unknown = handle_unknown
        self.drop_first = drop_first
        self.max_categories = max_categories
        self.network = network
        self.random_state = random_state

    def check_parameters(self) -> None:
        if self.handle_unknown not in UNKNOWN:
            raise InputError(
                f"handle_unknown {self.handle_unknown!r} is not known: choose one of "
                f"{', '.join(UNKNOWN)}"
            )
        if isinstance(self.categories, str) and self.categories != "auto":
            raise InputError(
                f"categories is {self.categories!r}: give 'auto', or a list of categories for each "
                "column"
            )
        check_scalar(self.max_categories, "max_categories", Integral, min_val=1)

    def check_secrecy(self, tables: Sequence[Table]) -> None:
        if isinstance(self.categories, str):
            raise would_show(
                "categories='auto' shows all categories of single agents to their neighbors",
                "give the categories of each column as a list",
            )

    def check_table(self, X: Any, *, first: bool, fewest: int) -> Table:
        """Check a table of categories, and return it with texts, and None for gaps."""
        table: Table = validate_data(
            self,
            X,
            dtype=None,
            ensure_all_finite="allow-nan",
            reset=first,
            ensure_min_samples=fewest,
        )
        cells = [category_of(cell) for cell in table.ravel().tolist()]
        return np.array(cells, dtype=object).reshape(table.shape)

    def learn(self, network: Network, tables: Sequence[Table]) -> None:
        if isinstance(self.categories, str):
            values = [[set(column.tolist()) for column in table.T] for table in tables]
            self._check_sizes(network, values)
            self.categories_ = agree_on_categories(network, values)
        else:
            self.categories_ = self._given_categories()
        for name, known in zip(self.column_names(), self.categories_, strict=True):
            if len(known) > self.max_categories:
                raise DataError(
                    f"column {name} has {len(known)} categories in the whole network, and "
                    f"max_categories is {self.max_categories}: leave it out, or raise the limit"
                )
        if self.handle_unknown == "error":
            for table in tables:
                self._codes(table)

    def transform_rows(self, table: Table) -> Table:
        blocks = []
        for codes, known in zip(self._codes(table), self.categories_, strict=True):
            # The row after the last category stands for unknown ones.
            columns = np.eye(len(known) + 1, len(known))
            blocks.append(columns[codes][:, 1 if self.drop_first else 0 :])
        return np.hstack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> Table:
        """Return the names of the new columns: name_category, and name_missing for gaps."""
        check_is_fitted(self)
        found = []
        for name, known in zip(self.names_in(input_features), self.categories_, strict=True):
            shown = known[1:] if self.drop_first else known
            found += [f"{name}_{'missing' if each is None else each}" for each in shown]
        return np.array(found, dtype=object)

    def _check_sizes(self, network: Network, values: Sequence[Sequence[set[Value]]]) -> None:
        """Refuse, at every agent, columns in which any agent has too many values."""
        sizes = [[len(own) > self.max_categories for own in columns] for columns in values]
        codes = np.array(sizes, dtype=np.int64)
        large = np.flatnonzero(count_codes(network, codes, 2)[:, 1])
        if len(large):
            column = int(large[0])
            everywhere = codes_of_all(network, codes, [column])[:, 0]
            agents = name_agents(network, np.flatnonzero(everywhere).tolist())
            raise DataError(
                f"column {self.column_names()[column]} has more than {self.max_categories} "
                f"different values at {agents}, like free text or numbers, and none of them was "
                "sent: leave it out, or raise max_categories"
            )

    def _given_categories(self) -> list[list[Value]]:
        given = [[category_of(each) for each in known] for known in self.categories]
        if len(given) != self.n_features_in_:
            raise InputError(
                f"categories has lists for {len(given)} columns, but X has {self.n_features_in_}: "
                "give one list per column"
            )
        for name, known in zip(self.column_names(), given, strict=True):
            if not known or len(set(known)) != len(known):
                raise InputError(
                    f"the categories of column {name} are {known!r:.80}: give different values, "
                    "one at least"
                )
        return [list(known) for known in given]

    def _codes(self, table: Table) -> list[Any]:
        """Return the number of each cell's category, per column. Unknown ones have the last."""
        found = []
        for name, column, known in zip(self.column_names(), table.T, self.categories_, strict=True):
            numbers = {value: number for number, value in enumerate(known)}
            codes = np.array([numbers.get(cell, len(known)) for cell in column.tolist()], np.intp)
            unknown = np.flatnonzero(codes == len(known))
            if len(unknown) and self.handle_unknown == "error":
                raise DataError(
                    f"column {name} has the value {column[unknown[0]]!r:.60} in row {unknown[0]}, "
                    f"which is not among its {len(known)} categories: correct it, or set "
                    "handle_unknown='ignore'"
                )
            found.append(codes)
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
