"""The command summary."""

from __future__ import annotations

from pathlib import Path

import click

from peerlearn.cli.shared import PATH


@click.command()
@click.argument("model")
@click.option(
    "--errors",
    type=click.Choice(["model", "sites"]),
    default="model",
    show_default=True,
    help="Trust the model's assumptions, or allow that rows of one site depend on each other.",
)
@click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    metavar="P",
    help="Confidence of the intervals.",
)
@click.option(
    "--output",
    type=PATH,
    metavar="FILE",
    help="Write the coefficients to a CSV file instead of showing them.",
)
def summary(model: str, errors: str, level: float, output: Path | None) -> None:
    """Show coefficients of a saved model, with standard errors and p-values.

    MODEL is the file of a LogisticClassifier or GLMRegressor without a penalty (alpha = 0), saved
    by a site or with peerlearn.models.archive.save. Columns are in their own units, even if sites
    scaled them before training. A coefficient of a category compares it with the first category of
    its column. Nothing is sent: all that is needed is in the file.

    \b
    Examples:
      peerlearn summary north/model.npz
      peerlearn summary north/model.npz --errors sites --level 0.99
      peerlearn summary north/model.npz --output coefficients.csv
    """
    from peerlearn.cli.summaries import csv_of, summary_of
    from peerlearn.system.files import write

    table = summary_of(model, errors, level)
    if output is None:
        click.echo(str(table))
        return
    write(output, csv_of(table))
    click.echo(f"{len(table.names)} coefficients in {output}")
