"""Swept keys as columns: a value per run, of one type in all rows, in the order of the file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from peerlearn.errors import InputError
from peerlearn.experiments.lab.comparison import Comparison, Data, Model, Net
from peerlearn.experiments.lab.parquet import SECONDS, TYPES
from peerlearn.experiments.lab.trial import Trial, plain

NAMES = ("data", "model", "network")
TAKEN = {*TYPES, *SECONDS} - {"agents"}  # the agents of a network are a column, swept or not


def swept_of(trial: Trial) -> dict[str, Any]:
    """What a run has of the swept keys; lists and tables as text."""
    found = {
        **trial.data.swept,
        **trial.model.swept,
        **(trial.network.swept if trial.network else {}),
    }
    return {key: _word(plain(value)) for key, value in found.items()}


def swept_keys(comparison: Comparison) -> list[str]:
    """In the order of the file; one that is the name of another column is refused."""
    entries: list[Data | Model | Net] = [*comparison.data, *comparison.models, *comparison.networks]
    keys = list(dict.fromkeys(key for entry in entries for key in entry.swept))
    for key in keys:
        if key in {*TAKEN, *comparison.metrics, *comparison.protocol.measures}:
            raise InputError(
                f"{key} cannot be swept, for every row has another column of that name: give one value"
            )
    return keys


def columns_of(trials: Sequence[Trial], keys: Iterable[str]) -> list[dict[str, Any]]:
    """A value per key and run, None where the run has none; text throughout where a key has text and numbers."""
    columns = [swept_of(trial) for trial in trials]
    for key in keys:
        kinds = {type(each[key]) for each in columns if key in each}
        if len(kinds) > 1 and not kinds <= {int, float}:
            for each in columns:
                if key in each:
                    each[key] = str(each[key])
    return [{key: each.get(key) for key in keys} for each in columns]


def types_of(columns: Sequence[Mapping[str, Any]], keys: Iterable[str]) -> dict[str, str]:
    """The type in Parquet of every key."""
    return {key: _type([each[key] for each in columns if each[key] is not None]) for key in keys}


def order_of(
    trials: Sequence[Trial], columns: Sequence[Mapping[str, Any]], keys: Iterable[str]
) -> dict[str, list[Any]]:
    """The values of names and swept keys, in the file's order."""
    entries = {
        name: [entry.name for trial in trials if (entry := getattr(trial, name))] for name in NAMES
    }
    swept = {key: [each[key] for each in columns if each[key] is not None] for key in keys}
    return {name: list(dict.fromkeys(values)) for name, values in {**entries, **swept}.items()}


def _word(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _type(values: Sequence[Any]) -> str:
    for kind, name in ((bool, "bool"), (int, "int64"), (int | float, "float64")):
        if all(isinstance(value, kind) for value in values):
            return name
    return "string"
