"""Metrics of predictions, and measures of how much agents differ.

    error            share of rows with another class than theirs
    balanced_error   the same, averaged over classes
    mcc              Matthews' correlation coefficient, 1 is best
    log_loss         mean of -log p, p the probability of a row's own class, at least 1e-15
    brier            mean of sum_c (p_c - t_c)^2, t_c 1 for a row's own class; half of it for two
                     classes, where it is (p - t)^2
    rmse             sqrt(mean |f - y|^2)
    nrmse            sqrt(sum |f - y|^2 / sum |y - mean y|^2): the variance is that of the test rows
    mae              mean |f - y|

Each of one agent's predictions; a run's value is the mean over agents. Models without
probabilities have no log_loss and no brier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import matthews_corrcoef

from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray, Task
from peerlearn.errors import DataError

LEAST_PROBABILITY = 1e-15  # in log_loss, which is infinite if an impossible class occurs


@dataclass(frozen=True)
class Metric:
    """A metric of predictions.

    of: the targets y and one agent's predictions; or the number of each row's class and one agent's
        probabilities.
    """

    name: str
    task: Task
    words: str
    of: Callable[[AnyArray, AnyArray], float]
    larger_is_better: bool = False
    of_probabilities: bool = False


@dataclass(frozen=True)
class ClassProbabilities:
    """Probabilities of all agents, agents x rows x classes, and the number of each row's class."""

    of_agents: Array
    codes: AnyArray

    @classmethod
    def of(cls, found: Sequence[tuple[AnyArray, Array]], y: AnyArray) -> ClassProbabilities:
        """Return the probabilities of some agents for rows with the targets y.

        found: the classes that an agent knows, and its probabilities of them. Others have 0.
        """
        classes = np.unique(np.concatenate([y, *(own for own, _ in found)]))
        of_agents = np.zeros((len(found), len(y), len(classes)))
        for whole, (own, p) in zip(of_agents, found, strict=True):
            whole[:, np.searchsorted(classes, own)] = p
        return cls(of_agents, np.searchsorted(classes, y))


def _nrmse(y: AnyArray, predicted: AnyArray) -> float:
    variance = np.mean((y - y.mean(axis=0)) ** 2)
    if not np.ptp(y, axis=0).any():  # of equal numbers the variance may be a rounding error
        raise DataError(
            f"the {len(y)} test rows have all the same target, and nrmse is relative to their "
            f"variance: use fewer "
            "folds, or the metric rmse"
        )
    return float(np.sqrt(np.mean((predicted - y) ** 2) / variance))


def _balanced_error(y: AnyArray, predicted: AnyArray) -> float:
    wrong = predicted != y
    codes = np.unique(y, return_inverse=True)[1]
    return float(np.mean(np.bincount(codes, wrong) / np.bincount(codes)))


def _log_loss(codes: AnyArray, p: AnyArray) -> float:
    own = p[np.arange(len(p)), codes]
    return float(-np.mean(np.log(np.maximum(own, LEAST_PROBABILITY))))


def _brier(codes: AnyArray, p: AnyArray) -> float:
    classes = p.shape[1]
    squares = ((p - np.eye(classes)[codes]) ** 2).sum(axis=1)
    return float(np.mean(squares)) / (2.0 if classes == 2 else 1.0)


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "error",
            "classification",
            "misclassification error",
            lambda y, f: float(np.mean(f != y)),
        ),
        Metric("balanced_error", "classification", "balanced error", _balanced_error),
        Metric(
            "mcc",
            "classification",
            "Matthews correlation",
            lambda y, f: float(matthews_corrcoef(y, f)),
            True,
        ),
        Metric("log_loss", "classification", "log-loss", _log_loss, of_probabilities=True),
        Metric("brier", "classification", "Brier score", _brier, of_probabilities=True),
        Metric(
            "rmse",
            "regression",
            "root mean squared error",
            lambda y, f: float(np.sqrt(np.mean((f - y) ** 2))),
        ),
        Metric("nrmse", "regression", "normalised root mean squared error", _nrmse),
        Metric(
            "mae", "regression", "mean absolute error", lambda y, f: float(np.mean(np.abs(f - y)))
        ),
    )
}
USUAL: Mapping[Task, tuple[str, ...]] = {"classification": ("error",), "regression": ("nrmse",)}


