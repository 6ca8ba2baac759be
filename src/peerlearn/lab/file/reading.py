"""The keys of a comparison's file, turned into objects. docs/comparisons.md lists them.

Reading is understanding every key; `checking` then sees that what it describes can be run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np

from peerlearn import graphs, toml_reader
from peerlearn.data import HOSPITAL_COLUMNS, DataSet, table_file
from peerlearn.data.catalogue import find_file
from peerlearn.data.dataset import AnyArray, Task
from peerlearn.data.folder import guess_task
from peerlearn.errors import DataError, InputError
from peerlearn.lab.description.comparison import (
    MOST_RUNS,
    Comparison,
    Data,
    Model,
    Net,
    Scale,
    Settings,
    Split,
    Where,
    protocols,
)
from peerlearn.lab.description.data_facts import TABLES
from peerlearn.lab.description.search import Search
from peerlearn.lab.description.specs import (
    Expectation,
    FigureSpec,
    Layout,
    StatisticsSpec,
    TableSpec,
)
from peerlearn.lab.description.sweeps import combinations, empty_lists, find_repeated, write_out
from peerlearn.lab.file.expecting import for_each
from peerlearn.lab.file.fields import make_from
from peerlearn.lab.file.sizes import SIZES
from peerlearn.toml_reader import TomlTable, near

SPECS = ("tables", "figures", "statistics", "expect")
NUMBERS = ("seed", "folds", "repetitions", "test_fraction")
KEYS = (
    *SIZES[1:],
    "title",
    "about",
    *NUMBERS,
    "metrics",
    "split",
    "protocol",
    "data",
    "models",
    "networks",
    "search",
    *SPECS,
)
DATA_KEYS = (
    "name",
    "source",
    "options",
    "scale",
    "columns",
    "prepare",
    "settings",
    "task",
    "site",
    "time",
    "instead",
)
FILE_KEYS = ("file", "target")
Instead = dict[str, str]  # data set -> the one that is used where it cannot be had


def understand(values: dict[str, Any], file: TomlTable) -> tuple[Comparison, Instead]:
    """Return the comparison of a file's values, and which data sets stand in for which."""
    top = TomlTable(values, file.path).only(*KEYS)
    for size in SIZES[1:]:
        top.table(size, needed=False)
    title = top.take("title", str)
    about = top.take("about", str, "")
    numbers = {key: top.take(key, int, None) for key in ("seed", "folds", "repetitions")}
    numbers["test_fraction"] = top.take("test_fraction", toml_reader.NUMBER, None)
    metrics = top.take("metrics", list, [], what="a list of names")
    split = _one_of(top, "split", get_args(Split), "auto")
    protocol = _protocol(top.table("protocol", needed=False))
    data, instead = _data(top)
    models = tuple(model for table in _entries(top, "models") for model in _models(table))
    networks = tuple(
        net for table in _entries(top, "networks", needed=False) for net in _networks(table)
    )
    search = make_from(Search, top.table("search")) if "search" in values else None
    layout = Layout(
        title,
        about,
        tables=_specs(top, "tables", TableSpec),
        figures=_specs(top, "figures", FigureSpec),
        statistics=_specs(top, "statistics", StatisticsSpec),
        expectations=tuple(
            make_from(Expectation, each)
            for table in top.tables("expect", needed=False)
            for each in for_each(table)
        ),
    )
    given: dict[str, Any] = {key: value for key, value in numbers.items() if value is not None}
    return Comparison(
        data,
        models,
        networks,
        protocol=protocol,
        metrics=tuple(metrics),
        search=search,
        layout=layout,
        split=split,
        **given,
    ), instead


def _specs(top: TomlTable, name: str, kind: Any) -> tuple[Any, ...]:
    return tuple(make_from(kind, table) for table in top.tables(name, needed=False))


