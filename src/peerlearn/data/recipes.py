"""Data sets that need no folder, by their lower-case names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray, DataSet, Task, scale, targets
from peerlearn.data.generated import g50c, two_moons
from peerlearn.data.scaling import Range

Arrays = tuple[Array, AnyArray, dict[str, AnyArray]]  # X, y, extras


@dataclass(frozen=True)
class Recipe:
    """A data set that is made from a seed, with the facts that are known beforehand.

    The seed is unused if nothing is random.
    """

    name: str
    task: Task
    rows: int
    columns: int
    origin: Literal["generated", "bundled with scikit-learn"]
    description: str
    to: Range | None  # what its columns are scaled to
    make: Callable[[int], Arrays]

    def build(self, seed: int, scaled: bool) -> DataSet:
        """Make the data set."""
        X, y, extras = self.make(seed)
        X, scaling = scale(X, self.to if scaled else None)
        source = f"generated, seed {seed}" if self.origin == "generated" else self.origin
        return DataSet(self.name, X, targets(y, self.task), self.task, source, scaling, extras)


def _make_generated(
    name: str, rows: int, columns: int, to: Range | None, draw: Callable[[int], Any], text: str
) -> Recipe:
    def make(seed: int) -> Arrays:
        return (*draw(seed), {})

    return Recipe(name, "classification", rows, columns, "generated", text, to, make)


def _make_bundled(
    name: str,
    task: Task,
    rows: int,
    columns: int,
    to: Range,
    loader: str,
    text: str,
    **options: Any,
) -> Recipe:
    def make(_seed: int) -> Arrays:
        from sklearn import datasets  # takes .1 s; agents read files of their own

        bunch = getattr(datasets, loader)(**options)
        extras = {"features": np.asarray(bunch.feature_names)}
        if task == "classification":
            extras["classes"] = np.asarray(bunch.target_names)
        return np.ascontiguousarray(bunch.data, dtype=np.float64), bunch.target, extras

    return Recipe(name, task, rows, columns, "bundled with scikit-learn", text, to, make)


SIGNED = (-1.0, 1.0)
UNIT = (0.0, 1.0)

_RECIPES = (
    _make_generated(
        "g50c",
        rows=550,
        columns=50,
        to=SIGNED,
        draw=lambda seed: g50c(seed=seed),
        text="two Gaussian clouds in 50 dimensions, Bayes error 5 %; columns to [-1, 1]",
    ),
    _make_generated(
        "two-moons",
        rows=400,
        columns=2,
        to=None,
        draw=lambda seed: two_moons(seed=seed),
        text="two interleaved half circles with noise 0.15; columns as drawn",
    ),
    _make_bundled(
        "digits",
        "classification",
        rows=1797,
        columns=64,
        to=UNIT,
        loader="load_digits",
        text="handwritten digits, 8 x 8 pixels, ten classes; columns to [0, 1]",
    ),
    _make_bundled(
        "breast-cancer",
        "classification",
        rows=569,
        columns=30,
        to=SIGNED,
        loader="load_breast_cancer",
        text="cell nuclei, malignant (0) or benign (1); columns to [-1, 1]",
    ),
    _make_bundled(
        "iris",
        "classification",
        rows=150,
        columns=4,
        to=SIGNED,
        loader="load_iris",
        text="three species of iris; columns to [-1, 1]",
    ),
    _make_bundled(
        "wine",
        "classification",
        rows=178,
        columns=13,
        to=SIGNED,
        loader="load_wine",
        text="wines of three growers by chemistry; columns to [-1, 1]",
    ),
    _make_bundled(
        "diabetes",
        "regression",
        rows=442,
        columns=10,
        to=SIGNED,
        loader="load_diabetes",
        text="progression of diabetes after one year; columns to [-1, 1], targets as found",
        scaled=False,
    ),
)

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _RECIPES}
