"""Commands of the lab: run, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerlearn.cli.shared import PATH

if TYPE_CHECKING:
    from peerlearn.lab.report.build import Report
    from peerlearn.lab.results.results import Results

FAILURES = 1  # exit code where everything was run, and some runs failed


@click.command()
@click.argument("file", type=PATH)
@click.option(
    "--quick",
    is_flag=True,
    help="Run the small version that [quick] of the file describes, as a first test.",
)
@click.option(
    "--jobs", type=int, metavar="N", help="Runs at a time.  [default: the number of cores]"
)
@click.option(
    "--output",
    type=PATH,
    metavar="DIR",
    help="Folder for the results.  [default: peerlearn-FILE, ...-quick]",
)
@click.pass_context
def run(
    context: click.Context, file: Path, quick: bool, jobs: int | None, output: Path | None
) -> None:
    """Run a comparison: data sets x models x networks.

    FILE lists what is compared. The whole file is checked before the first run. Each run saves its
    results when it ends. If the command is stopped or killed, the same command continues. If you
    change the file, only what has changed is run. Results depend on the file alone, not on the
    number of jobs. If a run fails, the others continue, and the failure is shown at the end.

    Exit codes: 0 done; 1 done, but some runs failed; 2 something must be changed first; 130 Ctrl-C;
    143 SIGTERM.

    \b
    Examples:
      peerlearn run comparison.toml
      peerlearn run comparison.toml --quick
      peerlearn run comparison.toml --jobs 8 --output results

    \b
    A comparison's file (docs/comparisons.md has all keys):
      title = "Alone, together, or in one place"
      folds = 5
      [[data]]
      name = "g50c"
      [[models]]
      name = "centralised"
      kind = "RVFL"
      where = "centralised"
      [[models]]
      name = "together"
      kind = "RVFL"
      solver = "consensus"
      [[models]]
      name = "alone"
      kind = "sklearn.svm.SVC"
      where = "alone"
      [[networks]]
      name = "random"
      graph = "erdos_renyi"
      agents = [5, 10, 20]
      p = 0.3

    \b
    Files in the folder:
      report.html             everything on one page
      results.parquet         a row per run: settings, metrics, what was sent
      tables/, figures/       .csv, .md, .tex and .png, .svg
      comparison.json         what is shown, and in which order
      graphs/                 who is whose neighbor
      runs/                   results of finished runs, to continue from
    """
    from rich.console import Console

    from peerlearn.lab.checking.read import read
    from peerlearn.lab.report.build import report_of
    from peerlearn.lab.results.results import failures
    from peerlearn.lab.runs.progress_view import show_progress
    from peerlearn.lab.runs.run import make_runs
    from peerlearn.system.stop_signals import stop_on_signals
    from peerlearn.system.terminal import console_of_terminal, say

    folder = output or Path(f"peerlearn-{file.stem}{'-quick' if quick else ''}")
    reports: list[Report] = []
    with stop_on_signals(), show_progress(Console(stderr=True)) as watch:
        comparison = read(file, size="quick" if quick else "full")
        results = make_runs(
            comparison,
            folder,
            jobs=jobs,
            watch=watch,
            then=lambda place: reports.append(report_of(place)),
        )
    _show(folder, reports[0])
    if failed := failures(results):
        say(
            console_of_terminal(),
            "\nRuns that failed, and are tried again by the same command:",
            *failed,
        )
        context.exit(FAILURES)


@click.command()
@click.argument("folder", metavar="DIR", type=PATH)
def report(folder: Path) -> None:
    """Write the report of a comparison again, from its files.

    DIR is the output folder of peerlearn run, which may still be running. Tables, figures and
    report.html are written again; nothing is run.

    \b
    Examples:
      peerlearn report peerlearn-comparison
    """
    from peerlearn.lab.report.build import report_of

    _show(folder, report_of(folder))


def _judge_expectations(results: Results) -> list[str]:
    """Return how many expectations were met, and the sentences of those that were not."""
    from peerlearn.lab.analysis.expectations import count_verdicts, judge

    judgements = judge(results)
    told = ", ".join(
        f"{count} {verdict}" for verdict, count in count_verdicts(judgements).items() if count
    )
    outside = [each.sentence for each in judgements if each.verdict == "outside"]
    return [f"Expectations: {told}", *outside] if judgements else []


def _show(folder: Path, made: Report) -> None:
    from peerlearn.lab.report.tables import show
    from peerlearn.lab.results.results import Results, counts
    from peerlearn.system.terminal import console_of_terminal, say

    console = console_of_terminal()
    results = Results.read(folder)
    show(console, results)
    shown = dict.fromkeys(path.parent.name for path in made.files[:-1])
    say(
        console,
        counts(results),
        *made.said,
        *_judge_expectations(results),
        "",
        f"Folder   {folder}",
        f"Report   {folder / 'report.html'}",
        f"Files    {', '.join(f'{each}/' for each in shown)}, results.parquet",
    )
