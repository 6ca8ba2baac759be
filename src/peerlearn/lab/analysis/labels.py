"""Columns and metrics in words, which way is better, and units of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peerlearn.lab.description.metrics import METRICS
from peerlearn.lab.description.specs import FACTORS
from peerlearn.lab.results.parquet import CURVE

WORDS = {
    **{metric.name: metric.words for metric in METRICS.values()},
    "data": "data set",
    "seconds": "seconds of training",
    "total_seconds": "seconds in all",
    "rounds": "rounds",
    "messages": "messages sent",
    "bytes": "bytes sent",
    "iterations": "iterations",
    "converged": "share of runs that converged",
    "bound": "bound on the distance to the centralised coefficients",
    "disagreement": "disagreement between agents",
    "distance": "distance to the centralised coefficients",
}
LARGER = {
    "converged",
    "sparsity",
    *(metric.name for metric in METRICS.values() if metric.larger_is_better),
}  # of others, less is


def in_words(metric: str, words: Mapping[str, str] | None = None) -> str:
    """Return a column, metric or curve in words.

    words: those of the protocol, for its measures and for all curves.
    """
    name = metric.removeprefix(CURVE)
    own = words or {}
    first, second = (own, WORDS) if metric.startswith(CURVE) else (WORDS, own)
    return first.get(name) or second.get(name, name)


def with_unit(text: str, unit: str) -> str:
    if unit == "MB" and "bytes" in text:
        return text.replace("bytes", unit)
    return f"{text}, {unit}" if unit else text


def factor(unit: str) -> float:
    return FACTORS.get(unit, 1.0)


def smaller_is_better(metric: str) -> bool:
    return metric.removeprefix(CURVE) not in LARGER


def value_label(value: Any) -> str:
    """Return a value as a label: numbers without needless digits, a dash for nothing."""
    if value is None or value == "":
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def conditions_label(where: Mapping[str, Any]) -> str:
    """Return conditions as one text."""
    told = []
    for column, wanted in where.items():
        values = wanted if isinstance(wanted, list | tuple) else [wanted]
        told.append(
            setting_label(column, values[0])
            + "".join(f" or {value_label(value)}" for value in values[1:])
        )
    return ", ".join(told)


def setting_label(column: str, value: Any) -> str:
    """Return one of several settings as text: names alone, numbers with their column."""
    return (
        value_label(value)
        if column in ("data", "model", "network")
        else f"{column} = {value_label(value)}"
    )
