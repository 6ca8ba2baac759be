"""Data sets from a folder of files NAME.npz with at least X and y."""

from __future__ import annotations

import os
from pathlib import Path

from peerlearn.arrays import Array
from peerlearn.data import npz
from peerlearn.data.checks import check_rows, check_targets, get_X_and_y
from peerlearn.data.dataset import AnyArray, DataSet, Task, scale, targets
from peerlearn.data.known_files import KNOWN_FILES, KnownFile
from peerlearn.data.scaling import Range
from peerlearn.errors import DataError

VARIABLE = "PEERLEARN_DATA"
UNIT = (0.0, 1.0)


def resolve_folder(folder: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder given, else the one of the environment variable, else None."""
    given = folder if folder is not None else os.environ.get(VARIABLE)
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        origin = f"the environment variable {VARIABLE}"
        if folder is not None:
            origin = f"folder={os.fspath(folder)!r}"
        raise DataError(
            f"{path}, named by {origin}, is not a folder: name the one that holds the .npz files"
        )
    return path


def download_folder() -> Path:
    """Return where fetched data sets are saved, in scikit-learn's data folder. It may not exist."""
    parent = os.environ.get("SCIKIT_LEARN_DATA") or "~/scikit_learn_data"
    return Path(parent).expanduser() / "peerlearn"


def list_files(folder: Path | None) -> dict[str, Path]:
    """Return the data files of a folder by name.

    They come from a listing, so that case counts on every file system.
    """
    if folder is None:
        return {}
    return {path.stem: path for path in sorted(folder.glob("*.npz"))}


def match(name: str, found: dict[str, Path]) -> Path | None:
    """Return the file of that exact name, else the only one that differs in case alone."""
    if name in found:
        return found[name]
    alike = [stem for stem in found if stem.casefold() == name.casefold()]
    if len(alike) > 1:
        raise DataError(
            f"data set {name!r} could be any of the files {', '.join(alike)}: give the name in "
            "their case"
        )
    return found[alike[0]] if alike else None


def from_file(path: Path, scaled: bool, *, gaps: bool = False) -> DataSet:
    """Read the data set of one file. Arrays other than X and y are kept in extras."""
    arrays = npz.read(path)
    X, y = get_X_and_y(arrays, path)
    known = KNOWN_FILES.get(path.stem.casefold())
    task = known.task if known else guess_task(y.dtype.kind)
    source = f"read from {path}"
    if known is None:
        source += f", task guessed from the type of y ({y.dtype})"
    rows = check_rows(X, path, gaps=gaps)
    y = targets(check_targets(y, len(rows), task, path), task)
    rows, scaling = scale(rows, range_of_file(rows, known) if scaled else None)
    extras: dict[str, AnyArray] = {
        key: array for key, array in arrays.items() if key not in ("X", "y")
    }
    return DataSet(path.stem, rows, y, task, source, scaling, extras)


def guess_task(kind: str) -> Task:
    """Return the likely task of targets of a numpy kind: floats are values, others are labels."""
    return "regression" if kind == "f" else "classification"


def range_of_file(X: Array, known: KnownFile | None) -> Range | None:
    """Return the range that the columns of a file are scaled to, or None to leave them as found."""
    to = known.to if known else UNIT
    already = to == UNIT and X.min() >= 0 and X.max() <= 1
    return None if already else to
