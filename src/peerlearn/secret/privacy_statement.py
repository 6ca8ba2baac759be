"""What a differentially private training promises, for its report, and what it costs a site."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PrivacyStatement:
    """What differential privacy promises about one row, and against whom.

    epsilon, delta: the promise. neighbors: what data sets that differ by one row are. clipping: to
    what rows are clipped, in words. colluders, agents: it holds against so many of so many agents,
    who know their own noise. noise_multiplier: deviation of the noise of all other agents, relative
    to what one row can change.
    """

    epsilon: float
    delta: float
    neighbors: str
    clipping: str
    colluders: int
    agents: int
    noise_multiplier: float

    def lines(self) -> list[tuple[str, str]]:
        """Return names and texts, as a report prints them."""
        return [
            (
                "privacy",
                f"epsilon {self.epsilon:.4g}, delta {self.delta:.1e} ({self.neighbors} one row), "
                f"against {self.colluders} of {self.agents} agents",
            ),
            ("clipping", self.clipping),
        ]


@dataclass(frozen=True)
class Payment:
    """What a release costs a site.

    noise: digest of the key of its noise. A resumed run has the same key, and does not pay again.
    what: what is released, in words. epsilon, delta, neighbors: the promise. noise_multiplier: as
    in `PrivacyStatement`.
    """

    noise: str
    what: str
    epsilon: float
    delta: float
    neighbors: str
    noise_multiplier: float
