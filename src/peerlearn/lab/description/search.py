"""The grid search of a comparison: which settings are tried, for which models, by which metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from peerlearn.arrays import is_whole
from peerlearn.errors import InputError
from peerlearn.lab.description.metrics import METRICS
from peerlearn.toml_reader import near


@dataclass(frozen=True)
class Search:
    """A grid search inside the training rows of each fold.

    Parameters
    ----------
    grid : mapping of str to sequence
        Values to try, by setting. All combinations are tried.
    folds : int, default 3
        Inner folds, 2 or more.
    metric : str, default ""
        A metric of predictions, by which the best is chosen. Empty: the usual one of the task.
    model : str, default ""
        The model whose best settings all models use. Empty: each model searches for itself.
    where : {"centralised", "network"}, default "centralised"
        Whether candidates are trained on all rows in one place or over the network.

    Raises
    ------
    InputError
        If the grid is empty or has a value twice, or another parameter cannot be used.

    Examples
    --------
    >>> from peerlearn.lab import Search
    >>> search = Search(grid={"alpha": [0.1, 1.0], "n_hidden": [50, 100]})
    >>> len(list(search.candidates(["alpha", "n_hidden"])))
    4
    """

    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    folds: int = 3
    metric: str = ""
    model: str = ""
    where: Literal["centralised", "network"] = "centralised"

    def __post_init__(self) -> None:
        if not self.grid:
            raise InputError(
                "a search needs a grid: give a list of values for one setting at least"
            )
        for key, values in self.grid.items():
            if not isinstance(values, list | tuple) or not values:
                raise InputError(f"grid.{key} is {values!r}: give a list of values to try")
            for k, value in enumerate(values):
                if value in values[:k]:
                    raise InputError(f"grid.{key} has {value!r:.80} twice: give each value once")
        if not is_whole(self.folds) or self.folds < 2:
            raise InputError(
                f"folds of the search is {self.folds!r}: give a whole number, 2 or more"
            )
        if self.metric and self.metric not in METRICS:
            raise InputError(f"metric of the search is {self.metric!r}{near(self.metric, METRICS)}")
        if self.where not in ("centralised", "network"):
            raise InputError(
                f"where of the search is {self.where!r}: choose centralised or network"
            )

    def candidates(self, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield all combinations of the values of these keys, in the order of the grid."""
        for chosen in product(*(self.grid[key] for key in keys)):
            yield dict(zip(keys, chosen, strict=True))
