"""Log-loss of ways to make probabilities of scores; decision 28 has the table.

    python benchmarks/probabilities.py [iris digits ...]

`RVFLClassifier(random_state=0)` in 3-fold cross-validation. Scores of training rows that were held
out are those that the model itself uses. Ways: the softmax of raw scores; one factor, fitted on the
training rows or on rows held out; that factor and a constant per class; and a slope and a constant
per class, divided by their sum, as CalibratedClassifierCV(method="sigmoid") has it. Beside each
log-loss is the share of rows, in percent, whose most probable class is not the predicted one. Data
sets that are not bundled are read from the folder that PEERLEARN_DATA names.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

from peerlearn import RVFLClassifier, data

BUNDLED = ("breast-cancer", "two-moons", "rare", "g50c", "iris", "wine", "digits")
FILES = ("BCI", "GTZAN_substitute", "Garageband", "Artist20")
WAYS = ("raw", "training rows", "held out", "with constants", "Platt per class")


class Recording(RVFLClassifier):
    """A classifier that keeps the scores of rows that were held out."""

    def calibrate(self, rows, folds):
        """Keep scores and targets, and fit probabilities."""
        (self.held_out_,) = rows.score_held_out(self.features_, folds, self.alpha_)
        super().calibrate(rows, folds)


def load(name):
    """Return rows, and the number of each row's class."""
    if name == "rare":
        settings = {"n_informative": 4, "weights": [0.95], "flip_y": 0.03, "random_state": 0}
        return make_classification(2000, 10, **settings)
    table = data.load(name)
    return table.X, np.unique(table.y, return_inverse=True)[1]


def of_classes(scores):
    """Return a score for each class."""
    return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores


def smooth(codes, classes):
    """Return Platt's targets of each class: rows x classes."""
    count = np.bincount(codes, minlength=classes)[codes]
    targets = np.tile((1 / (count + 2) / (classes - 1))[:, None], (1, classes))
    targets[np.arange(len(codes)), codes] = (count + 1) / (count + 2)
    return targets


def minimum(outputs, targets, start):
    """Return the parameters of least cross-entropy. outputs: of parameters."""

    def loss(w):
        return -np.mean((targets * log_softmax(outputs(w), axis=1)).sum(axis=1))

    return minimize(loss, start, method="BFGS", options={"gtol": 1e-7}).x


def logs_by_way(model, X, y, X_test):
    """Return logarithms of the test rows' probabilities, by way."""
    C = len(model.classes_)
    held = of_classes(model.held_out_.scores)
    inside = of_classes(model.agent_outputs(X)[0])
    test = of_classes(model.agent_outputs(X_test)[0])
    T = smooth(y, C)
    logs = {"raw": log_softmax(test, axis=1)}
    (s,) = minimum(lambda w: w[0] * inside, T, [1.0])
    logs["training rows"] = log_softmax(s * test, axis=1)
    logs["held out"] = np.log(model.predict_proba(X_test))
    s = model.probability_scale_[0]
    w = minimum(lambda w: w[0] * held + w[1:], T, [s, *np.zeros(C)])
    logs["with constants"] = log_softmax(w[0] * test + w[1:], axis=1)
    if C == 2:
        logs["Platt per class"] = logs["with constants"]
        return logs
    p = np.empty(test.shape)
    for c in range(C):
        own = held[:, [c]]
        a, b = minimum(
            lambda w, own=own: np.hstack([np.zeros_like(own), w[0] * own + w[1]]),
            smooth((y == c).astype(int), 2),
            [s, -2.0],
        )
        p[:, c] = expit(a * test[:, c] + b)
    logs["Platt per class"] = np.log(p / p.sum(axis=1, keepdims=True))
    return logs


def main():
    """Print a line per data set."""
    print(f"{'':18}", *(f"{way:>16}" for way in WAYS))
    for name in sys.argv[1:] or (*BUNDLED, *FILES):
        X, y = load(name)
        found = {way: [] for way in WAYS}
        folds = StratifiedKFold(3, shuffle=True, random_state=0)
        for train, test in folds.split(X, y):
            model = Recording(random_state=0).fit(X[train], y[train])
            predicted = model.predict(X[test])
            for way, logs in logs_by_way(model, X[train], y[train], X[test]).items():
                loss = -np.mean(logs[np.arange(len(test)), y[test]])
                found[way].append((loss, 100 * np.mean(logs.argmax(axis=1) != predicted)))
        cells = [np.mean(found[way], axis=0) for way in WAYS]
        print(f"{name:18}", *(f"{loss:10.4f} {other:5.2f}" for loss, other in cells), flush=True)


if __name__ == "__main__":
    main()
