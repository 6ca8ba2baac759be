"""Tables with numbers, dates, categories and gaps as inputs of models.

guess        the kind of each column, from the cells                    alone
agree        on the kinds: a column has one kind at all agents          over the network
learn        scales, fillings and categories                            over the network
transform    numbers and dates: gaps filled, scaled, and an indicator for columns with gaps
             categories: columns of 0 and 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from peerlearn.algorithms.disputes import codes_of_all, count_codes, name_agents
from peerlearn.errors import DataError, InputError
from peerlearn.models.base import RandomState
from peerlearn.network import Network
from peerlearn.preparing import kinds
from peerlearn.preparing.cells import category_of, is_gap
from peerlearn.preparing.encoder import NetworkEncoder
from peerlearn.preparing.imputer import NetworkImputer
from peerlearn.preparing.scaler import NetworkScaler
from peerlearn.preparing.transformer import NetworkTransformer, Table, no_values, would_show
from peerlearn.toml_reader import near

__all__ = ["TablePreparer"]

DROP = "drop"
DECLARED = {name: code for code, name in kinds.NAMES.items()}


class TablePreparer(NetworkTransformer):
    """Numbers for a model from a table as sites have it; rows stay at their agents.

    The kind of each column is guessed from its cells: number, date (as days), or category. All
    agents must have columns of the same kinds. Gaps in numbers and dates are filled and have an
    indicator column; gaps in categories are a category. Free text is refused.

    Parameters
    ----------
    columns : mapping or None, default None
        What cannot be guessed, by the name of a column: "number", "date", "category" (for numbers
        that are codes), "drop" (leave it out), or a list of its categories, which are then not
        sent.
    names : sequence of str or None, default None
        Names of the columns, for tables that have none. A data frame brings its own.
    strategy : {"mean", "median", "most_frequent"}, default "median"
        What fills gaps in numbers, as in `NetworkImputer`.
    method : {"standard", "robust", "range"}, default "standard"
        How numbers are scaled, as in `NetworkScaler`.
    drop_first : bool, default False
        Whether the first category of each column gets no column, as in `NetworkEncoder`.
    max_categories : int, default 100
        A column with more different texts is free text, which is refused and not sent. So is one
        with a text of more than 60 characters.
    accuracy : float, default 1e-6
        Relative error of medians and other quantiles.
    network : Network or None, default None
        The graph of agents. None takes all rows in one place.
    random_state : int, RandomState or None, default None
        Seed of the dealing of rows.

    Attributes
    ----------
    kinds_ : dict
        The kind of each column by its name.
    imputer_, scaler_, encoder_ : transformers or None
        What was learned about numbers and about categories; None where there are no such columns.
    sent_ : Counts
        What was sent.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import SimulatedNetwork, TablePreparer, graphs
    >>> north = np.array([[40, "f"], [None, "m"]], dtype=object)
    >>> south = np.array([[60, "m"], [50, "other"]], dtype=object)
    >>> preparer = TablePreparer(network=SimulatedNetwork(graphs.ring(2)))
    >>> preparer = preparer.fit([(north, None), (south, None)])
    >>> preparer.kinds_
    {'x0': 'number', 'x1': 'category'}
    >>> preparer.get_feature_names_out().tolist()
    ['x0', 'x0_missing', 'x1_f', 'x1_m', 'x1_other']
    >>> preparer.transform([[50, "unheard of"]])
    array([[0., 0., 0., 0., 0.]])
    """

    kinds_: dict[str, str]
    imputer_: NetworkImputer | None
    scaler_: NetworkScaler | None
    encoder_: NetworkEncoder | None

    def __init__(
        self,
        columns: Mapping[str, Any] | None = None,
        *,
        names: Sequence[str] | None = None,
        strategy: str = "median",
        method: str = "standard",
        drop_first: bool = False,
        max_categories: int = 100,
        accuracy: float = 1e-6,
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.columns = columns
        self.names = names
        self.strategy = strategy
        self.method = method
        self.drop_first = drop_first
        self.max_categories = max_categories
        self.accuracy = accuracy
        self.network = network
        self.random_state = random_state

    def check_parameters(self) -> None:
        check_scalar(self.max_categories, "max_categories", Integral, min_val=1)
        self._new_imputer().check_parameters()
        self._new_scaler().check_parameters()
        for name, declared in (self.columns or {}).items():
            if isinstance(declared, list | tuple):
                categories = [category_of(each) for each in declared]
                if not categories or len(set(categories)) != len(categories):
                    raise InputError(
                        f"column {name} is declared with the categories {declared!r:.60}: give "
                        "different values, one at least"
                    )
            elif declared not in (*DECLARED, DROP):
                raise InputError(
                    f"column {name} is declared as {declared!r:.60}: give one of "
                    f"{', '.join([*DECLARED, DROP])}, or a list of its categories"
                )

    def check_secrecy(self, tables: Sequence[Table]) -> None:
        self._new_imputer().check_secrecy(tables)
        for table in tables:
            for name, code in zip(self.column_names(), self._guess_kinds(table), strict=True):
                given = (self.columns or {}).get(name)
                if code in (kinds.CATEGORY, kinds.TEXT) and not isinstance(given, list | tuple):
                    raise would_show(
                        f"the categories of column {name} would be shown to all agents",
                        "declare the column with a list of its categories, or as 'drop'",
                    )

    def check_table(self, X: Any, *, first: bool, fewest: int) -> Table:
        """Check a table of any cells, and return it as objects."""
        table: Table = validate_data(
            self,
            X,
            dtype=None,
            ensure_all_finite=False,
            reset=first,
            ensure_min_samples=fewest,
        )
        if table.dtype.kind == "M":
            table = table.astype("datetime64[us]")  # as objects finer ones would be whole numbers
        if table.dtype.kind == "f" and np.isinf(table).any():
            row, column = np.argwhere(np.isinf(table))[0]
            raise DataError(
                f"column {self.column_names()[column]} of X has inf (infinity) in row {row}: "
                "correct it, or leave the cell empty"
            )
        return table.astype(object)

    def column_names(self) -> list[str]:
        if self.names is None:
            return super().column_names()
        names = [str(name) for name in self.names]
        if len(names) != self.n_features_in_ or len(set(names)) != len(names):
            raise InputError(
                f"names has {len(set(names))} different names, but X has {self.n_features_in_} "
                "columns: give one for each"
            )
        return names

    def learn(self, network: Network, tables: Sequence[Table]) -> None:
        codes = self._agree_on_kinds(network, tables)
        names = self.column_names()
        self.kinds_ = {
            name: kinds.NAMES.get(code, DROP) for name, code in zip(names, codes, strict=True)
        }
        self.imputer_ = None
        self.scaler_ = None
        self.encoder_ = None
        numbers = self._columns_of("number", "date")
        if numbers:
            inputs = [self._numbers(table, numbers) for table in tables]
            self.imputer_ = _learn(self._new_imputer(), network, inputs, numbers, names)
            self.scaler_ = _learn(self._new_scaler(), network, inputs, numbers, names)
        categories = self._columns_of("category")
        if categories:
            self.encoder_ = self._learn_categories(network, tables, categories)

    def transform_rows(self, table: Table) -> Table:
        blocks = [np.zeros((len(table), 0))]
        if self.imputer_ is not None and self.scaler_ is not None:
            numbers = self._columns_of("number", "date")
            given = self._numbers(table, numbers)
            self._check_numbers(table, given, numbers)
            filled = self.imputer_.transform_rows(given)
            scaled = self.scaler_.transform_rows(filled[:, : len(numbers)])
            blocks += [scaled, filled[:, len(numbers) :]]
        if self.encoder_ is not None:
            categories = self._columns_of("category")
            blocks.append(self.encoder_.transform_rows(_texts(table, categories)))
        return np.hstack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> Table:
        """Return the names of the inputs: numbers, their indicators, and categories."""
        check_is_fitted(self)
        names = self.names_in(input_features)
        found: list[str] = []
        if self.imputer_ is not None:
            numbers = [names[column] for column in self._columns_of("number", "date")]
            indicators = [f"{numbers[column]}_missing" for column in self.imputer_.indicated_]
            found += [*numbers, *indicators]
        if self.encoder_ is not None:
            found += self.encoder_.get_feature_names_out().tolist()
        return np.array(found, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _new_imputer(self) -> NetworkImputer:
        return NetworkImputer(self.strategy, add_indicator=True, accuracy=self.accuracy)

    def _new_scaler(self) -> NetworkScaler:
        return NetworkScaler(self.method, accuracy=self.accuracy)

    def _agree_on_kinds(self, network: Network, tables: Sequence[Table]) -> list[int]:
        """Return the code of each column's kind, or raise the same error at all agents."""
        names = self.column_names()
        declared = self.columns or {}
        for name in declared:
            if name not in names:
                raise InputError(f"column {name} is declared, but X has none{near(name, names)}")
        codes = np.array([self._guess_kinds(table) for table in tables], dtype=np.int64)
        counts = count_codes(network, codes, kinds.CODES)
        found = []
        for column, name in enumerate(names):
            present = np.flatnonzero(counts[column, 1:]) + 1
            if declared.get(name) == DROP:
                found.append(kinds.NOTHING)
            elif len(present) == 0:
                raise no_values([name])
            elif len(present) == 1 and int(present[0]) in kinds.NAMES:
                found.append(int(present[0]))
            else:
                if network.secrecy is not None:
                    raise DataError(
                        f"column {name} has cells of one kind at some agents, and of another kind "
                        "at others: declare it as number, date, drop or a list of its categories; "
                        "agents whose cells differ are not named under secrecy"
                    )
                everywhere = codes_of_all(network, codes, [column])[:, 0]
                raise self._dispute(network, name, everywhere.tolist())
        return found

    def _guess_kinds(self, table: Table) -> list[int]:
        """Return the code of each column's kind, from one agent's table."""
        declared = self.columns or {}
        found = []
        for name, column in zip(self.column_names(), table.T, strict=True):
            cells = column.tolist()
            given = declared.get(name)
            if given is None:
                found.append(kinds.guess_kind(cells, self.max_categories))
            elif given == DROP:
                found.append(kinds.NOTHING)
            else:
                code = DECLARED[given] if isinstance(given, str) else kinds.CATEGORY
                found.append(kinds.check_declared(cells, code))
        return found

    def _dispute(self, network: Network, name: str, codes: list[int]) -> DataError:
        """Return the error about a column, from its code at every agent."""

        def agents(code: int) -> str:
            holders = [agent for agent, own in enumerate(codes) if own == code]
            return name_agents(network, holders)

        if kinds.TEXT in codes:
            return DataError(
                f"column {name} has free text at {agents(kinds.TEXT)} (more than "
                f"{self.max_categories} different texts, or one of more than {kinds.LONGEST} "
                "characters), and none of it was sent: leave the column out, declare it as 'drop', "
                "or as 'category' if it is one"
            )
        if kinds.UNFIT in codes:
            declared = (self.columns or {})[name]
            return DataError(
                f"column {name} is declared as {declared!r:.60}, but has other cells at "
                f"{agents(kinds.UNFIT)}: correct them there, or leave them empty"
            )
        found = [f"{word} at {agents(code)}" for code, word in kinds.WORDS.items() if code in codes]
        return DataError(
            f"column {name} has {' but '.join(found)}: correct the tables, or declare the column "
            "as 'category' at all agents if its numbers are codes"
        )

    def _columns_of(self, *wanted: str) -> list[int]:
        return [column for column, kind in enumerate(self.kinds_.values()) if kind in wanted]

    def _numbers(self, table: Table, columns: list[int]) -> Table:
        """Return columns of numbers and dates as numbers, NaN for all other cells."""
        names = self.column_names()
        found = np.empty((len(table), len(columns)))
        for k, column in enumerate(columns):
            code = DECLARED[self.kinds_[names[column]]]
            found[:, k] = kinds.numbers_of(table[:, column].tolist(), code)
        return found

    def _check_numbers(self, table: Table, numbers: Table, columns: list[int]) -> None:
        """Refuse cells of columns of numbers and dates that are neither that nor gaps."""
        for row, k in np.argwhere(np.isnan(numbers)):
            cell = table[row, columns[k]]
            if not is_gap(cell):
                name = self.column_names()[columns[k]]
                raise DataError(
                    f"column {name} has {cell!r:.60} in row {row}, where a {self.kinds_[name]} is "
                    "needed: correct it, or leave the cell empty"
                )

    def _learn_categories(
        self, network: Network, tables: Sequence[Table], columns: list[int]
    ) -> NetworkEncoder:
        """Agree on the categories of columns, except those that are declared."""
        names = self.column_names()
        declared = self.columns or {}
        given = [declared.get(names[column]) for column in columns]
        if network.secrecy is not None:  # all of them are lists, so nothing is sent
            most = max(self.max_categories, *(len(known or ()) for known in given))
            encoder = NetworkEncoder(given, drop_first=self.drop_first, max_categories=most)
            _learn(encoder, network, [], columns, names)
            return encoder
        encoder = NetworkEncoder(drop_first=self.drop_first, max_categories=self.max_categories)
        texts = [_texts(table, columns) for table in tables]
        for k, known in enumerate(given):
            if isinstance(known, list | tuple):
                for table in texts:
                    table[:, k] = None  # its values are not sent
        _learn(encoder, network, texts, columns, names)
        for k, known in enumerate(given):
            if isinstance(known, list | tuple):
                encoder.categories_[k] = [category_of(each) for each in known]
        return encoder


def _learn(
    transformer: Any,
    network: Network,
    tables: Sequence[Table],
    columns: list[int],
    names: list[str],
) -> Any:
    """Return a transformer that has learned from checked tables of these columns."""
    transformer.n_features_in_ = len(columns)
    transformer.feature_names_in_ = np.array([names[column] for column in columns], dtype=object)
    transformer.learn(network, tables)
    return transformer


def _texts(table: Table, columns: list[int]) -> Table:
    """Return these columns as texts of categories, and None for gaps."""
    cells = [category_of(cell) for cell in table[:, columns].ravel().tolist()]
    return np.array(cells, dtype=object).reshape(len(table), len(columns))
