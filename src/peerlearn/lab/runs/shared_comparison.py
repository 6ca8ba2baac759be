"""A comparison sent to other processes once, as a file, however many runs they make.

A run holds the whole comparison, and that may hold data sets: pickled with every run, it would cost
more than many a
run does. Another machine sees the folder, or it could not leave its rows there either.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path

from joblib import wrap_non_picklable_objects

from peerlearn.errors import InputError
from peerlearn.lab.description import own_code
from peerlearn.lab.description.comparison import Comparison
from peerlearn.lab.description.trial import Trial
from peerlearn.lab.results.store import Store
from peerlearn.system.files import write


class Shared:
    """The runs of a comparison and their store; pickled, it is only the name of a file."""

    def __init__(self, comparison: Comparison, store: Store, file: Path | None = None) -> None:
        self.comparison = comparison
        self.store = store
        self.file = file
        self.trials: list[Trial] = list(comparison.trials())

    @cached_property
    def keys(self) -> list[str]:
        return [trial.key for trial in self.trials]

    @property
    def first(self) -> dict[str, int]:
        """The number of every key; two entries of a comparison may mean the same run."""
        found: dict[str, int] = {}
        for number, key in enumerate(self.keys):
            found.setdefault(key, number)
        return found

    def send(self) -> None:
        """Write the file that other processes read."""
        try:
            whole = wrap_non_picklable_objects(
                (self.comparison, self.store, own_code.known), keep_wrapper=False
            )
            content = pickle.dumps(whole)  # also of classes that only the user's own script has
        except Exception as error:  # whatever an object of the user's says when it is pickled
            raise InputError(
                f"this comparison cannot be sent to other processes ({error}): use one job"
            ) from error
        self.file = (
            self.store.folder / f".comparison-{hashlib.sha256(content).hexdigest()[:20]}.pickle"
        )
        write(self.file, content)

    def close(self) -> None:
        if self.file is not None:
            self.file.unlink(missing_ok=True)

    def __reduce__(self) -> tuple[Callable[[str], Shared], tuple[str]]:
        return receive, (str(self.file),)


@lru_cache(maxsize=2)
def receive(file: str) -> Shared:
    """Read the comparison once in another process, for all runs that it makes.

    That process may send it on, as Dask does.
    """
    comparison, store, known = pickle.loads(Path(file).read_bytes())
    own_code.known |= known  # a script, which runs are named by, is another one here
    return Shared(comparison, store, Path(file))
