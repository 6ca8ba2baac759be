"""A fitted TablePreparer as plain values, for the text of a saved model, and back.

    columns, kinds                              of the raw table; columns is empty without names
    fill, indicated, center, scale              of numbers and dates, in the order of the columns
    categories, drop_first                      of categories; null is a gap

Anybody who can write the file decides what is predicted from it, so every value is checked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from peerlearn.errors import DataError
from peerlearn.preparing.encoder import NetworkEncoder
from peerlearn.preparing.imputer import NetworkImputer
from peerlearn.preparing.kinds import NAMES
from peerlearn.preparing.scaler import NetworkScaler
from peerlearn.preparing.table_preparer import DROP, TablePreparer

WAY_OUT = "copy the file again, or save the fitted preparer with the model"


def entries_of(preparer: TablePreparer) -> dict[str, Any]:
    """Return what a fitted preparer needs to transform rows, as values that JSON can have."""
    entries: dict[str, Any] = {
        "columns": list(names_of(preparer)),
        "kinds": list(preparer.kinds_.values()),
        "drop_first": bool(preparer.drop_first),
        "fill": [],
        "indicated": [],
        "center": [],
        "scale": [],
        "categories": [],
    }
    if preparer.imputer_ is not None and preparer.scaler_ is not None:
        entries["fill"] = [float(number) for number in preparer.imputer_.statistics_]
        entries["indicated"] = [int(column) for column in preparer.imputer_.indicated_]
        entries["center"] = preparer.scaler_.center_.tolist()
        entries["scale"] = preparer.scaler_.scale_.tolist()
    if preparer.encoder_ is not None:
        entries["categories"] = [list(known) for known in preparer.encoder_.categories_]
    return entries


def names_of(preparer: TablePreparer) -> tuple[str, ...]:
    """Return the names of the raw table's columns; nothing if they have none."""
    named = preparer.names is not None or hasattr(preparer, "feature_names_in_")
    return tuple(preparer.column_names()) if named else ()


def preparer_from(entries: Any) -> TablePreparer:
    """Return the preparer of these entries, or raise DataError if they do not fit together."""
    if not isinstance(entries, dict):
        raise _wrong("it is no JSON object")
    kinds = _texts(entries, "kinds")
    names = _texts(entries, "columns")
    if not kinds or not set(kinds) <= {*NAMES.values(), DROP}:
        raise _wrong(f"its kinds are {kinds!r:.60}")
    if len(set(names)) != len(names) or len(names) not in (0, len(kinds)):
        raise _wrong(f"it names {len(names)} columns, but has {len(kinds)}")
    if not isinstance(entries.get("drop_first"), bool):
        raise _wrong("its drop_first is no bool")
    preparer = TablePreparer(drop_first=entries["drop_first"])
    preparer.n_features_in_ = len(kinds)
    if names:
        preparer.feature_names_in_ = np.array(names, dtype=object)
    preparer.kinds_ = dict(zip(preparer.column_names(), kinds, strict=True))
    numbers = [name for name, kind in preparer.kinds_.items() if kind in ("number", "date")]
    categories = [name for name, kind in preparer.kinds_.items() if kind == "category"]
    preparer.imputer_ = imputer_from(entries, numbers) if numbers else None
    preparer.scaler_ = scaler_from(entries, numbers) if numbers else None
    preparer.encoder_ = encoder_from(entries, categories) if categories else None
    return preparer


def imputer_from(entries: dict[str, Any], names: list[str]) -> NetworkImputer:
    """Return the imputer of these entries, for columns of these names."""
    imputer: NetworkImputer = _with_columns(NetworkImputer(add_indicator=True), names)
    imputer.statistics_ = _numbers(entries, "fill", len(names))
    indicated = entries.get("indicated")
    allowed = range(len(names))
    if not isinstance(indicated, list) or any(
        type(column) is not int or column not in allowed for column in indicated
    ):
        raise _wrong(f"its indicated is {indicated!r:.60}")
    imputer.indicated_ = np.array(indicated, dtype=np.intp)
    return imputer


def scaler_from(entries: dict[str, Any], names: list[str]) -> NetworkScaler:
    """Return the scaler of these entries, for columns of these names."""
    scaler: NetworkScaler = _with_columns(NetworkScaler(), names)
    scaler.center_ = _numbers(entries, "center", len(names))
    scaler.scale_ = _numbers(entries, "scale", len(names))
    if not (scaler.scale_ > 0).all():
        raise _wrong("not every scale is above 0")
    return scaler


def encoder_from(entries: dict[str, Any], names: list[str]) -> NetworkEncoder:
    """Return the encoder of these entries, for columns of these names."""
    encoder: NetworkEncoder = _with_columns(NetworkEncoder(drop_first=entries["drop_first"]), names)
    categories = entries.get("categories")
    if not isinstance(categories, list) or len(categories) != len(names):
        raise _wrong(f"its categories are not lists for {len(names)} columns")
    for known in categories:
        texts = isinstance(known, list) and all(
            value is None or isinstance(value, str) for value in known
        )
        if not texts or not known or len(set(known)) != len(known):
            raise _wrong(f"the categories of a column are {known!r:.60}")
    encoder.categories_ = categories
    return encoder


def _with_columns(transformer: Any, names: list[str]) -> Any:
    transformer.n_features_in_ = len(names)
    transformer.feature_names_in_ = np.array(names, dtype=object)
    return transformer


def _numbers(entries: dict[str, Any], name: str, count: int) -> Any:
    values = entries.get(name)
    fits = (
        isinstance(values, list)
        and len(values) == count
        and all(type(value) is float and math.isfinite(value) for value in values)
    )
    if not fits:
        raise _wrong(f"its {name} is {values!r:.60}, not {count} finite numbers")
    return np.array(values, dtype=np.float64)


def _texts(entries: dict[str, Any], name: str) -> list[str]:
    values = entries.get(name)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise _wrong(f"its {name} is {values!r:.60}, not a list of texts")
    return values


def _wrong(what: str) -> DataError:
    return DataError(f"the preparation of the model cannot be used, because {what}: {WAY_OUT}")
