"""The command predict."""

from __future__ import annotations

from pathlib import Path

import click

from peerlearn.cli.shared import PATH


@click.command()
@click.argument("model")
@click.argument("file")
@click.option(
    "--output",
    type=PATH,
    metavar="FILE",
    help="Write a CSV file instead of showing the predictions.",
)
def predict(model: str, file: str, output: Path | None) -> None:
    """Use a saved model on the rows of a file.

    MODEL was saved by a site or with peerlearn.models.archive.save. FILE is .csv with a header
    line, .parquet, or .npz with an array X; its columns are found by their names, in any order. If
    it has the target as well, the accuracy or R2 is also shown, on standard error. A classifier
    with probabilities also writes one column per class, probability_CLASS.

    \b
    Examples:
      peerlearn predict model.npz patients.csv
      peerlearn predict model.npz patients.parquet --output predictions.csv
    """
    from peerlearn.cli.predictions import predict as predictions_of
    from peerlearn.system.files import write

    done = predictions_of(model, file)
    if output is None:
        click.echo(done.text, nl=False)
    else:
        write(output, done.text)
        click.echo(f"{done.rows} predictions in {output}")
    if done.score is not None:
        click.echo(done.score, err=True)
