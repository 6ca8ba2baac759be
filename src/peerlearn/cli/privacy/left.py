"""The summary of ledgers of what left a site: checked first, then summed up in two tables."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from peerlearn.errors import InputError
from peerlearn.network.base import PLAIN
from peerlearn.network.peers.chain_file import BrokenChain, Chain, read_chain
from peerlearn.network.peers.left_ledger import NAME
from peerlearn.system.terminal import say, terminal_table

SHOWN = 2  # shapes of a quantity in the terminal


@dataclass
class Left:
    """What left in one line of the table."""

    to: set[str] = field(default_factory=set)
    shapes: set[str] = field(default_factory=set)
    messages: int = 0
    bytes: int = 0

    def add(self, entry: dict[str, Any], counts: Sequence[int]) -> None:
        """Add a line of the ledger."""
        arrays = entry["arrays"]
        if isinstance(arrays, dict):
            arrays = ", ".join(f"{name} {_shape(shape)}" for name, shape in arrays.items())
        self.to |= set(entry["to"])
        self.shapes.add(arrays)
        self.messages += counts[0]
        self.bytes += counts[1]


@dataclass
class Run:
    """Lines of one run."""

    starts: list[dict[str, Any]] = field(default_factory=list)
    leaves: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, list[int]] = field(default_factory=dict)
    counted: bool = False  # whether nothing left after the last counts

    def counts_of(self, entry: dict[str, Any]) -> list[int]:
        """Return messages and bytes of a line."""
        return self.counts.get(str(entry["line"]), [0, 0])


def show_left(console: Console, folder: Path) -> bool:
    """Check and show the ledgers of a folder, and return whether all are as they were written.

    It is the output folder of an agent, or of `peerlearn up` with one below it for each agent.
    """
    paths = [folder / NAME] if (folder / NAME).exists() else sorted(folder.glob(f"*/{NAME}"))
    if not paths:
        raise InputError(
            f"{folder} has no {NAME}: name the output folder of an agent, or of peerlearn up"
        )
    whole = True
    for path in paths:
        try:
            chain = read_chain(path)
            _check_report(path, chain)
        except BrokenChain as error:
            say(console, str(error), "")
            whole = False
            continue
        _show(console, path, chain)
    return whole


def _check_report(path: Path, chain: Chain) -> None:
    """Raise BrokenChain if report.json beside a ledger has a head that is not in the ledger."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        report = json.loads(path.with_name("report.json").read_text(encoding="utf-8"))
        if report["left"]["head"] not in chain.digests:
            raise BrokenChain(
                f"{path} is not as it was written: report.json has the head of a line that is not "
                "there, so lines at its end were dropped, or all were written anew. Bring a copy "
                "back"
            )


def _show(console: Console, path: Path, chain: Chain) -> None:
    runs = _by_run(chain)
    if not runs:
        say(console, f"{path}: nothing left so far", "")
        return
    everything = Left()
    lefts: dict[tuple[str, str], Left] = defaultdict(Left)
    for run in runs.values():
        for entry in run.leaves:
            counts = run.counts_of(entry)
            everything.add(entry, counts)
            lefts[entry["quantity"], entry["protection"]].add(entry, counts)
    agent = next(iter(runs.values())).starts[0]["agent"]
    neighbors = ", ".join(sorted(everything.to)) or "nobody"
    say(
        console,
        f"Agent {agent} sent {everything.messages:,} messages with {everything.bytes:,} bytes to "
        f"{neighbors}, in {_runs(runs)}. The chain of {len(chain.entries)} lines is whole.",
        f"File  {path}",
        f"Head  {chain.head}",
        "",
    )
    console.print(_list_quantities(lefts))
    console.print()
    console.print(_list_runs(runs))
    say(console, "", *_notes(runs, chain), "")


def _by_run(chain: Chain) -> dict[str, Run]:
    runs: dict[str, Run] = defaultdict(Run)
    for entry in chain.entries:
        run = runs[entry["id"]]
        event = entry["event"]
        if event == "counts":
            run.counts = entry["counts"]
            run.counted = True
        elif event == "reason":
            run.reasons.append(entry)
        else:
            (run.starts if event == "start" else run.leaves).append(entry)
            run.counted = False
    return runs


def _list_quantities(lefts: dict[tuple[str, str], Left]) -> Any:
    table = terminal_table(
        "What left", ("Quantity", "Protection", "To", "Arrays"), ("Messages", "Bytes")
    )
    for (quantity, protection), left in sorted(lefts.items(), key=lambda item: -item[1].bytes):
        shapes = sorted(left.shapes)
        more = [f"and {len(shapes) - SHOWN} more"] if len(shapes) > SHOWN else []
        table.add_row(
            quantity,
            protection,
            ", ".join(sorted(left.to)),
            "; ".join(shapes[:SHOWN] + more),
            f"{left.messages:,}",
            f"{left.bytes:,}",
            style=None if protection == PLAIN else "green",
        )
    return table


def _list_runs(runs: dict[str, Run]) -> Any:
    table = terminal_table(
        "Runs", ("Run", "Began (UTC)", "State"), ("Restarts", "Messages", "Bytes")
    )
    for run in runs.values():
        first = run.starts[0]
        counts = [run.counts_of(entry) for entry in run.leaves]
        state = "counted" if run.counted else "not counted"
        table.add_row(
            first["run"],
            first["at"][:19].replace("T", " "),
            "ended by an error" if run.reasons and run.counted else state,
            f"{len(run.starts) - 1}",
            f"{sum(each[0] for each in counts):,}",
            f"{sum(each[1] for each in counts):,}",
        )
    return table


def _notes(runs: dict[str, Run], chain: Chain) -> list[str]:
    shown = sorted({name for run in runs.values() for name in run.starts[-1]["greeting"]})
    notes = [f"Neighbors also saw the settings that agents compare: {', '.join(shown)}."]
    unknown = [run for run in runs.values() if not run.counted]
    if unknown:
        notes.append(
            f"{_runs(unknown)} not counted to the end: they run now, or were killed and not "
            "resumed. The table has all quantities that they sent, but not all messages and bytes."
        )
    for run in runs.values():
        notes += [f"Neighbors were told: {entry['text']}" for entry in run.reasons]
    if chain.torn:
        notes.append(
            f"The last {chain.torn} bytes are a line that was not finished: nothing that it is "
            "about left. The next start of the agent cuts it off."
        )
    return notes


def _runs(runs: Collection[Any]) -> str:
    return f"{len(runs)} run{'' if len(runs) == 1 else 's'}"


def _shape(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape)) or "1"
