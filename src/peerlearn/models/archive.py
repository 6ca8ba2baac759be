"""A fitted model as one .npz file. It holds numbers and a text; loading it runs no code from it.

about            JSON text: version, class, parameters, names of columns and target, training report
coefficients     of the first hosted agent
classes          of a classifier
center, scale    of the columns, if they were standardised before training

Further arrays and entries depend on the class: see its file. A model can be saved if its class has
`from_archive`, that is, if anybody who has its coefficients can predict alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from peerlearn.arrays import Array
from peerlearn.data import npz
from peerlearn.errors import DataError, InputError
from peerlearn.models.archive_reader import VERSION, ArchiveReader
from peerlearn.models.base import NetworkModel
from peerlearn.models.given_features import features_of, give_features
from peerlearn.models.registry import saved_models
from peerlearn.private_files import open_private


@dataclass(frozen=True, eq=False)
class Saved:
    """A model from a file, with all that predictions for new rows need.

    Attributes
    ----------
    model : estimator
        The fitted model, without its network.
    columns : tuple of str
        Names of the columns, in the order of the model's inputs; empty if they have no names.
    center, scale : ndarray or None
        Columns are standardised as (x - center) / scale before a prediction.
    target : str or None
        Name of the target.
    about : dict
        All entries of the file's text, such as how the model was trained.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from peerlearn import RVFLClassifier, data
    >>> from peerlearn.models import archive
    >>> iris = data.load("iris")
    >>> model = RVFLClassifier(20, random_state=0).fit(iris.X, iris.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     archive.save(model, Path(folder) / "iris.npz", target="species")
    ...     saved = archive.load(Path(folder) / "iris.npz")
    >>> saved.target
    'species'
    >>> bool((saved.predict(iris.X) == model.predict(iris.X)).all())
    True
    """

    model: Any
    columns: tuple[str, ...]
    center: Array | None = field(repr=False)
    scale: Array | None = field(repr=False)
    target: str | None
    about: dict[str, Any] = field(repr=False)

    def predict(self, X: ArrayLike) -> Any:
        """Return predictions for rows as they were measured. They are standardised here."""
        return self.model.predict(self._inputs(X))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class for rows as they were measured.

        Raises AttributeError if the model has no probabilities.
        """
        probabilities: Array = self.model.predict_proba(self._inputs(X))
        return probabilities

    def _inputs(self, X: ArrayLike) -> Any:
        """Return rows as the model takes them, after a check that they have its columns."""
        inputs = self.model.n_features_in_
        table: Any = X
        try:
            dense = table.toarray() if scipy.sparse.issparse(table) else table
            rows = np.asarray(dense, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"what was given is no table of numbers ({error}): give one table with the model's "
                f"{inputs} columns, and sequences one at a time"
            ) from error
        # A data frame may have the columns in another order.
        names = tuple(getattr(table, "columns", self.columns))
        in_order = not self.columns or names == self.columns
        if rows.ndim != 2 or rows.shape[1] != inputs or not in_order:
            expected = f" ({', '.join(self.columns)})" if self.columns else ""
            raise DataError(
                f"rows of shape {rows.shape} do not fit the model: give a table with its {inputs} "
                f"columns{expected}, in their order"
            )
        if self.center is not None:
            rows = rows - self.center
        if self.scale is not None:
            rows = rows / self.scale
        return rows[:, 0] if self.model.takes == "signals" else rows


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] = (),
    center: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    target: str | None = None,
    report: Mapping[str, Any] | None = None,
    preparation: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file. The file appears only when it is complete.

    Parameters
    ----------
    model : NetworkModel
        The fitted model, a search whose best model is saved, or an adaptive filter after `run` or
        `step`.
    path : str or path
        The file, by convention with the ending .npz.
    columns : sequence of str, default ()
        Names of the columns. If empty, those of the data frame that the model was fitted on.
    center, scale : array-like of shape (n_columns,), default None
        How columns were standardised before training, as (x - center) / scale.
    target : str, default None
        Name of the target.
    report : mapping, default None
        How the model was trained. None takes model.report_.
    preparation : mapping, default None
        How raw tables become the model's columns, as plain values: see `PreparedModel`.
    """
    model = getattr(model, "best_estimator_", model)  # of a search
    known = saved_models()
    if type(model) not in known.values():
        raise InputError(
            f"a {type(model).__name__} cannot be saved: give a fitted {', '.join(known)}"
        )
    if hasattr(model, "fit"):  # filters have none, and refuse by themselves
        check_is_fitted(model)
    own, entries = model.to_archive()
    arrays = {"coefficients": model.coefficients_[0], **own}
    if hasattr(model, "classes_"):
        arrays["classes"] = model.classes_
    for name, numbers in (("center", center), ("scale", scale)):
        if numbers is not None:
            arrays[name] = np.asarray(numbers, dtype=np.float64)
    names = columns if len(columns) else getattr(model, "feature_names_in_", ())
    about = {
        **describe(model),
        **entries,
        "columns": [str(name) for name in names],
        "target": target,
        "report": _plain_report(model, report),
    }
    if preparation is not None:
        about["preparation"] = dict(preparation)
    arrays["about"] = np.array(json.dumps(about))
    way_out = "give it as it was fitted, with one name, center and scale above 0 per column"
    # Read before it is written, so that no file is written that cannot be read.
    reader = ArchiveReader.of_file(arrays, "the model cannot be saved", way_out)
    _restore(reader, features_of(model))
    write_arrays(Path(path).expanduser(), arrays)


def load(path: str | os.PathLike[str], *, features: Any = None) -> Saved:
    """Return the model of a file. All of the file is checked.

    Parameters
    ----------
    path : str or path
        The file.
    features : function or fitted transformer, default None
        What the model was trained with, if its features were given. A file cannot hold it. It is
        checked on a few rows whose features the file has.

    Returns
    -------
    Saved
    """
    way_out = "copy it again, or save the fitted model with peerlearn.models.archive.save"
    return _restore(read_archive(path, "model", "be used", way_out), features)


def read_archive(
    path: str | os.PathLike[str], what: str, purpose: str, way_out: str
) -> ArchiveReader:
    """Read an archive. `what`, `purpose` and `way_out` are used in error messages."""
    file = Path(path).expanduser()
    if not os.path.exists(file):
        raise DataError(f"there is no {what} {file}: check the path")
    objection = f"{file} holds no {what} that can {purpose}"
    try:
        arrays = npz.read(file, compressed=False)  # `write_arrays` does not compress
    except DataError as error:
        raise ArchiveReader({}, {}, objection, way_out).wrong(str(error.__cause__)) from error
    return ArchiveReader.of_file(arrays, objection, way_out)


def describe(model: NetworkModel) -> dict[str, Any]:
    """Return the entries that the text has for every model.

    Only parameters with plain values are kept. A network, or a solver with settings, was needed for
    the training only.
    """
    given = {}
    for name, value in model.get_params(deep=False).items():
        given[name] = value.item() if isinstance(value, np.generic) else value
    plain = {
        name: value
        for name, value in given.items()
        if isinstance(value, bool | int | float | str | None)
    }
    entries = {"version": VERSION, "class": type(model).__name__, "parameters": plain}
    if "solver" in given:
        entries["solver"] = repr(given["solver"])
    return entries | {"n_features": int(model.n_features_in_)}


def _plain_report(model: NetworkModel, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the report as values that JSON can have."""
    report: dict[str, Any] = {}
    if given is not None:
        report = dict(given)
    elif hasattr(model, "report_"):  # a model that was loaded has none
        report = model.report_.for_json()
    try:
        plain: dict[str, Any] = json.loads(json.dumps(report, default=np.generic.item))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the report cannot be saved as JSON ({error}): give numbers, texts, lists and dicts"
        ) from error
    return plain


def _restore(reader: ArchiveReader, features: Any = None) -> Saved:
    """Return the estimator that was saved, without its network."""
    known = saved_models()
    kind = known[reader.one_of("class", known)]
    model = kind(**{**kind.before_files, **reader.parameters(kind().get_params(deep=False))})
    inputs = reader.entry("n_features", int)
    if inputs < 1:
        raise reader.wrong(f"its n_features is {inputs}")
    model.n_features_in_ = inputs
    give_features(model, reader, features)
    model.from_archive(reader)
    center = reader.numbers("center", inputs) if "center" in reader.arrays else None
    scale = reader.numbers("scale", inputs) if "scale" in reader.arrays else None
    if scale is not None and not (scale > 0).all():
        raise reader.wrong("not every scale is above 0")
    target = reader.entry("target", str) if reader.about.get("target") is not None else None
    return Saved(model, reader.columns(inputs), center, scale, target, reader.about)


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to a private file, and replace an old file only when it is complete.

    The file is private because rows may be computed from what models and streams hold.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb", opener=open_private) as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())  # the numbers must be on the disk before the file is renamed
        temporary.replace(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): make room or name another file"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()  # exists only if something went wrong
