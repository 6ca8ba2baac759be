"""Who a run is: the same values, the same identity, in any process; other values, another."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import networkx as nx
import numpy as np
import pytest

from peerlearn.experiments.lab.comparison import Comparison, Data, Model
from peerlearn.experiments.lab.protocols.rows import Rows
from peerlearn.experiments.lab.trial import Trial, plain, rows_of_file

PROGRAM = """
import json, sys
import numpy as np
from peerlearn.experiments.lab.trial import plain
letters = np.array(["".join(["a", str(k)]) for k in range(3)], dtype=object)
print(json.dumps(plain([letters, lambda x: x + 1 in {"p", "q", "r"}, np.random.RandomState(3)])))
"""


def test_another_process_says_the_same():
    run = [subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True) for _ in range(2)]
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
    assert plain(one) == plain(one)
    assert plain(one) != plain(other)


def test_the_order_of_agents_counts():
    star = [(0, 1), (0, 2), (0, 3)]
    there, back = nx.empty_graph(4), nx.Graph()
    back.add_nodes_from([3, 2, 1, 0])
    for graph in (there, back):
        graph.add_edges_from(star)
    assert plain(there) != plain(back)
    named = nx.Graph([("a", 1), (1, "b")])  # names of several kinds cannot be sorted
    assert plain(named) == {"agents": ["a", 1, "b"], "links": [[0, 1], [1, 2]]}


def test_rows_of_a_file_are_part_of_a_run(tmp_path, monkeypatch):
    """Another file of the same name, another run; of a generated or bundled set the name says all."""
    monkeypatch.setenv("PEERLEARN_DATA", str(tmp_path))
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2

    def key(name, X, y):
        np.savez(tmp_path / "Unheard.npz", X=X, y=y)
        rows_of_file.cache_clear()
        entry, model = Data(name), Model("m", "RVFL")
        return Trial(Comparison(data=(entry,), models=(model,), protocol=Rows()), entry, model, None, 0, 0).key

    assert key("Unheard", X, y) == key("Unheard", X.copy(), y)
    assert len({key("Unheard", X, y), key("Unheard", X + 1, y), key("Unheard", X, 1 - y)}) == 3
    for name in ("iris", "narma10", "missing"):
        assert key(name, X, y) == key(name, X + 1, y)
    rows_of_file.cache_clear()
