"""Predictions of a saved model for the rows of a file."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import r2_score

from peerlearn.data import table_file
from peerlearn.data.dataset import AnyArray
from peerlearn.models.archive import Saved, load
from peerlearn.models.unlabelled import is_unlabelled
from peerlearn.preparing.prepared_model import PreparedModel


@dataclass(frozen=True)
class Predictions:
    """A CSV text with one line per row, and a score where the file has the targets."""

    text: str
    rows: int
    score: str | None


def predict(model: str | os.PathLike[str], file: str | os.PathLike[str]) -> Predictions:
    """Predict the rows of a file that has the model's columns, in any order and beside others.

    A classifier with probabilities adds a column for each class after that of the prediction.
    If the model was saved with the preparation of its tables, rows may have gaps and categories.
    """
    saved = load(model)
    target = saved.target if saved.target in table_file.read_header(file) else None
    raw = "preparation" in saved.about
    table = table_file.read(file, target, partly_labelled=saved.model.partly_labelled, raw=raw)
    predictor: PreparedModel | Saved = PreparedModel.load(model) if raw else saved
    X = table.select(predictor.columns) if predictor.columns else table.X
    found = predictor.predict(X)
    score = None if table.y is None else _score(saved, table.y, found)
    name = saved.target or "prediction"
    outputs = found.reshape(len(found), -1)
    columns = outputs.T.tolist()
    header = [name] if len(columns) == 1 else [f"{name}_{k}" for k in range(len(columns))]
    if hasattr(saved.model, "predict_proba"):
        columns += predictor.predict_proba(X).T.tolist()
        header += [f"probability_{label}" for label in saved.model.classes_.tolist()]
    return Predictions(_csv(header, columns), len(found), score)


def _csv(header: list[str], columns: list[list[Any]]) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(header)
    lines.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _score(saved: Saved, y: AnyArray, found: AnyArray) -> str:
    if saved.model.partly_labelled and y.shape == found.shape:
        known = ~is_unlabelled(y)
        y = y[known]
        found = found[known]
        if len(y) == 0:
            return f"no score: column {saved.target!r} has no label in any row"
    if y.shape != found.shape or (y.dtype.kind == "U") != (
        found.dtype.kind == "U"
    ):  # 1 and "1" are not compared
        return (
            f"no score: column {saved.target!r} has {_kind(y)}, "
            f"where the model predicts {_kind(found)}"
        )
    if is_classifier(saved.model):
        return f"accuracy {np.mean(found == y):.4f} on {len(y)} rows"
    after = ""
    if saved.model.takes == "sequences" and saved.model.washout:
        y = y[saved.model.washout :]
        found = found[saved.model.washout :]
        after = f" after the washout of {saved.model.washout}"
    if len(y) < 2:
        return f"no R2: it takes two rows{after} at least"
    return f"R2 {r2_score(y, found):.4f} on {len(y)} rows{after}"


def _kind(entries: AnyArray) -> str:
    return f"{'text' if entries.dtype.kind == 'U' else 'numbers'} of shape {entries.shape}"
