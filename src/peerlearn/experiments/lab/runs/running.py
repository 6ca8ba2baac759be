"""Running a comparison: every run that has no row yet, in parallel, and then all rows in the order of the file.

Numbers depend neither on the order of runs nor on how many there are at a time; only seconds do. A
run that was done before, by this command or for a file that has changed since, is not made again.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend

from peerlearn.errors import InputError
from peerlearn.experiments.alone import alone
from peerlearn.experiments.files import clear, result_folder
from peerlearn.experiments.lab.comparison import Comparison
from peerlearn.experiments.lab.results import COMPARISON, ROWS, Results
from peerlearn.experiments.lab.rows import FAILED
from peerlearn.experiments.lab.runs.describing import describe
from peerlearn.experiments.lab.runs.made_with import of_other_versions
from peerlearn.experiments.lab.runs.parallel import finished
from peerlearn.experiments.lab.runs.progress import Progress
from peerlearn.experiments.lab.runs.sending import Shared
from peerlearn.experiments.lab.runs.store import Row, Store
from peerlearn.experiments.lab.runs.sweeping import columns_of, swept_keys
from peerlearn.experiments.lab.runs.writing import Written

Watch = Callable[[Progress], None]
log = logging.getLogger("peerlearn.lab")
TOGETHER = 500  # rows that are put together in one file while others are being made


def run(
    comparison: Comparison,
    output: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    watch: Watch | None = None,
    then: Callable[[Path], object] | None = None,
) -> Results:
    """All runs of a comparison that the folder does not have yet, and the results of all.

    jobs: runs at a time, each in a process of its own; if not given, as many as there are cores, or
    as joblib's
    parallel_config says. Its back end is used: on a cluster of Dask or Ray all machines have to see
    the folder. watch: called before the first run and whenever one has ended. then: called at the
    end with the folder, which nobody else runs in meanwhile. A run that failed has a row that says
    why, and is tried again next time.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"there cannot be {jobs} jobs: choose 1 or more")
    if next(comparison.trials(), None) is None:
        raise InputError(
            "there is nothing to run: give a data set, a model, and a network if the model needs one"
        )
    keys = swept_keys(comparison)
    place = Path(output).expanduser().absolute()  # other processes may stand elsewhere
    with alone(result_folder(place), "a comparison"):
        for name in (ROWS, COMPARISON):
            clear(place / name)
        shared = Shared(comparison, Store.at(place))
        rows, columns = shared.store.read(), columns_of(shared.trials, keys)
        written = Written(place, shared.keys, columns)
        describe(place, comparison, shared.trials, columns)
        written.write(rows)
        for told in of_other_versions(
            (rows[key] for key in shared.first if _is_kept(rows.get(key))), place
        ):
            log.warning("%s", told)
        try:
            _run_missing(shared, rows, written, jobs, watch)
        finally:  # also if it was stopped
            written.write(rows)
        results = Results.read(place)
        if then is not None:
            then(place)
    return results


def _run_missing(
    shared: Shared, rows: dict[str, Row], written: Written, jobs: int | None, watch: Watch | None
) -> None:
    """Make the runs that have no row, or one that failed, and add theirs."""
    progress, fresh = Progress(shared.trials), dict[str, Row]()
    for key, number in shared.first.items():
        if _is_kept(rows.get(key)):
            progress.keep(number, rows[key])
        else:
            progress.left[number] = shared.trials[number]
    asked = get_active_backend()[1] if jobs is None else jobs
    progress.jobs = max(
        1, min(effective_n_jobs(-1 if asked is None else asked), len(progress.left))
    )
    if watch is not None:
        watch(progress)
    with (
        warnings.catch_warnings(),
        closing(finished(shared, list(progress.left), progress.jobs)) as runs,
    ):
        warnings.filterwarnings(
            "ignore", module=r"joblib\."
        )  # of processes that end: what follows is said by us
        for number, row in runs:
            key = shared.keys[number]
            rows[key] = fresh[key] = row
            written.write_now_and_then(rows)
            progress.finish(number, row)
            if watch is not None:
                watch(progress)
            if len(fresh) >= TOGETHER:
                shared.store.merge(fresh)
                fresh.clear()
    shared.store.merge(fresh)


def _is_kept(row: Row | None) -> bool:
    return row is not None and row["status"] != FAILED
