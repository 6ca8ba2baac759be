"""The thesis's data sets that are read from files: what the arrays X and y alone do not say."""

from __future__ import annotations

from dataclasses import dataclass

from peerlearn.data.dataset import Task
from peerlearn.data.scaling import Range


@dataclass(frozen=True)
class KnownFile:
    """One file NAME.npz; `to` is the range of its columns, None where they are left as found."""

    name: str
    task: Task
    description: str
    to: Range | None = (0.0, 1.0)
    generated_as: str | None = None  # the data set of the same law that needs no file


# G50C goes to [-1, 1]: the thesis says [0, 1], but its printed error rates are those of [-1, 1].
_FILES = (
    KnownFile("G50C", "classification", "two Gaussian clouds in 50 dimensions", (-1.0, 1.0), "g50c"),
    KnownFile("Garageband", "classification", "genre of a song, nine classes"),
    KnownFile("Skills", "regression", "league of a StarCraft player from telemetry"),
    KnownFile("Sylva", "classification", "Ponderosa pine against all other forest cover"),
    KnownFile("CIFAR10", "classification", "colour images of ten kinds of objects, flattened to rows"),
    KnownFile("Artist20", "classification", "artist of a song, twenty classes"),
    KnownFile("YearPredictionMSD", "classification", "song from 2000 or later, by timbre"),
    KnownFile("CCPP", "regression", "output of a combined cycle power plant"),
    KnownFile("2Moons", "classification", "two interleaved half circles", None, "two-moons"),
    KnownFile("BCI", "classification", "imagined movement of the left or right hand from EEG"),
    KnownFile("COIL20", "classification", "images of twenty objects, turned"),
    KnownFile("COIL2", "classification", "COIL20 in two groups of ten objects"),
    KnownFile("PCMAC", "classification", "newsgroup of a posting, tf-idf", None),
)

# Looked up without case, because a folder may have been filled on a file system that ignores it.
KNOWN_FILES: dict[str, KnownFile] = {known.name.casefold(): known for known in _FILES}
