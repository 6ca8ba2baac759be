"""Tables of sites from one data set, as CSV files that sites could have: gaps are empty cells.

The data set is a file NAME.npz with X (NaN where a value is unknown), y and center, the number of
each row's site, and perhaps columns, the names of the columns of X.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import train_test_split

from peerlearn.arrays import Indices
from peerlearn.data import npz
from peerlearn.data.catalogue import Folder, find_file
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import DataError, InputError

# Names of sites in files that have only their numbers.
SITES = {"fedheart": ("cleveland", "hungary", "switzerland", "long-beach")}
FEWEST = 3  # rows of a class at a site, for a split by class


def site_tables(
    name: str,
    *,
    folder: Folder = None,
    target: str = "y",
    test_fraction: float | None = None,
    seed: int = 0,
    complete: Sequence[str] = (),
) -> dict[str, str]:
    """Return the CSV text of each site's rows by its name, and of its test rows by SITE-test.

    Parameters
    ----------
    name : str
        Name of a data set whose file has the site of each row.
    folder : str or path, optional
        Folder of NAME.npz files, as in `load`.
    target : str, default "y"
        Name of the target's column.
    test_fraction : float, optional
        Part of each site's rows that are test rows, drawn by class.
    seed : int, default 0
        Seed of that draw.
    complete : sequence of str, default ()
        Rows with a gap in one of these columns are left out.

    Returns
    -------
    dict of str to str
        CSV texts by name.
    """
    if test_fraction is not None and not 0 < test_fraction < 1:
        raise InputError(f"test_fraction is {test_fraction}: give a number between 0 and 1")
    path = find_file(name, folder)
    arrays = npz.read(path)
    missing = [key for key in ("X", "y", "center") if key not in arrays]
    if missing or arrays["X"].ndim != 2:
        raise DataError(
            f"{path} has no tables of sites: it needs X (rows x columns), y, and center, the "
            "number of each row's site"
        )
    X, y, center = arrays["X"], arrays["y"], arrays["center"]
    default = [f"x{column}" for column in range(X.shape[1])]
    columns = arrays.get("columns", np.array(default)).tolist()
    unknown = [each for each in complete if each not in columns]
    if unknown:
        raise InputError(f"{path} has no column {unknown[0]!r}: it has {', '.join(columns)}")
    whole = ~np.isnan(X[:, [columns.index(each) for each in complete]]).any(axis=1)
    names = SITES.get(path.stem.casefold(), ())
    texts = {}
    for site in np.unique(center):
        called = names[site] if site < len(names) else f"site-{site}"
        rows = np.flatnonzero((center == site) & whole)
        parts = {called: rows}
        if test_fraction is not None:
            train, test = split_rows(y[rows], test_fraction, seed)
            parts = {called: rows[train], f"{called}-test": rows[test]}
        for stem, own in parts.items():
            texts[stem] = _csv([*columns, target], X[own], y[own])
    return texts


def split_rows(y: AnyArray, test_fraction: float, seed: int) -> tuple[Indices, Indices]:
    """Return rows for training and for testing, drawn by class if every class has some."""
    _, counts = np.unique(y, return_counts=True)
    by_class = y if len(counts) > 1 and counts.min() >= FEWEST else None
    train, test = train_test_split(
        np.arange(len(y)), test_size=test_fraction, random_state=seed, stratify=by_class
    )
    return train, test


def _csv(header: list[str], X: AnyArray, y: AnyArray) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(header)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        lines.writerow([*map(_cell, row), label])
    return text.getvalue()


def _cell(value: float) -> float | int | str:
    """Return a cell: whole numbers without a point, nothing for a gap."""
    if np.isnan(value):
        return ""
    return int(value) if value == int(value) else value
