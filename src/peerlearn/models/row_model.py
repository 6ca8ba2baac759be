"""Models of rows: every agent has its own rows, with all columns and a target for each row.

deal       X and y to the hosted agents, or check the shares              alone
encode     targets as numbers; classifiers agree on their classes         over the network
compare    settings and random parts                                      over the network
train      on inputs and encoded targets                                  over the network

The input is given as

    fit(X, y)        all agents hosted here: rows are dealt; one agent hosted: its own rows
    fit(shares)      a list of (X_k, y_k), one per hosted agent

and all of it is checked before anything is sent.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from peerlearn import partition
from peerlearn.arrays import Array, Indices, map_agents
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError
from peerlearn.models.base import DEALING, Answer, FittedModel, Setup
from peerlearn.models.targets import LARGEST, Targets, check_finite_rows
from peerlearn.network.base import Network


class RowModel(Targets, FittedModel):
    """Base class of models of rows.

    A subclass implements `train` and `agent_outputs`. It also inherits from `LabelTargets` if it is
    a classifier, or from `NumberTargets` if it is a regressor.
    """

    seeds: ClassVar[tuple[str, ...]] = (DEALING,)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on rows and their targets.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns), or list of (X_k, y_k)
            The rows. If all agents are hosted here, the rows are dealt to them. A process that
            hosts one agent gives that agent's rows. A list of shares, as `peerlearn.partition`
            makes it, has one (X_k, y_k) per hosted agent.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs), default None
            The targets of the rows; None if X is a list of shares.

        Returns
        -------
        self : the model
        """
        return self.fit_over_network(X, y)

    def learn(self, setup: Setup, *given: Any) -> Answer:
        inputs, outputs, _ = self.checked_rows(setup, *given)
        return self.train(setup, inputs, outputs)

    def checked_rows(
        self, setup: Setup, X: Any, y: Any, weights: Any = None
    ) -> tuple[list[Any], list[Array], list[Array] | None]:
        """Return checked inputs, encoded targets and weights, after agents compared settings."""
        inputs, targets, dealt = shares_of(
            self, setup.network, X, y, seed=setup.seeds[DEALING], weights=weights
        )
        outputs = self.encode(setup.network, targets)
        rows = [own.shape[0] for own in inputs]
        columns = inputs[0].shape[1]
        self.draw_and_compare(setup, columns, outputs[0].shape[1], rows=rows)
        return inputs, outputs, dealt

    @abstractmethod
    def train(self, setup: Setup, inputs: list[Any], outputs: list[Array]) -> Answer:
        """Train all agents together, and return the answer.

        inputs: checked rows of each hosted agent, n_k x d; n_k may be 0.
        outputs: encoded targets of each hosted agent, n_k x M.
        """

    def rows_to_predict(self, X: Any) -> Any:
        """Check that the model is fitted and X has its columns, and return X as numbers."""
        check_is_fitted(self)
        sparse = "csr" if get_tags(self).input_tags.sparse else False
        return validate_data(self, X, accept_sparse=sparse, dtype=np.float64, reset=False)

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        return {}, self.target_entries()


def shares_of(
    model: BaseEstimator, network: Network, X: Any, y: Any, *, seed: int, weights: Any = None
) -> tuple[list[Array], list[Any], list[Array] | None]:
    """Return inputs, targets and weights of each hosted agent, from the arguments of `fit`.

    Rows are dealt evenly; for a classifier, the rows of each class are.

    weights: one per row, or a list with those of each share; None if there are none.
    """
    fewest = 0 if network.size > 1 else 1  # an agent among others may have no rows
    if are_given_as_shares(model, network, X, y, "fit"):
        checked = _check_shares(model, network, X, first=True, fewest=fewest)
        inputs = [X_k for X_k, _ in checked]
        of_shares = _weights_of_shares(network, weights, inputs)
        if of_shares is not None and len(network.hosted) == network.size:
            _check_some_weight(np.concatenate(of_shares))
        return inputs, [y_k for _, y_k in checked], of_shares
    X, y = _check_share(model, X, y, first=True, fewest=fewest)
    w = None if weights is None else check_weights(weights, len(y), "")
    if w is not None and len(network.hosted) == network.size:
        _check_some_weight(w)
    if len(network.hosted) == 1:  # the only agent of the network, or of this process
        return [X], [y], None if w is None else [w]
    rows = deal_rows(network, len(y), y if is_classifier(model) else None, seed)
    dealt = None if w is None else [w[own] for own in rows]
    if issparse(X):
        return [X[own] for own in rows], [y[own] for own in rows], dealt
    inputs = map_agents(lambda k: X.take(rows[k], axis=0), len(rows), X.size)
    return inputs, [y[own] for own in rows], dealt


