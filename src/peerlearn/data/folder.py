"""Data sets from a folder: NAME.npz with at least X and y, found by its name."""

from __future__ import annotations

import os
from pathlib import Path

from peerlearn.arrays import Array
from peerlearn.data import npz
from peerlearn.data.checks import answers, required, table
from peerlearn.data.dataset import AnyArray, DataSet, Task, scale, targets
from peerlearn.data.known_files import KNOWN_FILES, KnownFile
from peerlearn.data.scaling import Range
from peerlearn.errors import DataError

VARIABLE = "PEERLEARN_DATA"
UNIT = (0.0, 1.0)


def chosen(folder: str | os.PathLike[str] | None) -> Path | None:
    """The folder given, else the one of the environment variable, else None."""
    given = folder if folder is not None else os.environ.get(VARIABLE)
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        named = (
            f"folder={os.fspath(folder)!r}"
            if folder is not None
            else f"the environment variable {VARIABLE}"
        )
        raise DataError(
            f"{path}, named by {named}, is not a folder: name the one that holds the .npz files"
        )
    return path


def fetched_folder() -> Path:
    """Where fetched data sets are kept, in scikit-learn's data folder; it need not be there."""
    return (
        Path(os.environ.get("SCIKIT_LEARN_DATA") or "~/scikit_learn_data").expanduser()
        / "peerlearn"
    )


def files(folder: Path | None) -> dict[str, Path]:
    """The data files of a folder by name; from a listing, so that case counts on every file system."""
    return {path.stem: path for path in sorted(folder.glob("*.npz"))} if folder else {}


def match(name: str, held: dict[str, Path]) -> Path | None:
    """The file of that exact name, else the only one that differs in case alone."""
    if name in held:
        return held[name]
    alike = [stem for stem in held if stem.casefold() == name.casefold()]
    if len(alike) > 1:
        raise DataError(
            f"data set {name!r} could be any of the files {', '.join(alike)}: give the name in their case"
        )
    return held[alike[0]] if alike else None


def from_file(path: Path, scaled: bool) -> DataSet:
    """The data set in one file. Arrays beside X and y are kept as found in extras."""
    arrays = npz.read(path)
    X, y = required(arrays, path)
    known = KNOWN_FILES.get(path.stem.casefold())
    task = known.task if known else guessed_task(y.dtype.kind)
    source = f"read from {path}" + (
        "" if known else f", task guessed from the type of y ({y.dtype})"
    )
    rows = table(X, path)
    y = targets(answers(y, len(rows), task, path), task)
    rows, scaling = scale(rows, range_of_file(rows, known) if scaled else None)
    extras: dict[str, AnyArray] = {
        key: array for key, array in arrays.items() if key not in ("X", "y")
    }
    return DataSet(path.stem, rows, y, task, source, scaling, extras)


def guessed_task(kind: str) -> Task:
    """Real numbers are measured, everything else is a label."""
    return "regression" if kind == "f" else "classification"


def range_of_file(X: Array, known: KnownFile | None) -> Range | None:
    """What the columns of a file are scaled to; None where they are left as found."""
    to = known.to if known else UNIT
    already = to == UNIT and X.min() >= 0 and X.max() <= 1
    return None if already else to
