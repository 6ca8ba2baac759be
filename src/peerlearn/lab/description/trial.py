"""One run: what it is given, its identity, the seeds that follow from that, and what comes out.

A seed is made of the file's seed and of those parts of the identity that must share it. All models
see the same folds and draw the same random features, so that they are compared in pairs. Nothing
depends on the order of runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal
from typing import Protocol as TypingProtocol

from peerlearn.lab.description.comparison import Comparison, Data, Model, Net
from peerlearn.lab.description.data_facts import GENERATORS, source_of
from peerlearn.lab.description.identity import describe_file, describe_value, digest
from peerlearn.network.base import Counts

Curve = tuple[Sequence[float], Sequence[float]]  # where, and how much
Purpose = Literal["data", "split", "deal", "model", "graph"]


@dataclass(frozen=True)
class Outcome:
    """Results of one run: means over agents in `values`, single agents in `agents`."""

    seconds: float  # of training alone
    values: Mapping[str, float] = field(default_factory=dict)
    agents: Mapping[str, Sequence[float]] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    sent: Counts = field(default_factory=Counts)
    converged: bool | None = None  # None: nothing that could have converged
    iterations: int | None = None
    note: str = ""
    bound: float | None = None  # of the distance to the pooled answer; None: there is none


class Protocol(TypingProtocol):
    """The way a run is made: a frozen dataclass whose fields are the keys of [protocol]."""

    name: ClassVar[str]
    # A protocol that runs best_settings of a trial says so: `searches: ClassVar = True`; elsewhere
    # [search] is refused.
    # What it measures beside the metrics of predictions -> in words.
    measures: ClassVar[Mapping[str, str]]
    curves: ClassVar[Mapping[str, str]]  # curves that it may leave -> in words

    def refuses(self, data: Data, model: Model) -> str:
        """Return why this model cannot do this task (shown as n/a), or an empty text."""

    def run(self, trial: Trial) -> Outcome:
        """Train and measure, once."""


@dataclass(frozen=True)
class Trial:
    """One run: a data set, a model, a network (None: all rows in one place) and a fold."""

    comparison: Comparison
    data: Data
    model: Model
    network: Net | None
    repetition: int
    fold: int
    # In a search: the run whose training rows this one divides into folds.
    within: Trial | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that its numbers follow from, as plain values."""
        whole = self.comparison
        return {
            "seed": describe_value(whole.seed),
            "protocol": {"name": whole.protocol.name, **describe_value(whole.protocol)},
            "folds": describe_value(whole.folds),
            "test_fraction": whole.test_fraction,
            **({} if whole.split == "auto" else {"split": whole.split}),
            "metrics": list(whole.metrics),
            "search": describe_value(whole.search),
            "data": describe_value(self.data),
            **_describe_rows(self.data),
            "model": describe_value(self.model),
            "network": describe_value(self.network),
            "repetition": self.repetition,
            "fold": self.fold,
        }

    @property
    def key(self) -> str:
        """The name of its row on disk."""
        return digest(self.identity)[:20]

    def seed(self, purpose: Purpose) -> int:
        """Return the seed of a purpose.

        data: of a generator; split: into folds; deal: of rows to agents; model: of what it draws;
        graph: of its links.
        """
        net = self.network
        about = [self.data.name, describe_value(self.data.options)]
        parts = {
            "data": about,
            "split": [*about, self.repetition],
            "deal": [*about, self.repetition, self.fold],
            "model": [*about, self.repetition, self.fold],
            # Not of its weights: all weightings are compared on the same graphs.
            "graph": [
                net and [net.graph, net.agents, describe_value(net.parameters)],
                self.repetition,
            ],
        }
        return (
            int(digest([describe_value(self.comparison.seed), purpose, *parts[purpose]])[:8], 16)
            % 2**31
        )


def _describe_rows(entry: Data) -> dict[str, Any]:
    source = source_of(entry)
    used = tuple(key for key in (entry.site, entry.time) if key)
    if entry.given is not None:
        return {key: describe_value(entry.given.extras.get(key)) for key in used}
    return {} if source in GENERATORS else describe_file(source, used)
