"""Times that an agent waits for others, and between checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, fields

from peerlearn.errors import InputError


@dataclass(frozen=True)
class Timeouts:
    """Times that an agent waits for its neighbors, and between checkpoints, in seconds.

    Parameters
    ----------
    silence : float, default 5.0
        After so long without a sign of life, or without the message of a round, the log names the
        neighbor.
    give_up_after : float, default 600.0
        After so long without a sign of life, the run stops with its state on disk.
    save_every : float, default 2.0
        Time between two checkpoints.
    longest_round : float, default 21600.0
        Longest time that a round may take while all neighbors are alive. Then the run stops with
        its state on disk. A neighbor that computes for long and one that hangs look the same from
        outside, so the default is hours. It may be inf. Values below `give_up_after` count as
        `give_up_after`, because a neighbor may be late while it waits for a silent one.

    Examples
    --------
    >>> from peerlearn.network.peers.timeouts import Timeouts
    >>> Timeouts(give_up_after=60.0, longest_round=30.0).longest
    60.0
    """

    silence: float = 5.0
    give_up_after: float = 600.0
    save_every: float = 2.0
    longest_round: float = 6 * 3600.0

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise InputError(
                    f"{each.name} must be a number of seconds above 0, "
                    f"not {getattr(self, each.name)!r}"
                )

    @property
    def longest(self) -> float:
        """Longest time that a round may take."""
        return max(self.longest_round, self.give_up_after)
