"""Targets in which some rows have no label. They are marked -1, as in scikit-learn.

Classes are found from the labelled rows of all agents. An agent may have only labelled rows, or
only unlabelled ones. For probabilities the model is trained once more without the labels of each
fold in turn; the rows of the fold stay, as rows without a label.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from peerlearn.algorithms.agreement import union
from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.calibration import fit_scales
from peerlearn.algorithms.readout.chosen_features import FOLDS
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array, Indices
from peerlearn.errors import DataError, WireError
from peerlearn.local.held_out import HeldOutScores
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import DEALING, Setup
from peerlearn.models.labels import NUMBERS, as_one_kind, codes_of, stream_classes
from peerlearn.models.probabilities import (
    Probabilities,
    check_probability,
    deal_folds,
    number_of_folds,
)
from peerlearn.models.row_model import RowModel
from peerlearn.network.base import Network

Marks = NDArray[np.bool_]
WRAPPERS = ("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier")
NO_LABEL = (-1, "-1", "-1.0", b"-1")
SUMS = Averaging(tolerance=1e-12)  # exact, except where messages get lost
# Returns the scores of rows that are held out, by agent, from all targets without theirs.
Score = Callable[[list[Array], list[Marks]], list[Array]]


def is_unlabelled(y: Any) -> Marks:
    """Return which rows have no label.

    They have -1, or the text that numpy makes of -1 when other labels are texts.
    """
    if y.dtype.kind in NUMBERS:
        return np.asarray(y == -1)
    return np.array([label in NO_LABEL for label in y.tolist()], dtype=np.bool_)


class PartlyLabelled(Probabilities, RowModel):
    """Base class of semi-supervised classifiers."""

    partly_labelled: ClassVar = True

    probability: bool

    def check_parameters(self) -> None:
        check_probability(self.probability)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Train on rows, some of which have no label.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns), or list of (X_k, y_k)
            The rows. If all agents are hosted here, the rows are dealt to them. A process that
            hosts one agent gives that agent's rows. A list of shares has one (X_k, y_k) per hosted
            agent.
        y : array-like of shape (n_rows,), default None
            The labels, -1 for rows without one; None if X is a list of shares.

        Returns
        -------
        self : the model
        """
        _refuse_wrappers(type(self).__name__)
        return super().fit(X, y)

    def encode(self, network: Network, targets: Sequence[Any]) -> list[Array]:
        """Return each hosted agent's labels as rows x M numbers, zeros for unlabelled rows."""
        labels = [column_or_1d(y, warn=True) for y in targets]
        marks = [~is_unlabelled(y) for y in labels]
        known = [_convert_objects(y[own]) for y, own in zip(labels, marks, strict=True)]
        for y in filter(len, known):
            check_classification_targets(y)
        given = getattr(self, "classes", None)
        if given is not None:
            self.classes_ = stream_classes(given)
            for y in known:
                codes_of(y, self.classes_, "", in_stream=False)
        else:
            self.classes_ = union(network, known)
        if np.count_nonzero(is_unlabelled(self.classes_)):
            if given is not None:
                raise DataError(
                    "-1 is among classes, but it marks rows without a label: leave it out"
                )
            raise WireError(
                "an agent sent -1 as a class, but -1 marks rows without a label: it probably runs "
                "another version or configuration"
            )
        if len(self.classes_) < 2:
            raise DataError(_describe_too_few(self.classes_))
        return [self._encode_labels(y, own) for y, own in zip(known, marks, strict=True)]

    def _encode_labels(self, known: Any, marks: Marks) -> Array:
        """Return one line of outputs per row. marks: which rows have the labels in `known`."""
        width = 1 if len(self.classes_) == 2 else len(self.classes_)
        outputs = np.zeros((len(marks), width))
        if len(known):
            outputs[marks] = self._encode_codes(np.searchsorted(self.classes_, known))
        return outputs

    def calibrate(
        self, setup: Setup, outputs: list[Array], score: Score, *, alone: bool = False
    ) -> None:
        """Fit probabilities on scores of labelled rows that were held out, if they are asked for.

        alone: whether agents do not work together.
        """
        self.keep_scales(None)
        if not self.probability:
            return
        sum_up: Callable[[Array], Array] = np.asarray
        if not alone:
            sum_up = partial(sum_alike, setup.network, averaging=SUMS)
        count, folds = self._deal_labels(setup, outputs, sum_up, alone=alone)
        scores = [np.zeros(Y.shape) for Y in outputs]
        for fold in range(count):
            held = [own == fold for own in folds]
            without = [np.where(own[:, None], 0.0, Y) for Y, own in zip(outputs, held, strict=True)]
            for own, rows, found in zip(scores, held, score(without, held), strict=True):
                own[rows] = found
        marks = [own >= 0 for own in folds]
        agents = zip(scores, outputs, marks, strict=True)
        held_out = [HeldOutScores(f[own], Y[own]) for f, Y, own in agents]
        self.keep_scales(fit_scales(held_out, sum_up))

    def _deal_labels(
        self,
        setup: Setup,
        outputs: list[Array],
        sum_up: Callable[[Array], Array],
        *,
        alone: bool,
    ) -> tuple[int, list[Indices]]:
        """Return the number of folds, and the fold of each row, -1 for rows without a label.

        Agents deal their own rows. They deal a class again if all its labels would be in one fold.
        """
        C = len(self.classes_)
        codes = [np.where(is_labelled(Y), self._choose(Y), -1) for Y in outputs]
        count = FOLDS
        if not alone:
            own_counts = np.stack([_count_by_fold(own * 0, own, 1, C) for own in codes])
            count = number_of_folds(np.rint(sum_up(own_counts)[0]), self.classes_)
        attempts = np.zeros(C, dtype=np.intp)
        while True:
            folds = []
            for agent, own in zip(setup.network.hosted, codes, strict=True):
                seed = (setup.seeds[DEALING], agent)
                seeds = [(*seed, c, int(attempt)) for c, attempt in enumerate(attempts)]
                folds.append(deal_folds(own, count, seeds))
            pairs = zip(folds, codes, strict=True)
            own_counts = np.stack([_count_by_fold(*pair, count, C) for pair in pairs])
            in_folds = np.rint(sum_up(own_counts)[0]).reshape(count, C)
            again = np.count_nonzero(in_folds, axis=0) < 2
            if alone or not again.any():
                return count, folds
            attempts += again

    def restore_targets(self, reader: ArchiveReader, outputs: int) -> None:
        super().restore_targets(reader, outputs)
        if is_unlabelled(self.classes_).any():
            raise reader.wrong("-1 is among its classes, which marks rows without a label")


