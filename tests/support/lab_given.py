"""Small comparisons on given tables, a transformer that remembers the rows it was fitted on, and a
slow estimator.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils import check_random_state

from peerlearn.data import DataSet
from peerlearn.lab.description.comparison import Comparison, Data, Model, Net, protocol_named

RING = Net("ring", "ring", 4)


class Oracle(TransformerMixin, BaseEstimator):
    """The targets of the rows it was fitted on, and nothing of any other: whoever sees test rows
    makes no error.
    """

    def fit(self, X, y=None):
        self.known_ = {row.tobytes(): float(target) for row, target in zip(X, y, strict=True)}
        return self

    def transform(self, X):
        return np.array([[self.known_.get(row.tobytes(), 0.0)] for row in X])


class Slow(ClassifierMixin, BaseEstimator):
    """Takes a hundredth of a second to learn, and far longer to predict."""

    def fit(self, X, y):
        time.sleep(0.01)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        time.sleep(0.25)
        return np.full(len(X), self.classes_[0])


class Shaken(TransformerMixin, BaseEstimator):
    """Rows as they are, after a draw from numpy's common generator."""

    def fit(self, X, y=None):
        check_random_state(None).standard_normal(3)
        return self

    def transform(self, X):
        return X


class Guess(ClassifierMixin, BaseEstimator):
    """Classes at random, from numpy's common generator. It has none of scikit-learn's
    constraints.
    """

    def __init__(self, offset=0):
        self.offset = offset

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return check_random_state(None).choice(self.classes_, len(X))


class Column(RegressorMixin, BaseEstimator):
    """The mean of the targets, once per row and `wide` times, as a table."""

    def __init__(self, wide=1):
        self.wide = wide

    def fit(self, X, y):
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        return np.full((len(X), self.wide), self.mean_)


class Broken(ClassifierMixin, BaseEstimator):
    """Cannot be made."""

    def __init__(self, a=1):
        self.a = {}[a]

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X


def classes(rows=120, columns=6, number=3, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % number
    return DataSet(
        "classes",
        rng.normal(0.0, noise, (rows, columns)) + y[:, None],
        y,
        "classification",
        "made",
        None,
    )


def numbers(rows=120, columns=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, columns))
    return DataSet("numbers", X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2, "regression", "made", None)


def comparison(table, *models, protocol="rows", networks=(RING,), settings=None, data=None, **more):
    """One data set; `settings` are those of the protocol, `data` those of its entry."""
    entry = Data(table.name, given=table, **(data or {}))
    given = {"folds": 3, "seed": 1, **more}
    return Comparison(
        (entry,), models, networks, protocol=protocol_named(protocol, **(settings or {})), **given
    )


def ran(whole):
    """Every run and what it gave."""
    return [(trial, whole.protocol.run(trial)) for trial in whole.trials()]


def model(name="M", kind="RVFL", where="network", **settings):
    return Model(name, kind, where, settings)
