"""The house rules: layers, types, lint, and that everything written down runs."""

from __future__ import annotations

import ast
import io
import os
import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
import types

import pytest
from packaging.requirements import Requirement

import peerlearn
from peerlearn.errors import EXTRAS
from peerlearn.models.registry import models
from tests.support import readme_rows
from tests.support.pages import ROOT, python_blocks

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
DOCS = sorted((ROOT / "docs").rglob("*.md"))


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


@pytest.mark.processes
def test_imports_point_down():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.processes
def test_types():
    assert "Success" in run("mypy")


@pytest.mark.processes
def test_lint_and_format():
    run("ruff", "check", ".")
    run("ruff", "format", "--check", ".")


def test_install_lines_name_the_packages_of_their_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    del extras["test"], extras["docs"]  # for developers: no sentence of the package names them
    asked = {extra: [Requirement(each) for each in listed] for extra, listed in extras.items()}
    assert {
        extra: tuple(each.name for each in listed if each.marker is None or each.marker.evaluate())
        for extra, listed in asked.items()
    } == EXTRAS
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = re.findall(r'raise MissingExtra\((?:[^()]|\([^()]*\))*?"(\w+)",?\s*\)', sources)
    assert len(named) == sources.count("raise MissingExtra(") > 5
    assert set(named) == set(EXTRAS)


def test_public_names_exist():
    for name in peerlearn.__all__:
        assert hasattr(peerlearn, name)
    assert (ROOT / "src/peerlearn/py.typed").exists()


@pytest.mark.processes
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


@pytest.mark.processes
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
    assert done.stdout.endswith(
        "which is not installed: pip install grpcio cryptography xxhash\n"
    ), done.stderr


