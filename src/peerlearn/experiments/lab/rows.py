"""A run as a row of flat columns: what it was, how it ended, what it measured and sent."""

from __future__ import annotations

import json
import math
import platform
from functools import cache
from importlib import import_module
from typing import Any

from peerlearn.errors import InputError
from peerlearn.experiments.lab.parquet import SECONDS, TYPES
from peerlearn.experiments.lab.trial import Outcome, Trial

DONE, FAILED, NOT_APPLICABLE = "done", "failed", "not applicable"
NOTHING: dict[str, Any] = {
    "failure": "",  # a sentence: why it failed, or is not applicable
    "traceback": "",
    "warnings": "",
    "note": "",
    "seconds": None,
    "total_seconds": None,
    "rounds": None,
    "messages": None,
    "bytes": None,
    "iterations": None,
    "converged": None,
}


def row_of(
    trial: Trial, status: str, outcome: Outcome | None = None, **more: Any
) -> dict[str, Any]:
    """Its columns, but for the swept keys, which are the file's business; `more` fills in what is known besides."""
    network = trial.network
    who = {
        "run": trial.key,
        "data": trial.data.name,
        "model": trial.model.name,
        "network": "" if network is None else network.name,
        "agents": _agents(trial),
        "repetition": trial.repetition,
        "fold": trial.fold,
        "seed": trial.comparison.seed,
        "status": status,
    }
    made_with = {"settings": json.dumps(trial.identity), "versions": versions()}
    return {**who, **NOTHING, **made_with, **(_measured(outcome) if outcome else {}), **more}


def _agents(trial: Trial) -> int:
    network = trial.network
    if network is None:
        return 1
    if network.fixed is not None:
        return len(network.fixed)
    return network.agents or math.prod(
        network.parameters.get(side, 0) for side in ("rows", "columns")
    )


def _measured(outcome: Outcome) -> dict[str, Any]:
    for name in outcome.values:
        if name in TYPES or name in SECONDS:
            raise InputError(
                f"the protocol measures {name}, but every row has a column of that name: rename it"
            )
    row = {
        "note": outcome.note,
        "seconds": float(outcome.seconds),
        "rounds": int(outcome.sent.rounds),
        "messages": int(outcome.sent.messages),
        "bytes": int(outcome.sent.bytes),
        "iterations": None if outcome.iterations is None else int(outcome.iterations),
        "converged": None if outcome.converged is None else bool(outcome.converged),
        **{name: float(value) for name, value in outcome.values.items()},
        **{
            f"agents.{name}": [float(each) for each in values]
            for name, values in outcome.agents.items()
        },
    }
    for name, (places, values) in outcome.curves.items():
        row[f"curve.{name}"] = [float(value) for value in values]
        row[f"curve.{name}.at"] = [float(place) for place in places]
    return row


@cache
def versions() -> str:
    """What numbers are made with here."""
    packages = {
        "peerlearn": "peerlearn",
        "numpy": "numpy",
        "scipy": "scipy",
        "scikit-learn": "sklearn",
    }
    found = {name: import_module(module).__version__ for name, module in packages.items()}
    return json.dumps(
        {"python": platform.python_version(), **found, "platform": platform.platform()}
    )
