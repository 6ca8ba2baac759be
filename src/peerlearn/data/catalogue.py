"""Data sets by name, and the list of names.

Lower-case names with hyphens are generated or bundled with scikit-learn; other names are files
NAME.npz of a folder. A folder that the caller gives comes first and ignores case. The folder of the
environment variable PEERLEARN_DATA and the folder of fetched data sets only add names, so results
do not depend on the environment.
"""

from __future__ import annotations

import difflib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from peerlearn.arrays import Array
from peerlearn.data import npz
from peerlearn.data.checks import get_X_and_y
from peerlearn.data.dataset import DataSet, Task
from peerlearn.data.folder import (
    VARIABLE,
    download_folder,
    from_file,
    guess_task,
    list_files,
    match,
    range_of_file,
    resolve_folder,
)
from peerlearn.data.known_files import KNOWN_FILES
from peerlearn.data.recipes import RECIPES, Recipe
from peerlearn.data.scaling import Range
from peerlearn.data.sources import SOURCES
from peerlearn.errors import DataError

Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class DataInfo:
    """Facts about a data set that are known before it is loaded.

    Parameters
    ----------
    name : str
        The name that `load` takes.
    task : {"classification", "regression"} or None
        What is predicted; None if the file cannot be read.
    rows : int or None
        Number of rows; None if the file does not say.
    columns : int or None
        Number of columns; None if the file does not say.
    source : {"generated", "bundled with scikit-learn", "file"}
        Where the data come from.
    description : str
        One line about the data.

    Examples
    --------
    >>> from peerlearn import data
    >>> next(info for info in data.available() if info.name == "iris").rows
    150
    """

    name: str
    task: Task | None
    rows: int | None
    columns: int | None
    source: Literal["generated", "bundled with scikit-learn", "file"]
    description: str


def load(
    name: str,
    folder: Folder = None,
    *,
    seed: int = 0,
    scaled: bool = True,
    gaps: bool = False,
) -> DataSet:
    """Load the data set of a name.

    Columns of g50c, G50C and the bundled sets except digits are scaled to [-1, 1]. Those of digits
    and of all other files are scaled to [0, 1], unless they lie in it already. Those of two-moons,
    2Moons and PCMAC are not scaled. Targets of a regression are never scaled.

    Parameters
    ----------
    name : str
        One of the names that `available` lists.
    folder : str or path, optional
        Folder of NAME.npz files. By default the folder of the environment variable PEERLEARN_DATA
        and the folder of fetched data sets.
    seed : int, default 0
        Seed of data sets that are generated.
    scaled : bool, default True
        False leaves the columns as found.
    gaps : bool, default False
        True takes files with gaps (NaN) in X, whose columns are then left as found.

    Returns
    -------
    DataSet
        Rows, targets and where both came from.

    Raises
    ------
    DataError
        If there is no such data set, or if its file cannot be used.

    Examples
    --------
    >>> from peerlearn import data
    >>> iris = data.load("iris")
    >>> iris.X.shape, iris.task
    ((150, 4), 'classification')
    """
    _check_name(name)
    if folder is None and name in RECIPES:
        return RECIPES[name].build(seed, scaled)
    found = _find_files(folder)
    path = found.get(name) if folder is None else match(name, found)
    if path is not None:
        return from_file(path, scaled and not gaps, gaps=gaps)
    if name in RECIPES:
        return RECIPES[name].build(seed, scaled)
    raise _missing_error(name, resolve_folder(folder), found)


def find_file(name: str, folder: Folder = None) -> Path:
    """Return the file that `load` reads for a name; raise DataError if there is none."""
    _check_name(name)
    found = _find_files(folder)
    path = match(name, found)
    if path is None:
        raise _missing_error(name, resolve_folder(folder), found)
    return path


def is_at_hand(name: str) -> bool:
    """Return whether `load` finds the name without a folder.

    Parameters
    ----------
    name : str
        Name of a data set.

    Returns
    -------
    bool
        False if the data set has to be fetched or is unknown.

    Examples
    --------
    >>> from peerlearn import data
    >>> data.is_at_hand("digits"), data.is_at_hand("no such data")
    (True, False)
    """
    return name in RECIPES or name in _find_files(None)


def is_a_file(name: str) -> bool:
    """Return whether `load` without a folder reads the data set from a file.

    Parameters
    ----------
    name : str
        Name of a data set.

    Returns
    -------
    bool
        False if the data set is generated, bundled with scikit-learn, or not at hand.

    Examples
    --------
    >>> from peerlearn import data
    >>> data.is_a_file("digits")
    False
    """
    return name not in RECIPES and name in _find_files(None)


