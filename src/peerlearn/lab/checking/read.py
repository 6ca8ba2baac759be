"""Reading of a comparison's file: make objects of its keys, fetch its data sets, check all of it.

docs/comparisons.md lists the keys of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from peerlearn import toml_reader
from peerlearn.data import fetch_missing
from peerlearn.errors import DataError, InputError
from peerlearn.lab.checking.comparison import check_comparison
from peerlearn.lab.checking.specs import check_layout
from peerlearn.lab.description.comparison import Comparison, Data
from peerlearn.lab.description.data_facts import facts_of, source_of
from peerlearn.lab.file.reading import understand
from peerlearn.lab.file.sizes import SIZES, Size, about_size, values_at_size


def read(path: str | Path, *, size: Size = "full", without_missing: bool = False) -> Comparison:
    """Return the comparison that a file describes, after checking all of it.

    Parameters
    ----------
    path : str or Path
        A TOML file. docs/comparisons.md lists its keys.
    size : {"full", "quick", "tiny"}, default "full"
        "quick" and "tiny" apply the changes of the tables [quick] and [tiny] of the file.
    without_missing : bool, default False
        What to do about data sets that are not on this machine. False refuses the file. True
        fetches those that OpenML has, leaves out the others and lists them in the layout.

    Returns
    -------
    Comparison
        What `run` takes.

    Raises
    ------
    InputError
        If a key, a value or a combination of them cannot be used. The message names the key.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from peerlearn.lab import read
    >>> text = '''
    ... title = "One model"
    ... folds = 3
    ... data = [{ name = "iris" }]
    ... models = [{ name = "all rows", kind = "RVFL", where = "centralised", n_hidden = 20 }]
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "comparison.toml"
    ...     _ = path.write_text(text)
    ...     read(path).runs
    3
    """
    file = Path(path).expanduser()
    top = toml_reader.read(file)
    whole, _ = understand(top.values, top)
    comparison, instead = understand(values_at_size(top, size), top)
    comparison = _replace_missing(comparison, instead, file, without_missing)
    layout = replace(comparison.layout, size=size, text=file.read_text(encoding="utf-8"))
    comparison = check_comparison(replace(comparison, layout=layout), str(file))
    check_layout(whole, str(file))
    for other in SIZES:  # report mistakes in [quick] and [tiny] now, not when they are used
        values = values_at_size(top, other)
        with about_size(top, other):
            smaller, _ = understand(values, top)
            if size == "full" != other and not comparison.layout.missing:
                check_comparison(
                    replace(smaller, layout=replace(smaller.layout, size=other)), str(file)
                )
    return comparison


def _replace_missing(
    comparison: Comparison, instead: Mapping[str, str], file: Path, without_missing: bool
) -> Comparison:
    """Replace data sets that cannot be had as the file says, or leave them out if wished."""
    found: list[Data] = []
    missing: dict[str, str] = {}
    for entry in comparison.data:
        chosen, why = _find_data(entry, instead.get(entry.name, ""), without_missing)
        if chosen is not None:
            found.append(chosen)
        elif not without_missing:
            way_out = "or name in `instead` a data set to use in its place"
            raise InputError(f"data[{entry.name!r}] in {file} cannot be used: {why}; {way_out}")
        missing |= {entry.name: why} if why else {}
    if not found:
        raise DataError(f"data in {file} cannot be had, none of it: {'; '.join(missing.values())}")
    return replace(
        comparison, data=tuple(found), layout=replace(comparison.layout, missing=missing)
    )


def _find_data(entry: Data, instead: str, fetch: bool) -> tuple[Data | None, str]:
    """Return the data set, its stand-in or None, and why it is not the data set itself."""
    try:
        if fetch and entry.given is None:
            fetch_missing(source_of(entry))
        facts_of(entry)
    except DataError as error:
        if not instead:
            return None, str(error)
        other, why = _find_data(replace(entry, source=instead, options={}), "", fetch)
        return other, f"{error}; {why or f'{instead} is used in its place'}"
    except InputError:
        return entry, ""  # it is there, and is asked for in a wrong way: checking says so
    return entry, ""
