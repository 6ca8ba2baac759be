"""Training, once: the clock runs while an estimator is fitted, and at no other time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from peerlearn.experiments.lab.training.loading import Fold
from peerlearn.experiments.lab.training.measures import Trained
from peerlearn.partition import Share


def fitted(estimator: Any, *given: Any) -> float:
    """The seconds that fit took."""
    start = time.perf_counter()
    estimator.fit(*given)
    return time.perf_counter() - start


def fitted_alone(
    estimator: Any, shares: Sequence[Share], fold: Fold, tests: Sequence[Any] = ()
) -> Trained:
    """One copy per agent, on its share; whoever has rows of one class only always says that class.

    tests: what each agent sees of the test rows, if not all of them.
    """
    predictions, seconds, sure = [], 0.0, 0
    for (X, y), X_test in zip(shares, tests or [fold.X_test] * len(shares), strict=True):
        one_class = fold.task == "classification" and len(np.unique(y)) == 1
        own = DummyClassifier() if one_class else clone(estimator)
        seconds += fitted(own, X, y)
        predictions.append(own.predict(X_test))
        sure += one_class
    note = f"{sure} agents have rows of one class only, and always say that class" if sure else ""
    return Trained(seconds, np.stack(predictions), note=note)