def known_range(name: str, X: Array) -> Range | None:
    """Return the range that `load` scales the columns of a data set to.

    Parameters
    ----------
    name : str
        Name of a data set.
    X : ndarray
        Its rows. A file whose values lie in [0, 1] already is not scaled.

    Returns
    -------
    (float, float) or None
        Lower and upper end; None if `load` does not scale.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import data
    >>> data.known_range("iris", np.eye(4)), data.known_range("two-moons", np.eye(2))
    ((-1.0, 1.0), None)
    """
    if name in RECIPES:
        return RECIPES[name].to
    return range_of_file(X, KNOWN_FILES.get(name.casefold()))


def available(folder: Folder = None) -> list[DataInfo]:
    """List every data set that `load` finds with the same folder.

    Only the headers of files are read.

    Parameters
    ----------
    folder : str or path, optional
        Folder of NAME.npz files. By default the folder of the environment variable PEERLEARN_DATA
        and the folder of fetched data sets.

    Returns
    -------
    list of DataInfo
        Generated and bundled data sets first, then files.

    Examples
    --------
    >>> from peerlearn import data
    >>> [info.name for info in data.available()][:3]
    ['g50c', 'two-moons', 'digits']
    """
    found = _find_files(folder)
    recipes = list(RECIPES.values())
    if folder is None:
        found = {stem: path for stem, path in found.items() if stem not in RECIPES}
    else:  # a folder that is given comes first
        hidden = {stem.casefold() for stem in found}
        recipes = [recipe for recipe in recipes if recipe.name not in hidden]
    return [*map(_of_recipe, recipes), *map(_of_file, found.values())]


def _find_files(folder: Folder) -> dict[str, Path]:
    """Return files by name. Without a folder, PEERLEARN_DATA comes before fetched data sets."""
    if folder is not None:
        return list_files(resolve_folder(folder))
    return {**list_files(download_folder()), **list_files(resolve_folder(None))}


def _of_recipe(recipe: Recipe) -> DataInfo:
    return DataInfo(
        recipe.name, recipe.task, recipe.rows, recipe.columns, recipe.origin, recipe.description
    )


def _of_file(path: Path) -> DataInfo:
    try:
        (shape, _), (_, kind) = get_X_and_y(npz.headers(path), path)
    except DataError as error:
        return DataInfo(path.stem, None, None, None, "file", f"cannot be loaded: {error}")
    rows = shape[0] if len(shape) > 1 else None
    columns = math.prod(shape[1:]) if len(shape) > 1 else None
    known = KNOWN_FILES.get(path.stem.casefold())
    if known:
        return DataInfo(path.stem, known.task, rows, columns, "file", known.description)
    guess = f"task guessed from the type of y ({kind})"
    return DataInfo(path.stem, guess_task(kind.kind), rows, columns, "file", guess)


def _check_name(name: str) -> None:
    if not name or any(mark in name for mark in "/\\\0"):
        raise DataError(
            f"{name!r} is not the name of a data set: give the name alone, and its folder as "
            "folder="
        )


def _missing_error(name: str, folder: Path | None, found: dict[str, Path]) -> DataError:
    known = KNOWN_FILES.get(name.casefold())
    if known is None or (folder is None and known.name != name):
        return _unknown_name_error(name, folder, found)
    other = ""
    if known.generated_as:
        other += f"; {known.generated_as!r} is generated and needs no file"
    if known.name in SOURCES:
        other += f"; peerlearn data fetch {known.name} gets it from OpenML"
    other += f"; {known.came_from}"
    if folder is None:
        return DataError(
            f"data set {name} is read from a folder: name it in {VARIABLE} or by folder={other}"
        )
    return DataError(
        f"data set {name} has no file {known.name}.npz in {folder}: put it there or name another "
        f"folder{other}"
    )


def _unknown_name_error(name: str, folder: Path | None, found: dict[str, Path]) -> DataError:
    known = [file.name for file in KNOWN_FILES.values()]
    names = {each.casefold(): each for each in (*known, *RECIPES, *found)}
    near = difflib.get_close_matches(name.casefold(), names, n=1, cutoff=0.6)
    nearest = f", the nearest is {names[near[0]]!r}" if near else ""
    place = f"NAME.npz in {folder}" if folder else f"NAME.npz in folder= or {VARIABLE}"
    return DataError(
        f"no data set is called {name!r}{nearest}: peerlearn.data.available() lists all, "
        f"and others are read from {place}"
    )
