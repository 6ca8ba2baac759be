"""How long an agent waits for others, and how often it saves."""

from __future__ import annotations

from dataclasses import dataclass, fields

from peerlearn.errors import InputError


@dataclass(frozen=True)
class Patience:
    """silence: seconds without a sign of life after which a neighbor is named. give_up_after: seconds of silence after
    which the run is stopped, with its state on disk. save_every: seconds between two checkpoints."""

    silence: float = 5.0
    give_up_after: float = 600.0
    save_every: float = 2.0

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise InputError(f"{each.name} must be a number of seconds above 0, not {getattr(self, each.name)!r}")
