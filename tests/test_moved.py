"""Old module paths keep working for one release, with a warning."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

from peerlearn import lab
from peerlearn.cli.graph.report import describe
from peerlearn.moved import MOVED, RENAMED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_path_warns_and_has_the_names_of_the_new_one(old):
    new = [f"peerlearn.{each}" for each in MOVED[old].split()]
    with warnings.catch_warnings(action="ignore"):
        import_module(f"peerlearn.{old}".rpartition(".")[0])  # a package that may have moved too
    sys.modules.pop(f"peerlearn.{old}", None)
    with pytest.warns(
        DeprecationWarning, match=f"peerlearn.{old} has moved to {' and '.join(new)}: import it"
    ):
        module = import_module(f"peerlearn.{old}")
    for there in map(import_module, new):
        for name in vars(there):
            if not name.startswith("_") and not hasattr(import_module(new[0]), name):
                assert getattr(module, name) is getattr(there, name)
    assert not hasattr(module, "never_was_there")


def test_renamed_names_are_found_under_both():
    sys.modules.pop("peerlearn.network.apart", None)
    with pytest.warns(DeprecationWarning, match="moved"):
        old = import_module("peerlearn.network.apart")
    assert old.ApartNetwork is import_module("peerlearn.network.distributed").DistributedNetwork
    names = {
        name
        for paths in MOVED.values()
        for path in paths.split()
        for name in vars(import_module(f"peerlearn.{path}"))
    }
    assert {new for renamed in RENAMED.values() for new in renamed.split()} <= names


def test_what_never_was_there_is_still_not_found():
    with pytest.raises(ModuleNotFoundError):
        import_module("peerlearn.algorithms.nothing")


def test_a_package_that_moved_has_its_names_and_modules():
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        from peerlearn.experiments import Comparison, run
        from peerlearn.experiments.graph_report import describe as described
        from peerlearn.experiments.lab.comparison import Comparison as compared
    assert run is lab.run
    assert Comparison is compared is lab.Comparison
    assert described is describe


@pytest.mark.processes
def test_the_warning_is_about_the_line_that_imports(tmp_path):
    """Python shows a DeprecationWarning of the program that is run, not one of a package."""
    program = tmp_path / "program.py"
    program.write_text("from peerlearn.experiments import run\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert f"{program}:1: DeprecationWarning: peerlearn.experiments has moved" in done.stderr


def test_a_folder_that_an_old_installation_left_is_not_in_the_way(tmp_path, monkeypatch):
    (tmp_path / "experiments" / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr("peerlearn.__path__", [str(tmp_path), *sys.modules["peerlearn"].__path__])
    sys.modules.pop("peerlearn.experiments", None)
    with pytest.warns(DeprecationWarning, match="peerlearn.experiments has moved"):
        assert import_module("peerlearn.experiments").run is lab.run
