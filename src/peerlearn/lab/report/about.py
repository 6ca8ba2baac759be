"""What was run, from the rows: entries with their settings, and what went wrong."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peerlearn.lab.analysis.cells import Row
from peerlearn.lab.analysis.labels import setting_label, value_label
from peerlearn.lab.description import own_code
from peerlearn.lab.description.sweeps import has_key

if TYPE_CHECKING:
    from peerlearn.lab.results.results import Results

HIDDEN = ("name", "class", "given", "estimator", "fixed")  # told in their own way, or too long
NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
Entry = tuple[str, str]  # a name, and its settings in words


@dataclass(frozen=True)
class Trouble:
    """Runs that share a fault: whose, how many, the sentence, and where in the code."""

    model: str
    data: str
    runs: int
    of: int
    sentence: str
    traceback: str = ""
    settings: str = ""  # the model's swept ones, where runs are told apart by them


def entries(results: Results, part: str) -> list[Entry]:
    """Return the entries of a part (data, model, network) with all values of their settings."""
    found: dict[str, dict[str, list[str]]] = {}
    for identity in _identities(results):
        entry = identity[part]
        if not entry:
            continue
        settings = found.setdefault(entry["name"], {})
        for key, value in _flat(_visible_settings(part, entry)):
            values = settings.setdefault(key, [])
            if value not in values:
                values.append(value)
    order = results.order.get(part, [])
    names = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    listed = []
    for name in names:
        texts = [f"{key} {', '.join(values)}" for key, values in found[name].items()]
        listed.append((name, "; ".join(texts)))
    return listed


def _identities(results: Results) -> Iterator[Mapping[str, Any]]:
    """Yield each combination of data, model and network once, not per repetition and fold."""
    seen: set[tuple[Any, ...]] = set()
    keys = [column for column in results.order if column not in ("data", "model", "network")]
    for row in results.rows:
        place = tuple(row.get(column) for column in ("data", "model", "network", "agents", *keys))
        if place not in seen:
            seen.add(place)
            yield json.loads(row["settings"])


def _visible_settings(part: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry's settings; those under settings or parameters come without a heading."""
    shown = {
        key: value for key, value in entry.items() if key not in (*HIDDEN, "settings", "parameters")
    }
    if part == "data" and not shown.get("source"):
        shown.pop("source", None)
    if entry.get("given"):
        shown["source"] = "given as a table"
    if entry.get("estimator"):
        shown["kind"] = str(entry["estimator"].get("class", "")).rsplit(".", 1)[-1]
        shown |= {key: value for key, value in entry["estimator"].items() if key != "class"}
    return {**shown, **entry.get("settings", {}), **entry.get("parameters", {})}


def common(results: Results) -> list[Entry]:
    """Return what all runs share: the protocol, and the grid search if there is one."""
    found = []
    for name in ("protocol", "search"):
        described = results.facts.get(name)
        if described:
            settings = {key: value for key, value in described.items() if key not in HIDDEN}
            found.append((described.get("name", name), _join_settings(settings)))
    return found


def _join_settings(settings: Mapping[str, Any]) -> str:
    return "; ".join(f"{key} {value}" for key, value in _flat(settings))


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[Entry]:
    """Yield dotted keys and values in words; of an object its class comes first."""
    for key, value in values.items():
        if key == own_code.KEY:  # a digest, which only names runs
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
            for each in value:
                yield f"{before}{key}", ", ".join(f"{name} {told}" for name, told in _flat(each))
        elif value not in (None, "", [], ()):
            word = json.dumps(value) if isinstance(value, list) else value_label(value)
            yield (
                (before.rstrip("."), word.rsplit(".", 1)[-1])
                if key == "class"
                else (f"{before}{key}", word)
            )


def failures(results: Results) -> list[Trouble]:
    return _troubles(results, [row for row in results.rows if row["status"] == "failed"], "failure")


def refusals(results: Results) -> list[Trouble]:
    return _troubles(
        results, [row for row in results.rows if row["status"] == "not applicable"], "failure"
    )


def find_unconverged(results: Results) -> list[Trouble]:
    return _troubles(
        results, [row for row in results.rows if row["converged"] is False], "warnings"
    )


def find_warnings(results: Results) -> list[Trouble]:
    """Return warnings of runs that converged."""
    return _troubles(
        results,
        [row for row in results.rows if row["warnings"] and row["converged"] is not False],
        "warnings",
    )


def _troubles(results: Results, rows: Sequence[Row], told: str) -> list[Trouble]:
    """Group rows by model, data set, and the failure or the model's swept settings.

    A failure is the fault itself. A warning has numbers of its run, and one of 20 iterations says
    nothing of those of 100.
    """
    fault = told == "failure"
    every: Counter[tuple[str, str, str]] = Counter()
    for each in results.rows:
        own = "" if fault else _own_sweep(results, each)
        every[each["model"], each["data"], own] += 1
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        apart = (row["failure"], "") if fault else ("", _own_sweep(results, row))
        groups.setdefault((row["model"], row["data"], *apart), []).append(row)
    troubles = []
    for (model, data, _, own), group in groups.items():
        trouble = Trouble(
            model,
            data,
            runs=len(group),
            of=every[model, data, own],
            sentence=_first(group, told),
            traceback=_first(group, "traceback"),
            settings=own,
        )
        troubles.append(trouble)
    return troubles


def _own_sweep(results: Results, row: Row) -> str:
    """Return the swept settings of a run's model, not those of its network."""
    keys = [
        key
        for key in results.order
        if key not in ("data", "model", "network") and row.get(key) is not None
    ]
    settings = json.loads(row["settings"])["model"]["settings"] if keys else {}
    return ", ".join(setting_label(key, row[key]) for key in keys if has_key(settings, key))


def by_model(troubles: Sequence[Trouble]) -> list[tuple[str, int]]:
    """Return how many runs of each model are concerned."""
    found = Counter[str]()
    for trouble in troubles:
        found[trouble.model] += trouble.runs
    return list(found.items())


def say_unconverged(results: Results) -> list[str]:
    """Return a line with the runs that did not converge; none if all did."""
    found = by_model(find_unconverged(results))
    if not found:
        return []
    texts = []
    for model, count in found:
        runs = "run" if count == 1 else "runs"
        texts.append(f"{count:,} {runs} of {model}")
    return [f"Did not converge: {', '.join(texts)}"]


def _first(rows: Sequence[Row], column: str) -> str:
    return next((str(row[column]) for row in rows if row.get(column)), "")


def notes(results: Results) -> list[Entry]:
    """Return what runs noted, and the models that did.

    Of notes that differ in numbers alone, the first is shown with how many more there are.
    """
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for row in results.rows:
        if row["note"]:
            texts, models = found.setdefault(NUMBER.sub("#", row["note"]), ({}, {}))
            texts[row["note"]] = models[row["model"]] = None
    listed = []
    for texts, models in found.values():
        names = ", ".join(models)
        if len(texts) > 1:
            names += f"; {len(texts) - 1} more with other numbers"
        listed.append((next(iter(texts)), names))
    return listed


def versions(results: Results) -> list[Entry]:
    """Return the versions that rows were made with, several if made at different times."""
    found: dict[str, dict[str, None]] = {}
    for text in dict.fromkeys(row["versions"] for row in results.rows):
        for name, version in json.loads(text).items():
            found.setdefault(name, {})[version] = None
    return [(name, " and ".join(each)) for name, each in found.items()]


def duration(seconds: float) -> str:
    """Return a time: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"
