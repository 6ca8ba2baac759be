"""Facts about the thesis's data sets that the arrays X and y of their files do not say."""

from __future__ import annotations

from dataclasses import dataclass

from peerlearn.data.dataset import Task
from peerlearn.data.scaling import Range


@dataclass(frozen=True)
class KnownFile:
    """One file NAME.npz. `to` is the range of its columns; None leaves them as found."""

    name: str
    task: Task
    description: str
    offered: str  # where its authors or an archive offered it, as the thesis cites it
    to: Range | None = (0.0, 1.0)
    generated_as: str | None = None  # the generated data set of the same distribution

    @property
    def came_from(self) -> str:
        """End of a sentence about a file that is not at hand."""
        return f"it was offered {self.offered}"


UCI = "in the UCI machine learning repository"
MELACCI = (
    "by Melacci and Belkin with their Laplacian SVMs "
    "(Journal of Machine Learning Research 12, 2011)"
)
SSL_BOOK = (
    "with the book Semi-Supervised Learning of Chapelle, Schölkopf and Zien (MIT Press, 2006)"
)

# G50C goes to [-1, 1]: the thesis says [0, 1], but its printed error rates are those of [-1, 1].
_FILES = (
    KnownFile(
        "G50C",
        "classification",
        "two Gaussian clouds in 50 dimensions",
        MELACCI,
        (-1.0, 1.0),
        "g50c",
    ),
    KnownFile(
        "Garageband",
        "classification",
        "genre of a song, nine classes",
        "by Mierswa and Morik (Machine Learning 58, 2005)",
    ),
    KnownFile(
        "Skills",
        "regression",
        "league of a StarCraft player from telemetry",
        f"{UCI} as SkillCraft1 Master Table, https://doi.org/10.24432/C5161N (leave out rows with "
        "gaps and the GameID, y is the LeagueIndex)",
    ),
    KnownFile(
        "Sylva",
        "classification",
        "Ponderosa pine against all other forest cover",
        "at http://www.causality.inf.ethz.ch/al_data/SYLVA.html",
    ),
    KnownFile(
        "CIFAR10",
        "classification",
        "colour images of ten kinds of objects, flattened to rows",
        "at https://www.cs.toronto.edu/~kriz/cifar.html",
    ),
    KnownFile(
        "Artist20",
        "classification",
        "artist of a song, twenty classes",
        "by Ellis (International Conference on Music Information Retrieval, 2007)",
    ),
    KnownFile(
        "LMD",
        "classification",
        "genre of a Latin American song, ten classes",
        "by Silla, Kaestner and Koerich as the Latin Music Database (2007)",
    ),
    KnownFile(
        "YearPredictionMSD",
        "classification",
        "song from 2000 or later, by timbre",
        f"{UCI} as YearPredictionMSD, https://archive.ics.uci.edu/ml/datasets/YearPredictionMSD "
        "(5000 of the first 200000 songs, y is 1 from 2000 on)",
    ),
    KnownFile(
        "CCPP",
        "regression",
        "output of a combined cycle power plant",
        f"{UCI}, https://archive.ics.uci.edu/ml/datasets/Combined+Cycle+Power+Plant (y is PE)",
    ),
    KnownFile(
        "2Moons",
        "classification",
        "two interleaved half circles",
        "by Belkin, Niyogi and Sindhwani (Journal of Machine Learning Research 7, 2006)",
        None,
        "two-moons",
    ),
    KnownFile(
        "BCI", "classification", "imagined movement of the left or right hand from EEG", SSL_BOOK
    ),
    KnownFile("COIL20", "classification", "images of twenty objects, turned", MELACCI),
    KnownFile("COIL2", "classification", "COIL20 in two groups of ten objects", MELACCI),
    KnownFile("PCMAC", "classification", "newsgroup of a posting, tf-idf", SSL_BOOK, None),
    KnownFile(
        "GTZAN_substitute",
        "classification",
        "genre of a song, ten classes; stands in for LMD",
        "as sound by Tzanetakis and Cook "
        "(IEEE Transactions on Speech and Audio Processing 10, 2002)",
    ),
    KnownFile(
        "MSDSubsetYear_substitute",
        "classification",
        "song from 2000 or later, by timbre; stands in for YearPredictionMSD",
        "by Bertin-Mahieux, Ellis, Whitman and Lamere as the subset of the Million Song Dataset "
        "(2011)",
    ),
)

# Looked up without case, because the folder may come from a file system that ignores case.
KNOWN_FILES: dict[str, KnownFile] = {known.name.casefold(): known for known in _FILES}
