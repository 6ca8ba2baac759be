"""The report of a result folder: tables, figures and one page, made from its files alone."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from peerlearn.errors import InputError
from peerlearn.lab.analysis.cells import MIDDLE, Cells, Place, number
from peerlearn.lab.analysis.labels import conditions_label, in_words, value_label
from peerlearn.lab.description.specs import FigureSpec
from peerlearn.lab.report.about import say_unconverged
from peerlearn.lab.report.defaults import drawable, figures_to_show
from peerlearn.lab.report.page import Picture, page
from peerlearn.lab.report.table_entries import MetricTable
from peerlearn.lab.report.table_text import as_csv, as_latex, as_markdown
from peerlearn.lab.report.tables import tables_of
from peerlearn.lab.results.results import PAGE, Results
from peerlearn.system.files import file_name, result_folder, write

FORMS = {"csv": as_csv, "md": as_markdown, "tex": as_latex}
WRITTEN = ".report"  # the files of the last report, a line for each
ENDINGS = {"tables": tuple(f".{ending}" for ending in FORMS), "figures": (".png", ".svg")}


@dataclass(frozen=True)
class Report:
    """The files of a report, and sentences for the terminal.

    files: everything that was written, the page last.
    said: sentences about runs that did not converge and about figures that could not be drawn.
    """

    files: list[Path]
    said: list[str]


def make_report(folder: str | os.PathLike[str]) -> list[Path]:
    """Write the tables, figures and page of a result folder, and return their paths.

    Parameters
    ----------
    folder : str or path
        A folder that `run` has left.

    Returns
    -------
    list of Path
        Files in tables/ and figures/, and report.html as the last.

    Raises
    ------
    InputError
        If the folder has no results, or files of something else.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from peerlearn.lab import Comparison, Data, Layout, Model, TableSpec, make_report, run
    >>> comparison = Comparison(
    ...     data=(Data("iris"),),
    ...     models=(Model("majority", kind="sklearn.dummy.DummyClassifier"),),
    ...     layout=Layout("One line", tables=(TableSpec("error", "error", rows=("data",)),)),
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     _ = run(comparison, folder, jobs=1)
    ...     files = make_report(folder)
    >>> [path.name for path in files if path.suffix in (".md", ".html")]
    ['error.md', 'report.html']
    """
    return report_of(folder).files


def report_of(folder: str | os.PathLike[str]) -> Report:
    """Write the report, and return its files and the sentences for the terminal."""
    results = Results.read(folder)
    tables = tables_of(results)
    written = _write_tables(results, tables)
    place = result_folder(results.folder / "figures")
    drawn = [_picture(results, spec, place) for spec in figures_to_show(results)]
    pictures = [picture for picture in drawn if picture is not None]
    networks = _networks(results, place)
    for picture in (*pictures, networks):
        if picture is not None and picture.svg:
            written += [place / f"{file_name(picture.name)}.{kind}" for kind in ("png", "svg")]
    path = results.folder / PAGE
    write(path, page(results, tables, pictures, networks))
    _remove_earlier(results.folder, written)
    return Report(
        [*written, path],
        [*say_unconverged(results), *(each.caption for each in pictures if not each.svg)],
    )


def _remove_earlier(folder: Path, written: list[Path]) -> None:
    """Delete files of an earlier report that this one did not write; other files stay."""
    kept = folder / WRITTEN
    names = {f"{path.parent.name}/{path.name}" for path in written}
    before = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    for name in before:
        place = Path(name)
        if name not in names and place.suffix in ENDINGS.get(str(place.parent), ()):
            (folder / place).unlink(missing_ok=True)
    write(kept, "".join(f"{name}\n" for name in sorted(names)))


def _write_tables(results: Results, tables: list[MetricTable]) -> list[Path]:
    place = result_folder(results.folder / "tables")
    written = []
    for table in tables:
        for ending, form in FORMS.items():
            path = place / f"{file_name(table.spec.name)}.{ending}"
            write(path, form(table))
            written.append(path)
    return written


def _picture(results: Results, spec: FigureSpec, place: Path) -> Picture | None:
    """Draw a figure; None if it was not asked for and cannot be drawn."""
    from peerlearn.lab.figures.draw import draw_figure  # matplotlib is slow to import

    asked = spec.name in {figure.name for figure in results.layout.figures}
    spec, linear = drawable(results, spec)
    try:
        svg = draw_figure(results, spec, place)[1]
    except InputError as error:
        if spec.kind == "ranks" and not asked:
            return None  # of a test that could not be made, which says so itself
        return Picture(spec.name, _sentence(str(error).removesuffix(".")), "")
    caption, what = _captions(results, spec)
    return Picture(spec.name, " ".join([caption, *linear]), what, svg.read_bytes())


def _captions(results: Results, spec: FigureSpec) -> tuple[str, str]:
    """Return a caption (how it is drawn, over what means run) and a text for screen readers."""
    words = results.facts.get("words", {})
    spread = "mean over runs, and " + (
        f"the {MIDDLE[0]}th to {MIDDLE[1]}th percentile of the runs"
        if "y" in spec.log or spec.unit == "dB"
        else "one standard deviation to either side"
    )
    told = {
        "lines": spread,
        "curves": spread,
        "bars": spread,
        "boxes": (
            "quartiles of the runs, with whiskers to the last run within 1.5 box widths; "
            "dots are single runs"
        ),
        "ranks": "mean ranks, 1 the best, and their critical difference",
        "reliability": (
            "all runs together, at least 20 rows per point; on the diagonal, probabilities are "
            "what they claim; larger dots have more rows"
        ),
    }[spec.kind]
    what = in_words(spec.y, words) + (
        f" against {in_words(spec.x, words)}" if spec.kind == "lines" else ""
    )
    caption = [_sentence(told if spec.title else f"{what}: {told}")]
    if spec.where:
        caption.append(f"Only {conditions_label(spec.where)}.")
    if spec.kind != "ranks":
        columns = [column for column in (spec.panels, spec.series, spec.x) if column]
        cells = Cells.of(results, spec.y, columns, spec.where)
        caption += _missing(cells)
        for column, values in cells.mixed().items():
            put_together = ", ".join(map(value_label, values))
            caption.append(
                f"Runs of all values of {in_words(column, words)} are put together: {put_together}."
            )
    return " ".join(caption), spec.title or what


def _missing(cells: Cells) -> list[str]:
    """Return sentences on runs that are not drawn where others of the same cell are."""
    every = Counter[Place]()
    failed = Counter[Place]()
    lost = Counter[Place]()
    for row in cells.rows:
        who = (row["model"], row["data"])
        value = number(row, cells.metric)
        every[who] += 1
        failed[who] += row["status"] == "failed"
        lost[who] += value is not None and not math.isfinite(value)
    return [
        f"Of {model} on {data} {count} of {every[model, data]} runs {why}."
        for found, why in ((failed, "failed and are left out"), (lost, "have no finite value"))
        for (model, data), count in found.items()
        if 0 < count < every[model, data]
    ]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _networks(results: Results, place: Path) -> Picture | None:
    from peerlearn.lab.figures.networks import draw_networks

    drawn, told = draw_networks(results, place)
    if drawn is None and not told:
        return None
    caption = " ".join(["The graphs of the first repetition." if drawn else "", told]).strip()
    return Picture(
        "networks", caption, "graphs of the networks", drawn[1].read_bytes() if drawn else b""
    )
