"""Base class of transformers over a network.

    check        parameters and tables                                     alone, before any work
    compare      settings and the number of columns                        over the network
    learn        by sums                                                   over the network
    transform    each row by what was learned                              alone

`fit` takes what the `fit` of a model takes: a table, whose rows are dealt in the same way if all
agents are hosted here, or a list of shares (X_k, y_k). `transform` of a table is a table, and
`transform` of shares is a list of shares with the same y_k. So a Pipeline of transformers and a
model can be fitted on both.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from peerlearn.algorithms.agreement import check_same_settings
from peerlearn.algorithms.secret_sums import one_session
from peerlearn.arrays import one_blas_thread
from peerlearn.errors import DataError, InputError
from peerlearn.models.base import network_of, restored_on_error, seeds_of
from peerlearn.models.row_model import are_shares, check_number_of_shares, deal_rows
from peerlearn.models.targets import LARGEST
from peerlearn.network.base import Counts, Network

Table = NDArray[Any]
OWN = ("network", "random_state")  # parameters that may differ between agents


class _TableTransformer(TransformerMixin, BaseEstimator):
    """The part of `NetworkTransformer` that scikit-learn's `set_output` wraps."""

    n_features_in_: int

    def transform(self, X: Any) -> Any:
        """Return a table with its rows transformed."""
        check_is_fitted(self)
        return self.transform_rows(self.check_table(X, first=False, fewest=0))

    @abstractmethod
    def check_table(self, X: Any, *, first: bool, fewest: int) -> Table:
        """Check a table, and return it as an array."""

    @abstractmethod
    def transform_rows(self, table: Table) -> Table:
        """Return the transformed rows of a checked table."""


# A list of shares must not be wrapped as one table, so the wrapped method is called per share.
class NetworkTransformer(_TableTransformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base class of transformers over a network.

    A subclass implements `learn` and `transform_rows`, and overrides the checks if it needs to.
    """

    network: Network | None
    random_state: Any
    sent_: Counts

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how to transform rows, from those of all agents.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns), or list of (X_k, y_k)
            The rows. If all agents are hosted here, the rows are dealt to them. A process that
            hosts one agent gives that agent's rows. A list of shares has one (X_k, y_k) per hosted
            agent.
        y : array-like, default None
            The targets. Labels decide how rows are dealt, as for a classifier.

        Returns
        -------
        self : the transformer
        """
        with restored_on_error(self), one_blas_thread():
            self.check_parameters()
            network = network_of(self.network)
            mark = network.ledger.mark()
            tables = self._tables_of(network, X, y)
            settings = self._common_settings(tables[0].shape[1])
            rows = None
            if network.secrecy is None:
                rows = [len(table) for table in tables]
            else:
                self.check_secrecy(tables)
            with network.allow_messages():  # settings do not depend on data
                check_same_settings(network, settings, rows=rows)
            with one_session(network):
                self.learn(network, tables)
            self.sent_ = network.ledger.since(mark)
        return self

    def transform(self, X: Any) -> Any:
        """Transform rows by what was learned. Nothing is sent.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns), or list of (X_k, y_k)
            The rows, or shares.

        Returns
        -------
        ndarray, or list of (ndarray, y_k)
            A table for a table, shares for shares.
        """
        if not are_shares(X, 2):
            return super().transform(X)
        return [(super(NetworkTransformer, self).transform(X_k), y_k) for X_k, y_k in X]

    def check_parameters(self) -> None:
        """Refuse bad parameters. The network and random_state are checked elsewhere."""

    def check_secrecy(self, tables: Sequence[Table]) -> None:
        """Refuse settings and tables for which agents would send more than masked sums.

        It is called under secrecy, before anything is sent.
        """

    @abstractmethod
    def learn(self, network: Network, tables: Sequence[Table]) -> None:
        """Set all fitted attributes, from the checked table of each hosted agent."""

    def check_table(self, X: Any, *, first: bool, fewest: int) -> Table:
        """Check a table of numbers with gaps (NaN), and return it as float64.

        first: whether this table decides which columns there are. fewest: the smallest number of
        rows.
        """
        table: Table = validate_data(
            self,
            X,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            reset=first,
            ensure_min_samples=fewest,
        )
        largest = np.nanmax(np.abs(table), initial=0.0)
        if largest > LARGEST:
            raise DataError(
                f"X has values up to {largest:.1e}, whose squares overflow float64: scale the "
                "inputs, or leave such rows out"
            )
        return table

    def column_names(self) -> list[str]:
        """Return the names of the columns, or x0, x1, ... if they have none."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return [f"x{column}" for column in range(self.n_features_in_)]
        return [str(name) for name in names]

    def names_in(self, input_features: Any) -> list[str]:
        """Return the names of the columns, after comparing them with those given."""
        if input_features is None:
            return self.column_names()
        given = [str(name) for name in input_features]
        known = getattr(self, "feature_names_in_", None)
        if len(given) != self.n_features_in_:
            raise InputError(
                f"input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(given)}"
            )
        if known is not None and given != self.column_names():
            raise InputError("input_features is not equal to feature_names_in_")
        return given

    def _tables_of(self, network: Network, X: Any, y: Any) -> list[Table]:
        """Return the checked table of each hosted agent, from the arguments of `fit`."""
        fewest = 0 if network.size > 1 else 1  # an agent among others may have no rows
        shares = X if are_shares(X, 2) else None
        if shares is not None and y is not None:
            raise DataError(
                "shares bring their own targets, (X_k, y_k) each: call fit(shares) without y"
            )
        check_number_of_shares(network, shares, "fit")
        if shares is not None:
            return self._check_shares(network, shares, fewest)
        table = self.check_table(X, first=True, fewest=fewest)
        if y is not None:
            check_consistent_length(table, y)
        if len(network.hosted) == 1:
            return [table]
        labels = None
        if y is not None and type_of_target(y) in ("binary", "multiclass"):
            labels = np.asarray(y)
        (seed,) = seeds_of(self.random_state, network, 1)
        return [table[own] for own in deal_rows(network, len(table), labels, seed)]

    def _check_shares(self, network: Network, shares: Any, fewest: int) -> list[Table]:
        tables = []
        for agent, (X_k, y_k) in zip(network.hosted, shares, strict=True):
            try:
                first = agent == network.hosted[0]
                tables.append(self.check_table(X_k, first=first, fewest=fewest))
                if y_k is not None:
                    check_consistent_length(X_k, y_k)
            except ValueError as error:
                way_out = ""
                if "is expecting" in str(error) or "feature names" in str(error):
                    way_out = " Give all agents the same columns."
                raise DataError(f"the share of agent {agent}: {error}{way_out}") from error
        return tables

    def _common_settings(self, columns: int) -> dict[str, Any]:
        settings: dict[str, Any] = {"the number of columns of X": columns}
        settings["the names of the columns of X"] = self.column_names()
        for name in inspect.signature(type(self)).parameters:
            if name not in OWN:
                settings[name] = getattr(self, name)
        return settings

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def would_show(what: str, way_out: str) -> InputError:
    """Return the error about something that a network with secrecy does not send."""
    return InputError(
        f"this network keeps sums secret, and {what}: {way_out}, or use a network without secrecy; "
        "nothing was sent"
    )


def no_values(names: Sequence[str]) -> DataError:
    """Return the error for columns in which no agent has a value."""
    listed = ", ".join(names)
    what = f"column {listed} has" if len(names) == 1 else f"columns {listed} have"
    return DataError(f"{what} no value at any agent of the network: leave it out of the tables")
