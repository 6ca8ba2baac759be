"""What a model's `fit` is given, turned into one checked share per hosted agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from peerlearn import partition
from peerlearn.arrays import Array, Indices
from peerlearn.errors import DataError, InputError
from peerlearn.models.targets import LARGEST, finite_rows
from peerlearn.network.base import Network


def shares_of(
    model: BaseEstimator, network: Network, X: Any, y: Any, *, seed: int
) -> tuple[list[Array], list[Any]]:
    """Inputs and targets of each hosted agent, checked, from fit(X, y) or from fit(shares).

    Rows are dealt evenly, for a classifier those of each class.
    """
    fewest = 0 if network.size > 1 else 1  # an agent among others may have no rows
    if given_as_shares(model, network, X, y, "fit"):
        checked = _checked_shares(model, network, X, first=True, fewest=fewest)
        return [X_k for X_k, _ in checked], [y_k for _, y_k in checked]
    X, y = _checked(model, X, y, first=True, fewest=fewest)
    if len(network.hosted) == 1:  # the whole network, or this agent's own share
        return [X], [y]
    if len(y) < network.size:
        raise DataError(
            f"n_samples={len(y)} rows cannot be dealt to {network.size} agents, one each at least: give more rows, or "
            "a network of fewer agents"
        )
    rng = np.random.default_rng(seed)
    rows: list[Indices]
    if is_classifier(model):  # texts beside the -1 of rows without a label have an order as texts
        rows = partition.stratified_rows(
            y.astype(str) if y.dtype.kind == "O" else y, network.size, rng
        )
    else:
        rows = partition.even_rows(len(y), network.size, rng)
    return [X[own] for own in rows], [y[own] for own in rows]


@dataclass(frozen=True)
class Shares:
    """The rows of one chunk: per hosted agent, or one table whose rows agents take in turns."""

    agents: tuple[int, ...]
    inputs: list[Array]
    targets: list[Any]
    together: Any = None  # the targets of the one table
    rows: tuple[slice, ...] = ()  # and who takes which


def chunk_of(
    model: BaseEstimator, network: Network, X: Any, y: Any, *, turn: int, first: bool
) -> Shares:
    """The new rows of each hosted agent, checked, from partial_fit(X, y) or from partial_fit(shares).

    turn: how many rows of the stream have been dealt. Row i goes to agent i mod L, so that single
    rows go round.
    """
    hosted = network.hosted
    if given_as_shares(model, network, X, y, "partial_fit"):
        checked = _checked_shares(model, network, X, first=first, fewest=0)
        return Shares(hosted, [X_k for X_k, _ in checked], [y_k for _, y_k in checked])
    X, y = _checked(model, X, y, first=first, fewest=0)
    if len(hosted) == 1:
        return Shares(hosted, [X], [y], y, (slice(None),))
    L = network.size
    rows = tuple(slice((agent - turn) % L, None, L) for agent in range(L))
    return Shares(hosted, [X[own] for own in rows], [y[own] for own in rows], y, rows)


def encode_shares(shares: Shares, encode: Callable[[Any, str], Array]) -> list[Array]:
    """Return each hosted agent's targets as numbers; encode takes targets and how a sentence about them begins."""
    if shares.together is None:
        return [
            encode(y, f"the chunk of agent {agent}: ")
            for agent, y in zip(shares.agents, shares.targets, strict=True)
        ]
    whole = encode(shares.together, "")
    return [whole[own] for own in shares.rows]


def given_as_shares(model: BaseEstimator, network: Network, X: Any, y: Any, call: str) -> bool:
    """Whether X is a list of shares, one per hosted agent; anything else must come with its y."""
    hosted = len(network.hosted)
    if y is None and not _are_shares(X, 1):
        raise DataError(
            f"{type(model).__name__} requires y to be passed, but the target y is None: call {call}(X, y), or "
            f"{call}(shares) with a list of (X_k, y_k), one per hosted agent"
        )
    if y is not None and _are_shares(X, 2):
        raise DataError(
            f"shares bring their own targets, (X_k, y_k) each: call {call}(shares) without y"
        )
    if y is None and len(X) != hosted:
        raise DataError(
            f"{len(X)} shares were given, but this process hosts {hosted} agents: give one (X_k, y_k) per hosted "
            "agent, in ascending agent number"
        )
    if y is not None and 1 < hosted < network.size:
        raise InputError(
            f"this process hosts {hosted} of {network.size} agents: call {call}(shares) with one (X_k, y_k) for each"
        )
    return y is None


def _are_shares(X: Any, axes: int) -> bool:
    """Pairs whose first part has so many axes: a table of two columns may be a list of pairs too, of numbers."""
    pairs = (
        isinstance(X, Sequence)
        and len(X) > 0
        and all(isinstance(x, list | tuple) and len(x) == 2 for x in X)
    )
    return pairs and all(axes_of(inputs) >= axes for inputs, _ in X)


def axes_of(x: Any) -> int:
    """How many axes it has; 0 if it is no array and cannot be made one."""
    try:
        return int(x.ndim if hasattr(x, "ndim") else np.asarray(x).ndim)
    except ValueError:  # lists of unlike lengths
        return 2


def _checked_shares(
    model: BaseEstimator, network: Network, shares: Any, *, first: bool, fewest: int
) -> list[tuple[Array, Any]]:
    """Each hosted agent's share; the first one says how many columns there are, unless that is known."""
    hosted = network.hosted
    return [
        _checked(model, X_k, y_k, agent, first=first and agent == hosted[0], fewest=fewest)
        for agent, (X_k, y_k) in zip(hosted, shares, strict=True)
    ]


def _checked(
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
        y = checked_targets(model, y, fewest)
        check_consistent_length(X, y)
    except ValueError as error:
        way_out = (
            " Give all agents, and all chunks, the same columns."
            if "is expecting" in str(error)
            else ""
        )
        raise DataError(f"{whose}{error}{way_out}") from error
    finite_rows(X, whose)
    return X, y


def checked_targets(model: BaseEstimator, y: Any, fewest: int) -> Any:
    """Numbers for a regressor, labels of any kind for a classifier; nothing missing."""
    loose = {
        "ensure_2d": False,
        "ensure_all_finite": False,
        "ensure_min_samples": fewest,
        "input_name": "y",
    }
    if is_regressor(model):
        try:
            y = check_array(y, dtype=np.float64, **loose)
        except (TypeError, ValueError) as error:
            if "could not convert" not in str(error) and "float()" not in str(error):
                raise
            raise DataError(
                f"y must hold numbers ({error}): for labels use a classifier"
            ) from error
        missing = ~np.isfinite(y).all(axis=tuple(range(1, y.ndim)))
    else:
        y = check_array(y, dtype=None, **loose)
        if y.dtype.kind in "biuf":
            missing = ~np.isfinite(y.ravel())
        else:  # NaN is not itself
            missing = np.array(
                [bool(label is None or label != label) for label in y.ravel().tolist()], dtype=bool
            )
    if is_regressor(model) and not missing.any() and np.abs(y).max(initial=0.0) > LARGEST:
        raise DataError(
            f"y has values up to {np.abs(y).max():.1e}, whose squares are beyond all numbers: scale them"
        )
    if missing.any():
        partly = getattr(model, "partly_labelled", False)
        way_out = "give them the label -1" if partly else "remove those rows before fitting"
        raise DataError(
            f"y has NaN, inf (infinite) or missing values in {missing.sum()} of {len(y)} rows, the first is row "
            f"{np.flatnonzero(missing)[0]}: {way_out}"
        )
    return y
