"""A fitted model as one .npz file: numbers and a text, nothing that could run code when it is loaded.

about            JSON: version, class, parameters, names of columns and target, how the model was trained
coefficients     of the first hosted agent
classes          of a classifier
center, scale    what was done to the columns before training, if anything

Further arrays and entries depend on the class: see its file. A model can be saved if its class has
`from_archive`: if
whoever has its coefficients can predict alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
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
from peerlearn.models.fitted_model import FittedModel
from peerlearn.models.registry import saved_models
from peerlearn.private_files import open_private


@dataclass(frozen=True, eq=False)
class Saved:
    """A model as it was saved, with what it takes to use it on new rows."""

    model: Any  # of the class that was saved
    columns: tuple[str, ...]  # in the order of the model's inputs; none if they have no names
    center: Array | None = field(repr=False)
    scale: Array | None = field(repr=False)
    target: str | None
    about: dict[str, Any] = field(repr=False)

    def predict(self, X: ArrayLike) -> Any:
        """Of rows as they were measured: (x - center) / scale is done here."""
        inputs = self.model.n_features_in_
        given: Any = X
        try:
            if scipy.sparse.issparse(given):
                given = given.toarray()
            rows = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"what was given is no table of numbers ({error}): give one table with the model's {inputs} columns, "
                "and of sequences one at a time"
            ) from error
        named = tuple(
            getattr(X, "columns", self.columns)
        )  # a data frame may have them in another order
        if rows.ndim != 2 or rows.shape[1] != inputs or (self.columns and named != self.columns):
            names = f" ({', '.join(self.columns)})" if self.columns else ""
            raise DataError(
                f"rows of shape {rows.shape} do not fit the model: give a table with its {inputs} columns{names}, in "
                "their order"
            )
        if self.center is not None:
            rows = rows - self.center
        return self.model.predict(rows if self.scale is None else rows / self.scale)


def save(
    model: FittedModel,
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] = (),
    center: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    target: str | None = None,
    report: Mapping[str, Any] | None = None,
) -> None:
    """Write the model at once, so that the file is whole or not there.

    columns are by default those of the data frame it was fitted on; report, how it was trained, is
    model.report_.
    """
    known = saved_models()
    if type(model) not in known.values():
        raise InputError(
            f"a {type(model).__name__} cannot be saved: give a fitted {', '.join(known)}"
        )
    check_is_fitted(model)
    own, entries = model.to_archive()
    arrays = {"coefficients": model.coefficients_[0], **own}
    if hasattr(model, "classes_"):
        arrays["classes"] = model.classes_
    arrays |= {
        name: np.asarray(x, dtype=np.float64)
        for name, x in (("center", center), ("scale", scale))
        if x is not None
    }
    names = [
        str(name) for name in (columns if len(columns) else getattr(model, "feature_names_in_", ()))
    ]
    about = (
        describe(model)
        | entries
        | {"columns": names, "target": target, "report": _report(model, report)}
    )
    arrays["about"] = np.array(json.dumps(about))
    way_out = "give it as it was fitted, with one name, center and scale above 0 per column"
    _restore(
        ArchiveReader.of_file(arrays, "the model cannot be saved", way_out)
    )  # what is written can be read
    write_arrays(Path(path).expanduser(), arrays)


def load(path: str | os.PathLike[str]) -> Saved:
    """The model of a file, checked before use."""
    way_out = "copy it again, or save the fitted model with peerlearn.models.archive.save"
    return _restore(read_archive(path, "model", "be used", way_out))


def read_archive(
    path: str | os.PathLike[str], what: str, purpose: str, way_out: str
) -> ArchiveReader:
    """Read an archive. `what` and `purpose` are used in the error message."""
    file = Path(path).expanduser()
    if not os.path.exists(file):
        raise DataError(f"there is no {what} {file}: check the path")
    objection = f"{file} holds no {what} that can {purpose}"
    try:
        arrays = npz.read(file, compressed=False)  # as `write_arrays` saves them
    except DataError as error:
        raise ArchiveReader({}, {}, objection, way_out).wrong(str(error.__cause__)) from error
    return ArchiveReader.of_file(arrays, objection, way_out)


def describe(model: FittedModel) -> dict[str, Any]:
    """Return what the text says of every model.

    Of parameters those that are plain values: a network, or a solver with settings, belongs to the
    training.
    """
    given = {
        name: x.item() if isinstance(x, np.generic) else x
        for name, x in model.get_params(deep=False).items()
    }
    return {
        "version": VERSION,
        "class": type(model).__name__,
        "parameters": {
            name: x for name, x in given.items() if isinstance(x, bool | int | float | str | None)
        },
        **({"solver": repr(given["solver"])} if "solver" in given else {}),
        "n_features": int(model.n_features_in_),
    }


def _report(model: FittedModel, given: Mapping[str, Any] | None) -> dict[str, Any]:
    own = (
        asdict(model.report_) if hasattr(model, "report_") else {}
    )  # a model that was loaded has none
    try:
        plain: dict[str, Any] = json.loads(
            json.dumps(own if given is None else dict(given), default=np.generic.item)
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the report cannot be saved as JSON ({error}): give numbers, texts, lists and dicts"
        ) from error
    return plain


def _restore(reader: ArchiveReader) -> Saved:
    """Return the estimator that was saved, without its network."""
    known = saved_models()
    kind = known[reader.one_of("class", known)]
    model, inputs = kind(**reader.parameters(kind().get_params())), reader.entry("n_features", int)
    model.n_features_in_ = inputs
    model.from_archive(reader)
    center, scale = (
        reader.numbers(each, inputs) if each in reader.arrays else None
        for each in ("center", "scale")
    )
    if scale is not None and not (scale > 0).all():
        raise reader.wrong("not every scale is above 0")
    target = reader.entry("target", str) if reader.about.get("target") is not None else None
    return Saved(model, reader.columns(inputs), center, scale, target, reader.about)


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Replace the file at once; it is private, because rows can be computed from what models and streams hold."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "wb", opener=open_private) as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())  # the name moves after the numbers are on the disk
        beside.replace(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): make room or name another file"
        ) from error
    finally:
        with suppress(OSError):
            beside.unlink()  # still there only if something went wrong
