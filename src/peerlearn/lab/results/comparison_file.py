"""comparison.json of a result folder: what is shown of its rows, and in which order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from peerlearn.errors import InputError
from peerlearn.lab.description.specs import (
    Expectation,
    FigureSpec,
    Layout,
    StatisticsSpec,
    TableSpec,
)
from peerlearn.lab.results.parquet import NAMES

COMPARISON = "comparison.json"
FACTS = ("metrics", "runs")  # that a description has at least
PARTS = {
    "tables": TableSpec,
    "figures": FigureSpec,
    "statistics": StatisticsSpec,
    "expectations": Expectation,
}


def description(layout: Layout, order: Mapping[str, list[Any]], facts: Mapping[str, Any]) -> str:
    """Return the text of comparison.json."""
    return (
        json.dumps(
            {"layout": asdict(layout), "order": order, **facts}, indent=2, ensure_ascii=False
        )
        + "\n"
    )


def read_description(folder: Path) -> tuple[Layout, dict[str, list[Any]], dict[str, Any]]:
    """Read comparison.json: the layout, the order of values, and facts."""
    file = folder / COMPARISON
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        shown = facts.pop("layout")
        order = facts.pop("order")
        for name, kind in PARTS.items():
            shown[name] = tuple(_make_spec(kind, each) for each in shown[name])
        layout = _make_spec(Layout, shown)
        missing = [name for name in FACTS if name not in facts]
        missing += [name for name in NAMES if name not in order]
    except FileNotFoundError:
        way_out = "make it with peerlearn run FILE, or name the folder that a run has left"
        raise InputError(
            f"{folder} does not hold results, for it has no {COMPARISON}: {way_out}"
        ) from None
    except OSError as error:
        raise InputError(
            f"{file} cannot be read ({error.strerror}): give a folder that this user may read"
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        told = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{file} is not as a run writes it ({told}): give the same run command again"
        ) from None
    if missing:
        raise InputError(
            f"{file} does not say {missing[0]}, as a run does: name a folder that a run has left"
        )
    return layout, order, facts


def _make_spec(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """Return a spec from its values in JSON, where tuples have become lists."""
    texts = {each.name for each in fields(kind) if "tuple" in str(each.type)}
    return kind(
        **{name: tuple(value) if name in texts else value for name, value in values.items()}
    )
