"""Blocks of a test: what models are compared on, each measured by the same runs.

A block is a data set (Demšar, JMLR 2006), so that blocks are independent; of a single data set it
is a run. Only data sets that have the metric count, for it may be of one task. Whatever tells runs
of a block apart, as folds or networks, is averaged over. A run that a model lacks counts for
nobody.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from peerlearn.arrays import Array
from peerlearn.lab.analysis.cells import Cells, Place, Row, known_value, rows_of_task
from peerlearn.lab.analysis.labels import setting_label
from peerlearn.lab.description.specs import StatisticsSpec
from peerlearn.lab.description.sweeps import has_key

if TYPE_CHECKING:
    from peerlearn.lab.results.results import Results

RUNS = ("repetition", "fold")
TREATMENT = "treatment"  # a model, with those of its swept settings that tell it from the others


@dataclass(frozen=True)
class Blocks:
    """A metric by block (line) and model (column).

    NaN where a model has no value, infinite where it diverged.
    """

    models: tuple[str, ...]
    values: Array
    columns: tuple[str, ...]  # what tells blocks apart
    averaged: bool  # over repetitions and folds
    mixed: tuple[str, ...] = ()  # over what else
    left_out: tuple[tuple[str, str], ...] = ()  # models that have no value in any block, and why
    unpaired: int = 0  # runs of a block that some model lacks, and that count for nobody
    runs: int = 0

    @property
    def complete(self) -> Array:
        return np.asarray(self.values[~np.isnan(self.values).any(axis=1)])


def blocks_of(results: Results, spec: StatisticsSpec) -> Blocks:
    """Return the blocks that a specification names; of a single data set, also its runs."""
    apart, shared = _swept_settings(results)
    rows = [
        {**row, TREATMENT: _treatment(row, apart)}
        for row in rows_of_task(results.rows, spec.metric) or results.rows
    ]
    ranked = sorted(rows, key=lambda row: _rank(results, row))
    names = list(dict.fromkeys(row[TREATMENT] for row in ranked))
    averaged = len({row["data"] for row in rows if row["status"] == "done"}) > 1
    columns = list(spec.over)
    if not averaged:
        columns += RUNS
    columns = list(dict.fromkeys(columns))
    values: list[Array] = []
    unpaired = 0
    runs = 0
    found = _measure_blocks(results, spec.metric, rows, names, columns, shared)
    for place in Cells(results, spec.metric, (*columns, TREATMENT), rows).places(columns):
        measured = found[place]
        mean, lacking = _average_pairs(
            np.array([numbers for numbers, _ in measured]), np.array([has for _, has in measured])
        )
        values.append(mean)
        unpaired += lacking
        runs += len(measured)
    table = np.array(values).reshape(-1, len(names))
    there = ~np.isnan(table)
    kept = np.asarray(there.any(axis=1))
    has = np.asarray(there.any(axis=0))
    models = []
    left_out = []
    for name, own in zip(names, has.tolist(), strict=True):
        if own:
            models.append(name)
        else:
            left_out.append((name, _why(rows, name)))
    differing = []
    for k, column in enumerate(columns):
        values_there = {place[k] for place in found}
        if len(values_there) > 1:
            differing.append(column)
    mixed = [key for key in ("network", *shared) if key not in columns and _varies(rows, key)]
    return Blocks(
        tuple(models),
        table[kept][:, has],
        tuple(differing),
        averaged,
        tuple(mixed),
        tuple(left_out),
        unpaired,
        runs,
    )


def _measure_blocks(
    results: Results,
    metric: str,
    rows: Sequence[Row],
    names: Sequence[str],
    columns: list[str],
    shared: list[str],
) -> dict[Place, list[tuple[list[float], list[bool]]]]:
    """Return by block and run the value of each model, and whether it has one.

    A model that diverged has a value that is not finite.
    """
    wanted = list(dict.fromkeys([*columns, "network", *shared]))
    found: dict[Place, list[tuple[list[float], list[bool]]]] = {}
    for together in _by_run(rows):
        cells = Cells(results, metric, (*wanted, TREATMENT), together)
        for place in cells.places(wanted):
            own = [cells.at((*place, name)) for name in names]
            one = [cell.mean for cell in own], [cell.runs > 0 for cell in own]
            found.setdefault(place[: len(columns)], []).append(one)
    return found


def _by_run(rows: Iterable[Row]) -> Iterable[list[Row]]:
    """Group rows that have the same training and test rows."""
    found: dict[Place, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in ("data", *RUNS)), []).append(row)
    return found.values()


def _average_pairs(values: Array, has: NDArray[np.bool_]) -> tuple[Array, int]:
    """Return each model's mean over the runs that all models have, and how many runs are lost.

    Models without any run are left out of the pairing.
    """
    present = has.any(axis=0)
    common = has[:, present].all(axis=1)
    mean = np.full(values.shape[1], np.nan)
    if present.any() and common.any():
        with np.errstate(invalid="ignore"):  # infinite ones of both signs
            mean[present] = values[common][:, present].mean(axis=0)
    return mean, int(np.sum(~common & has.any(axis=1)))


def _why(rows: Sequence[Row], name: str) -> str:
    """Return why a model has no value."""
    found = {row["status"] for row in rows if row[TREATMENT] == name}
    if "done" not in found:
        return "all its runs failed" if "failed" in found else "it is not applicable"
    return "no run of it has a number that the others can be compared with"


def _varies(rows: Sequence[Row], key: str) -> bool:
    return len({known_value(row, key) for row in rows} - {None}) > 1


def _swept_settings(results: Results) -> tuple[list[str], list[str]]:
    """Return the swept keys that tell models apart, and those that hold for all models."""
    keys = [key for key in results.order if key not in ("data", "model", "network")]
    models: dict[str, set[str]] = {}
    for row in results.rows:
        settings = json.loads(row["settings"])["model"]["settings"]
        own = {key for key in keys if row.get(key) is not None and has_key(settings, key)}
        models.setdefault(row["model"], set()).update(own)
    every = set.intersection(*models.values())
    some = set.union(*models.values())
    return [key for key in keys if key in some - every], [
        key for key in keys if key not in some - every
    ]


def _treatment(row: Row, apart: Sequence[str]) -> str:
    settings = [setting_label(key, row[key]) for key in apart if row.get(key) is not None]
    return ", ".join([str(row["model"]), *settings])


def _rank(results: Results, row: Row) -> int:
    order = results.order.get("model", [])
    return order.index(row["model"]) if row["model"] in order else len(order)
