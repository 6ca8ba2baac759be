"""Files of sites and networks with one key changed."""

from __future__ import annotations

import copy

from peerlearn.toml_reader import toml

NETWORK = {
    "run": "digits",
    "output": "out",
    "network": {"agents": 3, "graph": "ring"},
    "data": {"name": "iris", "split": "stratified"},
    "model": {"kind": "RVFLClassifier", "n_hidden": 20, "random_state": 0},
}
GONE = object()


def changed(values, key, value):
    """The values with another one at a dotted key, or without it."""
    values = copy.deepcopy(values)
    *path, last = key.split(".")
    inner = values
    for part in path:
        inner = inner.setdefault(part, {})
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    return values


def written(folder, values):
    path = folder / "site.toml"
    path.write_text(values if isinstance(values, str) else toml(values), encoding="utf-8")
    return path
