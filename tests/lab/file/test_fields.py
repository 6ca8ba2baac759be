"""Objects from tables of a file: every field by its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from peerlearn.errors import InputError
from peerlearn.lab.file.fields import make_from
from peerlearn.toml_reader import TomlTable


@dataclass(frozen=True)
class Spec:
    name: str
    kind: Literal["lines", "boxes"] = "lines"
    level: float = 0.05
    folds: int = 3
    fast: bool = False
    over: tuple[str, ...] = ()
    steps: tuple[float, float] | None = None
    rows: int | Mapping[str, int] = 0
    where: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.folds < 1:
            raise InputError(f"folds is {self.folds}: give 1 or more")


def made(**values):
    return make_from(Spec, TomlTable(values, "FILE", "spec."))


def test_what_is_left_out_has_its_default():
    assert made(name="a") == Spec("a")


def test_lists_become_tuples_and_numbers_what_they_should_be():
    given = made(
        name="a",
        level=1,
        over=["data"],
        steps=[1, 2.5],
        rows={"x": 3},
        where={"agents": [1]},
        fast=True,
    )
    assert given == Spec(
        "a", "lines", 1.0, 3, True, ("data",), (1.0, 2.5), {"x": 3}, {"agents": [1]}
    )
    assert isinstance(given.level, float)
    assert isinstance(given.steps[0], float)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "spec.name in FILE is missing: give a text in quotes"),
        ({"name": 3}, "spec.name in FILE is 3: give a text in quotes"),
        ({"kind": "line"}, "spec.kind in FILE is 'line', which is not known: did you mean lines?"),
        ({"kind": 3}, "spec.kind in FILE is 3: give one of lines, boxes"),
        ({"level": "high"}, "spec.level in FILE is 'high': give a number"),
        ({"level": True}, "spec.level in FILE is True: give a number"),
        ({"folds": 2.0}, "spec.folds in FILE is 2.0: give a whole number"),
        ({"folds": True}, "spec.folds in FILE is True: give a whole number"),
        ({"fast": 1}, "spec.fast in FILE is 1: give true or false"),
        (
            {"over": "data"},
            "spec.over in FILE is 'data': give a list of which each is a text in quotes",
        ),
        ({"over": [1]}, "spec.over in FILE is [1]: give a list of which each is a text in quotes"),
        ({"steps": [1]}, "spec.steps in FILE is [1]: give a list of 2, each a number"),
        ({"rows": "all"}, "spec.rows in FILE is 'all': give a whole number or a table"),
        ({"where": 3}, "spec.where in FILE is 3: give a table"),
        ({"folds": 0}, "spec in FILE cannot be used: folds is 0: give 1 or more"),
        ({"leval": 1}, "spec.leval in FILE is not a key here: did you mean level?"),
    ],
)
def test_what_does_not_fit(values, said):
    with pytest.raises(InputError) as refused:
        made(**({"name": "a"} if values else {}) | values)
    assert str(refused.value) == said
