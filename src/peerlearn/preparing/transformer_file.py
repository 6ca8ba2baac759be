"""A fitted transformer as one .npz file, without a model. It holds a text; loading runs no code.

about    JSON text: class, n_features, columns (empty if they have no names), and what the class
         needs to transform rows: see preparer_entries.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from peerlearn.data import npz
from peerlearn.errors import DataError, InputError
from peerlearn.models.archive import write_arrays
from peerlearn.preparing.encoder import UNKNOWN, NetworkEncoder
from peerlearn.preparing.imputer import NetworkImputer
from peerlearn.preparing.preparer_entries import (
    encoder_from,
    entries_of,
    imputer_from,
    preparer_from,
    scaler_from,
)
from peerlearn.preparing.scaler import NetworkScaler
from peerlearn.preparing.table_preparer import TablePreparer
from peerlearn.preparing.transformer import NetworkTransformer

__all__ = ["load_transformer", "save_transformer"]

KINDS = (NetworkScaler, NetworkImputer, NetworkEncoder, TablePreparer)


def save_transformer(transformer: NetworkTransformer, path: str | os.PathLike[str]) -> None:
    """Write a fitted transformer to a file. The file appears only when it is complete.

    A `TablePreparer` and the model of its tables are saved together by `PreparedModel`.

    Parameters
    ----------
    transformer : NetworkScaler, NetworkImputer, NetworkEncoder or TablePreparer
        The fitted transformer.
    path : str or path
        The file, by convention with the ending .npz.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from peerlearn import NetworkScaler, load_transformer, save_transformer
    >>> scaler = NetworkScaler().fit([[1.0], [3.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_transformer(scaler, Path(folder) / "scaler.npz")
    ...     loaded = load_transformer(Path(folder) / "scaler.npz")
    >>> loaded.transform([[5.0]])
    array([[3.]])
    """
    if type(transformer) not in KINDS:
        known = ", ".join(kind.__name__ for kind in KINDS)
        raise InputError(
            f"a {type(transformer).__name__} cannot be saved here: give a fitted {known}"
        )
    check_is_fitted(transformer)
    about = {
        "class": type(transformer).__name__,
        "n_features": int(transformer.n_features_in_),
        "columns": [str(name) for name in getattr(transformer, "feature_names_in_", ())],
        **_learned(transformer),
    }
    write_arrays(Path(path).expanduser(), {"about": np.array(json.dumps(about))})


def load_transformer(path: str | os.PathLike[str]) -> NetworkTransformer:
    """Return the transformer of a file, without its network. All of the file is checked.

    Parameters
    ----------
    path : str or path
        A file of `save_transformer`.

    Returns
    -------
    NetworkScaler, NetworkImputer, NetworkEncoder or TablePreparer

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from peerlearn import NetworkEncoder, load_transformer, save_transformer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "encoder.npz"
    ...     save_transformer(NetworkEncoder().fit([["red"], ["blue"]]), file)
    ...     load_transformer(file).transform([["red"]])
    array([[0., 1.]])
    """
    file = Path(path).expanduser()
    if not file.exists():
        raise DataError(f"there is no transformer {file}: check the path")
    try:
        about = json.loads(str(npz.read(file, compressed=False)["about"]))
        return _restore(about)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{file} holds no transformer that can be used ({error}): copy it again, or save the "
            "fitted transformer with peerlearn.save_transformer"
        ) from error


def _learned(transformer: Any) -> dict[str, Any]:
    """Return what a transformer has learned, as values that JSON can have."""
    if isinstance(transformer, TablePreparer):
        return entries_of(transformer)
    if isinstance(transformer, NetworkScaler):
        return {"center": transformer.center_.tolist(), "scale": transformer.scale_.tolist()}
    if isinstance(transformer, NetworkImputer):
        indicated = transformer.indicated_.tolist()
        return {"fill": transformer.statistics_.tolist(), "indicated": indicated}
    return {
        "categories": [list(known) for known in transformer.categories_],
        "drop_first": bool(transformer.drop_first),
        "handle_unknown": transformer.handle_unknown,
    }


def _restore(about: Any) -> NetworkTransformer:
    """Return the transformer of a file's text."""
    kind = about["class"]
    if kind == TablePreparer.__name__:
        return preparer_from(about)
    columns = about["columns"]
    names = columns or [f"x{column}" for column in range(int(about["n_features"]))]
    restored: NetworkTransformer
    if kind == NetworkScaler.__name__:
        restored = scaler_from(about, names)
    elif kind == NetworkImputer.__name__:
        restored = imputer_from(about, names)
        restored.set_params(add_indicator=bool(len(about["indicated"])))
    elif kind == NetworkEncoder.__name__ and about["handle_unknown"] in UNKNOWN:
        restored = encoder_from(about, names)
        restored.set_params(handle_unknown=about["handle_unknown"])
    else:
        raise ValueError(f"its class is {kind!r:.60}")
    if not columns:
        del restored.feature_names_in_
    return restored
