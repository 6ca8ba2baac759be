"""Commands for data sets: data lists them, data fetch gets one, data sites makes tables of one."""

from __future__ import annotations

import os
from pathlib import Path

import click

from peerlearn.cli.shared import PATH


@click.group(invoke_without_command=True)
@click.option("--folder", type=PATH, metavar="DIR", help="Also list the files of this folder.")
@click.pass_context
def data(context: click.Context, folder: Path | None) -> None:
    """List the data sets that can be loaded by name.

    Some are generated, some come with scikit-learn. Your own are files NAME.npz with arrays X (one
    row per example) and y (one entry per row), in a folder that you name with --folder or in the
    environment variable PEERLEARN_DATA. The data sets of the thesis are such files; the list says
    where each comes from, and some can be fetched.

    \b
    Examples:
      peerlearn data
      peerlearn data --folder ~/sets
      PEERLEARN_DATA=~/sets peerlearn data
      peerlearn data fetch Sylva

    \b
    In Python:
      from peerlearn import data
      digits = data.load("digits")
      mine = data.load("mine", folder="~/sets")     # reads ~/sets/mine.npz
    """
    from peerlearn.cli.data_tables import show_data, show_origins
    from peerlearn.data import available
    from peerlearn.system.terminal import console_of_terminal, say

    if context.invoked_subcommand is not None:
        return
    sets = available(folder)
    console = console_of_terminal()
    show_data(console, sets)
    show_origins(console, {each.name for each in sets})
    place = folder or os.environ.get("PEERLEARN_DATA")
    say(
        console,
        *(f"{each.name} {each.description}" for each in sets if each.task is None),
        '\nLoad one  peerlearn.data.load("digits")',
        f"Your own  NAME.npz (arrays X, y) in "
        f"{place or '--folder DIR or PEERLEARN_DATA (not set)'}",
    )


@data.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def fetch(names: tuple[str, ...]) -> None:
    """Get data sets of the thesis from OpenML, through scikit-learn.

    What comes is compared with what it should be and kept in scikit-learn's data folder, where it
    is found by its name from then on. CIFAR10 and YearPredictionMSD are some hundred megabytes; an
    excerpt of them is kept, 12,000 images and 5,000 songs, which the reproductions are made for.
    What OpenML does not have is named with the place where its authors offered it.

    \b
    Examples:
      peerlearn data fetch Sylva
      peerlearn data fetch CIFAR10 YearPredictionMSD
    """
    from peerlearn.data import fetch as fetched

    for name in names:
        click.echo(f"{name} is in {fetched(name)}")


@data.command()
@click.argument("name")
@click.argument("output", metavar="DIR", type=PATH)
@click.option("--folder", type=PATH, metavar="DIR", help="Folder of NAME.npz.")
@click.option(
    "--target", default="y", show_default=True, metavar="COLUMN", help="Name of the target."
)
@click.option(
    "--test-fraction",
    type=float,
    metavar="P",
    help="Part of each site's rows for SITE-test.csv, drawn by class.",
)
@click.option("--seed", default=0, show_default=True, metavar="N", help="Seed of that draw.")
@click.option(
    "--complete",
    metavar="COLUMNS",
    default="",
    help="Leave out rows with a gap in one of these columns: names with commas between them.",
)
def sites(
    name: str,
    output: Path,
    folder: Path | None,
    target: str,
    test_fraction: float | None,
    seed: int,
    complete: str,
) -> None:
    """Write one CSV file per site of a data set.

    The file NAME.npz has the rows of all sites in X, with NaN for gaps, targets in y, and the
    number of each row's site in center. DIR gets SITE.csv for each site, as the site could have it:
    with the names of columns, and empty cells for gaps.

    \b
    Examples:
      peerlearn data sites FedHeart heart --target disease
      peerlearn data sites FedHeart heart --target disease --test-fraction 0.34 --seed 43
    """
    from peerlearn.data.site_tables import site_tables
    from peerlearn.system.files import result_folder, write

    names = [each.strip() for each in complete.split(",") if each.strip()]
    texts = site_tables(
        name,
        folder=folder,
        target=target,
        test_fraction=test_fraction,
        seed=seed,
        complete=names,
    )
    for stem, text in texts.items():
        path = result_folder(output) / f"{stem}.csv"
        write(path, text)
        click.echo(path)