def _count_by_fold(folds: Indices, codes: Indices, count: int, classes: int) -> Array:
    """Return the number of rows of each fold and class, in one row."""
    counts = np.zeros((count, classes))
    known = codes >= 0
    np.add.at(counts, (folds[known], codes[known]), 1.0)
    return counts.ravel()


def is_labelled(outputs: Array) -> Marks:
    """Return which of the encoded rows have a label."""
    return np.asarray(outputs.any(axis=1))


def _refuse_wrappers(name: str) -> None:
    """Refuse to be trained by a wrapper of scikit-learn that made -1 a class.

    Such a wrapper, OneVsRestClassifier for one, hands over 0 and 1 instead of the labels, so y does
    not show what happened. The wrapper itself is found among the callers. If it trains in other
    processes (n_jobs), one of its functions is, which knows the class, all labels or codes of -1.
    """
    multiclass = sys.modules.get("sklearn.multiclass")  # if not imported, no wrapper was made
    frame = None if multiclass is None else sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        wrappers = tuple(getattr(multiclass, kind) for kind in WRAPPERS)
        known: list[Any] = []
        who = "a wrapper of scikit-learn"
        if isinstance(caller, wrappers):
            known.append(frame.f_locals.get("y"))
            who = type(caller).__name__
        elif frame.f_globals.get("__name__") == "sklearn.multiclass" and (
            frame.f_code.co_name.startswith("_fit")
        ):
            known.append(frame.f_locals.get("y"))
            known.append((frame.f_locals.get("classes") or [None])[-1:])
        for labels in known:
            if labels is not None and is_unlabelled(column_or_1d(labels)).any():
                raise DataError(
                    f"{who} takes -1, which marks rows without a label, for a class: train "
                    f"{name} without it, it takes any number of classes"
                )
        frame = frame.f_back


def _convert_objects(labels: Any) -> Any:
    return labels if labels.dtype.kind in NUMBERS else as_one_kind(labels.tolist())


def _describe_too_few(classes: Any) -> str:
    if len(classes) == 0:
        return (
            "no row of the whole network has a label, all are -1: a classifier needs labelled rows "
            "of two or more classes somewhere"
        )
    return (
        f"all labelled rows of the whole network are of one class, {classes[0]}: a classifier "
        "needs labelled rows of two or more classes, at any agents. -1 marks rows without a label: "
        "if it is one of your classes, give that class another label, such as 0"
    )