def _entries(top: TomlTable, key: str, *, needed: bool = True) -> list[TomlTable]:
    """Return the tables of an array, each of which must have a name of its own."""
    tables = top.tables(key, needed=needed)
    seen: set[str] = set()
    for table in tables:
        name = table.take("name", str)
        if not name.strip():
            raise table.wrong("name", "is empty: give what tables are to call it")
        if name in seen:
            raise table.wrong(
                "name",
                "stands twice: give each entry a name of its own; values to sweep are a list",
            )
        seen.add(name)
    return tables


def _swept(table: TomlTable, *whole: str) -> Iterator[tuple[TomlTable, Settings]]:
    """Yield an entry per combination of the values that are lists.

    whole: keys whose value is itself a list.
    """
    given = {key: value for key, value in table.values.items() if key not in whole}
    for key in empty_lists(given):
        raise table.wrong(
            key, "is an empty list, which leaves nothing to run: give one value or more"
        )
    number = combinations(given)
    if number > MOST_RUNS:
        raise InputError(
            f"{table.prefix.rstrip('.')} in {table.path} has lists that make {number:,} "
            f"combinations, and {MOST_RUNS:,} are the most: give shorter lists"
        )
    for key, value in find_repeated(given):
        raise table.wrong(
            key,
            f"has {value!r:.80}, which stands twice in the list: give each value once, or, if the "
            f"list is one value, "
            "write it in brackets of its own, [[..]]",
        )
    for values, swept in write_out(given):
        kept = {key: table.values[key] for key in whole if key in table.values}
        yield TomlTable({**values, **kept}, table.path, table.prefix), swept


def _one_of(table: TomlTable, key: str, choices: Any, default: Any) -> Any:
    given = table.take(key, str, default)
    if given not in (*choices, default):
        raise table.wrong(key, f"is {given!r}, which is not known{near(given, choices)}")
    return given


def _data(top: TomlTable) -> tuple[tuple[Data, ...], Instead]:
    found = []
    instead = {}
    for table in _entries(top, "data"):
        if "instead" in table.values:
            instead[table.values["name"]] = table.take("instead", str)
        for entry, swept in _swept(table, "prepare", "columns"):
            entry.only(*DATA_KEYS, *(FILE_KEYS if "file" in entry.values else ()))
            given = _own_table(entry) if "file" in entry.values else None
            made = Data(
                entry.take("name", str),
                entry.take("source", str, ""),
                entry.table("options", needed=False).rest(),
                _one_of(entry, "scale", get_args(Scale), "as loaded"),
                (
                    *_prepare_raw(entry),
                    *(step.rest() for step in entry.tables("prepare", needed=False)),
                ),
                entry.table("settings", needed=False).rest(),
                given,
                task=_one_of(entry, "task", get_args(Task), None),
                site=entry.take("site", str, None),
                time=entry.take("time", str, None),
                swept={
                    key.removeprefix("options.").removeprefix("settings."): each
                    for key, each in swept.items()
                },
            )
            found.append(made)
    return tuple(found), instead


def _own_table(entry: TomlTable) -> DataSet:
    """Read the rows of a file beside this one."""
    path = _beside(entry)
    target = entry.take("target", str, what="the name of the column to predict")
    if "source" in entry.values:
        raise entry.wrong("source", "stands beside a file: leave out one of them")
    raw = "columns" in entry.values
    beside = tuple(entry.take(key, str) for key in ("site", "time") if key in entry.values)
    with entry.about("file"):
        changed = path.stat().st_mtime_ns if path.is_file() else 0
        return _read_table(path, changed, target, raw, beside)


def _prepare_raw(entry: TomlTable) -> list[Settings]:
    """Return the transformer of a raw table: `columns` has declared kinds, as at a site."""
    if "columns" not in entry.values:
        return []
    features = _features(entry)
    declared = entry.table("columns").rest()
    return [{"kind": "peerlearn.TablePreparer", "columns": declared, "names": features}]


def _features(entry: TomlTable) -> list[str] | None:
    """Return the names of the columns that are learned from; None of a file that is missing."""
    if "file" in entry.values:
        beside = [entry.values.get(key) for key in ("target", "site", "time")]
        return [name for name in table_file.read_header(_beside(entry)) if name not in beside]
    source = entry.take("source", str, entry.values["name"])
    if source in TABLES:
        return list(HOSPITAL_COLUMNS)
    try:
        return list(table_file.read_header(find_file(source)))[:-1]
    except DataError:
        return None


