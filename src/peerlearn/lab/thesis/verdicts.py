"""Reproductions in the terminal: the list, the thesis's numbers beside ours, the summary."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from peerlearn.lab.analysis.expectations import VERDICTS, Judgement, Verdict
from peerlearn.lab.thesis.files import Reproduction
from peerlearn.lab.thesis.reproducing import Reproduced
from peerlearn.system.number_words import duration
from peerlearn.system.terminal import say, terminal_table

NAMED = 2  # expectations with one reason that are named one by one
BADNESS: tuple[Verdict, ...] = ("outside", "explained", "within")
STYLES: dict[Verdict, str] = {
    "within": "green",
    "outside": "bold red",
    "explained": "yellow",
    "not run": "dim",
}


def show_reproductions(console: Console, known: Sequence[Reproduction]) -> None:
    """Show what each reproduction shows, the data it needs, and how long it takes."""
    table = terminal_table(
        "Reproductions of the thesis",
        ("Name", "Thesis", "What it shows", "Data"),
        ("Time", "Quick"),
    )
    for place in (0, 4, 5):  # names are to be copied
        table.columns[place].no_wrap = True
    for each in known:
        times = [
            duration(each.seconds[size]) if size in each.seconds else "-"
            for size in ("full", "quick")
        ]
        table.add_row(
            *map(
                escape,
                (each.name, _place(each), each.title, ", ".join(each.needs) or "generated", *times),
            )
        )
    console.print(table)
    say(console, "", *_not_at_hand(known))


def _place(each: Reproduction) -> str:
    """Return tables or figures in words: "figures 4.3, 4.4"."""
    told = []
    for kind in ("table", "figure"):
        numbers = [shown.split()[1] for shown in each.shows if shown.startswith(kind)]
        if numbers:
            plural = "s" if len(numbers) > 1 else ""
            told.append(f"{kind}{plural} {', '.join(numbers)}")
    return ", ".join(told)


def _not_at_hand(known: Sequence[Reproduction]) -> list[str]:
    """Return the absent data sets, and what becomes of the reproductions that need them."""
    absent = dict.fromkeys(name for each in known for name in each.absent)
    fetched = [name for name in absent if any(name in each.fetched for each in known)]
    replaced = [
        name
        for name in absent
        if name not in fetched and any(name in each.replaced for each in known)
    ]
    left = [name for name in absent if name not in {*fetched, *replaced}]
    told = [f"Fetched   {', '.join(fetched)}: from OpenML, when first needed"] if fetched else []
    told += (
        [f"Replaced  {', '.join(replaced)}: not here, and others like them are used"]
        if replaced
        else []
    )
    told += (
        [f"Missing   {', '.join(left)}: what needs them is left out; peerlearn data tells more"]
        if left
        else []
    )
    return told


def show_reproduced(console: Console, done: Reproduced, *, brief: bool = False) -> None:
    """Show every expectation with its verdict, reasons, and what was left out.

    brief: only what is not within.
    """
    if done.results is None:
        say(console, f"Not run   {done.why_not}")
        return
    shown = [
        each for each in done.judgements if not brief or each.verdict in ("outside", "explained")
    ]
    table = terminal_table("", ("Source", "What", "Expected", "Ours", "Verdict"), ())
    for each in shown:
        words = (each.expectation.source, each.what, each.theirs, each.found or "-")
        table.add_row(*map(escape, words), f"[{STYLES[each.verdict]}]{each.verdict}[/]")
    if shown:
        console.print(table)
    for line in _reasons(done.judgements):
        console.print(line, markup=False, highlight=False)
    say(console, *(f"Data      {name}: {why}" for name, why in done.missing.items()))
    say(console, *(f"Failed    {line}" for line in done.failed))
    say(console, *(f"Note      {line}" for line in done.said))
    say(console, f"Verdicts  {_write_judgement(done)}, size {done.size}, {duration(done.seconds)}")
    say(console, f"Report    {done.folder / 'report.html'}")


def _reasons(judgements: Sequence[Judgement]) -> list[str]:
    """Return each reason once, with what it is about; of many, their places in the thesis."""
    about: dict[tuple[Verdict, str], list[Judgement]] = {}
    for each in judgements:
        if each.reason:
            about.setdefault((each.verdict, each.reason), []).append(each)
    return [
        f"{verdict.capitalize():<10}{_places(of)}: {why}" for (verdict, why), of in about.items()
    ]


def _places(of: Sequence[Judgement]) -> str:
    if len(of) <= NAMED and of[0].verdict != "not run":
        return "; ".join(f"{each.expectation.source}, {each.what}, {each.theirs}" for each in of)
    sources = ", ".join(dict.fromkeys(each.expectation.source for each in of))
    return f"{sources} ({len(of)} times)" if len(of) > 1 else sources


def _write_judgement(done: Reproduced) -> str:
    return (
        ", ".join(f"{count} {verdict}" for verdict, count in done.counts.items() if count) or "none"
    )


def _verdict(each: Reproduced) -> str:
    """Return the worst of a reproduction's verdicts on what was run, in its colour."""
    if each.broken:
        return "[bold red]broke down[/]"
    worst: Verdict = next((verdict for verdict in BADNESS if each.counts[verdict]), "not run")
    return f"[{STYLES[worst]}]{worst}[/]"


def show_summary(console: Console, done: Sequence[Reproduced]) -> None:
    """Show names and verdicts."""
    table = terminal_table(
        "\nThe thesis and ours", ("Name", "Verdict"), (*map(str.capitalize, VERDICTS), "Time")
    )
    table.columns[0].no_wrap = True
    for each in done:
        numbers = [str(count) if count else "-" for count in each.counts.values()]
        table.add_row(each.reproduction.name, _verdict(each), *numbers, duration(each.seconds))
    total = [str(sum(each.counts[verdict] for each in done)) for verdict in VERDICTS]
    table.add_section()
    table.add_row("all", "", *total, duration(sum(each.seconds for each in done)))
    console.print(table)
    say(console, *(f"{each.reproduction.name}: {each.note}" for each in done if each.note))
