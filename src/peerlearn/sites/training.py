"""Estimators from the [model] table of a file.

A table [model.search] has the model chosen by `NetworkSearchCV`: `grid`, and if wanted `cv` and
`scoring`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sklearn.base import is_classifier

from peerlearn import graphs
from peerlearn.errors import InputError
from peerlearn.models.base import NetworkModel
from peerlearn.models.generalised_linear import GeneralisedLinear
from peerlearn.models.registry import models, part, saved_models, with_parts
from peerlearn.models.search import NetworkSearchCV
from peerlearn.network import Network, SimulatedNetwork
from peerlearn.preparing.table_preparer import TablePreparer
from peerlearn.toml_reader import TomlTable, near


def read_model(table: TomlTable, **secrets: Any) -> dict[str, Any]:
    """Read the model's parameters as plain values, and check them by making the model.

    secrets: what is kept secret, as arguments of a network.
    """
    settings = table.rest()
    try:
        # With several agents, because some settings are allowed only without a network.
        agents = secrets.get("colluders", 0) + 2
        model = make_model(settings, SimulatedNetwork(graphs.complete(agents), **secrets))
        model.check_settings()  # so that nothing is opened for a model that would be refused
        model.check_use_in_files()
    except (TypeError, ValueError) as error:
        raise InputError(f"[model] in {table.path} cannot be used: {error}") from None
    return settings


def make_model(settings: dict[str, Any], network: Any = None) -> Any:
    """Return the estimator that [model] describes, or a search for the best one."""
    given = dict(settings)
    search = given.pop("search", None)
    if search is not None:
        return _make_search(search, make_model(given, network))
    kind = _kind_of(settings)
    given.pop("kind", None)
    defaults = kind().get_params(deep=False)
    del defaults["network"]
    unknown = sorted(set(given) - set(defaults))
    if unknown:
        raise InputError(
            f"{unknown[0]} is not a parameter of {kind.__name__}"
            f"{near(unknown[0], {*defaults, 'kind'})}"
        )
    seed = given.get("random_state")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise InputError(
            "random_state has to be a whole number, the same at every site: "
            "all random numbers follow from it"
        )
    if "solver" in kind.parts:
        given["solver"] = part(kind, "solver", given.get("solver", defaults["solver"]))
    return kind(**with_parts(kind, given), network=network)


def _make_search(table: Any, model: Any) -> NetworkSearchCV:
    """Return the search that [model.search] describes."""
    known = ("grid", "cv", "scoring")
    if not isinstance(table, dict) or not isinstance(table.get("grid"), dict):
        raise InputError(
            "search needs a table grid with lists of values, such as grid = { alpha = [0.1, 1.0] }"
        )
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise InputError(f"{unknown[0]} is not a setting of search{near(unknown[0], known)}")
    settings = {key: value for key, value in table.items() if key != "grid"}
    return NetworkSearchCV(model, table["grid"], random_state=model.random_state, **settings)


def make_preparer(
    settings: dict[str, Any],
    columns: dict[str, Any],
    names: Sequence[str],
    network: Network | None = None,
) -> TablePreparer:
    """Return the preparer of tables for the model that [model] describes.

    Columns of all categories add up to the constant. Without a penalty a linear model then has no
    best coefficients, so that the first category has no column.
    """
    model = make_model({key: value for key, value in settings.items() if key != "search"})
    unpenalised = isinstance(model, GeneralisedLinear) and model.alpha == 0
    drop_first = unpenalised and bool(model.fit_intercept)
    return TablePreparer(columns, names=names, drop_first=drop_first, network=network)


def fit_model(model: Any, X: Any, y: Any, names: Sequence[str]) -> Any:
    """Train the model on an array whose columns have these names, for messages about them."""
    if isinstance(model, GeneralisedLinear):
        model.name_columns(names)
    return model.fit(X, y)


def classifies(settings: dict[str, Any]) -> bool:
    """Return whether the model is a classifier."""
    return bool(is_classifier(_kind_of(settings)()))


def may_lack_labels(settings: dict[str, Any]) -> bool:
    """Return whether the model learns from rows without a label as well."""
    return _kind_of(settings).partly_labelled


def learns_in_order(settings: dict[str, Any]) -> bool:
    """Return whether rows are times, so that a site's table is one sequence."""
    return _kind_of(settings).takes == "sequences"


def _kind_of(settings: dict[str, Any]) -> type[NetworkModel]:
    """Return the class of the model, or raise InputError if a site cannot use it."""
    kind = settings.get("kind", "RVFLClassifier")
    saved = saved_models()
    if not isinstance(kind, str) or kind not in models():
        raise InputError(f"kind {kind!r} is not known{near(str(kind), saved)}")
    if not models()[kind].predicts_alone:
        raise InputError(
            f"kind {kind} has no place in a file, because nobody can predict alone with it: train "
            "and predict by a script over PeerNetwork that all sites run"
        )
    if models()[kind].takes == "signals":
        raise InputError(
            f"kind {kind} cannot be trained at a site, because it learns from signals while it "
            "runs: write a script over PeerNetwork that all sites run"
        )
    if kind not in saved:
        raise InputError(
            f"kind {kind} cannot be saved, and a site saves what it trains{near(kind, saved)}"
        )
    return saved[kind]


def settings_to_compare(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that must be the same at all sites, defaults included.

    There is one entry per parameter, so that error messages can name it.
    """
    given = dict(settings)
    search = given.pop("search", None)
    model = make_model(given)
    parameters = {"kind": type(model).__name__, **model.get_params(deep=False)}
    del parameters["network"]
    if search is not None:
        parameters["search"] = json.dumps(search, sort_keys=True)
    return {f"model.{key}": _plain(value) for key, value in parameters.items()}


def _plain(value: Any) -> Any:
    """Return a plain value to compare: 1.0 and 1 are the same, and a solver is its repr."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, bool | int | float | str | None) else repr(value)
