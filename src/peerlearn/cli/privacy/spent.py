"""What a site spent of its privacy budget, and on what, as a table in the terminal."""

from __future__ import annotations

import math
from pathlib import Path

from rich.console import Console

from peerlearn.errors import InputError
from peerlearn.system.terminal import say, terminal_table


def show_spent(console: Console, file: Path) -> None:
    """Show what was spent. file: a site's file, or the file of what was spent."""
    # Both need the packages of the extra peers.
    from peerlearn.network.peers.privacy_budget import PrivacyBudget
    from peerlearn.sites.description import read_site

    budget = read_site(file).budget if file.suffix == ".toml" else PrivacyBudget(file)
    if file.suffix != ".toml" and not file.exists():
        raise InputError(f"there is no {file}: name a site's file, or the file of what was spent")
    entries = budget.entries
    table = terminal_table("Spent on", ("When (UTC)", "Run", "Released"), ("Epsilon", "Delta"))
    for entry in entries:
        when = entry["at"][:19].replace("T", " ")
        promise = (f"{entry['epsilon']:g}", f"{entry['delta']:.0e}")
        table.add_row(when, entry["run"], entry["what"], *promise)
    if entries:
        console.print(table)
        console.print()
    limit = "no limit is set"
    if budget.epsilon < math.inf:
        limit = f"the budget is {budget.epsilon:g}"
    say(
        console,
        f"Spent  epsilon {budget.spent:.3g} at delta {budget.delta:g} in {len(entries)} runs, all "
        f"together; {limit}",
        f"File   {budget.file}",
    )
