"""Classifiers with `predict_proba`: p(c | x) = softmax(s f(x)), s fitted on rows held out.

    f      scores of rows by models that were trained without their fold     see each model
    s      one number, the same at all agents                                over the network

`peerlearn.algorithms.calibration` finds s. The class with the largest probability is always the
predicted one. docs/decisions/0028-probabilities.md compares this with other ways. A saved model has
the entry probability_scale, s, in its text; files of models without probabilities lack it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from peerlearn.algorithms.readout.chosen_features import FOLDS
from peerlearn.arrays import Array, Indices, is_real
from peerlearn.errors import DataError, InputError
from peerlearn.local.held_out import probabilities_of
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.targets import LabelTargets

ASK = "set probability=True and fit again"


def has_probabilities(model: Any) -> bool:
    """Raise AttributeError with a sentence if the model has no probabilities."""
    name = type(model).__name__
    if not hasattr(model, "coefficients_") and not model.promises_probabilities():
        raise AttributeError(f"{name} has no probabilities: {ASK}")
    if hasattr(model, "coefficients_") and model.probability_scale_ is None:
        raise AttributeError(f"this {name} has no probabilities: {model._no_probabilities}")
    return True


class Probabilities(LabelTargets):
    """Mixin of classifiers whose probabilities follow from their scores."""

    probability: Any
    probability_scale_: Array | None  # s of each hosted agent
    _no_probabilities: str  # why there are none

    @available_if(has_probabilities)
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class, by the first hosted agent's coefficients.

        Needs probability=True, unless the model says otherwise. The class with the largest
        probability is the one that `predict` returns.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        probabilities: Array = self._probabilities(self.agent_outputs(X, slice(1)))[0]
        return probabilities

    @available_if(has_probabilities)
    def agent_probabilities(self, X: ArrayLike) -> Array:
        """Return the probabilities of every hosted agent: agents x rows x classes."""
        return self._probabilities(self.agent_outputs(X))

    def promises_probabilities(self) -> bool:
        """Return whether the model will have probabilities when it is fitted."""
        return bool(self.probability)

    def _probabilities(self, outputs: Any) -> Array:
        """Return probabilities from the outputs of some hosted agents, from the first one on."""
        assert self.probability_scale_ is not None
        pairs = zip(outputs, self.probability_scale_, strict=False)
        return np.stack([probabilities_of(f, scale) for f, scale in pairs])

    def keep_scales(self, scales: Array | None, why_none: str = ASK) -> None:
        """Set s of each hosted agent; None if there are none, and why."""
        self.probability_scale_ = scales
        self._no_probabilities = why_none

    def target_entries(self) -> dict[str, Any]:
        entries = super().target_entries()
        if self.probability_scale_ is not None:
            entries["probability_scale"] = float(self.probability_scale_[0])
        return entries

    def restore_targets(self, reader: ArchiveReader, outputs: int) -> None:
        super().restore_targets(reader, outputs)
        self.keep_scales(None, "its file was saved without them; fit and save it again")
        if "probability_scale" in reader.about:
            scale = reader.about["probability_scale"]
            if not is_real(scale) or not 0 < scale < np.inf:
                raise reader.wrong(f"its probability_scale is {scale!r:.60}, no number above 0")
            self.keep_scales(np.array([float(scale)]))


def check_probability(value: Any, *, auto: bool = False) -> None:
    """Check that the value can be the parameter `probability`. auto: whether "auto" is one."""
    if isinstance(value, bool | np.bool_) or (auto and value == "auto"):
        return
    known = "True, False or 'auto'" if auto else "True or False"
    raise InputError(f"probability is {value!r:.60}: give {known}")


def deal_folds(codes: Indices, folds: int, seeds: Sequence[tuple[int, ...]]) -> Indices:
    """Return the fold of each row: the rows of each class are dealt evenly, from a random fold on.

    codes: the class of each row; rows with -1 have no fold, -1.
    seeds: of each class.
    """
    dealt = np.full(len(codes), -1, dtype=np.intp)
    for code, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        own = rng.permutation(np.flatnonzero(codes == code))
        dealt[own] = (np.arange(len(own)) + rng.integers(folds)) % folds
    return dealt


def number_of_folds(counts: Array, classes: Any) -> int:
    """Return how many folds to hold out, at most as many as the rarest class has labelled rows.

    counts: of each class, in the whole network. One row of a class is refused.
    """
    fewest = int(counts.argmin())
    if counts[fewest] < 2:
        raise DataError(
            "probability=True needs two labelled rows of every class or more, so that some can be "
            f"held out, and class {classes[fewest]} has {counts[fewest]:.0f} in the whole network: "
            "label more rows, or set probability to False"
        )
    return min(FOLDS, round(float(counts[fewest])))
