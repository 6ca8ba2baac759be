"""The agents of a network in the terminal: one line each, alive while they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table

from peerlearn.sites.up import Agent

COLORS = {"done": "green", "failed": "red", "killed": "red", "running": "cyan"}


@contextmanager
def live(console: Console) -> Iterator[Callable[[Sequence[Agent]], None]]:
    """A table that follows the agents on a terminal; nothing where there is none."""
    if not console.is_terminal:
        yield lambda agents: None
        return
    with Live(console=console, refresh_per_second=4, transient=True) as shown:
        yield lambda agents: shown.update(table(agents))


def table(agents: Sequence[Agent], scores: Mapping[str, str] | None = None) -> Table:
    view = Table(box=SIMPLE_HEAD)
    for column in ("agent", "state"):
        view.add_column(column, no_wrap=True)
    for column in ("round", "residual", "MB sent"):
        view.add_column(column, justify="right", no_wrap=True)
    if scores is not None:
        view.add_column("on rows nobody saw")
    for agent in agents:
        state, status = agent.state, agent.status
        color = COLORS.get(state, "yellow")
        residual = status.get("residual")
        again = f", started {agent.starts} times" if agent.starts > 1 else ""
        view.add_row(
            agent.name,
            f"[{color}]{state}{again}[/]",
            f"{status['round']:,}" if "round" in status else "-",
            f"{residual:.1e}" if residual is not None else "-",
            f"{status['bytes'] / 1e6:,.2f}" if "bytes" in status else "-",
            *([scores[agent.name]] if scores is not None else []),
        )
    return view
