"""Budget of a site: what all its trainings with differential privacy may tell about one row.

    spent.jsonl     a chain of lines (chain_file.py), for all runs of a site
        {"at": .., "run": .., "what": .., "epsilon": .., "delta": .., "noise_multiplier": ..,
         "noise": digest of the key of the noise}

A line is on disk before anything that depends on rows is sent. A run that is resumed has the same
noise, whose key its session file keeps, so it sends nothing new, and does not pay again. A run that
starts anew pays, also if an earlier one failed: nobody knows what of it was seen.

What several runs cost is less than the sum of their epsilons; `peerlearn.secret.accounting` adds
up. Runs count as promises about rows that are added or removed. The noise for rows that are
replaced is larger, so these cost less than is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from peerlearn.errors import InputError
from peerlearn.network.peers.chain_file import ChainFile, read_chain
from peerlearn.secret.accounting import compute_epsilon
from peerlearn.secret.privacy_statement import Payment

NAME = "spent.jsonl"
USUAL_DELTA = 1e-6  # at which what was spent is added up if there is no budget


@dataclass(frozen=True)
class PrivacyBudget:
    """What trainings may cost a site, and the file of what they cost so far.

    Parameters
    ----------
    file : Path
        The file, kept for all runs on the same rows. Whoever deletes it forgets what was spent.
    epsilon : float, default inf
        Most that all trainings may cost together. Infinite: they are recorded, and none is refused.
    delta : float, default 1e-6
        The delta at which epsilon is computed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from peerlearn.network.peers.privacy_budget import PrivacyBudget
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PrivacyBudget(Path(folder) / "spent.jsonl", epsilon=2.0).spent
    0.0
    """

    file: Path
    epsilon: float = math.inf
    delta: float = USUAL_DELTA

    @property
    def entries(self) -> tuple[dict[str, Any], ...]:
        """Lines of the file."""
        return read_chain(self.file).entries

    @property
    def spent(self) -> float:
        """Epsilon of all runs so far, together."""
        return self._cost([entry["noise_multiplier"] for entry in self.entries])

    def pay(self, run: str, payment: Payment) -> None:
        """Write what a release costs to the disk, or raise InputError if it is too much.

        A release that was paid for before, by the digest of its noise, costs nothing.
        """
        if any(entry["noise"] == payment.noise for entry in self.entries):
            return
        self.check(run, payment.noise_multiplier)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        ChainFile(self.file).append({"at": at, "run": run, **asdict(payment)})

    def check(self, run: str, noise_multiplier: float) -> None:
        """Raise InputError if one more release would overspend the budget."""
        before = [entry["noise_multiplier"] for entry in self.entries]
        after = self._cost([*before, noise_multiplier])
        if after > self.epsilon:
            raise InputError(
                f"run {run!r} would bring what was spent of the privacy budget from epsilon "
                f"{self._cost(before):.3g} to {after:.3g}, and the budget is {self.epsilon:g} "
                f"(delta {self.delta:g}): use a smaller epsilon, or raise the budget if you may; "
                f"peerlearn privacy --spent {self.file} lists what it was spent on"
            )

    def _cost(self, multipliers: Sequence[float]) -> float:
        return compute_epsilon(multipliers, self.delta) if multipliers else 0.0
