"""The files of reproductions: one per table or figure of the thesis, in experiments/.

An installed peerlearn carries them along; in a checkout they are read where they are edited.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from peerlearn import toml_reader
from peerlearn.data import is_at_hand
from peerlearn.data.recipes import RECIPES
from peerlearn.data.sources import SOURCES
from peerlearn.errors import InputError
from peerlearn.lab.description.data_facts import GENERATORS
from peerlearn.lab.file.expecting import count_expectations

PACKAGED = Path(__file__).with_name("experiments")
CHECKOUT = Path(__file__).parents[4] / "experiments"
SECONDS = "seconds.csv"  # how long each took, beside the files
FREE = {*RECIPES, *GENERATORS}  # data sets that are no files


@dataclass(frozen=True)
class Reproduction:
    """What a file says of itself before it is run."""

    name: str
    path: Path
    title: str
    shows: tuple[str, ...]  # the tables and figures that its expectations are from
    expected: int  # how many expectations it has
    needs: tuple[str, ...]  # data sets that are files
    replaced: tuple[str, ...]  # those of them that another stands in for
    seconds: Mapping[str, float]  # at each size, on two cores, where known

    @property
    def absent(self) -> tuple[str, ...]:
        """Data sets that are not at hand."""
        return tuple(name for name in self.needs if not is_at_hand(name))

    @property
    def fetched(self) -> tuple[str, ...]:
        """Absent data sets that OpenML has, which running it fetches."""
        return tuple(name for name in self.absent if name in SOURCES)


def reproductions() -> list[Reproduction]:
    """Return all reproductions, by chapter."""
    place = CHECKOUT if (CHECKOUT.parent / "pyproject.toml").exists() else PACKAGED
    took = _seconds(place / SECONDS)
    found = [_describe(path, took.get(path.stem, {})) for path in sorted(place.glob("*.toml"))]
    if not found:
        raise InputError(f"there are no reproductions in {place}: install peerlearn again")
    return sorted(found, key=lambda each: (chapter_of(each.name), each.name))


def find_reproduction(name: str) -> Reproduction:
    """Return the reproduction of that name."""
    known = {each.name: each for each in reproductions()}
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=1, cutoff=0.4)
    nearest = f", the nearest is {near[0]}" if near else ""
    raise InputError(f"there is no reproduction {name!r}{nearest}: peerlearn reproduce lists them")


def chapter_of(name: str) -> int:
    """Return the chapter that a name begins with: 4 of ch4-agents."""
    found = re.match(r"ch(\d+)", name)
    return int(found[1]) if found else 0


def _describe(path: Path, took: Mapping[str, float]) -> Reproduction:
    values = toml_reader.read(path).values
    expected = _tables(values, "expect")
    data = _tables(values, "data")
    needs = {}
    for entry in data:
        source = _source(entry)
        if source not in FREE:
            needs[source] = "instead" in entry
    return Reproduction(
        path.stem,
        path,
        str(values.get("title", "")),
        _list_sources(str(each.get("source", "")) for each in expected),
        count_expectations(expected),
        tuple(needs),
        tuple(name for name, replaced in needs.items() if replaced),
        took,
    )


def _source(entry: Mapping[str, Any]) -> str:
    return str(entry.get("source") or entry.get("name", ""))


def _list_sources(sources: Iterable[str]) -> tuple[str, ...]:
    """Return tables and figures, each once and without the letter of a part."""
    return tuple(
        dict.fromkeys(
            found
            for source in sources
            for found in re.findall(r"(?:table|figure) [\d.]*\d", source)
        )
    )


def _tables(values: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    return [each for each in values.get(key, []) if isinstance(each, dict)]


def _seconds(file: Path) -> dict[str, dict[str, float]]:
    """Read name -> size -> seconds, as lab.thesis.page wrote them."""
    found: dict[str, dict[str, float]] = {}
    if file.exists():
        with file.open(newline="", encoding="utf-8") as lines:
            for line in csv.DictReader(lines):
                found.setdefault(line["name"], {})[line["size"]] = float(line["seconds"])
    return found
