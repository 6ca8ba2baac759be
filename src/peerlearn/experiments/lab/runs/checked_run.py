"""Running a comparison that was made in Python: checked first, as a file is when it is read."""

from __future__ import annotations

import os

from peerlearn.experiments.lab.checking.whole import checked
from peerlearn.experiments.lab.comparison import Comparison
from peerlearn.experiments.lab.results import Results
from peerlearn.experiments.lab.runs import running


def run(
    comparison: Comparison,
    output: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    watch: running.Watch | None = None,
) -> Results:
    """All runs of a comparison that the folder does not have yet, and the results of all.

    jobs: runs at a time, each in a process of its own; if not given, as many as there are cores, or
    as joblib's
    parallel_config says, whose back end is used. watch: called whenever a run has ended. A run that
    failed has a row that says why, and is tried again next time.
    """
    return running.run(checked(comparison), output, jobs=jobs, watch=watch)
