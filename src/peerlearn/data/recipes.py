"""The data sets that need no folder, by their lower-case names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from peerlearn.arrays import Array
from peerlearn.data.dataset import AnyArray, DataSet, Task, scale, targets
from peerlearn.data.generated import g50c, two_moons
from peerlearn.data.scaling import Range

Made = tuple[Array, AnyArray, dict[str, AnyArray]]


@dataclass(frozen=True)
class Recipe:
    """How one data set is made from a seed (unused where nothing is random), and what is known about it beforehand."""

    name: str
    task: Task
    rows: int
    columns: int
    origin: Literal["generated", "bundled with scikit-learn"]
    description: str
    to: Range | None  # what its columns are scaled to
    make: Callable[[int], Made]

    def build(self, seed: int, scaled: bool) -> DataSet:
        """The data set itself."""
        X, y, extras = self.make(seed)
        X, scaling = scale(X, self.to if scaled else None)
        source = f"generated, seed {seed}" if self.origin == "generated" else self.origin
        return DataSet(self.name, X, targets(y, self.task), self.task, source, scaling, extras)


def _generated(
    name: str, rows: int, columns: int, to: Range | None, draw: Callable[[int], Any], text: str
) -> Recipe:
    def make(seed: int) -> Made:
        return (*draw(seed), {})

    return Recipe(name, "classification", rows, columns, "generated", text, to, make)


def _bundled(
    name: str,
    task: Task,
    rows: int,
    columns: int,
    to: Range,
    loader: str,
    text: str,
    **options: Any,
) -> Recipe:
    def make(_seed: int) -> Made:
        from sklearn import datasets  # takes .1 s; agents read files of their own

        bunch = getattr(datasets, loader)(**options)
        extras = {"features": np.asarray(bunch.feature_names)}
        if task == "classification":
            extras["classes"] = np.asarray(bunch.target_names)
        return np.ascontiguousarray(bunch.data, dtype=np.float64), bunch.target, extras

    return Recipe(name, task, rows, columns, "bundled with scikit-learn", text, to, make)


SIGNED, UNIT = (-1.0, 1.0), (0.0, 1.0)

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _generated("g50c", 550, 50, SIGNED, lambda seed: g50c(seed=seed),
                   "two Gaussian clouds in 50 dimensions, Bayes error 5 %; columns to [-1, 1]"),
        _generated("two-moons", 400, 2, None, lambda seed: two_moons(seed=seed),
                   "two interleaved half circles with noise 0.15; columns as drawn"),
        _bundled("digits", "classification", 1797, 64, UNIT, "load_digits",
                 "handwritten digits, 8 x 8 pixels, ten classes; columns to [0, 1]"),
        _bundled("breast-cancer", "classification", 569, 30, SIGNED, "load_breast_cancer",
                 "cell nuclei, malignant (0) or benign (1); columns to [-1, 1]"),
        _bundled("iris", "classification", 150, 4, SIGNED, "load_iris",
                 "three species of iris; columns to [-1, 1]"),
        _bundled("wine", "classification", 178, 13, SIGNED, "load_wine",
                 "wines of three growers by chemistry; columns to [-1, 1]"),
        _bundled("diabetes", "regression", 442, 10, SIGNED, "load_diabetes",
                 "progression of diabetes after one year; columns to [-1, 1], targets as found",
                 scaled=False),
    )
}  # fmt: skip
