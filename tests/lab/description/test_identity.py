"""Who a run is: the same values, the same identity, in any process; other values, another."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from functools import partial

import networkx as nx
import numpy as np
import pytest
from sklearn.svm import SVC

from peerlearn import RVFLClassifier
from peerlearn.lab import Search, protocol_named
from peerlearn.lab.description import own_code
from peerlearn.lab.description.comparison import Comparison, Data, Model, Net
from peerlearn.lab.description.identity import describe_file, describe_value
from peerlearn.lab.description.trial import Trial
from peerlearn.lab.protocols.rows import Rows
from tests.support.pages import ROOT

PROGRAM = """
import json, sys
import numpy as np
from peerlearn.lab.description.identity import describe_value
letters = np.array(["".join(["a", str(k)]) for k in range(3)], dtype=object)
values = [letters, lambda x: x + 1 in {"p", "q", "r"}, np.random.RandomState(3)]
print(json.dumps(describe_value(values)))
"""


@pytest.mark.processes
def test_another_process_says_the_same():
    run = [
        subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
        for _ in range(2)
    ]
    assert run[0].stdout
    assert run[0].stdout == run[1].stdout


def scaled(factor):
    return lambda x: factor * x


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array(["a", "b"], dtype=object), np.array(["a", "c"], dtype=object)),
        (lambda x: x * 2, lambda x: x * 3),
        (lambda x: np.sin(x), lambda x: np.cos(x)),
        (scaled(2), scaled(3)),
        (lambda x, a=1: x * a, lambda x, a=2: x * a),
        (partial(max, 1), partial(max, 2)),
        (np.sin, np.cos),
        (dict, list),
        (nx.Graph([(0, 1), (1, 2)]), nx.Graph([(0, 1), (0, 2)])),
    ],
)
def test_what_differs_is_told_apart(one, other):
    assert describe_value(one) == describe_value(one)
    assert describe_value(one) != describe_value(other)


def test_the_order_of_agents_counts():
    star = [(0, 1), (0, 2), (0, 3)]
    there, back = nx.empty_graph(4), nx.Graph()
    back.add_nodes_from([3, 2, 1, 0])
    for graph in (there, back):
        graph.add_edges_from(star)
    assert describe_value(there) != describe_value(back)
    named = nx.Graph([("a", 1), (1, "b")])  # names of several kinds cannot be sorted
    assert describe_value(named) == {"agents": ["a", 1, "b"], "links": [[0, 1], [1, 2]]}


@pytest.mark.parametrize(
    ("protocol", "key"),
    [
        ("averaging", "edc6f3816bb1f7795707"),
        ("columns", "ac0bcf12ce05eee0bec8"),
        ("completion", "103beca639066cbdf3ca"),
        ("convergence", "2b000ef4affe8e3ad20e"),
        ("few-labels", "b55de94bff4b9cd6c617"),
        ("rows", "c9d35a4544df004132b7"),
        ("sequences", "4c3a7c57eb82db76d88f"),
        ("signals", "b55b6965f254a75c3457"),
        ("stream", "65b89d173bcaec4f5eab"),
    ],
)
def test_rows_of_earlier_versions_are_found(protocol, key):
    """These keys name rows on disk since 0.6: moving or renaming a class must not change them."""
    comparison = Comparison(
        (Data("iris"),),
        (Model("R", "RVFL", settings={"n_hidden": 5}),),
        (Net("r", "ring", 4),),
        protocol_named(protocol),
        search=Search({"alpha": [1.0, 2.0]}),
    )
    assert next(comparison.trials()).key == key


def test_rows_of_a_file_are_part_of_a_run(tmp_path, monkeypatch):
    """Another file of the same name, another run; of a generated or bundled set the name
    says all.
    """
    monkeypatch.setenv("PEERLEARN_DATA", str(tmp_path))
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2

    def key(name, X, y):
        np.savez(tmp_path / "Unheard.npz", X=X, y=y)
        describe_file.cache_clear()
        entry, model = Data(name), Model("m", "RVFL")
        return Trial(
            Comparison(data=(entry,), models=(model,), protocol=Rows()), entry, model, None, 0, 0
        ).key

    assert key("Unheard", X, y) == key("Unheard", X.copy(), y)
    assert len({key("Unheard", X, y), key("Unheard", X + 1, y), key("Unheard", X, 1 - y)}) == 3
    for name in ("iris", "narma10", "missing"):
        assert key(name, X, y) == key(name, X + 1, y)
    describe_file.cache_clear()


OWN = """
import layers
from parts.rates import RATE
from sklearn.base import BaseEstimator, ClassifierMixin
class Model(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self
    def predict(self, X):
        return X[:, 0] * {factor}
def doubled(x):
    return layers.doubled(x)
"""
LAYERS = "def doubled(x):\n    return {factor} * x\n"
RATES = "from .whole import WHOLE\nRATE = WHOLE / {factor}\n"
WHOLE = "WHOLE = {factor}\n"
MODULES = ("own", "layers", "parts", "parts.rates", "parts.whole")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes a module of one's own, and another that it uses, and imports them as a new process
    would.
    """
    monkeypatch.syspath_prepend(tmp_path)

    (tmp_path / "parts").mkdir()

    def written(factor=1, inner=1, constant=1, deeper=1, package=""):
        (tmp_path / "own.py").write_text(OWN.format(factor=factor))
        (tmp_path / "layers.py").write_text(LAYERS.format(factor=inner))
        (tmp_path / "parts/__init__.py").write_text(package)
        (tmp_path / "parts/rates.py").write_text(RATES.format(factor=constant))
        (tmp_path / "parts/whole.py").write_text(WHOLE.format(factor=deeper))
        importlib.invalidate_caches()
        for name in MODULES:
            sys.modules.pop(name, None)
            own_code.known.pop(name, None)
        sys.dont_write_bytecode = (
            True  # or a file that changes twice within a second is not read again
        )
        return importlib.import_module("own")

    before = sys.dont_write_bytecode
    yield written
    sys.dont_write_bytecode = before
    for name in MODULES:
        sys.modules.pop(name, None)
        own_code.known.pop(name, None)


def key_of(model, **data):
    entry = Data("iris", **data)
    return Trial(
        Comparison(data=(entry,), models=(model,), protocol=Rows()), entry, model, None, 0, 0
    ).key


@pytest.mark.parametrize(
    "key",
    [
        lambda own: key_of(Model("m", "own.Model")),
        lambda own: key_of(Model("m", estimator=own.Model())),
        lambda own: key_of(
            Model(
                "m",
                "sklearn.ensemble.BaggingClassifier",
                settings={"estimator": {"kind": "own.Model"}},
            )
        ),
        lambda own: key_of(Model("m", "RVFL"), prepare=({"kind": "own.Model"},)),
        lambda own: key_of(Model("m", "RVFL", settings={"activation": own.doubled})),
        lambda own: key_of(Model("m", "RVFL", settings={"kinds": [own.Model]})),
    ],
)
def test_code_of_ones_own_is_part_of_a_run(own, key):
    """Another class of the same name, another run; also if it is a module that it uses which has
    changed, were it only for a number that it takes from there.
    """
    first = key(own())
    assert key(own()) == first
    changes = ({"factor": 2}, {"inner": 2}, {"constant": 2}, {"deeper": 2}, {"package": "pass\n"})
    assert len({first, *(key(own(**change)) for change in changes)}) == 6


def test_what_is_installed_is_told_by_its_name():
    for value in (
        SVC(),
        RVFLClassifier(alpha=1.0, activation="sigmoid"),
        SVC,
        np.sin,
        json.dumps,
        {"kind": "sklearn.svm.SVC"},
        Model("m", "RVFL"),
    ):
        assert '"own"' not in json.dumps(describe_value(value))


SCRIPT = """
import sys
from sklearn.base import BaseEstimator, ClassifierMixin
from peerlearn.lab import Comparison, Data, Model, run
class Zeros(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self
    def predict(self, X):
        return X[:, 0] * 0 + guess()
def guess():
    return {guess}
if __name__ == "__main__":
    whole = Comparison((Data("iris"),), (Model("m", estimator=Zeros()),), folds=3)
    print([row["run"] for row in run(whole, sys.argv[1], jobs=int(sys.argv[2])).rows])
"""


@pytest.mark.processes
def test_a_class_of_a_script_is_the_same_in_other_processes(tmp_path):
    file = tmp_path / "mine.py"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}

    def keys(guess, jobs):
        file.write_text(SCRIPT.format(guess=guess))
        command = [sys.executable, str(file), str(tmp_path / f"results-{jobs}"), str(jobs)]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout

    assert keys(0, jobs=1) == keys(0, jobs=2) != keys(1, jobs=1)
    named = {path.stem for path in (tmp_path / "results-2/runs").glob("[!b]*.parquet")}
    assert not named  # every row had the name that was waited for, so all are in one batch