def deal_rows(network: Network, count: int, labels: Any, seed: int) -> list[Indices]:
    """Return which of `count` rows each agent gets: evenly, and those of each class if there are.

    labels: the class of each row, an array; None if there are no classes.
    """
    if count < network.size:
        raise DataError(
            f"n_samples={count} rows cannot be dealt to {network.size} agents, one each at least: "
            "give more rows, or a network of fewer agents"
        )
    rng = np.random.default_rng(seed)
    if labels is None:
        return partition.even_rows(count, network.size, rng)
    # Texts mixed with the number -1 of unlabelled rows can only be sorted as texts.
    sortable = labels.astype(str) if labels.dtype.kind == "O" else labels
    return partition.stratified_rows(sortable, network.size, rng)


def _weights_of_shares(
    network: Network, weights: Any, inputs: Sequence[Array]
) -> list[Array] | None:
    if weights is None:
        return None
    if not isinstance(weights, Sequence) or len(weights) != len(inputs):
        raise DataError(
            f"sample_weight must be a list of {len(inputs)} arrays, the weights of each share's "
            "rows, if fit is called with shares"
        )
    checked = []
    for agent, own, X in zip(network.hosted, weights, inputs, strict=True):
        checked.append(check_weights(own, X.shape[0], f"the share of agent {agent}: "))
    return checked


def _check_some_weight(w: Array) -> None:
    if w.size and not w.any():
        raise DataError(
            "sample_weight is zero for all rows: give some of them a weight above 0, or leave "
            "sample_weight out"
        )


def check_weights(weights: Any, rows: int, whose: str) -> Array:
    """Return the weights of rows as an array: one number of 0 or more per row."""
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{whose}sample_weight must hold numbers ({error})") from error
    if w.ndim == 0:
        w = np.full(rows, float(w))
    if w.shape != (rows,):
        raise DataError(
            f"{whose}sample_weight has shape {w.shape}, but there are {rows} rows: give one number "
            "per row (Sample weights must be 1D array or scalar)"
        )
    if not ((w >= 0) & (w <= LARGEST)).all():
        raise DataError(
            f"{whose}sample_weight has values that are negative, NaN or infinite: give numbers of "
            f"0 or more, at most {LARGEST:g}"
        )
    return w


@dataclass(frozen=True)
class Shares:
    """Rows of one chunk of a stream, by hosted agent.

    together: the targets of all rows, if one table was given; else None.
    rows: which rows of that table each agent takes.
    """

    agents: tuple[int, ...]
    inputs: list[Array]
    targets: list[Any]
    together: Any = None
    rows: tuple[slice, ...] = ()


def chunk_of(
    model: BaseEstimator, network: Network, X: Any, y: Any, *, turn: int, first: bool
) -> Shares:
    """Return the new rows of each hosted agent, from the arguments of `partial_fit`.

    turn: the number of rows dealt so far. Row i of the stream goes to agent i mod L, so that
        agents take turns also if each chunk is a single row.
    first: whether this is the first chunk.
    """
    hosted = network.hosted
    if are_given_as_shares(model, network, X, y, "partial_fit"):
        checked = _check_shares(model, network, X, first=first, fewest=0)
        return Shares(hosted, [X_k for X_k, _ in checked], [y_k for _, y_k in checked])
    X, y = _check_share(model, X, y, first=first, fewest=0)
    if len(hosted) == 1:
        return Shares(hosted, [X], [y], y, (slice(None),))
    L = network.size
    rows = tuple(slice((agent - turn) % L, None, L) for agent in range(L))
    return Shares(hosted, [X[own] for own in rows], [y[own] for own in rows], y, rows)


def encode_shares(shares: Shares, encode: Callable[[Any, str], Array]) -> list[Array]:
    """Return each hosted agent's targets as numbers.

    encode: takes targets and the beginning of an error message about them.
    """
    if shares.together is None:
        pairs = zip(shares.agents, shares.targets, strict=True)
        return [encode(y, f"the chunk of agent {agent}: ") for agent, y in pairs]
    # Encoded together, so that error messages count the rows as the user gave them.
    whole = encode(shares.together, "")
    return [whole[own] for own in shares.rows]


def are_given_as_shares(model: BaseEstimator, network: Network, X: Any, y: Any, call: str) -> bool:
    """Return whether X is a list of shares, and refuse wrong combinations of X and y.

    call: the name of the method, for the error message.
    """
    if y is None and not are_shares(X, 1):
        raise DataError(
            f"{type(model).__name__} requires y to be passed, but the target y is None: call "
            f"{call}(X, y), or {call}(shares) with a list of (X_k, y_k), one per hosted agent"
        )
    if y is not None and are_shares(X, 2):
        raise DataError(
            f"shares bring their own targets, (X_k, y_k) each: call {call}(shares) without y"
        )
    check_number_of_shares(network, X if y is None else None, call)
    return y is None


