"""Progress of a comparison in the terminal: what runs, how much is done, how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from peerlearn.lab.runs.progress import Progress
from peerlearn.system.number_words import duration

PIPED_EVERY = 30.0  # seconds between two lines where there is no terminal
MOST_SHOWN = 8  # runs under way that are named


@contextmanager
def show_progress(console: Console) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows progress: live on a terminal, else a line now and then."""
    if not console.is_terminal:
        yield _Lines(console).watch
        return
    view = _View(console)
    with Live(view, console=console, refresh_per_second=4, transient=True):
        yield view.watch


def describe_start(progress: Progress) -> str:
    """Return how many runs there are and are made.

    "96 runs: 12 are there already, 84 are made now, 2 at a time"
    """
    left = len(progress.left)
    whole = progress.kept + progress.done + left
    runs = f"{whole:,} {'run' if whole == 1 else 'runs'}"
    if not left:
        return f"{runs}, there already"
    now = f"{progress.jobs:,} at a time" if left > 1 else "made now"
    if left == whole:
        return f"{runs}, {now}"
    there = "1 is" if whole - left == 1 else f"{whole - left:,} are"
    made = f"{left:,} are made now, {now}" if left > 1 else "1 is made now"
    return f"{runs}: {there} there already, {made}"


def describe_progress(progress: Progress) -> str:
    """Return how far it is: "12 of 96 runs, 1 failed, 34 s, about 2 min left"."""
    done = progress.kept + progress.done
    left = progress.seconds_left()
    parts = [f"{done:,} of {done + len(progress.left):,} runs"]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    parts.append(duration(progress.elapsed))
    if left is not None and progress.left:
        parts.append(f"about {duration(left)} left")
    return ", ".join(parts)


class _View:
    """A view that rich draws again and again, from the object that the runs change."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None

    def watch(self, progress: Progress) -> None:
        if self._progress is None:
            _say(self._console, describe_start(progress))
        self._progress = progress

    def __rich__(self) -> RenderableType:
        now = self._progress
        if now is None:
            return Text("  reading what is there", style="dim")
        done = now.kept + now.done
        bar = ProgressBar(total=max(done + len(now.left), 1), completed=done, width=30)
        running = now.now()
        names = running[:MOST_SHOWN] + (
            [f"and {len(running) - MOST_SHOWN} more"] if len(running) > MOST_SHOWN else []
        )
        doing = names or ["making tables, figures and the page"]
        lines = [Text(f"  {each}", "dim", no_wrap=True, overflow="ellipsis") for each in doing]
        head = Table.grid(padding=(0, 2))
        head.add_row(bar, Text(describe_progress(now)))
        return Group(head, *lines)


class _Lines:
    """A line now and then, where there is no terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: float | None = None

    def watch(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._last is None:
            _say(self._console, describe_start(progress))
        elif now - self._last >= PIPED_EVERY:
            _say(self._console, describe_progress(progress))
        else:
            return
        self._last = now


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
