"""Docstrings of public names: complete, with an example, and every example runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import peerlearn
from peerlearn import data, graphs, partition, privacy, testing, weights


def modules_with_examples():
    """Return the names of all modules of the package whose text has an example."""
    home = Path(peerlearn.__file__).parent
    paths = [path for path in home.rglob("*.py") if ">>> " in path.read_text()]
    parts = [path.relative_to(home.parent).with_suffix("").parts for path in paths]
    return sorted(".".join(each).removesuffix(".__init__") for each in parts)


def public_objects():
    """Return every public class and function by its name; those of public modules too."""
    found = {name: getattr(peerlearn, name) for name in peerlearn.__all__}
    for module in (data, graphs, partition, privacy, testing, weights):
        listed = getattr(module, "__all__", None) or vars(module)
        found |= {
            f"{module.__name__}.{name}": getattr(module, name)
            for name in listed
            if not name.startswith("_")
            and getattr(getattr(module, name), "__module__", "").startswith(module.__name__)
        }
    return {
        name: each
        for name, each in found.items()
        if inspect.isclass(each) or inspect.isfunction(each)
    }


MODULES = modules_with_examples()
PUBLIC = public_objects()


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0


def test_every_module_can_be_imported():
    for module in pkgutil.walk_packages(peerlearn.__path__, "peerlearn."):
        if module.name != "peerlearn.__main__":  # that runs the command
            importlib.import_module(module.name)


def documented_parameters(text):
    """Return the names in the section Parameters, in order."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^>>> |^\w[\w ]*\n-{3,}$|\Z)", text, re.M | re.S)
    lines = re.findall(r"^(\S[^\n]*?) ?: ", section[1], re.M) if section else []
    return [name.strip() for line in lines for name in line.split(",")]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_a_complete_docstring(name):
    each = PUBLIC[name]
    text = inspect.cleandoc(vars(each).get("__doc__", each.__doc__) or "")
    assert text.splitlines()[0].endswith("."), "the first line is one sentence"
    assert ">>> " in text, "it has an example"
    parameters = [
        one for one in inspect.signature(each).parameters if one not in ("self", "args", "kwargs")
    ]
    # A short function of a public module may name its parameters in its sentences.
    if name in peerlearn.__all__ or inspect.isclass(each) or "\nParameters\n" in text:
        assert documented_parameters(text) == parameters


def test_public_methods_have_docstrings():
    missing = [
        f"{name}.{attribute}"
        for name, each in PUBLIC.items()
        if inspect.isclass(each)
        for attribute, method in vars(each).items()
        if not attribute.startswith("_")
        and (inspect.isfunction(method) or isinstance(method, property))
        and not inspect.getdoc(method)
    ]
    assert missing == []
