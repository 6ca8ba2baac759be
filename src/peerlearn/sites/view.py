"""Table of a network's agents in the terminal, one line each, updated while they run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from peerlearn.sites.up import Agent
from peerlearn.system.number_words import megabytes

COLORS = {"done": "green", "failed": "red", "killed": "red", "running": "cyan"}


class LiveView:
    """Display of the current activity, the time, and the state of every agent."""

    def __init__(self) -> None:
        self._activity = ""
        self._agents: list[Agent] = []
        self._start = time.monotonic()

    def say(self, doing: str) -> None:
        """Show this activity."""
        self._activity = doing

    def show(self, agents: Sequence[Agent]) -> None:
        """Show these agents."""
        self._agents = list(agents)

    def __rich__(self) -> RenderableType:
        line = Text(f"  {time.monotonic() - self._start:.0f} s, {self._activity}", style="dim")
        return Group(table(self._agents), line) if self._agents else line


@contextmanager
def live(console: Console) -> Iterator[LiveView]:
    """Show a table that follows the agents, if the console is a terminal."""
    progress = LiveView()
    if not console.is_terminal:
        yield progress
        return
    with Live(progress, console=console, refresh_per_second=4, transient=True):
        yield progress


def table(agents: Sequence[Agent], scores: Mapping[str, str] | None = None, of: str = "") -> Table:
    """Return a table of 80 columns with one line per agent; `of` is the heading of the scores."""
    again = any(agent.starts > 1 for agent in agents)
    view = Table(box=SIMPLE_HEAD)
    view.add_column("agent")
    view.add_column("state")
    headings = (
        "round",
        "residual",
        "MB sent",
        *(("starts",) if again else ()),
        *((of,) if scores else ()),
    )
    for heading in headings:
        view.add_column(heading, justify="right", no_wrap=True)
    for agent in agents:
        state = agent.state
        status = agent.status
        residual = status.get("residual")
        view.add_row(
            _words(agent.name),
            _words(state, COLORS.get(state, "yellow")),
            f"{status['round']:,}" if "round" in status else "-",
            f"{residual:.1e}" if residual is not None else "-",
            megabytes(status["bytes"] / 1e6) if "bytes" in status else "-",
            *([str(agent.starts)] if again else []),
            *([scores[agent.name]] if scores else []),
        )
    return view


def _words(text: str, style: str = "") -> Text:
    """Return text that is cut if there is no room, so that every agent has one line."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")