def check_number_of_shares(network: Network, shares: Any, call: str) -> None:
    """Refuse more or fewer shares than hosted agents, and one table for some agents of many.

    shares: the list of shares; None if one table was given. call: the name of the method.
    """
    hosted = len(network.hosted)
    if shares is not None and len(shares) != hosted:
        raise DataError(
            f"{len(shares)} shares were given, but this process hosts {hosted} agents: give one "
            "(X_k, y_k) per hosted agent, in ascending agent number"
        )
    if shares is None and 1 < hosted < network.size:
        raise InputError(
            f"this process hosts {hosted} of {network.size} agents: call {call}(shares) with one "
            "(X_k, y_k) for each"
        )


def are_shares(X: Any, axes: int) -> bool:
    """Return whether X is a list of pairs whose first part has `axes` axes or more.

    The axes tell shares from a table of two columns, which may be a list of pairs of numbers.
    """
    if not isinstance(X, Sequence) or len(X) == 0:
        return False
    if not all(isinstance(x, list | tuple) and len(x) == 2 for x in X):
        return False
    return all(axes_of(inputs) >= axes for inputs, _ in X)


def axes_of(x: Any) -> int:
    """Return the number of axes of x as an array. Nested lists of unequal lengths count as 2."""
    try:
        return int(x.ndim if hasattr(x, "ndim") else np.asarray(x).ndim)
    except ValueError:  # raised by numpy for lists of unequal lengths
        return 2


def _check_shares(
    model: BaseEstimator, network: Network, shares: Any, *, first: bool, fewest: int
) -> list[tuple[Array, Any]]:
    """Check each hosted agent's share, and return them.

    first: whether the first share decides which columns there are; else the model knows them.
    """
    checked = []
    for agent, (X_k, y_k) in zip(network.hosted, shares, strict=True):
        decides = first and agent == network.hosted[0]
        checked.append(_check_share(model, X_k, y_k, agent, first=decides, fewest=fewest))
    return checked


def _check_share(
    model: BaseEstimator, X: Any, y: Any, agent: int | None = None, *, first: bool, fewest: int
) -> tuple[Array, Any]:
    whose = "" if agent is None else f"the share of agent {agent}: "
    try:
        X = validate_data(
            model,
            X,
            accept_sparse="csr" if get_tags(model).input_tags.sparse else False,
            dtype=np.float64,
            ensure_all_finite=False,
            reset=first,
            ensure_min_samples=fewest,
        )
        y = check_targets(model, y, fewest)
        check_consistent_length(X, y)
    except ValueError as error:
        way_out = ""
        if "is expecting" in str(error):
            way_out = " Give all agents, and all chunks, the same columns."
        raise DataError(f"{whose}{error}{way_out}") from error
    check_finite_rows(X, whose)
    return X, y


def check_targets(model: BaseEstimator, y: Any, fewest: int) -> Any:
    """Check targets, and return them as an array: numbers for a regressor, any labels else.

    fewest: the smallest number of rows.
    """
    if is_regressor(model):
        y = _as_numbers(y, fewest)
        missing = ~np.isfinite(y).all(axis=tuple(range(1, y.ndim)))
    else:
        y = _as_array(y, None, fewest)
        missing = _find_missing_labels(y)
    if missing.any():
        partly = getattr(model, "partly_labelled", False)
        way_out = "give them the label -1" if partly else "remove those rows before fitting"
        raise DataError(
            f"y has NaN, inf (infinite) or missing values in {missing.sum()} of {len(y)} rows, "
            f"the first is row {np.flatnonzero(missing)[0]}: {way_out}"
        )
    if is_regressor(model) and np.abs(y).max(initial=0.0) > LARGEST:
        raise DataError(
            f"y has values up to {np.abs(y).max():.1e}, whose squares overflow float64: scale them"
        )
    return y


def _as_numbers(y: Any, fewest: int) -> Array:
    try:
        numbers: Array = _as_array(y, np.float64, fewest)
    except (TypeError, ValueError) as error:
        if "could not convert" not in str(error) and "float()" not in str(error):
            raise
        raise DataError(f"y must hold numbers ({error}): for labels use a classifier") from error
    return numbers


def _as_array(y: Any, dtype: Any, fewest: int) -> Any:
    """Return y as an array with any number of axes, also with missing values."""
    return check_array(
        y,
        dtype=dtype,
        ensure_2d=False,
        ensure_all_finite=False,
        ensure_min_samples=fewest,
        input_name="y",
    )


def _find_missing_labels(y: Any) -> NDArray[np.bool_]:
    """Return which labels are None, NaN or infinite."""
    if y.dtype.kind in "biuf":
        return np.asarray(~np.isfinite(y.ravel()))
    # NaN is the only object that differs from itself.
    missing = [bool(label is None or label != label) for label in y.ravel().tolist()]
    return np.array(missing, dtype=bool)
