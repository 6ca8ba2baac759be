"""The compiled mixing step beside its plain numpy twin, bit for bit."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from peerlearn import SimulatedNetwork
from peerlearn.network.kernels import BLOCK, PLAIN_BLOCK, copy_and_check, plain_step, sparse_step


def written_out(C, x, before, a, b, c):
    """out_k = a sum_j C_kj x_j + b x_k + c before_k, neighbor by neighbor."""
    out = np.empty_like(x)
    for k in range(len(x)):
        total = np.zeros(x.shape[1])
        for p in range(C.indptr[k], C.indptr[k + 1]):
            total = total + C.data[p] * x[C.indices[p]]
        out[k] = a * total + b * x[k] + c * before[k]
    return out


@pytest.mark.parametrize("kernel", [sparse_step, plain_step], ids=["compiled", "plain"])
@pytest.mark.parametrize("width", [1, 7, BLOCK - 1, BLOCK, 2 * BLOCK + 3, PLAIN_BLOCK + 5])
@pytest.mark.parametrize(
    "step", [(1.0, 0.0, 0.0), (0.7, -0.2, 0.0), (1.3, 0.0, -0.4), (1.3, 0.1, -0.4)]
)
def test_every_degree_and_width(kernel, step, width):
    # A clique with a path at one end and leaves at the other: degrees from 1 to 9.
    graph = nx.convert_node_labels_to_integers(nx.lollipop_graph(6, 4))
    graph.add_edges_from((0, 10 + k) for k in range(4))
    C = SimulatedNetwork(graph).mixing
    assert set(np.diff(C.indptr)) >= {2, 3, 6, 10}
    x, before = np.random.default_rng(0).standard_normal((2, len(graph), width))
    expected, out = written_out(C, x, before, *step), before.copy()
    kernel(C.indptr, C.indices, C.data, x, out, out, *step)  # `out` may be `before`
    assert np.array_equal(out, expected)


class TestCopyAndCheck:
    @pytest.mark.parametrize("shape", [(1, 1), (3, 512), (2, 10_001), (4, 0)])
    def test_the_first_rows_are_copied(self, shape):
        x, out = np.random.default_rng(0).standard_normal(shape), np.zeros((shape[0] + 2, shape[1]))
        assert copy_and_check(x, out)
        assert np.array_equal(out, np.vstack([x, np.zeros((2, shape[1]))]))

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_one_number_that_is_not_finite(self, value):
        for place in range(70):
            x, out = np.full((2, 35), 1e308), np.empty((2, 35))
            assert copy_and_check(x, out)
            x.flat[place] = value
            assert not copy_and_check(x, out)
            assert np.array_equal(out, x, equal_nan=True)
