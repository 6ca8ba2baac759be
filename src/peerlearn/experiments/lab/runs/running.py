"""Running a comparison: every run that has no row yet, in parallel, and then all rows in the order of the file.

Numbers depend neither on the order of runs nor on how many there are at a time; only seconds do. A run that was done
before, by this command or for a file that has changed since, is not made again.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from peerlearn.errors import InputError
from peerlearn.experiments.alone import alone
from peerlearn.experiments.files import result_folder, write
from peerlearn.experiments.lab.comparison import Comparison
from peerlearn.experiments.lab.parquet import content
from peerlearn.experiments.lab.results import ROWS, Results
from peerlearn.experiments.lab.rows import FAILED
from peerlearn.experiments.lab.runs.describing import describe
from peerlearn.experiments.lab.runs.made_with import of_other_versions
from peerlearn.experiments.lab.runs.parallel import finished
from peerlearn.experiments.lab.runs.progress import Progress
from peerlearn.experiments.lab.runs.sending import Shared
from peerlearn.experiments.lab.runs.store import Row, Store
from peerlearn.experiments.lab.runs.sweeping import columns_of, swept_keys, types_of

Watch = Callable[[Progress], None]
log = logging.getLogger("peerlearn.lab")
TOGETHER = 500  # rows that are put together in one file while others are being made


def run(
    comparison: Comparison,
    output: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> Results:
    """All runs of a comparison that the folder does not have yet, and the results of all.

    jobs: runs at a time, each in a process of its own; if not given, as many as there are cores, or as joblib's
    parallel_config says. Its back end is used: on a cluster of Dask or Ray all machines have to see the folder.
    watch: called whenever a run has ended. A run that failed has a row that says why, and is tried again next time.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"there cannot be {jobs} jobs: choose 1 or more")
    if next(comparison.trials(), None) is None:
        raise InputError("there is nothing to run: give a data set, a model, and a network if the model needs one")
    keys = swept_keys(comparison)
    place = Path(output).expanduser().absolute()  # other processes may stand elsewhere
    with alone(result_folder(place), "a comparison"):
        shared = Shared(comparison, Store.at(place))
        describe(place, comparison, shared.trials, keys)
        rows = shared.store.read()
        for told in of_other_versions((rows[key] for key in shared.first if _is_kept(rows.get(key))), place):
            log.warning("%s", told)
        try:
            _run_missing(shared, rows, jobs, watch)
        except KeyboardInterrupt:
            _write(place, shared, rows, keys)
            raise
        _write(place, shared, rows, keys)
    return Results.read(place)


def _run_missing(shared: Shared, rows: dict[str, Row], jobs: int | None, watch: Watch | None) -> None:
    """Make the runs that have no row, or one that failed, and add theirs."""
    progress, fresh = Progress(shared.trials), dict[str, Row]()
    for key, number in shared.first.items():
        if _is_kept(rows.get(key)):
            progress.keep(number, rows[key])
        else:
            progress.left[number] = shared.trials[number]
    asked = get_active_backend()[1] if jobs is None else jobs
    progress.jobs = max(1, min(effective_n_jobs(-1 if asked is None else asked), len(progress.left)))
    if watch is not None:
        watch(progress)
    with warnings.catch_warnings(), closing(finished(shared, list(progress.left), progress.jobs)) as runs:
        warnings.filterwarnings("ignore", module=r"joblib\.")  # of processes that end: what follows is said by us
        for number, row in runs:
            key = shared.keys[number]
            rows[key] = fresh[key] = row
            progress.finish(number, row)
            if watch is not None:
                watch(progress)
            if len(fresh) >= TOGETHER:
                shared.store.merge(fresh)
                fresh.clear()
    shared.store.merge(fresh)


def _is_kept(row: Row | None) -> bool:
    return row is not None and row["status"] != FAILED


def _write(folder: Path, shared: Shared, rows: dict[str, Row], keys: Sequence[str]) -> None:
    """The rows that there are, in the order of the file, each with what was swept."""
    columns = columns_of(shared.trials, keys)
    flat = [_flat(rows[key], swept) for key, swept in zip(shared.keys, columns, strict=True) if key in rows]
    if flat:
        write(folder / ROWS, content(flat, types_of(columns, keys)))


def _flat(row: Row, swept: dict[str, Any]) -> Row:
    """Swept keys stand behind the names; the agents of a network are there already."""
    names = list(row)
    before, after = names[: names.index("repetition")], names[names.index("repetition") :]
    added = {key: value for key, value in swept.items() if key != "agents"}
    return {**{name: row[name] for name in before}, **added, **{name: row[name] for name in after}}
