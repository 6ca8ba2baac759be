"""Swept keys as columns: a value per run, of one type in all rows, in file order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from peerlearn.lab.description.comparison import Comparison
from peerlearn.lab.description.identity import describe_value
from peerlearn.lab.description.trial import Trial
from peerlearn.lab.results.parquet import NAMES


def swept_of(trial: Trial) -> dict[str, Any]:
    """Return the swept keys of a run; lists and tables as text."""
    found = {
        **trial.data.swept,
        **trial.model.swept,
        **(trial.network.swept if trial.network else {}),
    }
    return {key: _word(describe_value(value)) for key, value in found.items()}


def swept_keys(comparison: Comparison) -> list[str]:
    """Return the swept keys in the order of the file."""
    entries = chain.from_iterable(comparison.entries.values())
    return list(dict.fromkeys(key for entry in entries for key in entry.swept))


def columns_of(trials: Sequence[Trial], keys: Iterable[str]) -> list[dict[str, Any]]:
    """Return a value per key and run, None where there is none.

    A key that has texts and numbers becomes text throughout.
    """
    columns = [swept_of(trial) for trial in trials]
    for key in keys:
        kinds = {type(each[key]) for each in columns if key in each}
        if len(kinds) > 1 and not kinds <= {int, float}:
            for each in columns:
                if key in each:
                    each[key] = str(each[key])
    return [{key: each.get(key) for key in keys} for each in columns]


def order_of(
    trials: Sequence[Trial], columns: Sequence[Mapping[str, Any]], keys: Iterable[str]
) -> dict[str, list[Any]]:
    """Return the values of names and swept keys, in the file's order."""
    order: dict[str, list[Any]] = {}
    for name in NAMES:
        entries = [getattr(trial, name) for trial in trials]
        order[name] = list(dict.fromkeys(entry.name for entry in entries if entry))
    for key in keys:
        values = [each[key] for each in columns]
        order[key] = list(dict.fromkeys(value for value in values if value is not None))
    return order


def _word(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
