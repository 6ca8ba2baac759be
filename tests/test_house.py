"""The house rules: layers, types, lint, and that everything written down runs."""

from __future__ import annotations

import doctest
import importlib
import io
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
import types
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import peerlearn
from peerlearn.errors import EXTRAS

ROOT = Path(__file__).parent.parent
MODULES = sorted(module.name for module in pkgutil.walk_packages(peerlearn.__path__, "peerlearn."))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(*command, cwd=ROOT, path=ROOT / "src"):
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_imports_point_down():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_types():
    assert "Success" in run("mypy")


def test_lint_and_format():
    run("ruff", "check", ".")
    run("ruff", "format", "--check", ".")


def test_install_lines_name_the_packages_of_their_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    del extras["test"]
    asked = {extra: [Requirement(each) for each in listed] for extra, listed in extras.items()}
    assert {
        extra: tuple(each.name for each in listed if each.marker is None or each.marker.evaluate())
        for extra, listed in asked.items()
    } == EXTRAS
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = re.findall(r'MissingExtra\(.*"(\w+)"\)', sources)
    assert len(named) == sources.count("raise MissingExtra(") > 5
    assert set(named) == set(EXTRAS)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_public_names_exist():
    for name in peerlearn.__all__:
        assert hasattr(peerlearn, name)
    assert (ROOT / "src/peerlearn/py.typed").exists()


def test_dir_lists_what_users_look_for():
    """In a process of its own: other tests have imported the engines that are imported late."""
    names = subprocess.run(
        [sys.executable, "-c", "import peerlearn; print(*dir(peerlearn))"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert set(peerlearn.__all__) <= set(names)
    assert {"PeerNetwork", "MPINetwork", "errors", "__version__"} <= set(names)
    assert not {"Any", "TYPE_CHECKING"} & set(names)


def test_all_names_can_be_looked_at_without_the_extras():
    """help(peerlearn) looks at every name; only using an engine needs its packages."""
    work = """
import inspect, sys
for name in ("xxhash", "grpc", "cryptography", "mpi4py"):
    sys.modules[name] = None
import peerlearn
assert dict(inspect.getmembers(peerlearn))["PeerNetwork"].__name__ == "PeerNetwork"
try:
    peerlearn.PeerNetwork(peerlearn.graphs.ring(3), 0)
except peerlearn.errors.MissingExtra as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", work],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.endswith("which is not installed: pip install grpcio cryptography xxhash\n"), done.stderr


def test_one_version():
    assert f'version = "{peerlearn.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {peerlearn.__version__}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run_and_are_short(example, tmp_path):
    assert len(example.read_text().splitlines()) <= 40
    done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("name", ["admm", "averaging_rounds"])
def test_benchmarks_run(name, tmp_path):
    """The quick ones, so that none rots; what they measure is theirs to say."""
    script = ROOT / "benchmarks" / f"{name}.py"
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "limit" in done.stdout


def lines_of_code(text):
    """Return how many lines have code: not docstrings, comments or nothing."""
    lines, before = set(), tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        docstring = token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.NL)
        if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.STRING) and not docstring:
            lines |= set(range(token.start[0], token.end[0] + 1))
        if token.type != tokenize.COMMENT:
            before = token.type
    return len(lines)


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_python_blocks_of_the_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # dataclasses look their module up
    for block in python_blocks(page):
        exec(compile(block, page, "exec", dont_inherit=True), vars(module))


def test_the_recipe_for_a_new_algorithm_holds(tmp_path):
    """CONTRIBUTING's example, saved as a file in a copy of the tree: typed, formatted, found, and tested."""
    for part in ("src", "tests", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part)
    recipe = tmp_path / "src/peerlearn/algorithms/readout/exact_diffusion.py"
    recipe.write_text(python_blocks("CONTRIBUTING.md")[0])
    assert lines_of_code(recipe.read_text()) <= 40
    run("ruff", "check", recipe, cwd=tmp_path)
    run("ruff", "format", "--check", recipe, cwd=tmp_path)
    run("mypy", cwd=tmp_path)
    chosen = "ExactDiffusion or exact-diffusion or found_by_their_names"
    tests = ("tests/test_checks.py", "tests/test_solvers.py", "tests/test_apart.py")
    said = run("pytest", "-n", "0", "-p", "no:cacheprovider", "-k", chosen, *tests, cwd=tmp_path, path=tmp_path / "src")
    assert "passed" in said


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} -> {target}"


def test_install_lines_of_the_pages_need_no_package_of_ours_on_an_index():
    """There is none: a page installs from a checkout, or from a wheel that lies in the folder."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE):
            for line in re.findall(r"pip install.*peerlearn\[.*", block):
                assert "--find-links ." in line, f"{page.name}: {line}"


def test_nothing_reduces_over_the_agent_axis_but_the_network():
    """The oracle, which is called what it is, is the one exception. What behaves is shown by test_apart."""
    reduction = re.compile(r"(\.|np\.)(mean|sum|max|min|all|any)\((axis=0)?\)|np\.(mean|sum|max|min|all|any)\(")
    one_agents_own = ("X.sum(axis=0)", "labels.max()", "steps > 0", "dissent[0]", "b[0]", "oracle")
    found = [
        f"{path.name}: {line.strip()}"
        for path in (ROOT / "src/peerlearn/algorithms").rglob("*.py")
        for line in path.read_text().splitlines()
        if reduction.search(line) and not any(own in line for own in one_agents_own)
    ]
    assert found == []
