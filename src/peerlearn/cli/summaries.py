"""Coefficients of a saved model with their standard errors, in the units of the table."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.inference import Summary, in_units
from peerlearn.models.archive import Saved, load
from peerlearn.models.generalised_linear import GeneralisedLinear
from peerlearn.preparing.preparer_entries import preparer_from

COLUMNS = ("name", "coefficient", "standard_error", "z", "p_value", "from", "to")


def summary_of(path: str | os.PathLike[str], errors: Any, level: float) -> Summary:
    """Return the summary of a saved model, with its columns in their own units."""
    saved = load(path)
    model = saved.model
    if not isinstance(model, GeneralisedLinear):
        raise InputError(
            f"the model in {path} is a {type(model).__name__}, which has no standard errors: train "
            "a LogisticClassifier or a GLMRegressor with alpha = 0"
        )
    if model.inference_ is not None:
        center, scale = _units(saved)
        model.inference_ = in_units(model.inference_, center, scale, bool(model.fit_intercept))
    if saved.columns:
        model.name_columns(saved.columns)
    return model.summary(errors, level)


def _units(saved: Saved) -> tuple[Array, Array]:
    """Return by how much the model's columns were shifted and divided before training."""
    width = saved.model.n_features_in_
    center = np.zeros(width)
    scale = np.ones(width)
    if "preparation" in saved.about:
        scaler = preparer_from(saved.about["preparation"]).scaler_
        if scaler is not None:
            # Numbers and dates are the first columns; indicators and categories are not scaled.
            center[: len(scaler.center_)] = scaler.center_
            scale[: len(scaler.scale_)] = scaler.scale_
    if saved.center is not None:
        center = saved.center
    if saved.scale is not None:
        scale = saved.scale
    return center, scale


def csv_of(table: Summary) -> str:
    """Return one line per coefficient."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    numbers = (table.coefficients, table.standard_errors, table.z, table.p_values)
    cells = np.column_stack([*numbers, table.intervals])
    for name, row in zip(table.names, cells.tolist(), strict=True):
        lines.writerow([name, *row])
    return text.getvalue()
