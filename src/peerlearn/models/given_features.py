"""Features that a user gives to a model: what is accepted, compared, and saved.

A file cannot hold a function. It holds its name, and the features of a few fixed rows:

    frozen_features   in the text: the name
    probed            the features of the fixed rows

Whoever loads the file gives the features again, and they must be the same on these rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from peerlearn.algorithms.agreement import Drawn, probe
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError
from peerlearn.local.frozen_features import SAME, FrozenFeatures, are_same
from peerlearn.models.archive_reader import ArchiveReader

ENTRY = "frozen_features"
NAMES = ("auto", "fixed", "columns")
PROBES = 4  # rows


def check_features(given: Any) -> None:
    """Refuse what is neither a known name, nor a function, nor a fitted transformer."""
    if isinstance(given, str) and given in NAMES:
        return
    if isinstance(given, type) or not (callable(given) or hasattr(given, "transform")):
        raise InputError(
            f"features is {given!r:.60}: give 'auto', 'fixed', 'columns', a function that returns "
            "one row of features per row, or a fitted scikit-learn transformer"
        )
    if not hasattr(given, "transform"):
        return
    try:
        check_is_fitted(given)
    except NotFittedError:
        raise InputError(
            f"features is a {type(given).__name__} that is not fitted: fit it first, and wrap it "
            "in sklearn.frozen.FrozenEstimator, because a copy by sklearn.base.clone is not fitted"
        ) from None


def freeze(given: Any, columns: int) -> FrozenFeatures:
    """Return the features of a function or transformer for rows of so many columns."""
    return FrozenFeatures.of(given, probe(PROBES, columns))


def drawn_of(features: FrozenFeatures) -> Drawn:
    """Return what agents compare of the features."""
    return Drawn(
        "the features that they were given",
        computed=np.array([features.digest]),
        rounding=SAME,
        way_out="give all agents the same function or transformer, trained once",
    )


def features_of(model: Any) -> Any:
    """Return the features that a model was given; None if it has its own."""
    own = isinstance(getattr(model, "features_", None), FrozenFeatures)
    return model.features if own else None


def features_to_archive(
    features: FrozenFeatures,
) -> tuple[dict[str, AnyArray], dict[str, Any]]:
    """Return what a file has of the features: arrays and entries by name."""
    return {"probed": features.probed}, {ENTRY: features.name}


def give_features(model: Any, reader: ArchiveReader, features: Any) -> None:
    """Give features to a model that is read from a file, if the file asks for them."""
    if ENTRY not in reader.about:
        if features is not None:
            raise InputError("the model of this file has features of its own: leave features out")
        return
    name = reader.entry(ENTRY, str)
    if features is None or "features" not in model.get_params(deep=False):
        raise DataError(
            f"{reader.objection}, because its features are computed by {name:.60}, which no file "
            "holds: load it in Python, and give features= as it was given when the model was "
            "trained"
        )
    model.set_params(features=features)


def features_from_archive(reader: ArchiveReader, given: Any, columns: int) -> FrozenFeatures:
    """Return the given features, if they are those of the file."""
    check_features(given)
    features = freeze(given, columns)
    probed = reader.numbers("probed", PROBES, None)
    if not are_same(features.probed, probed):
        raise DataError(
            f"features ({features.name}) are not those that the model was trained with "
            f"({reader.entry(ENTRY, str):.60}): on the same rows they have {features.width} "
            f"columns where {probed.shape[1]} were saved, or other numbers"
        )
    return features