def needs_probabilities(names: Iterable[str]) -> bool:
    """Return whether one of these metrics is of probabilities."""
    return any(name in METRICS and METRICS[name].of_probabilities for name in names)


def measure(
    names: Iterable[str],
    task: Task,
    y: AnyArray,
    predictions: AnyArray,
    whose: str = "the model",
    probabilities: ClassProbabilities | None = None,
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return the mean over agents of each metric of this task, and the agents' own values.

    Without names, the task's usual ones. Names that are no metrics of predictions are left to
    whoever knows them. Without probabilities there are no metrics of them.
    """
    if predictions.shape[1:] != y.shape:  # numpy would compare every row with every other
        if predictions[0].size != y.size:
            raise DataError(
                f"the predictions of {whose} have shape {predictions.shape[1:]}, but {len(y)} test "
                f"rows have targets "
                f"of shape {y.shape}: let predict answer with one target per row"
            )
        predictions = predictions.reshape(len(predictions), *y.shape)
    if task == "classification":
        _check_classes(y, predictions, whose)
    asked = [METRICS[name] for name in names or USUAL[task] if name in METRICS]
    agents = {}
    for metric in asked:
        if metric.task != task:
            continue
        if not metric.of_probabilities:
            agents[metric.name] = [metric.of(y, own) for own in predictions]
        elif probabilities is not None:
            codes = probabilities.codes
            agents[metric.name] = [metric.of(codes, own) for own in probabilities.of_agents]
    return {name: float(np.mean(own)) for name, own in agents.items()}, agents


def _check_classes(y: AnyArray, predictions: AnyArray, whose: str) -> None:
    """Refuse predictions that cannot be classes: they are a mistake of a program."""
    if predictions.dtype.kind == "f" and np.isnan(predictions).any():
        raise DataError(
            f"some predictions of {whose} are NaN, which is no class: let predict answer with "
            f"classes"
        )
    kinds = ["texts" if each.dtype.kind in "OUST" else "numbers" for each in (predictions, y)]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"the predictions of {whose} are {kinds[0]}, and the classes {kinds[1]}: let predict "
            f"answer so"
        )


def spread(stack: Array) -> float:
    """Return how much agents' numbers differ:  sqrt(mean_k |b_k - b|^2) / |b|, b their mean."""
    rows = stack.reshape(len(stack), -1)
    mean = rows.mean(axis=0)
    away = np.sqrt(np.mean(np.sum((rows - mean) ** 2, axis=1)))
    return relative(float(away), float(np.linalg.norm(mean)))


def share_differing(labels: AnyArray) -> float:
    """Return the share of answers, agents x rows, that differ from the commonest of their row."""
    agents = len(labels)
    codes = np.unique(labels, return_inverse=True)[1].reshape(labels.shape)
    most = np.array([np.bincount(column).max() for column in codes.T])
    return float(np.mean(1 - most / agents))


def distances(stack: Array, centre: Array) -> list[float]:
    """Return the distance of each agent's numbers to the centre, relative to its size."""
    size = float(np.linalg.norm(centre))
    return [relative(float(np.linalg.norm(own - centre)), size) for own in stack]


def relative(distance: float, size: float) -> float:
    """Return a distance relative to a size; 0 where there is no distance, whatever the size."""
    if distance == 0:
        return 0.0
    return distance / size if size else float("inf")


def disagreement(coefficients: Any, predictions: AnyArray) -> float:
    """Return how much agents' coefficients differ, or their predictions if those cannot."""
    if isinstance(coefficients, np.ndarray) and len(coefficients) == len(predictions):
        return spread(coefficients)
    return spread(predictions) if predictions.dtype.kind == "f" else share_differing(predictions)
