"""A reproduction from its file to its verdicts, and the summary of many."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from peerlearn.errors import DataError, PeerlearnError
from peerlearn.lab.analysis.expectations import VERDICTS, Judgement, Verdict, count_verdicts, judge
from peerlearn.lab.checking.read import read
from peerlearn.lab.file.sizes import Size
from peerlearn.lab.report.build import Report, report_of
from peerlearn.lab.results.results import Results, failures
from peerlearn.lab.runs.progress import Progress
from peerlearn.lab.runs.run import make_runs
from peerlearn.lab.thesis.files import Reproduction
from peerlearn.system.files import result_folder, write, write_table
from peerlearn.system.number_words import duration

ERROR = "error.txt"  # in the folder of a reproduction that broke down


@dataclass(frozen=True)
class Reproduced:
    """The result of one reproduction, or a sentence on why there is none."""

    reproduction: Reproduction
    size: Size
    folder: Path
    seconds: float  # of this time
    results: Results | None = None
    judgements: Sequence[Judgement] = ()
    said: Sequence[str] = ()  # what nobody should miss who does not open the report
    why_not: str = ""
    broken: bool = False  # for another reason than missing data

    @property
    def counts(self) -> Mapping[Verdict, int]:
        if self.results is None:
            return {
                verdict: self.reproduction.expected if verdict == "not run" else 0
                for verdict in VERDICTS
            }
        return count_verdicts(self.judgements)

    @property
    def missing(self) -> Mapping[str, str]:
        """Data sets left out or replaced, and where to get them."""
        return self.results.layout.missing if self.results else {}

    @property
    def failed(self) -> Sequence[str]:
        return failures(self.results) if self.results else []

    @property
    def note(self) -> str:
        """What a line of the summary adds to the numbers."""
        parts = [self.why_not] if self.why_not else []
        parts += [f"without {', '.join(self.missing)}"] if self.missing else []
        parts += ["some runs failed"] if self.failed else []
        return "; ".join(parts)


def reproduce(
    reproduction: Reproduction,
    output: str | os.PathLike[str],
    *,
    size: Size = "full",
    jobs: int | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> Reproduced:
    """Run a reproduction into a folder of its name, report it, and judge it.

    Data sets that are not at hand are fetched.
    """
    start = time.perf_counter()
    folder = Path(output).expanduser() / reproduction.name
    comparison = read(reproduction.path, size=size, without_missing=True)
    reports: list[Report] = []
    results = make_runs(
        comparison,
        folder,
        jobs=jobs,
        watch=watch,
        then=lambda place: reports.append(report_of(place)),
    )
    seconds = time.perf_counter() - start
    return Reproduced(reproduction, size, folder, seconds, results, judge(results), reports[0].said)


def attempt(
    make: Callable[[], Reproduced], reproduction: Reproduction, output: Path, size: Size
) -> Reproduced:
    """Call `make`; an error becomes a result, so that other reproductions can follow."""
    start = time.perf_counter()
    folder = output.expanduser() / reproduction.name
    try:
        return make()
    except DataError as error:
        why = str(error)
        broken = False
    except PeerlearnError as error:
        why = str(error)
        broken = True
    except Exception as error:
        write(result_folder(folder) / ERROR, traceback.format_exc())
        why = f"{type(error).__name__}: {error} ({folder / ERROR} has the traceback)"
        broken = True
    return Reproduced(
        reproduction, size, folder, time.perf_counter() - start, why_not=why, broken=broken
    )


@dataclass(frozen=True)
class _Line:
    """A line of summary.csv."""

    name: str
    size: str
    within: int
    outside: int
    explained: int
    not_run: int
    seconds: float
    folder: str
    note: str


def write_summary(folder: Path, done: Sequence[Reproduced]) -> list[Path]:
    """Write summary.csv and summary.md: a line for each reproduction."""
    files = [folder / "summary.csv", folder / "summary.md"]
    write_table(files[0], [_line(each) for each in done])
    heads = ("Name", *(verdict.capitalize() for verdict in VERDICTS), "Time", "Note")
    rows = [
        (each.reproduction.name, *map(str, each.counts.values()), duration(each.seconds), each.note)
        for each in done
    ]
    total = [sum(each.counts[verdict] for each in done) for verdict in VERDICTS]
    rows.append(("all", *map(str, total), duration(sum(each.seconds for each in done)), ""))
    sizes = ", ".join(dict.fromkeys(each.size for each in done))
    write(files[1], f"# The thesis reproduced, size {sizes}\n\n{markdown_table(heads, rows)}")
    return files


def _line(each: Reproduced) -> _Line:
    within, outside, explained, not_run = (each.counts[verdict] for verdict in VERDICTS)
    numbers = within, outside, explained, not_run, each.seconds
    return _Line(each.reproduction.name, each.size, *numbers, each.folder.name, each.note)


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
