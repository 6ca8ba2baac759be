"""Old module paths keep working for one release, with a warning."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from peerlearn.moved import MOVED, RENAMED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_path_warns_and_has_the_names_of_the_new_one(old):
    new = [f"peerlearn.{each}" for each in MOVED[old].split()]
    sys.modules.pop(f"peerlearn.{old}", None)
    with pytest.warns(
        DeprecationWarning, match=f"peerlearn.{old} has moved to {' and '.join(new)}: import it"
    ):
        module = import_module(f"peerlearn.{old}")
    for there in map(import_module, new):
        for name in vars(there):
            if not name.startswith("__") and not hasattr(import_module(new[0]), name):
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
    assert set(RENAMED.values()) <= names


def test_what_never_was_there_is_still_not_found():
    with pytest.raises(ModuleNotFoundError):
        import_module("peerlearn.algorithms.nothing")
