"""docs/reproduction.md, written from the folder that `peerlearn reproduce all` leaves:

python -m peerlearn.lab.thesis.page FOLDER > docs/reproduction.md

With --seconds FILE, how long each reproduction took is noted there as well; experiments/seconds.csv
is what the list of `peerlearn reproduce` tells.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from peerlearn.data.known_files import KNOWN_FILES
from peerlearn.errors import InputError, PeerlearnError
from peerlearn.lab.analysis.expectations import VERDICTS, Judgement, count_verdicts, judge, stand_in
from peerlearn.lab.results.comparison_file import COMPARISON
from peerlearn.lab.results.parquet import DONE
from peerlearn.lab.results.results import Results
from peerlearn.lab.results.version_check import CODE, MACHINE
from peerlearn.lab.thesis.files import chapter_of
from peerlearn.lab.thesis.reproducing import markdown_table
from peerlearn.system.files import write
from peerlearn.system.number_words import duration

CORES = 2  # of the machine that times are told for


def page(folder: Path) -> str:
    """Return the thesis against ours, number by number, as Markdown."""
    found = results_in(folder)
    chapters = sorted({chapter_of(name) for name in found})
    parts = [_top(found), *(_chapter(chapter, found) for chapter in chapters)]
    return "\n".join(parts)


def results_in(folder: Path) -> dict[str, Results]:
    """Return the results in a folder by the name of the reproduction, in order of chapters."""
    names = [path.parent.name for path in folder.glob(f"*/{COMPARISON}")]
    if not names:
        raise InputError(
            f"{folder} holds no reproductions: make them with peerlearn reproduce all --output "
            f"{folder}"
        )
    return {
        name: Results.read(folder / name)
        for name in sorted(names, key=lambda name: (chapter_of(name), name))
    }


def seconds_of(results: Results) -> float:
    """Return what all runs took, on two cores, whenever they were made."""
    return sum(row["total_seconds"] or 0.0 for row in results.rows) / CORES


def note_seconds(file: Path, found: dict[str, Results]) -> None:
    """Write the times of these reproductions, at their size, beside those of the file."""
    times: dict[tuple[str, str], float] = {}
    if file.exists():
        with file.open(newline="", encoding="utf-8") as lines:
            times = {
                (line["name"], line["size"]): float(line["seconds"])
                for line in csv.DictReader(lines)
            }
    times |= {(name, results.layout.size): seconds_of(results) for name, results in found.items()}
    kept = sorted(times.items(), key=lambda item: (chapter_of(item[0][0]), item[0]))
    write(
        file,
        "name,size,seconds\n"
        + "".join(f"{name},{size},{took:.0f}\n" for (name, size), took in kept),
    )


def _top(found: dict[str, Results]) -> str:
    sizes = Counter(results.layout.size for results in found.values())
    told = " and ".join(f"{count} at size {size}" for size, count in sizes.items())
    heads = (
        "Name",
        "What",
        "Size",
        "Runs",
        *(verdict.capitalize() for verdict in VERDICTS),
        f"Time on {CORES} cores",
    )
    rows = [_summary(name, results) for name, results in found.items()]
    return f"""# The thesis and ours

Every table and figure of the thesis with results is run again by a file in `experiments/`; this
page is written from those runs ({told}), by `python -m peerlearn.lab.thesis.page`. A number of the
thesis is *within* if the mean of our runs is no farther from it than the spread that the thesis
prints, or, where it prints none, than the file allows. A claim is within if the means of our runs
stand in that relation; how much is "comparable" or "slightly" is ours to say where the thesis does
not. *Explained* is outside with a reason, which was mostly looked for once the number was seen. A
source that begins with "beside" is not the thesis's word: it is what its formulas give when
corrected, or what a model of ours should reach there. Our spread is one standard deviation over
runs. `peerlearn reproduce` lists all of them, and `--quick` runs any in a minute or less.

Made with {_versions(found)}.

{markdown_table(heads, rows)}"""


def _summary(name: str, results: Results) -> Sequence[str]:
    counts = count_verdicts(judge(results))
    done = sum(row["status"] == DONE for row in results.rows)
    took = duration(seconds_of(results))
    return (
        name,
        results.layout.title,
        results.layout.size,
        f"{done:,}",
        *map(str, counts.values()),
        took,
    )


def _chapter(chapter: int, found: dict[str, Results]) -> str:
    parts = [f"## Chapter {chapter}\n"]
    parts += [
        _reproduction(name, results)
        for name, results in found.items()
        if chapter_of(name) == chapter
    ]
    return "\n".join(parts)


def _reproduction(name: str, results: Results) -> str:
    command = f"`peerlearn reproduce {name}{' --quick' if results.layout.size == 'quick' else ''}`"
    heads = ("Source", "What", "Expected", "Ours", "Runs", "Verdict", "Why", "Command")
    parts = [f"### {name}: {results.layout.title}\n"]
    if results.layout.about:
        parts.append(f"{' '.join(results.layout.about.split())}\n")
    parts.append(f"Size {results.layout.size}: {_often(results)}.\n")
    if results.layout.missing:
        parts.append(
            "".join(f"- {_shorten_reason(each, results)}\n" for each in results.layout.missing)
        )
    parts.append(markdown_table(heads, [(*_line(each), command) for each in judge(results)]))
    return "\n".join(parts)


def _line(each: Judgement) -> tuple[str, ...]:
    runs = str(each.runs) if each.runs else ""
    return (
        each.expectation.source,
        each.what,
        each.theirs,
        each.found,
        runs,
        each.verdict,
        each.reason,
    )


def _shorten_reason(name: str, results: Results) -> str:
    """Return why a data set is absent, without the folder it was looked for in."""
    known = KNOWN_FILES.get(name.casefold())
    other = stand_in(results, name)
    told = f"{name} was not at hand" + (f", {other} was used in its place" if other else "")
    return f"{told}; {known.came_from}" if known else told


def _often(results: Results) -> str:
    folds = results.facts["folds"]
    repetitions = results.facts["repetitions"]
    split = f"{folds} folds" if folds > 1 else "one split"
    return f"{split}, {repetitions} repetition{'s' if repetitions > 1 else ''}"


def _versions(found: dict[str, Results]) -> str:
    """Return the versions of all rows, without the machine and the digest of the code."""
    told = dict.fromkeys(
        ", ".join(
            f"{name} {version}"
            for name, version in json.loads(row["versions"]).items()
            if name not in (CODE, *MACHINE)
        )
        for results in found.values()
        for row in results.rows
    )
    return "; ".join(told)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--seconds",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Note there how long each took.",
)
def main(folder: Path, seconds: Path | None) -> None:
    """Write the page of the reproductions in FOLDER to standard output."""
    try:
        click.echo(page(folder), nl=False)
        if seconds is not None:
            note_seconds(seconds, results_in(folder))
    except PeerlearnError as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
