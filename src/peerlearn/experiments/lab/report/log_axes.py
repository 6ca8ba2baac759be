"""Logarithmic axes, where there is a logarithm: an axis that is to show zero or less is drawn linear, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from peerlearn.experiments.lab.layout import FigureSpec
from peerlearn.experiments.lab.report.cells import Cells
from peerlearn.experiments.lab.report.labels import CURVE

if TYPE_CHECKING:
    from peerlearn.experiments.lab.results import Results


def drawable(results: Results, spec: FigureSpec) -> tuple[FigureSpec, list[str]]:
    """The figure with those of its logarithmic axes that can be drawn, and a sentence for each other one."""
    drawn = {"x": _across, "y": _up}
    linear = [
        axis for axis in spec.log if any(number <= 0 for number in drawn[axis](results, spec))
    ]
    kept = "".join(axis for axis in spec.log if axis not in linear)
    why = "is linear, for a logarithm has no room for its values of zero or less"
    return replace(spec, log=kept), [f"The axis of {axis} {why}." for axis in linear]


def _across(results: Results, spec: FigureSpec) -> Iterator[float]:
    if spec.kind == "curves":
        for row in _cells(results, spec).rows:
            at, values = row.get(f"{_metric(spec)}.at"), row.get(_metric(spec))
            yield from at or (range(1) if values else ())
    elif spec.kind == "lines":
        yield from (
            value
            for value in _cells(results, spec).values(spec.x)
            if isinstance(value, int | float)
        )


def _up(results: Results, spec: FigureSpec) -> Iterator[float]:
    """What is drawn: means, but of boxes all runs."""
    cells = _cells(results, spec)
    for place, rows in cells.groups.items():
        cell = cells.at(place)
        if spec.kind == "boxes":
            yield from cell.values
        elif spec.kind == "curves":
            curves: list[Any] = [row[_metric(spec)] for row in rows if row.get(_metric(spec))]
            yield from (float(np.mean(points)) for points in zip(*curves, strict=False))
        elif cell.runs:
            yield cell.mean


def _metric(spec: FigureSpec) -> str:
    return f"{CURVE}{spec.y.removeprefix(CURVE)}" if spec.kind == "curves" else spec.y


def _cells(results: Results, spec: FigureSpec) -> Cells:
    columns = [column for column in (spec.panels, spec.series, spec.x) if column]
    return Cells.of(results, _metric(spec), columns, spec.where)
