"""Old module paths, which still work until the next release, with a DeprecationWarning.

Python asks the finders of sys.meta_path for a module, one after the other. The one here comes last,
so it is asked only for modules that do not exist. For an old path it makes a module whose names
come from the new path.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {  # an old path may have become several modules
    "algorithms.admm": "algorithms.readout.admm",
    "algorithms.averaged_fit": "algorithms.readout.consensus",
    "algorithms.choice": "algorithms.readout.auto",
    "algorithms.columns.alone": "algorithms.columns.local",
    "algorithms.columns.choice": "algorithms.columns.auto",
    "algorithms.columns.solution": "algorithms.columns.solver",
    "algorithms.conjugate_gradient": "algorithms.readout.conjugate_gradient",
    "algorithms.consensus": "algorithms.averaging algorithms.flooding algorithms.sums",
    "algorithms.distances.known": "algorithms.distances.partial_matrix",
    "algorithms.distances.places": "algorithms.distances.row_index",
    "algorithms.filtering.together": "algorithms.filtering.diffusion",
    "algorithms.gathering": "algorithms.all_gather",
    "algorithms.gram": "algorithms.readout.gram algorithms.sums",
    "algorithms.local_fit": "algorithms.readout.local",
    "algorithms.preconditioners": "algorithms.readout.preconditioners",
    "data.tables": "data.table_file",
    "keys": "toml_reader",
    "local.harvested": "local.harvest",
    "models.contents": "models.archive_reader",
    "models.described": "models.from_config",
    "models.echoes": "models.reservoir_predictor",
    "models.listening": "models.adaptive_filter",
    "models.sequences": "models.sequence_shares",
    "models.shares": "models.row_shares",
    "models.signals": "models.filter_signals",
    "models.unharmed": "models.restored_on_error",
    "network.apart": "network.distributed",
    "network.peers.memory": "network.peers.replay",
    "network.peers.papers": "network.peers.identity",
    "network.peers.patience": "network.peers.timeouts",
    "network.peers.post": "network.peers.rounds",
    "network.peers.reasons": "network.peers.grpc_errors",
    "sites.layout": "sites.site_folders",
}
RENAMED = {  # names that changed with their module
    "ApartNetwork": "DistributedNetwork",
    "Contents": "ArchiveReader",
    "Echoes": "ReservoirPredictor",
    "Filter": "AdaptiveFilter",
    "Listening": "FilterState",
    "Memory": "Replay",
    "NoMemory": "NoReplay",
    "Patience": "Timeouts",
    "Post": "RoundExchange",
    "Table": "DataTable",
    "everybodys": "all_gather",
    "down_the_tree": "broadcast_from_root",
    "follow": "broadcast_from_center",
    "harvested": "harvest_problems",
    "header": "read_header",
    "lay_out": "write_site_folders",
    "summed": "sum_alike",
    "up_the_tree": "merge_equations",
    "unharmed": "restored_on_error",
}


class _Finder(MetaPathFinder, Loader):
    """Finder and loader of the old paths."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != "peerlearn" or name not in MOVED:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        old = spec.name.removeprefix("peerlearn.")
        return _MovedModule(spec.name, [f"peerlearn.{each}" for each in MOVED[old].split()])

    def exec_module(self, module: ModuleType) -> None:
        pass


class _MovedModule(ModuleType):
    """Module at an old path, whose names come from one or several new ones."""

    def __init__(self, old: str, new: list[str]) -> None:
        super().__init__(old, f"Moved to {' and '.join(new)}.")
        self.__dict__["_new"] = new
        warnings.warn(
            f"{old} has moved to {' and '.join(new)}: import it from there",
            DeprecationWarning,
            stacklevel=2,
        )

    def __getattr__(self, name: str) -> Any:
        new_name = RENAMED.get(name, name)
        paths = [] if name.startswith("__") else self.__dict__["_new"]
        for path in paths:
            module = import_module(path)
            for each in (new_name, name):  # some moved modules kept the old name
                if hasattr(module, each):
                    return getattr(module, each)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def keep_old_paths() -> None:
    """Let imports of old paths succeed, with a warning."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
