"""Progress of a comparison: how far it is, and how long it may still take."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from peerlearn.lab.description.trial import Trial
from peerlearn.lab.results.parquet import FAILED
from peerlearn.lab.runs.swept_columns import swept_of

Kind = tuple[
    int, int, int
]  # a data set, a model, a network: such runs take about as long as each other


@dataclass
class Progress:
    """Counts and times of runs.

    Runs that are left are in the order in which they are begun: those under way are the first.
    """

    trials: Sequence[Trial]
    jobs: int = 1
    kept: int = 0  # runs whose rows were there before
    done: int = 0  # of this time, failed ones among them
    failed: int = 0
    left: dict[int, Trial] = field(default_factory=dict)  # by number
    began: float = field(default_factory=time.monotonic)
    _seconds: dict[Kind, list[float]] = field(default_factory=dict)  # that runs of a kind took

    def keep(self, number: int, row: Mapping[str, Any]) -> None:
        """Count a row that was there before, and its time."""
        self.kept += 1
        self._took(number, row)

    def finish(self, number: int, row: Mapping[str, Any]) -> None:
        """Count a run that has ended, and its time."""
        self.left.pop(number)
        self._took(number, row)
        self.done += 1
        self.failed += row["status"] == FAILED

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def now(self) -> list[str]:
        """Return the runs under way, in words."""
        return [describe_trial(trial) for trial in islice(self.left.values(), self.jobs)]

    def seconds_left(self) -> float | None:
        """Return the time left, by runs of the same kind or of all; None before the first."""
        if not self._seconds:
            return None
        means = {kind: sum(each) / len(each) for kind, each in self._seconds.items()}
        usual = sum(means.values()) / len(means)
        return sum(means.get(_kind(trial), usual) for trial in self.left.values()) / self.jobs

    def _took(self, number: int, row: Mapping[str, Any]) -> None:
        self._seconds.setdefault(_kind(self.trials[number]), []).append(row["total_seconds"])


def describe_trial(trial: Trial) -> str:
    """Return a run in words: its names, what is swept, and which time it is."""
    whole = trial.comparison
    names = [trial.data.name, trial.model.name]
    if trial.network is not None:
        names.append(trial.network.name)
    names += [f"{key} {value}" for key, value in swept_of(trial).items()]
    if whole.repetitions > 1:
        names.append(f"repetition {trial.repetition + 1} of {whole.repetitions}")
    if whole.folds > 1:
        names.append(f"fold {trial.fold + 1} of {whole.folds}")
    return ", ".join(names)


def _kind(trial: Trial) -> Kind:
    return id(trial.data), id(trial.model), id(trial.network)
