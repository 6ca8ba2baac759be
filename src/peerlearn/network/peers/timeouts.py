"""How long an agent waits for others, and how often it saves."""

from __future__ import annotations

from dataclasses import dataclass, fields

from peerlearn.errors import InputError


@dataclass(frozen=True)
class Timeouts:
    """How long an agent waits for its neighbors, in seconds, and how often it saves.

    Parameters
    ----------
    silence: without a sign of life, or without the message of a round, after which a neighbor is
        named.
    give_up_after: of silence, after which the run is stopped with its state on disk.
    save_every: between two checkpoints.
    longest_round: that a round may take while all neighbors are alive; then the run is stopped with
        its state on disk. A neighbor that computes for long and one that hangs look the same from
        outside, so this is hours. It may be inf. It is never less than give_up_after: a neighbor
        may be late because it waits for a silent one.
    """

    silence: float = 5.0
    give_up_after: float = 600.0
    save_every: float = 2.0
    longest_round: float = 6 * 3600.0

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise InputError(
                    f"{each.name} must be a number of seconds above 0, not {getattr(self, each.name)!r}"
                )

    @property
    def longest(self) -> float:
        """Seconds that a round may take."""
        return max(self.longest_round, self.give_up_after)
