"""Checks of models in files: archives of trained ones, and TOML tables that describe them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from peerlearn import SimulatedNetwork, graphs
from peerlearn.models.archive import describe, read_archive, write_arrays
from peerlearn.models.registry import with_parts
from peerlearn.testing import model_data as data
from peerlearn.testing.cases.models import over
from peerlearn.testing.comparing import quiet
from peerlearn.toml_reader import toml

ROWS = 20  # to predict
PLAIN = (bool, int, float, str)
METHODS = ("predict", "decision_function", "predict_proba")


def check_archive(model: Any) -> None:
    """Check that a model that was saved and loaded predicts what it did before."""
    name = type(model).__name__
    network = SimulatedNetwork(graphs.ring(4))
    with quiet():
        fitted = data.fit(over(network, model), network.hosted)
    try:
        loaded = _save_and_load(fitted)
    except Exception as error:
        raise AssertionError(f"{name} cannot be loaded as it was saved: {error!r}") from error
    rows = np.random.default_rng(0).standard_normal((ROWS, fitted.n_features_in_))
    for method in METHODS:
        if not hasattr(fitted, method):
            continue
        if fitted.takes == "signals":
            # Every agent has a signal, and the file has the filter of the first.
            expected = fitted.predict(np.tile(rows[:, 0], (network.size, 1)))[0]
            found = _call(f"{name}.predict", loaded.predict, rows[:, 0])
        else:
            expected = getattr(fitted, method)(rows)
            found = _call(f"{name}.{method}", getattr(loaded, method), rows)
        assert np.array_equal(found, expected), (
            f"{name}.{method} gives something else after it was saved and loaded: write all that "
            "it needs in to_archive, and set it in from_archive"
        )


def _call(what: str, method: Callable[..., Any], rows: Any) -> Any:
    try:
        return method(rows)
    except Exception as error:
        raise AssertionError(f"{what} fails once it was saved and loaded: {error!r}") from error


def _save_and_load(fitted: Any) -> Any:
    """Return the model of a file, also one whose class is not in the package's own folder."""
    own, entries = fitted.to_archive()
    arrays: dict[str, Any] = {"coefficients": fitted.coefficients_[0], **own}
    if hasattr(fitted, "classes_"):
        arrays["classes"] = fitted.classes_
    about = describe(fitted) | entries | {"columns": [], "target": None}
    arrays["about"] = np.array(json.dumps(about))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        write_arrays(path, arrays)
        reader = read_archive(path, "model", "be used", "save it again")
    kind = type(fitted)
    loaded = kind(**reader.parameters(kind().get_params(deep=False)))
    loaded.n_features_in_ = reader.entry("n_features", int)
    loaded.from_archive(reader)
    return loaded


def check_table(model: Any) -> None:
    """Check that a TOML table with the settings of a model makes the same model."""
    kind = type(model)
    table = describe_in_table(model)
    made = kind(**with_parts(kind, tomllib.loads(toml(table))))
    made.check_settings()
    for name in table:
        given = getattr(model, name)
        found = getattr(made, name)
        if name in kind.parts:
            given = model.part(name)
            found = made.part(name)
        assert found == given, (
            f"{kind.__name__} from the TOML table\n{toml(table)}has {name} {found!r}, not {given!r}"
        )


def describe_in_table(value: Any) -> dict[str, Any]:
    """Return the settings of a model or an algorithm as plain values; TOML has none for None.

    >>> from peerlearn import RVFLRegressor
    >>> describe_in_table(RVFLRegressor(50, solver="cg"))["solver"]
    'cg'
    """
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        table = {"name": value.name} if hasattr(value, "name") else {}
    else:
        given = value.get_params(deep=False)
        table = {}
    for name, setting in given.items():
        if isinstance(setting, PLAIN):
            table[name] = setting
        elif is_dataclass(setting):
            table[name] = describe_in_table(setting)
    return table
