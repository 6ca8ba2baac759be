"""Experiments: runs leave plain files in a folder, and tables and figures are made from those files alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peerlearn.experiments.lab.comparison import Comparison, Data, Model, Net, protocol_named
    from peerlearn.experiments.lab.file.reading import read
    from peerlearn.experiments.lab.layout import (
        Expectation,
        FigureSpec,
        Layout,
        StatisticsSpec,
        TableSpec,
    )
    from peerlearn.experiments.lab.report.whole import make_report
    from peerlearn.experiments.lab.results import Results
    from peerlearn.experiments.lab.runs.checked_run import run
    from peerlearn.experiments.lab.training.search import Search

__all__ = [
    "Comparison",
    "Data",
    "Expectation",
    "FigureSpec",
    "Layout",
    "Model",
    "Net",
    "Results",
    "Search",
    "StatisticsSpec",
    "TableSpec",
    "make_report",
    "protocol_named",
    "read",
    "run",
]

FROM = {
    "runs.checked_run": ("run",),
    "comparison": ("Comparison", "Data", "Model", "Net", "protocol_named"),
    "layout": ("Expectation", "FigureSpec", "Layout", "StatisticsSpec", "TableSpec"),
    "file.reading": ("read",),
    "report.whole": ("make_report",),
    "results": ("Results",),
    "training.search": ("Search",),
}


def __getattr__(name: str) -> Any:
    """The lab is imported when it is asked for: the demo and the commands about graphs do without."""
    for module, names in FROM.items():
        if name in names:
            return getattr(import_module(f"peerlearn.experiments.lab.{module}"), name)
    raise AttributeError(f"module 'peerlearn.experiments' has no attribute {name!r}")
