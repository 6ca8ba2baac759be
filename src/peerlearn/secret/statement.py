"""What a training under secrecy promises, and what it does not: a part of its report."""

from __future__ import annotations

from dataclasses import dataclass
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
    "totals may reveal rows if there are fewer of them than features, or in two trainings that "
    "differ by one agent or row; wrong numbers of an agent are not detected; agents of one process "
    "have no secrets from each other"
)


@dataclass(frozen=True)
class SecrecyStatement:
    """What agents learned in a training under secrecy, and who must not collude.

    claim: what is promised. colluders, agents: secret against so many of so many. root: name of
    the agent that learns the totals; all agents learn what it computes from them. totals: what was
    summed, in order. shown: those that all agents learn. visible: what all agents see. limits:
    what is not promised.
    """

    claim: Claim
    colluders: int
    agents: int
    root: str
    totals: tuple[str, ...]
    shown: tuple[str, ...] = ()
    visible: str = VISIBLE
    limits: str = LIMITS

    def lines(self) -> list[tuple[str, str]]:
        """Return names and texts, as a report prints them."""
        counts = {name: self.totals.count(name) for name in self.totals}
        listed = [f"{name} ({n} times)" if n > 1 else name for name, n in counts.items()]
        learned = f"all by agent {self.root}"
        if self.shown:
            learned += f", and by all agents: {', '.join(dict.fromkeys(self.shown))}"
        against = f"secret against {self.colluders} of {self.agents} agents"
        return [
            ("secret sums", f"{self.claim}; {against}"),
            ("totals", f"{len(self.totals)}: {', '.join(listed)}; learned {learned}"),
            ("visible", self.visible),
            ("limits", self.limits),
        ]
