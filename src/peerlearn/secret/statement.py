"""What a training under secrecy promises, and what it does not: a part of its report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Claim = Literal[
    "only the listed totals are learned", "sums are hidden, no claim about their sequence"
]
ONLY_TOTALS: Claim = "only the listed totals are learned"
HIDDEN_SUMS: Claim = "sums are hidden, no claim about their sequence"
VISIBLE = (
    "shapes, settings and who takes part; signed session keys; the order of messages; whether an "
    "agent stops with an error; scales of totals to a factor of 2; a checksum of the coefficients"
)
LIMITS = (
    "totals may reveal rows if there are fewer of them than features, or in trainings that differ "
    "by few agents or rows, unless all agents keep records of totals; wrong numbers of an agent "
    "are not detected; agents of one process have no secrets from each other"
)


@dataclass(frozen=True)
class SecrecyStatement:
    """What agents learned in a training under secrecy, and who must not collude.

    claim: what is promised. colluders, agents: secret against so many of so many. root: name of
    the agent that learns the totals; all agents learn what it computes from them. totals: what was
    summed, in order. visible: what all agents see. limits: what is not promised. known_to_all: the
    totals that all agents learn, not the root alone.
    """

    claim: Claim
    colluders: int
    agents: int
    root: str
    totals: tuple[str, ...]
    visible: str = VISIBLE
    limits: str = LIMITS
    known_to_all: tuple[str, ...] = ()

    def after(self, before: SecrecyStatement | None) -> SecrecyStatement:
        """Return the statement about the totals of before as well."""
        if before is None:
            return self
        known = {*before.known_to_all, *self.known_to_all}
        return replace(self, totals=before.totals + self.totals, known_to_all=tuple(sorted(known)))

    def lines(self) -> list[tuple[str, str]]:
        """Return names and texts, as a report prints them."""
        counts = {name: self.totals.count(name) for name in self.totals}
        texts = {name: f"{name} ({n} times)" if n > 1 else name for name, n in counts.items()}
        by_root = [text for name, text in texts.items() if name not in self.known_to_all]
        by_all = [text for name, text in texts.items() if name in self.known_to_all]
        learned = []
        for listed, who in ((by_root, f"agent {self.root}"), (by_all, "all agents")):
            if listed:
                learned.append(f"{', '.join(listed)}; learned by {who}")
        against = f"secret against {self.colluders} of {self.agents} agents"
        return [
            ("secret sums", f"{self.claim}; {against}"),
            ("totals", f"{len(self.totals)}: {'; '.join(learned)}"),
            ("visible", self.visible),
            ("limits", self.limits),
        ]
