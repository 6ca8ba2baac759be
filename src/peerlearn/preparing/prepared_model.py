"""A model and the preparation of its tables in one file, so that raw rows can be predicted.

The file is that of `peerlearn.models.archive`, with the entry `preparation` in its text.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from peerlearn.errors import DataError
from peerlearn.models import archive
from peerlearn.models.base import FittedModel
from peerlearn.preparing.preparer_entries import WAY_OUT, entries_of, names_of, preparer_from
from peerlearn.preparing.table_preparer import TablePreparer

__all__ = ["PreparedModel"]


@dataclass(frozen=True, eq=False)
class PreparedModel:
    """A fitted model with the fitted preparer of its tables. It predicts raw rows.

    Parameters
    ----------
    preparer : TablePreparer
        The fitted preparer.
    model : estimator
        The model that was fitted on what the preparer returns.
    target : str or None, default None
        Name of the target.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from peerlearn import PreparedModel, RVFLClassifier, TablePreparer, data
    >>> (X, y), *_ = data.hospital_tables()
    >>> preparer = TablePreparer().fit(X)
    >>> model = RVFLClassifier(20, random_state=0).fit(preparer.transform(X), y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PreparedModel(preparer, model).save(Path(folder) / "model.npz")
    ...     loaded = PreparedModel.load(Path(folder) / "model.npz")
    >>> raw = [[61, "unheard of", None, None, 250, True, "2023-05-01"]]
    >>> bool(loaded.predict(raw) == model.predict(preparer.transform(raw)))
    True
    """

    preparer: TablePreparer
    model: Any
    target: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the raw table's columns; empty if they have none."""
        return names_of(self.preparer)

    def predict(self, X: Any) -> Any:
        """Return predictions for raw rows, with gaps and categories that are new.

        A table without names has the columns of the preparer, in their order.
        """
        return self.model.predict(self._prepare(X))

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class for raw rows, as `predict` takes them.

        Raises AttributeError if the model has no probabilities.
        """
        return self.model.predict_proba(self._prepare(X))

    def _prepare(self, X: Any) -> Any:
        """Return what the preparer makes of raw rows."""
        if hasattr(X, "columns") or not self.columns:
            return self.preparer.transform(X)
        cells = np.array(X, dtype=object)
        if cells.ndim != 2 or cells.shape[1] != len(self.columns):
            raise DataError(
                f"rows of shape {cells.shape} do not fit the model: give a table with the columns "
                f"{', '.join(self.columns)}"
            )
        return self.preparer.transform_rows(cells)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model and preparer to one file. The file appears only when it is complete."""
        check_is_fitted(self.preparer)
        model: FittedModel = self.model
        archive.save(
            model,
            path,
            columns=self.preparer.get_feature_names_out().tolist(),
            target=self.target,
            preparation=entries_of(self.preparer),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PreparedModel:
        """Return the model and the preparer of a file. All of the file is checked."""
        saved = archive.load(path)
        if "preparation" not in saved.about:
            raise DataError(
                f"the model in {path} was saved without a preparation: use "
                "peerlearn.models.archive.load"
            )
        preparer = preparer_from(saved.about["preparation"])
        width = len(preparer.get_feature_names_out())
        if width != saved.model.n_features_in_:
            raise DataError(
                f"the preparation in {path} makes {width} columns, but the model takes "
                f"{saved.model.n_features_in_}: {WAY_OUT}"
            )
        return cls(preparer, saved.model, saved.target)
