"""Runs that failed, told together where they have the same names and the same error."""

from __future__ import annotations

from collections import Counter

from peerlearn.experiments.lab.results import Results
from peerlearn.experiments.lab.rows import FAILED, NOT_APPLICABLE

MOST_TOLD = 10


def counts(results: Results) -> str:
    """96 runs: 90 done, 4 not applicable, 2 failed"""
    found = Counter(row["status"] for row in results.rows)
    missing = results.facts["runs"] - len(results.rows)
    parts = [f"{found['done']:,} done"]
    parts += [f"{found[status]:,} {status}" for status in (NOT_APPLICABLE, FAILED) if found[status]]
    parts += [f"{missing:,} not made yet"] if missing else []
    runs = results.facts["runs"]
    return f"{runs:,} {'run' if runs == 1 else 'runs'}: {', '.join(parts)}"


def failures(results: Results) -> list[str]:
    """A line for each kind of failure; where there are many, how many more there are."""
    found = Counter(
        (row["model"], row["data"], row["network"], row["failure"])
        for row in results.rows
        if row["status"] == FAILED
    )
    lines = [
        f"{number:,} of {model} on {data}{f' over {network}' if network else ''}: {error}"
        for (model, data, network, error), number in found.items()
    ]
    more = [f"and {len(lines) - MOST_TOLD} more, in the report"] if len(lines) > MOST_TOLD else []
    return lines[:MOST_TOLD] + more
