"""A comparison in the terminal while it runs: what is running, how much is done, and how long it may still take."""

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
def watched(console: Console) -> Iterator[Callable[[Progress], None]]:
    """Yields what `run` tells of its progress: a line at the start; then alive on a terminal, else one now and then."""
    if not console.is_terminal:
        yield _Lines(console).watch
        return
    view = _View(console)
    with Live(view, console=console, refresh_per_second=4, transient=True):
        yield view.watch


def begun(progress: Progress) -> str:
    """96 runs: 12 are there already, 84 are made now, 2 at a time"""
    left, whole = len(progress.left), progress.kept + progress.done + len(progress.left)
    runs = f"{whole:,} {'run' if whole == 1 else 'runs'}"
    if not left:
        return f"{runs}, there already"
    now = f"{progress.jobs:,} at a time" if left > 1 else "made now"
    if left == whole:
        return f"{runs}, {now}"
    there = "1 is" if whole - left == 1 else f"{whole - left:,} are"
    return f"{runs}: {there} there already, {f'{left:,} are made now, {now}' if left > 1 else '1 is made now'}"


def said(progress: Progress) -> str:
    """12 of 96 runs, 1 failed, 34 s, about 2 min left"""
    done, left = progress.kept + progress.done, progress.seconds_left()
    parts = [f"{done:,} of {done + len(progress.left):,} runs"]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    parts.append(duration(progress.elapsed))
    if left is not None and progress.left:
        parts.append(f"about {duration(left)} left")
    return ", ".join(parts)


class _View:
    """Drawn again and again by rich, from the same object that the runs change."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None

    def watch(self, progress: Progress) -> None:
        if self._progress is None:
            _say(self._console, begun(progress))
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
        head.add_row(bar, Text(said(now)))
        return Group(head, *lines)


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: float | None = None

    def watch(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._last is None:
            _say(self._console, begun(progress))
        elif now - self._last >= PIPED_EVERY:
            _say(self._console, said(progress))
        else:
            return
        self._last = now


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
