"""Old module paths, which still work until the next release, with a DeprecationWarning.

A finder makes, for the old path of a module, one whose names come from the new path. It is asked
first: a folder of an old installation may still exist with only compiled files in it, and Python
would take it for a package.
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
    "algorithms.consensus": "algorithms.averaging algorithms.sums algorithms.sums",
    "algorithms.distances.known": "algorithms.distances.partial_matrix",
    "algorithms.distances.places": "algorithms.distances.row_index",
    "algorithms.filtering.together": "algorithms.filtering.diffusion",
    "algorithms.gathering": "algorithms.all_gather",
    "algorithms.gram": "algorithms.readout.gram algorithms.sums",
    "algorithms.local_fit": "algorithms.readout.local",
    "algorithms.preconditioners": "algorithms.readout.preconditioners",
    "data.tables": "data.table_file",
    "experiments": "lab",
    "experiments.alone": "system.folder_lock",
    "experiments.demo": "cli.demo.run",
    "experiments.figures": "lab.figures.filters cli.demo.figure cli.graph.figure",
    "experiments.figures.boxes": "lab.figures.boxes",
    "experiments.figures.comparison": "lab.figures.draw",
    "experiments.figures.curves": "lab.figures.curves",
    "experiments.figures.demo": "cli.demo.figure",
    "experiments.figures.ends": "lab.figures.ends",
    "experiments.figures.filters": "lab.figures.filters",
    "experiments.figures.graph": "cli.graph.figure lab.figures.graph_places",
    "experiments.figures.lines": "lab.figures.lines",
    "experiments.figures.looks": "lab.figures.looks",
    "experiments.figures.networks": "lab.figures.networks",
    "experiments.figures.panels": "lab.figures.panels",
    "experiments.figures.ranks": "lab.figures.ranks",
    "experiments.figures.style": "lab.figures.style",
    "experiments.files": "system.files",
    "experiments.graph_kinds": "cli.graph.kinds",
    "experiments.graph_report": "cli.graph.report cli.graph.run",
    "experiments.lab": "lab",
    "experiments.lab.checking": "lab.checking",
    "experiments.lab.checking.data": "lab.checking.data",
    "experiments.lab.checking.given": "lab.checking.given_rows",
    "experiments.lab.checking.layout": "lab.checking.specs",
    "experiments.lab.checking.models": "lab.checking.models",
    "experiments.lab.checking.networks": "lab.checking.networks",
    "experiments.lab.checking.whole": "lab.checking.comparison",
    "experiments.lab.comparison": "lab.description.comparison",
    "experiments.lab.facts": "lab.description.data_facts",
    "experiments.lab.file": "lab.file",
    "experiments.lab.file.expecting": "lab.file.expecting",
    "experiments.lab.file.fields": "lab.file.fields",
    "experiments.lab.file.reading": "lab.file.reading lab.checking.read",
    "experiments.lab.file.sizes": "lab.file.sizes",
    "experiments.lab.layout": "lab.description.specs",
    "experiments.lab.metrics": "lab.description.metrics",
    "experiments.lab.own_code": "lab.description.own_code",
    "experiments.lab.parquet": "lab.results.parquet",
    "experiments.lab.protocols": "lab.protocols",
    "experiments.lab.protocols.averaging": "lab.protocols.averaging",
    "experiments.lab.protocols.columns": "lab.protocols.columns",
    "experiments.lab.protocols.completion": "lab.protocols.completion",
    "experiments.lab.protocols.convergence": "lab.protocols.convergence",
    "experiments.lab.protocols.few_labels": "lab.protocols.few_labels",
    "experiments.lab.protocols.rows": "lab.protocols.rows",
    "experiments.lab.protocols.sequences": "lab.protocols.sequences",
    "experiments.lab.protocols.signals": "lab.protocols.signals",
    "experiments.lab.protocols.stream": "lab.protocols.stream",
    "experiments.lab.report": "lab.report",
    "experiments.lab.report.about": "lab.report.about",
    "experiments.lab.report.blocks": "lab.analysis.blocks",
    "experiments.lab.report.cells": "lab.analysis.cells",
    "experiments.lab.report.defaults": "lab.report.defaults",
    "experiments.lab.report.expectations": "lab.analysis.expectations",
    "experiments.lab.report.labels": (
        "lab.analysis.labels lab.results.parquet lab.description.specs"
    ),
    "experiments.lab.report.log_axes": "lab.report.defaults",
    "experiments.lab.report.page": "lab.report.page",
    "experiments.lab.report.significance": "lab.analysis.significance",
    "experiments.lab.report.statistics": "lab.analysis.statistics",
    "experiments.lab.report.table_text": "lab.report.table_text",
    "experiments.lab.report.tables": "lab.report.tables",
    "experiments.lab.report.whole": "lab.report.build",
    "experiments.lab.results": (
        "lab.results.results lab.results.comparison_file lab.results.parquet"
    ),
    "experiments.lab.rows": "lab.runs.attempt lab.results.version_check lab.results.parquet",
    "experiments.lab.runs": "lab.runs",
    "experiments.lab.runs.attempt": "lab.runs.attempt",
    "experiments.lab.runs.checked_run": "lab.runs.run",
    "experiments.lab.runs.describing": "lab.runs.describe_folder",
    "experiments.lab.runs.failures": "lab.results.results",
    "experiments.lab.runs.made_with": "lab.results.version_check",
    "experiments.lab.runs.parallel": "lab.runs.parallel",
    "experiments.lab.runs.progress": "lab.runs.progress",
    "experiments.lab.runs.running": "lab.runs.run",
    "experiments.lab.runs.sending": "lab.runs.shared_comparison",
    "experiments.lab.runs.store": "lab.results.store",
    "experiments.lab.runs.sweeping": "lab.runs.swept_columns lab.results.parquet",
    "experiments.lab.runs.watching": "lab.runs.progress_view",
    "experiments.lab.runs.writing": "lab.results.store",
    "experiments.lab.sweeps": "lab.description.sweeps",
    "experiments.lab.thesis": "lab.thesis",
    "experiments.lab.thesis.files": "lab.thesis.files",
    "experiments.lab.thesis.page": "lab.thesis.page",
    "experiments.lab.thesis.reproducing": "lab.thesis.reproducing",
    "experiments.lab.thesis.verdicts": "lab.thesis.verdicts",
    "experiments.lab.training": "lab.training",
    "experiments.lab.training.drawing": "lab.training.global_seed",
    "experiments.lab.training.fitting": "lab.training.outcomes",
    "experiments.lab.training.kept": "lab.description.memo",
    "experiments.lab.training.labelling": "lab.training.labelling",
    "experiments.lab.training.loading": "lab.training.loading",
    "experiments.lab.training.making": "lab.training.estimators lab.training.networks",
    "experiments.lab.training.measures": "lab.training.outcomes",
    "experiments.lab.training.primal_residuals": "lab.training.primal_residuals",
    "experiments.lab.training.search": "lab.training.search lab.description.search",
    "experiments.lab.training.suitability": "lab.training.estimators",
    "experiments.lab.trial": "lab.description.trial lab.description.identity",
    "experiments.predictions": "cli.predictions",
    "experiments.tables": "system.terminal cli.demo.table cli.graph.table cli.data_tables",
    "experiments.words": "system.number_words",
    "keys": "toml_reader",
    "local.harvested": "local.harvest",
    "models.contents": "models.archive_reader",
    "models.described": "models.registry",
    "models.echoes": "models.reservoir_predictor",
    "models.listening": "models.adaptive_filter",
    "models.sequences": "models.sequence_shares",
    "models.shares": "models.row_model",
    "models.signals": "models.filter_signals",
    "models.unharmed": "models.base",
    "network.apart": "network.distributed",
    "network.peers.memory": "network.peers.replay",
    "network.peers.papers": "network.peers.identity",
    "network.peers.patience": "network.peers.timeouts",
    "network.peers.post": "network.peers.rounds",
    "network.peers.reasons": "network.peers.grpc_errors",
    "sites.layout": "sites.site_folders",
    "sites.signals": "system.stop_signals",
}
RENAMED = {  # names that changed with their module; an old one may have become several
    "ApartNetwork": "DistributedNetwork",
    "Contents": "ArchiveReader",
    "Echoes": "ReservoirPredictor",
    "Filter": "AdaptiveFilter",
    "Listening": "FilterState",
    "Memory": "Replay",
    "NoMemory": "NoReplay",
    "Patience": "Timeouts",
    "Post": "RoundExchange",
    "Table": "TomlTable MetricTable DataTable",
    "Written": "ResultsFile",
    "alone": "lock_folder",
    "begun": "describe_start",
    "centre": "compute_centre",
    "checked": "check_comparison",
    "chosen": "select_rows",
    "configured": "configure",
    "counted": "count_verdicts",
    "dealt": "deal_sequences",
    "differing": "share_differing",
    "down_the_tree": "broadcast_from_root",
    "drawing_from": "seed_globally",
    "drawn": "line_settings",
    "ended_by_signals": "stop_on_signals",
    "everybodys": "all_gather",
    "examined": "examine",
    "expected_in": "count_expectations",
    "finished": "iterate_finished",
    "fitted": "time_fit",
    "fitted_alone": "fit_alone",
    "follow": "broadcast_from_center",
    "harvested": "harvest_problems",
    "header": "read_header",
    "imported": "import_class",
    "judged": "judge",
    "known": "known_value",
    "lay_out": "write_site_folders",
    "learned_from": "usable_rows",
    "made": "make_estimator",
    "made_from": "make_from",
    "measured": "measure metrics_found",
    "named": "wrap_value find_reproduction make_graph",
    "objection": "find_objection",
    "of_its_task": "rows_of_task",
    "only_said": "conditions_label",
    "opened": "open_parquet",
    "plain": "describe_value escape_math",
    "prepared": "prepare",
    "printed": "print_table",
    "received": "receive",
    "recorded": "record",
    "repeated": "find_repeated",
    "rows_of_file": "describe_file",
    "said": "in_words describe_progress",
    "saved": "save_figure",
    "setting_said": "setting_label",
    "shown_figures": "figures_to_show",
    "shown_metrics": "metrics_to_measure",
    "shown_tables": "tables_to_show",
    "sized": "values_at_size",
    "summed": "sum_alike",
    "swept": "swept_keys",
    "told": "describe_trial",
    "trained": "evaluate",
    "typed": "check_fields",
    "typed_layout": "check_types",
    "unconverged": "find_unconverged",
    "unconverged_said": "say_unconverged",
    "unharmed": "restored_on_error",
    "unrepeated": "blank_repeated",
    "up_the_tree": "merge_equations",
    "value_said": "value_label",
    "varied": "varied_column",
    "warned": "find_warnings",
    "watched": "show_progress watch_solver",
    "with_given": "convert_given",
    "with_rows": "convert_rows",
    "within": "parameters_within",
    "wrapped": "wrap",
    "written_out": "write_out",
}


class _Finder(MetaPathFinder, Loader):
    """Finder and loader of the old paths."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != "peerlearn" or name not in MOVED:
            return None
        has_modules = any(other.startswith(f"{name}.") for other in MOVED)
        return ModuleSpec(fullname, self, is_package=has_modules)

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
            stacklevel=3,  # whoever imports it; Python leaves out its own frames
        )

    def __getattr__(self, name: str) -> Any:
        paths = [] if name.startswith("__") else self.__dict__["_new"]
        for path in paths:
            module = import_module(path)
            for candidate in (*RENAMED.get(name, "").split(), name):
                if hasattr(module, candidate):
                    return getattr(module, candidate)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def keep_old_paths() -> None:
    """Let imports of old paths succeed, with a warning."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
