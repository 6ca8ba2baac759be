"""One run, under the same conditions wherever and whenever it is made; it always ends in a row.

A row has flat columns: what the run was, how it ended, what it measured and what it sent.
"""

from __future__ import annotations

import json
import math
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

from peerlearn.errors import InputError, PeerlearnError
from peerlearn.lab.description.trial import Outcome, Trial
from peerlearn.lab.results.parquet import ALWAYS_THERE, CURVE, DONE, FAILED, NOT_APPLICABLE
from peerlearn.lab.results.version_check import versions
from peerlearn.lab.training.global_seed import seed_globally

NOTHING: dict[str, Any] = {
    "failure": "",  # a sentence: why it failed, or is not applicable
    "traceback": "",
    "warnings": "",
    "note": "",
    "seconds": None,
    "total_seconds": None,
    "rounds": None,
    "messages": None,
    "bytes": None,
    "iterations": None,
    "converged": None,
    "bound": None,
}


def attempt(trial: Trial) -> dict[str, Any]:
    """Return the row of a run: done, failed with its error, or not applicable and not run."""
    start = time.perf_counter()
    protocol = trial.comparison.protocol
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            # This imports what the model needs, before threads are counted.
            why = protocol.refuses(trial.data, trial.model)
            if why:
                row = row_of(trial, NOT_APPLICABLE, failure=why)
            else:
                with _one_thread(), seed_globally(trial.seed("model")):
                    row = row_of(trial, DONE, protocol.run(trial))
        # A model may do anything, and only Ctrl-C is to stop all runs.
        except (Exception, SystemExit) as error:
            row = row_of(trial, FAILED, failure=_sentence(error), traceback=traceback.format_exc())
    return {**row, "warnings": _lines(caught), "total_seconds": time.perf_counter() - start}


def row_of(
    trial: Trial, status: str, outcome: Outcome | None = None, **more: Any
) -> dict[str, Any]:
    """Return the columns of a run without its swept keys; `more` replaces single columns."""
    network = trial.network
    names = {
        "run": trial.key,
        "data": trial.data.name,
        "model": trial.model.name,
        "network": "" if network is None else network.name,
        "agents": _count_agents(trial),
        "repetition": trial.repetition,
        "fold": trial.fold,
        "seed": trial.comparison.seed,
        "status": status,
    }
    origin = {"settings": json.dumps(trial.identity), "versions": versions()}
    measured = {} if outcome is None else _outcome_columns(outcome)
    return {**names, **NOTHING, **origin, **measured, **more}


def _count_agents(trial: Trial) -> int:
    network = trial.network
    if network is None:
        return 1
    if network.fixed is not None:
        return len(network.fixed)
    if network.agents:
        return network.agents
    return math.prod(network.parameters.get(side, 0) for side in ("rows", "columns"))


def _outcome_columns(outcome: Outcome) -> dict[str, Any]:
    for name in outcome.values:
        if name in ALWAYS_THERE:
            raise InputError(
                f"the protocol measures {name}, but every row has a column of that name: rename it"
            )
    row: dict[str, Any] = {
        "note": outcome.note,
        "seconds": float(outcome.seconds),
        "rounds": int(outcome.sent.rounds),
        "messages": int(outcome.sent.messages),
        "bytes": int(outcome.sent.bytes),
        "iterations": None if outcome.iterations is None else int(outcome.iterations),
        "converged": None if outcome.converged is None else bool(outcome.converged),
        "bound": None if outcome.bound is None else float(outcome.bound),
    }
    row |= {name: float(value) for name, value in outcome.values.items()}
    for name, values in outcome.agents.items():
        row[f"agents.{name}"] = [float(each) for each in values]
    for name, (places, values) in outcome.curves.items():
        row[f"{CURVE}{name}"] = [float(value) for value in values]
        row[f"{CURVE}{name}.at"] = [float(place) for place in places]
    return row


def _sentence(error: Exception | SystemExit) -> str:
    """Return an error in one line; errors of other packages begin with their class."""
    said = " ".join(str(error).split())
    if isinstance(error, PeerlearnError):
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _lines(caught: Sequence[warnings.WarningMessage]) -> str:
    """Return one line per warning, each once."""
    said = (f"{each.category.__name__}: {' '.join(str(each.message).split())}" for each in caught)
    return "\n".join(dict.fromkeys(said))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread: how many there are would change the order of sums, and so the numbers."""
    with _controller(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Find the loaded libraries: milliseconds, spent again when more modules were imported."""
    return ThreadpoolController()
