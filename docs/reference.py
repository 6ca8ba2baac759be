"""Write the pages of the API reference: an index of every public name, from `peerlearn.__all__`.

Names are grouped by the package that defines them, so that a new name finds its place by itself.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import peerlearn

FOLDER = Path(__file__).parent / "reference"
LAB = "peerlearn.lab"
GROUPS = {  # the first that a name's module begins with
    "Models": ("peerlearn.models",),
    "Preparing tables": ("peerlearn.preparing",),
    "Networks": ("peerlearn.network",),
    "Solvers for rows": ("peerlearn.algorithms.readout",),
    "Solvers for columns": ("peerlearn.algorithms.columns",),
    "Streams": ("peerlearn.algorithms.streaming",),
    "Solvers for smooth losses": ("peerlearn.algorithms.smooth",),
    "Distances between rows": (
        "peerlearn.algorithms.distances",
        "peerlearn.algorithms.completion",
        "peerlearn.local",
    ),
    "Reports": ("peerlearn.algorithms.iteration",),
    "Agreement": ("peerlearn.algorithms",),
}
MODULES = "Graphs, weights and data"
HOOKS = {  # what a model defines for its base class, and no user calls
    "begin_stream", "can_be_saved", "check_parameters", "check_settings", "check_table",
    "check_truth", "check_unchanged", "check_use_in_files", "chunks_of", "column_names",
    "common_settings", "decode", "draw", "draw_and_compare", "encode", "encode_chunk",
    "fit_over_network", "fresh_state", "from_archive", "go_on", "learn", "learn_chunk",
    "memory", "names_in", "new_rows", "part", "restore_targets", "row_width", "rows_to_predict",
    "stream_from_archive", "stream_settings", "stream_to_archive", "target_entries",
    "to_archive", "train", "transform_rows", "truth_of",
}  # fmt: skip


def group_of(name: str) -> str:
    """Return the heading under which a name of `peerlearn` is listed."""
    thing = getattr(peerlearn, name)
    if inspect.ismodule(thing):
        return MODULES
    for group, packages in GROUPS.items():
        if any(thing.__module__.startswith(package) for package in packages):
            return group
    return "Others"


def groups() -> dict[str, list[str]]:
    """Return full names by heading."""
    found: dict[str, list[str]] = {}
    for group in (*GROUPS, MODULES, "Others"):
        names = [name for name in peerlearn.__all__ if group_of(name) == group]
        if names:
            found[group] = [f"peerlearn.{name}" for name in names]
    found["Errors and checks"] = ["peerlearn.errors", "peerlearn.testing"]
    found["Comparisons"] = [f"{LAB}.{name}" for name in import_module(LAB).__all__]
    return found


def write_index(*_: Any) -> None:
    """Write `reference/index.rst`, if it would change."""
    lines = ["API reference", "=============", ""]
    lines += ["Every public name, by what it is for. All are imported from ``peerlearn``,"]
    lines += [f"those about comparisons from ``{LAB}``.", ""]
    for group, names in groups().items():
        lines += [group, "-" * len(group), ""]
        lines += [".. autosummary::", "   :toctree: .", "   :nosignatures:"]
        lines += ["", *(f"   ~{name}" for name in names), ""]
    text = "\n".join(lines)
    FOLDER.mkdir(exist_ok=True)
    index = FOLDER / "index.rst"
    if not index.exists() or index.read_text() != text:
        index.write_text(text)


def skip(app: Any, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool:
    """Leave out what classes inherit from other packages, and what models define for their base."""
    defined = thing.fget if isinstance(thing, property) else thing
    home = getattr(defined, "__module__", None) or "peerlearn"
    foreign = not home.startswith("peerlearn") or name.endswith("_request")
    hook = name in HOOKS and home.startswith(("peerlearn.models", "peerlearn.preparing"))
    return skipped or foreign or hook


def setup(app: Any) -> None:
    """Have the index written before autosummary looks for pages."""
    app.connect("config-inited", write_index, priority=100)
    app.connect("autodoc-skip-member", skip)
