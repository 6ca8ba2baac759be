"""How large the code is, and how many of its files a reader passes to follow one call.

    python benchmarks/house.py                 this tree
    python benchmarks/house.py OLD NEW         two trees side by side

Lines and functions are those of src/peerlearn. A file is passed if one of its functions runs in
the call, in any thread of the process. Depth is the most functions of peerlearn that are active in
one thread at once. `fit` trains an RVFLClassifier on a simulated ring of five agents, `agent` is
one of two agents over TLS, and `run` is a comparison of one model on one data set.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from common import show
from start import lay_out

HERE = Path(__file__).resolve().parent.parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Runs a program and writes which files of a folder it passed. What runs while a module is imported
# is not counted: code of modules and classes, which lacks the flag CO_OPTIMIZED, and what Python's
# import system calls to find a module.
WATCH = """
import inspect, json, sys, threading

home, place, program = sys.argv[1:4]
files, deepest, here = set(), [0], threading.local()

def watch(frame, event, _):
    code = frame.f_code
    if event not in ("call", "return") or not code.co_filename.startswith(home):
        return
    step = 1 if event == "call" else -1
    caller = frame.f_back.f_code.co_filename if frame.f_back else ""
    if not code.co_flags & inspect.CO_OPTIMIZED or "importlib._bootstrap" in caller:
        here.imports = getattr(here, "imports", 0) + step
    elif not getattr(here, "imports", 0):
        here.depth = getattr(here, "depth", 0) + step
        deepest[0] = max(deepest[0], here.depth)
        files.add(code.co_filename)

threading.setprofile(watch)
sys.setprofile(watch)
try:
    exec(program)
finally:
    sys.setprofile(None)
    threading.setprofile(None)
    with open(place, "w") as file:
        json.dump([sorted(files), deepest[0]], file)
"""
FIT = """
from peerlearn import RVFLClassifier, SimulatedNetwork, data, graphs

g50c = data.load("g50c")
files.clear()
network = SimulatedNetwork(graphs.ring(5))
RVFLClassifier(50, network=network, random_state=0).fit(g50c.X, g50c.y)
"""
COMMAND = """
from peerlearn.cli import main

main({arguments!r}, standalone_mode=False)
"""
COMPARISON = """
title = "One run"
folds = 2
data = [{ name = "iris", settings = { n_hidden = 20 } }]
[[models]]
name = "together"
kind = "RVFL"
solver = "consensus"
[[networks]]
name = "ring"
graph = "ring"
agents = 5
"""


def watched(tree: Path, folder: Path, program: str) -> subprocess.Popen[bytes]:
    """Start a program that writes the files it passed to files.json in the folder."""
    arguments = [str(tree / "src/peerlearn"), str(folder / "files.json"), program]
    command = [sys.executable, "-c", WATCH, *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)


def passed(tree: Path, folder: Path, program: str) -> str:
    """Return how many files a program passed, and how deep it went."""
    process = watched(tree, folder, program)
    assert process.wait() == 0, f"{program} failed in {tree}"
    files, depth = json.loads((folder / "files.json").read_text())
    return f"{len(files)}, depth {depth}"


def passed_by_agent(tree: Path, folder: Path) -> str:
    """Return how many files one of two agents passed, and how deep it went."""
    lay_out(folder)
    command = [sys.executable, "-m", "peerlearn", "agent", "south.toml"]
    other = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        return passed(tree, folder, COMMAND.format(arguments=["agent", "north.toml"]))
    finally:
        assert other.wait() == 0, f"the second agent failed in {tree}"


def passed_by_run(tree: Path, folder: Path) -> str:
    """Return how many files a comparison passed, and how deep it went."""
    (folder / "one.toml").write_text(COMPARISON)
    arguments = ["run", "one.toml", "--jobs", "1"]
    return passed(tree, folder, COMMAND.format(arguments=arguments))


def size(tree: Path) -> dict[str, str]:
    """Return how large a tree is."""
    texts = [file.read_text() for file in sorted((tree / "src/peerlearn").rglob("*.py"))]
    lines = [len(text.splitlines()) for text in texts]
    functions = [
        node.end_lineno - node.lineno + 1
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, FUNCTIONS) and node.end_lineno is not None
    ]
    return {
        "lines": f"{sum(lines)}",
        "files": f"{len(lines)}",
        "median file": f"{median(lines):.0f}",
        "longest file": f"{max(lines)}",
        "functions": f"{len(functions)}",
        "median function": f"{median(functions):.0f}",
        "longest function": f"{max(functions)}",
    }


def measure(tree: Path) -> dict[str, str]:
    """Return everything about a tree."""
    os.environ["PYTHONPATH"] = str(tree / "src")
    found = size(tree)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found["files passed by fit"] = passed(tree, folder, FIT)
        found["files passed by agent"] = passed_by_agent(tree, folder)
        found["files passed by run"] = passed_by_run(tree, folder)
    return found


def main() -> None:
    trees = [Path(given).resolve() for given in sys.argv[1:]] or [HERE]
    found = [measure(tree) for tree in trees]
    rows = [[name, *(each[name] for each in found)] for name in found[0]]
    show("The house", ["", *(tree.name for tree in trees)], rows)


if __name__ == "__main__":
    main()