def test_one_version():
    assert f'version = "{peerlearn.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {peerlearn.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {peerlearn.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.processes
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run_and_are_short(example, tmp_path):
    assert len(example.read_text().splitlines()) <= 40
    done = subprocess.run(
        [sys.executable, example],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg"},  # no windows
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.processes
@pytest.mark.parametrize("name", ["admm", "averaging_rounds"])
def test_benchmarks_run(name, tmp_path):
    """The quick ones, so that none rots; what they measure is theirs to say."""
    script = ROOT / "benchmarks" / f"{name}.py"
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "limit" in done.stdout


@pytest.mark.processes
@pytest.mark.parametrize(
    "page",
    ["README.md", "CONTRIBUTING.md", *(str(p.relative_to(ROOT)) for p in DOCS)],
)
def test_python_blocks_of_the_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # dataclasses look their module up
    for block in python_blocks(page):
        exec(compile(block, page, "exec", dont_inherit=True), vars(module))


def copy_of_the_tree(folder, file, block, name):
    """A copy of the package and its tests with one of CONTRIBUTING's examples as a file.

    The file is formatted and typed, and its class can be imported from peerlearn.
    """
    for part in ("src", "tests", "pyproject.toml", "README.md"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / part)
    recipe = folder / "src/peerlearn" / file
    recipe.write_text(python_blocks("CONTRIBUTING.md")[block])
    run("ruff", "check", recipe, cwd=folder)
    run("ruff", "format", "--check", recipe, cwd=folder)
    run("tests.support.stubs", cwd=folder, path=folder / "src")
    run("mypy", cwd=folder)
    (folder / "use.py").write_text(f"from peerlearn import {name}\n\nprint({name}.__module__)\n")
    run("mypy", "use.py", cwd=folder)
    module = f"peerlearn.{file.removesuffix('.py').replace('/', '.')}"
    assert run("use", cwd=folder, path=folder / "src") == f"{module}\n"
    return recipe


def run_tests(folder, chosen, *files):
    tests = [f"tests/{file}" for file in files]
    return run(
        "pytest",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-k",
        chosen,
        *tests,
        cwd=folder,
        path=folder / "src",
    )


@pytest.mark.processes
def test_the_recipe_for_a_new_algorithm_holds(tmp_path):
    """CONTRIBUTING's example, saved as a file in a copy of the tree: found, and tested."""
    recipe = copy_of_the_tree(
        tmp_path, "algorithms/readout/exact_diffusion.py", 0, "ExactDiffusion"
    )
    assert lines_of_code(recipe.read_text()) <= 40
    chosen = "ExactDiffusion or exact-diffusion or found_by_their_names"
    assert "passed" in run_tests(
        tmp_path,
        chosen,
        "testing/test_checks.py",
        "algorithms/readout/test_solver.py",
        "whole/test_apart.py",
    )


@pytest.mark.processes
def test_the_recipe_for_a_new_model_holds(tmp_path):
    """CONTRIBUTING's example, saved as a file in a copy of the tree, is known everywhere without
    another change.
    """
    recipe = copy_of_the_tree(tmp_path, "models/softmax.py", 2, "SoftmaxClassifier")
    assert lines_of_code(recipe.read_text()) <= 110
    said = run_tests(
        tmp_path,
        "softmax",
        "support/recipe_softmax.py",
        "whole/test_every_model.py",
        "testing/test_models.py",
        "testing/cases/test_models.py",
    )
    assert int(re.search(r"(\d+) passed", said).group(1)) >= 15
    assert "passed" in run_tests(tmp_path, "Softmax and network", "testing/test_conventions.py")
    run("tests.support.readme_rows", cwd=tmp_path, path=tmp_path / "src")
    assert (
        "\n| `SoftmaxClassifier` | softmax regression of two classes"
        in (tmp_path / "README.md").read_text()
    )


@pytest.mark.processes
def test_the_recipe_for_a_new_engine_holds(tmp_path):
    """Formatted and typed. That it passes its check is seen where the blocks of the page run."""
    recipe = tmp_path / "queues.py"
    recipe.write_text(python_blocks("CONTRIBUTING.md")[5])
    settings = ("--config", str(ROOT / "pyproject.toml"))
    run("ruff", "check", *settings, str(recipe))
    run("ruff", "format", "--check", *settings, str(recipe))
    run("mypy", str(recipe))
    assert lines_of_code(recipe.read_text()) <= 75


def lines_of_code(text):
    """How many lines have code on them: not counted are docstrings, comments and blank lines."""
    docstrings = set()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            docstrings |= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.string.strip() and token.type != tokenize.COMMENT:
            code |= {*range(token.start[0], token.end[0] + 1)}
    return len(code - docstrings)


def test_the_table_of_the_readme_has_every_model_as_its_file_says_it():
    page = readme_rows.README.read_text()
    assert readme_rows.update(page) == page, "python -m tests.support.readme_rows writes it"
    assert all(page.count(f"| `{name}`") + page.count(f", `{name}`") == 1 for name in models())


def test_links_between_pages_lead_somewhere():
    pages = [
        ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
    ]
    for page in [*pages, *DOCS]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                made = re.match(r"(\.\./)*(gallery|reference)/", target)  # when the site is built
                assert made or (page.parent / target).exists(), f"{page.name} -> {target}"


def test_install_lines_of_the_pages_need_no_package_of_ours_on_an_index():
    """There is none: a page installs from a checkout, or from a wheel that lies in the folder."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for block in re.findall(
            r"^```\w*\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE
        ):
            for line in re.findall(r"pip install.*peerlearn\[.*", block):
                assert "--find-links ." in line, f"{page.name}: {line}"


def test_nothing_reduces_over_the_agent_axis_but_the_network():
    """The oracle, which is called what it is, is the one exception. What behaves is shown by
    test_apart.
    """
    reduction = re.compile(
        r"(\.|np\.)(mean|sum|max|min|all|any)\((axis=0)?\)|np\.(mean|sum|max|min|all|any)\("
    )
    one_agents_own = (
        "X.sum(axis=0)",
        "H.sum(axis=0)",
        "Y.sum(axis=0)",
        "H.mean(axis=0)",
        "np.sum(Z, axis=0)",  # over folds
        "known.all()",  # what the root sent
        "s.all()",  # over earlier sessions, as the next three
        "few & (gone > 0)",
        "mine.any()",
        "s[mine].min()",
        "np.isnan(X)",
        "np.nansum(X",
        "ranks_wanted",
        "labels.max()",
        "steps > 0",
        "dissent[0]",
        "b[0]",
        "oracle",
    )
    found = [
        f"{path.name}: {line.strip()}"
        for path in (ROOT / "src/peerlearn/algorithms").rglob("*.py")
        for line in path.read_text().splitlines()
        if reduction.search(line) and not any(own in line for own in one_agents_own)
    ]
    assert found == []
