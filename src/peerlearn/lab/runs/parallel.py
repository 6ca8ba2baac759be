"""Parallel runs in processes of joblib; each row is on disk before its run is reported."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor

from joblib import Parallel, delayed

from peerlearn.lab.results.parquet import FAILED
from peerlearn.lab.results.store import Row
from peerlearn.lab.runs.attempt import attempt, row_of
from peerlearn.lab.runs.progress import describe_trial
from peerlearn.lab.runs.shared_comparison import Shared

KILLED = (
    "its process was ended from outside, twice, the second time with no other run beside it: "
    "is memory short?"
)
log = logging.getLogger("peerlearn.lab")


def iterate_finished(
    shared: Shared, numbers: Sequence[int], jobs: int
) -> Generator[tuple[int, Row]]:
    """Yield runs in the order in which they end, each with its row.

    Where a process is ended from outside, the runs that it may have been at are made one by one
    when all others are done, and fail if it happens again.
    """
    left = dict.fromkeys(numbers)
    suspects: list[int] = []
    if jobs > 1:
        shared.send()
    try:
        while left:
            try:
                for number, row in _run_all(shared, list(left), jobs):
                    del left[number]
                    yield number, row
            except BrokenExecutor:
                there = {}
                for number in left:
                    found = shared.store.find(shared.keys[number])
                    if found:
                        there[number] = found
                under_way = [number for number in left if number not in there][:jobs]
                names = "; or ".join(describe_trial(shared.trials[number]) for number in under_way)
                log.warning("a process was ended from outside, which may have run: %s", names)
                yield from there.items()
                suspects += under_way
                left = dict.fromkeys(
                    number for number in left if number not in {*there, *under_way}
                )
        for number in suspects:
            try:
                yield from _run_all(shared, [number], jobs)
            except BrokenExecutor:
                row = row_of(shared.trials[number], FAILED, failure=KILLED, total_seconds=0.0)
                shared.store.add(row)
                yield number, row
    finally:
        shared.close()


def _run_all(shared: Shared, numbers: Sequence[int], jobs: int) -> Iterator[tuple[int, Row]]:
    runs = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    made: Iterator[tuple[int, Row]] = runs(delayed(_finish)(shared, number) for number in numbers)
    return made


def _finish(shared: Shared, number: int) -> tuple[int, Row]:
    row = attempt(shared.trials[number])
    shared.store.add(row)
    return number, row
