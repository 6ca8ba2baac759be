"""Scaling of columns over the rows of all agents.

x <- (x - c) / s

standard     c: mean, s: standard deviation                  2 sums
robust       c: median, s: distance of the quartiles         by quantiles
range        c: smallest value, s: largest - smallest        by quantiles
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from peerlearn.algorithms.standardise import mean_and_deviation_with_gaps
from peerlearn.algorithms.summed_histograms import quantiles
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.models.base import RandomState, number_between
from peerlearn.network import Network
from peerlearn.preparing.transformer import NetworkTransformer, Table, no_values

__all__ = ["NetworkScaler"]

METHODS = ("standard", "robust", "range")


class NetworkScaler(OneToOneFeatureMixin, NetworkTransformer):
    """Scaling of columns by what all agents' rows have in common; rows stay at their agents.

    Gaps (NaN) are left out when the scales are computed, and stay gaps. Constant columns become 0.

    Parameters
    ----------
    method : {"standard", "robust", "range"}, default "standard"
        "standard" gives every column mean 0 and deviation 1, "robust" median 0 and distance 1
        between the quartiles, "range" values from 0 to 1.
    accuracy : float, default 1e-6
        Relative error of quantiles, for "robust" and "range". 0 is exact. A coarser accuracy sends
        less, and shows less about single rows.
    network : Network or None, default None
        The graph of agents. None takes all rows in one place.
    random_state : int, RandomState or None, default None
        Seed of the dealing of rows.

    Attributes
    ----------
    center_ : ndarray of shape (n_columns,)
        What is subtracted from each column.
    scale_ : ndarray of shape (n_columns,)
        What each column is divided by; 1 for constant columns.
    sent_ : Counts
        What was sent.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from peerlearn import NetworkScaler, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> wine = data.load("wine")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = RVFLClassifier(network=network, random_state=0)
    >>> pipeline = make_pipeline(NetworkScaler(network=network), model).fit(wine.X, wine.y)
    >>> bool(pipeline.score(wine.X, wine.y) > 0.95)
    True
    """

    center_: Array
    scale_: Array

    def __init__(
        self,
        method: str = "standard",
        *,
        accuracy: float = 1e-6,
        network: Network | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.method = method
        self.accuracy = accuracy
        self.network = network
        self.random_state = random_state

    def check_parameters(self) -> None:
        if self.method not in METHODS:
            raise InputError(
                f"method {self.method!r} is not known: choose one of {', '.join(METHODS)}"
            )
        number_between(self.accuracy, "accuracy", 0, 1)

    def learn(self, network: Network, tables: Sequence[Table]) -> None:
        if self.method == "standard":
            counts, self.center_, self.scale_ = mean_and_deviation_with_gaps(network, tables)
            missing = counts == 0
        else:
            at = [0.25, 0.5, 0.75] if self.method == "robust" else [0.0, 0.0, 1.0]
            low, self.center_, high = quantiles(network, tables, at, self.accuracy)
            self.scale_ = np.where(high > low, high - low, 1.0)
            missing = np.isnan(low)
        if missing.any():
            names = self.column_names()
            raise no_values([names[column] for column in np.flatnonzero(missing)])

    def transform_rows(self, table: Table) -> Table:
        return (table - self.center_) / self.scale_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
