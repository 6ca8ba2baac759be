"""The lab: compare models over networks, keep every run as a row, and report from the rows.

A comparison is described once, in a TOML file or as objects. `run` makes every run that its folder
does not have yet; `make_report` draws tables, figures and a page from the files of that folder.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peerlearn.lab.checking.read import read
    from peerlearn.lab.description.comparison import Comparison, Data, Model, Net, protocol_named
    from peerlearn.lab.description.search import Search
    from peerlearn.lab.description.specs import (
        Expectation,
        FigureSpec,
        Layout,
        StatisticsSpec,
        TableSpec,
    )
    from peerlearn.lab.report.build import make_report
    from peerlearn.lab.results.results import Results
    from peerlearn.lab.runs.run import run

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
    "checking.read": ("read",),
    "description.comparison": ("Comparison", "Data", "Model", "Net", "protocol_named"),
    "description.search": ("Search",),
    "description.specs": ("Expectation", "FigureSpec", "Layout", "StatisticsSpec", "TableSpec"),
    "report.build": ("make_report",),
    "results.results": ("Results",),
    "runs.run": ("run",),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that other commands start fast."""
    for module, names in FROM.items():
        if name in names:
            return getattr(import_module(f"peerlearn.lab.{module}"), name)
    raise AttributeError(f"module 'peerlearn.lab' has no attribute {name!r}")
