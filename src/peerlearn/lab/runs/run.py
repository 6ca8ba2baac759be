"""Running a comparison: make every run that has no row yet, in parallel, and write all rows.

Rows are written in the order of the comparison. Numbers depend neither on the order in which runs
end nor on how many there are at a time; only seconds do. A run that was done before is not made
again, even if the file of the comparison has changed elsewhere since.
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
from peerlearn.lab.checking.comparison import check_comparison
from peerlearn.lab.description.comparison import Comparison
from peerlearn.lab.results.comparison_file import COMPARISON
from peerlearn.lab.results.parquet import FAILED, ROWS
from peerlearn.lab.results.results import Results
from peerlearn.lab.results.store import ResultsFile, Row, Store
from peerlearn.lab.results.version_check import of_other_versions
from peerlearn.lab.runs.describe_folder import describe
from peerlearn.lab.runs.parallel import iterate_finished
from peerlearn.lab.runs.progress import Progress
from peerlearn.lab.runs.shared_comparison import Shared
from peerlearn.lab.runs.swept_columns import columns_of, swept_keys
from peerlearn.system.files import clear, result_folder
from peerlearn.system.folder_lock import lock_folder

Watch = Callable[[Progress], None]
log = logging.getLogger("peerlearn.lab")
BATCH_SIZE = 500  # rows of finished runs that are merged into one file at a time


def run(
    comparison: Comparison,
    output: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> Results:
    """Check a comparison, make the runs that its folder lacks, and return the results of all runs.

    A run that failed has a row with the reason, and is tried again next time.

    Parameters
    ----------
    comparison : Comparison
        What is compared, made in Python or by `read`.
    output : str or path
        Folder of the results. It is made if it does not exist.
    jobs : int, default None
        Number of runs at a time, each in a process of its own. None: as many as joblib's
        parallel_config sets, or as there are cores. The back end is joblib's too. On a cluster of
        Dask or Ray all machines must see the folder.
    watch : callable, default None
        Called with the progress before the first run and after each run.

    Returns
    -------
    Results
        One row per run.

    Raises
    ------
    InputError
        If the comparison cannot be run. No run has been made then.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from peerlearn import RVFLClassifier, graphs
    >>> from peerlearn.lab import Comparison, Data, Model, Net, run
    >>> comparison = Comparison(
    ...     data=(Data("iris"),),
    ...     models=(Model("together", estimator=RVFLClassifier(20)),),
    ...     networks=(Net("ring", fixed=graphs.ring(3)),),
    ...     folds=3,
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     results = run(comparison, folder, jobs=1)
    >>> results.mean("error") < 0.2
    True
    """
    return make_runs(check_comparison(comparison), output, jobs=jobs, watch=watch)


def make_runs(
    comparison: Comparison,
    output: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    watch: Watch | None = None,
    then: Callable[[Path], object] | None = None,
) -> Results:
    """Do what `run` does, for a comparison that has been checked already.

    then: called at the end with the folder, while it is still locked.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"there cannot be {jobs} jobs: choose 1 or more")
    keys = swept_keys(comparison)
    place = Path(output).expanduser().absolute()  # other processes may have other working folders
    with lock_folder(result_folder(place), "a comparison"):
        for name in (ROWS, COMPARISON):
            clear(place / name)
        shared = Shared(comparison, Store.at(place))
        rows = shared.store.read()
        columns = columns_of(shared.trials, keys)
        written = ResultsFile(place, shared.keys, columns)
        describe(place, comparison, shared.trials, columns)
        written.write(rows)
        kept = (rows[key] for key in shared.first if _is_final(rows.get(key)))
        for sentence in of_other_versions(kept, place):
            log.warning("%s", sentence)
        try:
            _run_missing(shared, rows, written, jobs, watch)
        finally:  # also if the run is interrupted
            written.write(rows)
        results = Results.read(place)
        if then is not None:
            then(place)
    return results


def _run_missing(
    shared: Shared,
    rows: dict[str, Row],
    written: ResultsFile,
    jobs: int | None,
    watch: Watch | None,
) -> None:
    """Make the runs that have no row or a failed one, and add their rows."""
    progress = Progress(shared.trials)
    fresh: dict[str, Row] = {}
    for key, number in shared.first.items():
        if _is_final(rows.get(key)):
            progress.keep(number, rows[key])
        else:
            progress.left[number] = shared.trials[number]
    asked = get_active_backend()[1] if jobs is None else jobs
    possible = effective_n_jobs(-1 if asked is None else asked)
    progress.jobs = max(1, min(possible, len(progress.left)))
    if watch is not None:
        watch(progress)
    with (
        warnings.catch_warnings(),
        closing(iterate_finished(shared, list(progress.left), progress.jobs)) as runs,
    ):
        # joblib warns about processes that end. iterate_finished handles them.
        warnings.filterwarnings("ignore", module=r"joblib\.")
        for number, row in runs:
            key = shared.keys[number]
            rows[key] = fresh[key] = row
            written.write_now_and_then(rows)
            progress.finish(number, row)
            if watch is not None:
                watch(progress)
            if len(fresh) >= BATCH_SIZE:
                shared.store.merge(fresh)
                fresh.clear()
    shared.store.merge(fresh)


def _is_final(row: Row | None) -> bool:
    return row is not None and row["status"] != FAILED
