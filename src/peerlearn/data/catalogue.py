"""A name to a data set, and the list of names.

Lower-case names with hyphens are generated or bundled with scikit-learn; other names are files
NAME.npz of a folder. A folder that is given wins and ignores case; the folder of the environment
variable PEERLEARN_DATA, and the one where fetched data sets are kept, only add names, so that
results do not depend on the environment.
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
from peerlearn.data.checks import required
from peerlearn.data.dataset import DataSet, Task
from peerlearn.data.folder import (
    VARIABLE,
    chosen,
    fetched_folder,
    files,
    from_file,
    guessed_task,
    match,
    range_of_file,
)
from peerlearn.data.known_files import KNOWN_FILES
from peerlearn.data.recipes import RECIPES, Recipe
from peerlearn.data.scaling import Range
from peerlearn.data.sources import SOURCES
from peerlearn.errors import DataError

Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class DataInfo:
    """What is known about a data set before it is loaded; None where a file does not say."""

    name: str
    task: Task | None
    rows: int | None
    columns: int | None
    source: Literal["generated", "bundled with scikit-learn", "file"]
    description: str


def load(name: str, folder: Folder = None, *, seed: int = 0, scaled: bool = True) -> DataSet:
    """The data set of that name. The seed is for generated sets; scaled=False leaves the columns as found.

    Scaling is to [-1, 1] for g50c, G50C and the bundled sets but digits, to [0, 1] for digits and
    all other files unless they lie in it already, and none for two-moons, 2Moons and PCMAC. Targets
    of a regression are never scaled.
    """
    _plain(name)
    held = _held(folder) if folder is not None or name not in RECIPES else {}
    path = match(name, held) if folder is not None else held.get(name)
    if path is not None:
        return from_file(path, scaled)
    if name in RECIPES:
        return RECIPES[name].build(seed, scaled)
    raise _missing(name, chosen(folder), held)


def is_at_hand(name: str) -> bool:
    """Whether `load` takes that name without a folder."""
    return name in RECIPES or name in _held(None)


def is_a_file(name: str) -> bool:
    """Whether `load` without a folder reads it from a file."""
    return name not in RECIPES and name in _held(None)


def known_range(name: str, X: Array) -> Range | None:
    """What `load` scales the columns of that set to; None where it leaves rows like X as they are."""
    if name in RECIPES:
        return RECIPES[name].to
    return range_of_file(X, KNOWN_FILES.get(name.casefold()))


def available(folder: Folder = None) -> list[DataInfo]:
    """Every name that `load` takes with the same folder. Of files only the headers are read."""
    held = _held(folder)
    if folder is None:
        return [
            *map(_of_recipe, RECIPES.values()),
            *(_of_file(p) for stem, p in held.items() if stem not in RECIPES),
        ]
    hidden = {stem.casefold() for stem in held}
    return [
        *(_of_recipe(r) for r in RECIPES.values() if r.name not in hidden),
        *map(_of_file, held.values()),
    ]


def _held(folder: Folder) -> dict[str, Path]:
    """Files by name; of two with one name, the one of the environment's folder."""
    return (
        files(chosen(folder))
        if folder is not None
        else {**files(fetched_folder()), **files(chosen(None))}
    )


def _of_recipe(recipe: Recipe) -> DataInfo:
    return DataInfo(
        recipe.name, recipe.task, recipe.rows, recipe.columns, recipe.origin, recipe.description
    )


def _of_file(path: Path) -> DataInfo:
    try:
        (shape, _), (_, kind) = required(npz.headers(path), path)
    except DataError as error:
        return DataInfo(path.stem, None, None, None, "file", f"cannot be loaded: {error}")
    rows, columns = (shape[0], math.prod(shape[1:])) if len(shape) > 1 else (None, None)
    known = KNOWN_FILES.get(path.stem.casefold())
    if known:
        return DataInfo(path.stem, known.task, rows, columns, "file", known.description)
    guess = f"task guessed from the type of y ({kind})"
    return DataInfo(path.stem, guessed_task(kind.kind), rows, columns, "file", guess)


def _plain(name: str) -> None:
    if not name or any(mark in name for mark in "/\\\0"):
        raise DataError(
            f"{name!r} is not the name of a data set: give the name alone, and its folder as folder="
        )


def _missing(name: str, folder: Path | None, held: dict[str, Path]) -> DataError:
    known = KNOWN_FILES.get(name.casefold())
    if known is None or (folder is None and known.name != name):
        return _unknown(name, folder, held)
    other = f"; {known.generated_as!r} is generated and needs no file" if known.generated_as else ""
    other += (
        f"; peerlearn data fetch {known.name} gets it from OpenML" if known.name in SOURCES else ""
    )
    other += f"; {known.came_from}"
    if folder is None:
        return DataError(
            f"data set {name} is read from a folder: name it in {VARIABLE} or by folder={other}"
        )
    return DataError(
        f"data set {name} has no file {known.name}.npz in {folder}: put it there or name another folder{other}"
    )


def _unknown(name: str, folder: Path | None, held: dict[str, Path]) -> DataError:
    names = {
        each.casefold(): each
        for each in (*(known.name for known in KNOWN_FILES.values()), *RECIPES, *held)
    }
    near = difflib.get_close_matches(name.casefold(), names, n=1, cutoff=0.6)
    nearest = f", the nearest is {names[near[0]]!r}" if near else ""
    files_of = f"NAME.npz in {folder}" if folder else f"NAME.npz in folder= or {VARIABLE}"
    return DataError(
        f"no data set is called {name!r}{nearest}: peerlearn.data.available() lists all, "
        f"and others are read from {files_of}"
    )
