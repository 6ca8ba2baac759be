"""Cases of transformers: scales, fillings and categories of tables whose gaps differ by agent."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from peerlearn import NetworkEncoder, NetworkImputer, NetworkScaler, TablePreparer
from peerlearn.network.base import Network
from peerlearn.testing.cases.case import Arrays, Case, in_secret

ROWS = 7
COLORS = ("amber", "blue", "cyan", "dun", None)


def cases() -> dict[str, Case]:
    """Return the cases of every transformer and method, by name."""
    numbers = {
        "NetworkScaler": NetworkScaler(),
        "NetworkScaler robust": NetworkScaler("robust"),
        "NetworkScaler range": NetworkScaler("range"),
        "NetworkImputer mean": NetworkImputer("mean", add_indicator=True),
        "NetworkImputer median": NetworkImputer("median", accuracy=0),
        "NetworkImputer most frequent": NetworkImputer("most_frequent"),
    }
    found: dict[str, Case] = {
        name: partial(_prepare, transformer=each, table=number_table)
        for name, each in numbers.items()
    }
    for name in ("NetworkScaler", "NetworkScaler robust", "NetworkImputer mean"):
        found[f"{name} in secret"] = partial(in_secret, case=found[name])
    found["NetworkEncoder"] = partial(_prepare, transformer=NetworkEncoder(), table=color_table)
    found["TablePreparer"] = partial(_prepare, transformer=TablePreparer(), table=mixed_table)
    declared = TablePreparer({"x3": list(COLORS), "x4": list(COLORS)})
    prepare = partial(_prepare, transformer=declared, table=mixed_table)
    found["TablePreparer in secret"] = partial(in_secret, case=prepare)
    return found


def number_table(agent: int) -> Any:
    """Return numbers with gaps. Agent 1 has no rows, and agent 2 no value in the first column."""
    table = np.random.default_rng(agent).standard_normal((ROWS, 3)).round(1)
    table[:, 1] *= 1000
    table[agent % ROWS, 1] = np.nan
    if agent == 2:
        table[:, 0] = np.nan
    return table[:0] if agent == 1 else table


def color_table(agent: int) -> Any:
    """Return categories, with gaps at some agents."""
    rows = [[COLORS[(agent + row) % 4], COLORS[(agent * row) % 5]] for row in range(ROWS)]
    return np.array(rows[:0] if agent == 1 else rows, dtype=object).reshape(-1, 2)


def mixed_table(agent: int) -> Any:
    """Return numbers and categories side by side."""
    return np.hstack([number_table(agent).astype(object), color_table(agent)])


def _prepare(network: Network, transformer: Any, table: Any) -> Arrays:
    fitted = clone(transformer).set_params(network=network)
    own = [(table(agent), None) for agent in network.hosted]
    fitted.fit(own)
    prepared = fitted.transform(table(3))
    return {"prepared": np.stack([np.nan_to_num(prepared, nan=-9.0)] * len(network.hosted))}
