"""One run, under the same conditions wherever and whenever it is made; whatever happens in it, it ends in a row."""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

from peerlearn.errors import PeerlearnError
from peerlearn.experiments.lab.rows import DONE, FAILED, NOT_APPLICABLE, row_of
from peerlearn.experiments.lab.training.drawing import drawing_from
from peerlearn.experiments.lab.trial import Trial


def attempt(trial: Trial) -> dict[str, Any]:
    """The row of a run: done, failed with its error and traceback, or not applicable, without having been run."""
    start, protocol = time.perf_counter(), trial.comparison.protocol
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            why = protocol.refuses(
                trial.data, trial.model
            )  # imports what the model needs, before threads are counted
            if why:
                row = row_of(trial, NOT_APPLICABLE, failure=why)
            else:
                with _one_thread(), drawing_from(trial.seed("model")):
                    row = row_of(trial, DONE, protocol.run(trial))
        except (
            Exception,
            SystemExit,
        ) as error:  # a model may do anything, and only Ctrl-C is to stop all runs
            row = row_of(trial, FAILED, failure=_sentence(error), traceback=traceback.format_exc())
    return {**row, "warnings": _lines(caught), "total_seconds": time.perf_counter() - start}


def _sentence(error: Exception | SystemExit) -> str:
    """Ours are sentences already; of others the kind is half of what they say."""
    said = " ".join(str(error).split())
    if isinstance(error, PeerlearnError):
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _lines(caught: Sequence[warnings.WarningMessage]) -> str:
    """One line per warning, each once."""
    said = (f"{each.category.__name__}: {' '.join(str(each.message).split())}" for each in caught)
    return "\n".join(dict.fromkeys(said))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums over threads are added up in another order, and how many there are would depend on the number of jobs."""
    with _controller(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Looking for loaded libraries takes milliseconds: done again when more modules were imported."""
    return ThreadpoolController()
