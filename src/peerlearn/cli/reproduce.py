"""The command reproduce: tables and figures of the thesis by name, its numbers beside ours."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerlearn.cli.shared import PATH
from peerlearn.errors import InputError

if TYPE_CHECKING:
    from peerlearn.lab.file.sizes import Size
    from peerlearn.lab.thesis.files import Reproduction
    from peerlearn.lab.thesis.reproducing import Reproduced

ALL = "all"
FAILURES = 1  # exit code where some reproductions broke down or some runs failed


@click.command()
@click.argument("name", required=False)
@click.option(
    "--quick",
    is_flag=True,
    help="Smaller version, in about a minute: fewer repetitions and smaller networks.",
)
@click.option(
    "--jobs", type=int, metavar="N", help="Runs at a time.  [default: the number of cores]"
)
@click.option(
    "--output",
    type=PATH,
    metavar="DIR",
    help="Folder for the results.  [default: peerlearn-reproduction, or ...-quick]",
)
@click.pass_context
def reproduce(
    context: click.Context, name: str | None, quick: bool, jobs: int | None, output: Path | None
) -> None:
    """Run the experiments of the thesis again.

    Without a NAME, list them, with the data that each needs and about how long it takes. With a
    NAME, run one. With the name all, run every one, and end with a table of verdicts. Each number
    or claim of the thesis gets a verdict: within its spread, outside of it, explained (outside, and
    it is known why the thesis cannot be matched), or not run.

    Data sets that you do not have are fetched from OpenML if it has them. For the others, the
    command names the place where they were offered, and runs what does not need them. If it is
    stopped by Ctrl-C or killed, the same command continues.

    \b
    Examples:
      peerlearn reproduce
      peerlearn reproduce ch4-agents --quick
      peerlearn reproduce ch9-table --jobs 4 --output thesis
      peerlearn reproduce all --quick

    \b
    Files in the folder:
      NAME/report.html        tables, figures and verdicts of one reproduction
      NAME/                   what peerlearn run leaves: rows, tables, figures
      summary.csv, .md        verdicts of all (of reproduce all)
    """
    from peerlearn.lab.thesis.files import find_reproduction, reproductions

    if name is None:
        _list()
        return
    if jobs is not None and jobs < 1:  # before data are fetched, and once for all of them
        raise InputError(f"there cannot be {jobs} jobs: choose 1 or more")
    size: Size = "quick" if quick else "full"
    folder = output or Path("peerlearn-reproduction-quick" if quick else "peerlearn-reproduction")
    chosen = reproductions() if name == ALL else [find_reproduction(name)]
    done = _run(chosen, folder, size, jobs, one=name != ALL)
    if any(each.broken or each.failed for each in done):
        context.exit(FAILURES)


def _list() -> None:
    from peerlearn.lab.thesis.files import reproductions
    from peerlearn.lab.thesis.verdicts import show_reproductions
    from peerlearn.system.terminal import console_of_terminal, say

    console = console_of_terminal()
    show_reproductions(console, reproductions())
    say(
        console,
        "\nRun one   peerlearn reproduce NAME --quick",
        "Run all   peerlearn reproduce all --quick",
    )


def _run(
    chosen: list[Reproduction], folder: Path, size: Size, jobs: int | None, *, one: bool
) -> list[Reproduced]:
    from rich.console import Console

    from peerlearn.lab.runs.progress_view import show_progress
    from peerlearn.lab.thesis import reproducing
    from peerlearn.lab.thesis.verdicts import show_reproduced, show_summary
    from peerlearn.system.files import result_folder
    from peerlearn.system.stop_signals import stop_on_signals
    from peerlearn.system.terminal import console_of_terminal, say

    console = console_of_terminal()
    done: list[Reproduced] = []
    result_folder(folder)
    with stop_on_signals():
        for number, each in enumerate(chosen, 1):
            of_all = "" if one else f" ({number} of {len(chosen)})"
            say(console, f"\n{each.name}{of_all}: {each.title}")
            if each.fetched:
                say(
                    console,
                    f"Fetching {', '.join(each.fetched)} from OpenML, which may take minutes the "
                    f"first time.",
                )
            with show_progress(Console(stderr=True)) as watch:
                make = partial(
                    reproducing.reproduce, each, folder, size=size, jobs=jobs, watch=watch
                )
                done.append(make() if one else reproducing.attempt(make, each, folder, size))
            show_reproduced(console, done[-1], brief=not one)
    if not one:
        files = reproducing.write_summary(folder, done)
        show_summary(console, done)
        say(
            console,
            f"Reports  {folder / 'NAME' / 'report.html'}",
            f"Summary  {files[0]}, {files[1].name}",
        )
    return done
