"""Public names: found in the files that list them, unique, typed, and imported when first used."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pkgutil import iter_modules

import pytest

import peerlearn
from peerlearn import public_names
from peerlearn.models.registry import models
from tests.support import stubs
from tests.support.pages import ROOT

HEAVY = ("sklearn", "numba", "matplotlib", "networkx", "grpc", "pandas", "pyarrow", "rich", "scipy")


# What may be imported inside a function: it takes long, or may be missing.
# Packages that are slow to import or may be missing, modules that import them, and one module that
# knows the one it is imported in.
DELAYED = (
    "cryptography", "cvxpy", "dp_accounting", "fcntl", "grpc", "jinja2", "joblib", "mpi4py",
    "numba", "pandas", "pyarrow", "resource", "scipy.signal", "scipy.stats", "sklearn",
    "peerlearn.lab.figures", "peerlearn.lab.description.trial", "peerlearn.local.register_product",
)  # fmt: skip
DELAYING = ("cli",)  # commands import what they run; --help must not wait for it


def run(program):
    """Run a program in a process of its own: other tests have imported nearly everything."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_name_is_listed_by_two_modules():
    counts = Counter(name for name, _ in public_names.listed_names("peerlearn"))
    assert [name for name, times in counts.items() if times > 1] == []


def test_two_modules_with_one_name_are_noticed(tmp_path, monkeypatch):
    for module in ("first", "second"):
        file = tmp_path / "algorithms" / f"{module}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text('__all__ = [\n    "Twice",\n]\n')
    monkeypatch.setattr(public_names, "HOME", tmp_path)
    assert list(public_names.listed_names("peerlearn")) == [
        ("Twice", "peerlearn.algorithms.first"),
        ("Twice", "peerlearn.algorithms.second"),
    ]


@pytest.mark.parametrize("package", stubs.PACKAGES)
def test_no_name_is_that_of_a_module_beside_it(package):
    """An import of the module would put it in the place of the name."""
    modules = {each.name for each in iter_modules(import_module(package).__path__)}
    assert modules.isdisjoint(public_names.modules_by_name(package))


@pytest.mark.parametrize("package", stubs.PACKAGES)
def test_stubs_are_those_that_the_code_gives(package):
    assert stubs.place(package).read_text() == stubs.stub(package), "python -m tests.support.stubs"


@pytest.mark.parametrize("package", stubs.PACKAGES)
def test_every_name_is_the_one_of_its_module(package):
    found = import_module(package)
    for name, module in public_names.modules_by_name(package).items():
        assert getattr(found, name) is getattr(import_module(module), name)
        assert name in dir(found)


def test_every_model_is_public():
    assert set(models()) <= set(peerlearn.__all__)


def test_every_listed_name_is_found():
    """The files are read with a regular expression; Python must read the same."""
    for _, module in public_names.listed_names("peerlearn"):
        listed = [name for name, where in public_names.listed_names("peerlearn") if where == module]
        assert import_module(module).__all__ == listed


def test_what_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="module 'peerlearn' has no attribute 'nothing'"):
        _ = peerlearn.nothing
    with pytest.raises(ImportError):
        from peerlearn.models import nothing  # noqa: F401


@pytest.mark.processes
def test_a_star_imports_the_public_names():
    program = "from peerlearn import *; print(*sorted(n for n in dir() if not n.startswith('_')))"
    assert run(program).split() == sorted(peerlearn.__all__)


@pytest.mark.processes
def test_submodules_need_no_import_of_their_own():
    assert "ring" in run("import peerlearn; print(dir(peerlearn.graphs), peerlearn.errors)")


@pytest.mark.processes
@pytest.mark.parametrize("program", ["import peerlearn", "import peerlearn.cli"])
def test_imports_are_light(program):
    """What takes long is imported when it is first used."""
    listed = f"import sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    assert run(f"{program}; {listed}").split() == []


@pytest.mark.processes
def test_an_agent_imports_what_it_needs():
    """scikit-learn's base imports scipy and, where they are installed, pandas and pyarrow."""
    program = (
        "import sys\n"
        "import peerlearn.sites.agent\n"
        "heavy = ('numba', 'matplotlib', 'sklearn.datasets', 'sklearn.cluster', 'scipy.signal')\n"
        "print(*(name for name in heavy if name in sys.modules))"
    )
    assert run(program).split() == []


def test_objects_of_lazy_names_are_pickled():
    assert pickle.loads(pickle.dumps(peerlearn.Gram(1e-3))) == peerlearn.Gram(1e-3)


@pytest.mark.processes
def test_not_converged_is_the_warning_of_scikit_learn():
    program = (
        "import sys; from peerlearn import errors; assert 'sklearn' not in sys.modules\n"
        "from sklearn.exceptions import ConvergenceWarning\n"
        "assert issubclass(errors.NotConverged, ConvergenceWarning)\n"
        "assert errors.NotConverged is errors.NotConverged\n"
        "import pickle; assert pickle.loads(pickle.dumps(errors.NotConverged)) "
        "is errors.NotConverged"
    )
    assert run(program) == ""


def imports_inside_functions(path):
    """Yield the modules that are imported inside functions of a file."""
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    yield node.module
                elif isinstance(node, ast.Import):
                    yield from (each.name for each in node.names)


@pytest.mark.processes
def test_functions_import_only_what_is_worth_the_delay():
    """Anything else is imported at the top of its file, where readers look for it."""
    found = [
        f"{path.relative_to(public_names.HOME)}: {module}"
        for path in public_names.HOME.rglob("*.py")
        if path.relative_to(public_names.HOME).parts[0] not in DELAYING
        for module in imports_inside_functions(path)
        if not module.startswith(DELAYED)
    ]
    assert found == []