@lru_cache(maxsize=16)  # every size of a comparison asks
def _read_table(
    path: Path, changed: int, target: str, raw: bool, beside: tuple[str, ...]
) -> DataSet:
    """Read a table; beside: columns that are not learned from, which become extras."""
    table = table_file.read(path, target, raw=raw or bool(beside))
    assert table.y is not None
    extras = {name: _as_labels(table.select([name])[:, 0]) for name in beside}
    X = table.select([name for name in table.columns if name not in beside])
    if not raw:
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"{path} has cells that are no numbers: give columns = {{}}") from error
    task = guess_task(table.y.dtype.kind)
    return DataSet(path.stem, X, table.y, task, f"read from {path}", None, extras)


def _as_labels(cells: AnyArray) -> AnyArray:
    """Return the cells of a column as numbers, or else as texts; both can be sorted."""
    try:
        return cells.astype(np.float64)
    except (TypeError, ValueError):
        return cells.astype(str)


def _beside(entry: TomlTable) -> Path:
    """Return a path relative to the folder of the comparison."""
    return Path(entry.path).parent / Path(entry.take("file", str)).expanduser()


def _models(table: TomlTable) -> Iterator[Model]:
    for entry, swept in _swept(table):
        name = entry.take("name", str)
        kind = entry.take(
            "kind",
            str,
            what="a model of peerlearn such as RVFL, or the import path of an estimator",
        )
        where = _one_of(entry, "where", get_args(Where), None)
        yield Model(name, kind, where, entry.rest(), swept=swept)


def _networks(table: TomlTable) -> Iterator[Net]:
    for entry, swept in _swept(table):
        if isinstance(entry.values.get("graph"), Mapping):
            entry, label = _with_topology(entry)
            swept = {**swept, "graph": label} if "graph" in swept else swept
        name = entry.take("name", str)
        own: dict[str, Any] = {
            "swept": swept,
            "concentration": entry.take("concentration", toml_reader.NUMBER, None),
            "secrecy": entry.take("secrecy", str, None),
            "colluders": entry.take("colluders", int, None),
        }
        if "file" in entry.values:
            entry.only("name", "file", "weights", "concentration", "secrecy", "colluders")
            path = _beside(entry)
            weights = entry.take("weights", str, "metropolis")
            with entry.about("file"):
                graph = graphs.from_file(path)
            yield Net(name, weights=weights, fixed=graph, **own)
            continue
        kind = entry.take("graph", str, what="a kind of graph, such as erdos_renyi")
        agents = entry.take("agents", int, 0)
        weights = entry.take("weights", str, "metropolis")
        parameters = entry.rest()
        yield Net(name, kind, agents, parameters, weights, **own)


def _with_topology(entry: TomlTable) -> tuple[TomlTable, str]:
    """Return a network whose graph is a table as one with the parameters beside the kind.

    The text is the name in tables and figures: that of the table, or kind and parameters.
    """
    table = entry.table("graph")
    kind = table.take("kind", str, what="a kind of graph, such as erdos_renyi")
    parameters = {key: table.values[key] for key in table.values if key not in ("kind", "name")}
    for key in parameters:
        if key in entry.values:
            raise table.wrong(key, f"stands in {entry.prefix.rstrip('.')} too: leave out one")
    usual = ", ".join([kind, *(f"{key} {value}" for key, value in parameters.items())])
    values = {**entry.values, **parameters, "graph": kind}
    return TomlTable(values, entry.path, entry.prefix), table.take("name", str, usual)


def _protocol(table: TomlTable) -> Any:
    name = table.take("name", str, "rows")
    known = protocols()
    if name not in known:
        raise table.wrong("name", f"is {name!r}, which is not known{near(name, known)}")
    settings = {key: value for key, value in table.values.items() if key != "name"}
    return make_from(known[name], TomlTable(settings, table.path, table.prefix))
