"""Every mixing matrix averages, mixes as fast as it says, and what does not average is refused with
its reason.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import cvxpy
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import ArpackError

from peerlearn import graphs, weights
from peerlearn.errors import GraphError, InputError, MissingExtra, WeightsError

quick = settings(deadline=None, max_examples=25)
cheap = pytest.mark.parametrize("make", [weights.max_degree, weights.metropolis, weights.laplacian])
Make = Callable[[nx.Graph], sparse.csr_array]

GRAPHS = {
    "line": graphs.linear(9),
    "ring": graphs.ring(8),
    "star": graphs.star(7),
    "complete": graphs.complete(6),
    "grid": graphs.grid(3, 4),
    "random": graphs.erdos_renyi(10, 0.4, seed=3),
    "scale-free": graphs.scale_free(12, 2, seed=1),
}


@st.composite
def connected(draw: st.DrawFn) -> nx.Graph:
    n, p, seed = draw(st.integers(1, 14)), draw(st.floats(0.3, 1.0)), draw(st.integers(0, 1000))
    return graphs.erdos_renyi(n, p, seed)


def rho(C: Any) -> float:
    """The definition, without deflation: the largest |eigenvalue| of C - 11'/L."""
    dense = C.toarray() if sparse.issparse(C) else np.asarray(C)
    return float(np.abs(np.linalg.eigvals(dense - 1 / len(dense))).max())


def assert_averages(C: sparse.csr_array, graph: nx.Graph) -> None:
    assert isinstance(C, sparse.csr_array)
    assert C.dtype == np.float64
    assert C.has_sorted_indices
    dense = C.toarray()
    np.testing.assert_array_equal(dense, dense.T)
    np.testing.assert_allclose(dense.sum(axis=1), 1, rtol=0, atol=1e-14)
    entries = C.tocoo()
    stored = set(zip(entries.row.tolist(), entries.col.tolist(), strict=True))
    assert stored >= {(k, k) for k in graph}
    assert all(graph.has_edge(k, j) and dense[k, j] != 0 for k, j in stored if k != j)
    assert rho(C) < 1


@cheap
@quick
@given(graph=connected())
def test_weights_of_any_graph_average(make: Make, graph: nx.Graph) -> None:
    C = make(graph)
    assert_averages(C, graph)
    assert weights.contraction(C) == pytest.approx(rho(C), abs=1e-12)
    assert (weights.checked(C, graph) != C).nnz == 0


@pytest.mark.parametrize("make", weights.NAMES.values())
def test_one_agent_keeps_its_value(make: Make) -> None:
    C = make(graphs.ring(1))
    assert C.toarray().tolist() == [[1.0]]
    assert weights.spectrum(C) == (0.0, 0.0)
    assert weights.contraction(C) == 0.0
    assert weights.rounds_to(C, 1e-9) == weights.rounds_to(C, 1e-9, "chebyshev") == 0


def test_the_entries_by_hand() -> None:
    graph = nx.Graph([(0, 1), (1, 2), (1, 3), (2, 3)])
    fourth, third = 1 / 4, 1 / 3
    np.testing.assert_allclose(
        weights.metropolis(graph).toarray(),
        [
            [1 - fourth, fourth, 0, 0],
            [fourth, 1 - 3 * fourth, fourth, fourth],
            [0, fourth, 1 - fourth - third, third],
            [0, fourth, third, 1 - fourth - third],
        ],
    )
    A = nx.to_numpy_array(graph)
    np.testing.assert_allclose(
        weights.max_degree(graph).toarray(), np.eye(4) - (np.diag(A.sum(axis=1)) - A) / 4
    )


def test_link_attributes_and_parallel_links_do_not_change_weights() -> None:
    graph = graphs.ring(5)
    heavy = nx.MultiGraph(graph)
    heavy.add_edge(0, 1)
    nx.set_edge_attributes(graph, 7.0, "weight")
    for C in (weights.metropolis(graph), weights.metropolis(heavy), weights.laplacian(graph)):
        assert_averages(C, graph)
    assert weights.metropolis(heavy).toarray()[0, 1] == pytest.approx(1 / 3)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_laplacian_has_the_best_common_weight(graph: nx.Graph) -> None:
    C, lap = weights.laplacian(graph).toarray(), nx.laplacian_matrix(graph).toarray()
    mu = np.linalg.eigvalsh(lap)
    np.testing.assert_allclose(C, np.eye(len(graph)) - 2 / (mu[1] + mu[-1]) * lap, atol=1e-12)
    for factor in (0.97, 1.03):
        other = np.eye(len(graph)) - factor * 2 / (mu[1] + mu[-1]) * lap
        assert weights.contraction(other) > weights.contraction(C) + 1e-4


def test_laplacian_stores_a_diagonal_of_zero() -> None:
    C = weights.laplacian(graphs.linear(3))
    np.testing.assert_allclose(
        C.toarray(), [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]], atol=1e-15
    )
    assert C.nnz == 7


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_fastest_is_at_least_as_fast_as_the_others(graph: nx.Graph) -> None:
    C = weights.fastest(graph)
    assert_averages(C, graph)
    others = [
        weights.contraction(make(graph))
        for make in (weights.max_degree, weights.metropolis, weights.laplacian)
    ]
    assert weights.contraction(C) <= min(others) + 1e-7


@pytest.mark.parametrize("name", ["line", "ring", "star", "complete"])
def test_fastest_where_one_weight_for_all_links_is_known_to_be_best(name: str) -> None:
    """Links that a symmetry exchanges need no different weights (and on a line, Xiao and Boyd:
    cos(pi/L)).
    """
    least = weights.contraction(weights.laplacian(GRAPHS[name]))
    assert weights.contraction(weights.fastest(GRAPHS[name])) == pytest.approx(least, abs=1e-7)
    assert name != "line" or least == pytest.approx(np.cos(np.pi / 9))


def test_fastest_uses_negative_weights_and_beats_one_weight() -> None:
    graph = nx.Graph(
        [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5), (0, 6), (1, 6), (2, 6)]
    )
    C = weights.fastest(graph)
    assert C.toarray().min() < -0.01
    assert weights.contraction(C) < weights.contraction(weights.laplacian(graph)) - 0.01


def test_fastest_cannot_be_improved_by_moving_any_weight() -> None:
    """The problem is convex: no link whose weight, moved either way, mixes faster, nor any random
    direction.
    """
    graph = GRAPHS["random"]
    C, random = weights.fastest(graph).toarray(), np.random.default_rng(0)
    best = weights.contraction(C)
    links = np.array(graph.edges)
    for _ in range(200):
        move = np.zeros_like(C)
        move[links[:, 0], links[:, 1]] = random.standard_normal(len(links)) * random.choice(
            [1e-3, 1e-2]
        )
        move = move + move.T
        move -= np.diag(move.sum(axis=1))
        assert weights.contraction(C + move) > best - 1e-7


def test_fastest_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(
        MissingExtra, match=r"weights='fastest' needs the package cvxpy.*: pip install cvxpy$"
    ):
        weights.named("fastest", graphs.ring(4))


def test_fastest_falls_back_to_another_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cvxpy, "installed_solvers", lambda: ["SCS"])
    assert weights.contraction(weights.fastest(graphs.ring(5))) == pytest.approx(
        rho(weights.laplacian(graphs.ring(5)))
    )


def test_fastest_says_which_solvers_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, **options: Any) -> None:
        raise cvxpy.SolverError("no")

    monkeypatch.setattr(cvxpy.Problem, "solve", fail)
    with pytest.raises(
        WeightsError,
        match=r"fastest weights of 4 agents were not found \(CLARABEL: no.*use 'metropolis'",
    ):
        weights.fastest(graphs.ring(4))
    monkeypatch.setattr(cvxpy.Problem, "solve", lambda self, **options: None)
    with pytest.raises(WeightsError, match="CLARABEL: None"):
        weights.fastest(graphs.ring(4))
    monkeypatch.setattr(
        cvxpy.Problem, "solve", lambda self, **options: warnings.warn("inaccurate", stacklevel=1)
    )
    with pytest.raises(WeightsError, match="CLARABEL: None"):
        weights.fastest(graphs.ring(4))
    monkeypatch.setattr(cvxpy, "installed_solvers", list)
    with pytest.raises(WeightsError, match="no solver installed"):
        weights.fastest(graphs.ring(4))


@pytest.mark.parametrize("name", ["max-degree", "max_degree", "Metropolis", "laplacian", "fastest"])
def test_names_stand_for_functions(name: str) -> None:
    graph = graphs.grid(2, 3)
    expected = weights.NAMES[name.lower().replace("_", "-")](graph)
    np.testing.assert_allclose(weights.named(name, graph).toarray(), expected.toarray(), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "metropolitan",
            (
                "no weights called 'metropolitan': .*max-degree, metropolis, laplacian, "
                "fastest.* 'metropolis'"
            ),
        ),
        ("zzz", "no weights called 'zzz': there are max-degree, metropolis, laplacian, fastest$"),
    ],
)
def test_unknown_names_get_the_known_ones(name: str, sentence: str) -> None:
    with pytest.raises(WeightsError, match=sentence):
        weights.named(name, graphs.ring(4))


@pytest.mark.parametrize(
    "form", [np.asarray, np.ndarray.tolist, sparse.csr_array, sparse.coo_matrix, sparse.csc_matrix]
)
def test_given_matrices_come_in_any_form(form: Callable[[Any], Any]) -> None:
    graph = graphs.grid(2, 3)
    C = weights.metropolis(graph)
    accepted = weights.named(form(C.toarray()), graph)
    assert_averages(accepted, graph)
    np.testing.assert_allclose(accepted.toarray(), C.toarray(), atol=1e-15)
    assert weights.contraction(form(C.toarray())) == pytest.approx(rho(C))


def test_rounding_of_a_given_matrix_is_repaired() -> None:
    graph = graphs.erdos_renyi(20, 0.3)
    rough = weights.metropolis(graph).toarray()
    rough[0, 0] += 3e-10
    k = next(iter(graph[4]))
    rough[4, k] += 2e-10
    assert_averages(weights.checked(rough, graph), graph)


def test_links_may_be_left_unused() -> None:
    C = weights.checked(weights.metropolis(graphs.linear(4)), graphs.ring(4))
    assert_averages(C, graphs.linear(4))


def test_stored_zeros_are_not_links() -> None:
    C = weights.metropolis(graphs.linear(4)).tocoo()
    places = np.append(C.row, [0, 3]), np.append(C.col, [3, 0])
    stored = sparse.coo_array((np.append(C.data, [0.0, 0.0]), places), shape=C.shape)
    for graph in (graphs.ring(4), graphs.linear(4)):
        assert_averages(weights.checked(stored, graph), graphs.linear(4))


def row_normalised(graph: nx.Graph) -> np.ndarray[Any, Any]:
    A = nx.to_numpy_array(graph) + np.eye(len(graph))
    return A / A.sum(axis=1, keepdims=True)


def test_the_row_normalised_star_is_refused() -> None:
    """It meets the printed conditions (C 1 = 1, contraction < 1) and still misses the average."""
    C = row_normalised(graphs.star(5))
    assert np.allclose(C.sum(axis=1), 1)
    assert rho(C) < 1
    x = np.linalg.matrix_power(C, 200) @ [5.0, 0, 0, 0, 0]
    assert np.ptp(x) < 1e-12
    assert abs(x[0] - 1) > 0.2
    sentence = (
        r"not symmetric: C\[0, 1\] = 0.2 but C\[1, 0\] = 0.5; agents would agree on a weighted mean"
    )
    for check in (lambda: weights.named(C, graphs.star(5)), lambda: weights.contraction(C)):
        with pytest.raises(WeightsError, match=sentence):
            check()


def changed(C: Any, **at: float) -> Any:
    for place, value in at.items():
        k, j = (int(digit) for digit in place[1:])
        C[k, j] = value
    return C


def path() -> np.ndarray[Any, Any]:
    dense: np.ndarray[Any, Any] = weights.metropolis(graphs.linear(4)).toarray()
    return dense


@pytest.mark.parametrize(
    ("C", "sentence"),
    [
        (np.eye(3), r"weights of shape (3, 3) cannot mix 4 agents"),
        (np.ones((4, 3)), r"weights of shape (4, 3) cannot mix 4 agents"),
        (changed(path(), c12=np.nan), "C[1, 2] = nan: give finite numbers"),
        (changed(path(), c33=np.inf), "C[3, 3] = inf: give finite numbers"),
        (changed(path(), c03=0.25, c30=0.25), "C[0, 3] = 0.25, but agents 0 and 3 are not linked"),
        (
            changed(path(), c03=1e-12, c30=1e-12),
            "C[0, 3] = 1e-12, but agents 0 and 3 are not linked",
        ),
        (changed(path(), c12=0.5), "not symmetric: C[1, 2] = 0.5 but C[2, 1] = 0.333333"),
        (
            changed(path(), c22=0.5),
            (
                "weights of agent 2 sum to 1.16666667, not to 1, so the average would drift: "
                "set C[2, 2]"
            ),
        ),
        (np.eye(4), "second eigenvalue of 1, so some agents would never hear"),
        (np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]]), "second eigenvalue of 1"),
        (np.eye(4) * 3 - 2 * path(), "second eigenvalue of 3.27614, so agents would drift apart"),
        (
            np.eye(4) - 2 * (np.eye(4) - path()),
            "the eigenvalue -1.27614, so values would swing for ever: use (I + C)/2",
        ),
        ("0.5" * 3, "no weights called"),
        (None, "not this NoneType of shape () and type object"),
        ([[1.0, 2.0], [3.0]], "not this list of shape () and type object"),
        (0.5, "a matrix of real numbers"),
        (np.ones(4), "not this ndarray of shape (4,) and type float64"),
        (np.eye(4) * 1j, "type complex128"),
        (np.full((4, 4), "a"), "a matrix of real numbers"),
        (np.zeros((0, 0)), "of shape (0, 0)"),
    ],
)
def test_each_way_of_being_wrong_has_its_sentence(C: Any, sentence: str) -> None:
    with pytest.raises(WeightsError) as caught:
        weights.named(C, graphs.linear(4))
    assert sentence in str(caught.value)
    assert "np." not in str(caught.value)


def test_swinging_weights_of_a_bipartite_graph() -> None:
    swing = np.array([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(WeightsError, match="the eigenvalue -1, so values would swing"):
        weights.checked(swing, graphs.ring(2))
    assert_averages(weights.checked((np.eye(2) + swing) / 2, graphs.ring(2)), graphs.ring(2))
    with pytest.raises(WeightsError, match=r"weights have shape \(4, 3\)"):
        weights.spectrum(np.ones((4, 3)))


@pytest.mark.parametrize(
    "graph", [nx.path_graph("abc"), nx.DiGraph([(0, 1)]), nx.Graph(), nx.Graph([(0, 1), (1, 1)])]
)
@cheap
def test_unchecked_graphs_are_refused(make: Make, graph: nx.Graph) -> None:
    with pytest.raises(GraphError, match=r"pass the graph through graphs\.checked"):
        make(graph)


@quick
@given(graph=connected(), slow=st.floats(-0.4, 1.0))
def test_spectrum_leaves_out_the_constant_vector_only(graph: nx.Graph, slow: float) -> None:
    """Also where all other eigenvalues have one sign, so that neither 0 nor 1 is among the
    extremes.
    """
    size = len(graph)
    C = slow * weights.metropolis(graph).toarray() + (1 - slow) * np.eye(size)
    basis = np.linalg.svd(np.ones((1, size)))[2][1:]
    values = np.linalg.eigvalsh(basis @ C @ basis.T) if size > 1 else np.zeros(1)
    assert weights.spectrum(C) == pytest.approx((values[-1], values[0]), abs=1e-12)


@pytest.mark.parametrize(
    "graph",
    [
        graphs.erdos_renyi(300, 0.03),
        graphs.geometric(300, 0.12),
        graphs.linear(300),
        graphs.ring(301),
        graphs.star(300),
    ],
    ids=["random", "geometric", "line", "ring", "star"],
)
@cheap
def test_spectrum_of_many_agents_equals_the_dense_one(
    make: Make, graph: nx.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    C = make(graph)
    positive, negative = (
        (sparse.eye_array(len(graph)) + C) / 2,
        1.4 * C - 0.4 * sparse.eye_array(len(graph)),
    )
    dense = [weights.spectrum(each) for each in (C, positive, negative)]
    monkeypatch.setattr(weights, "DENSE_UP_TO", 1)
    for each, (largest, smallest) in zip((C, positive, negative), dense, strict=True):
        assert weights.spectrum(each) == weights.spectrum(each)
        assert weights.spectrum(each) == pytest.approx((largest, smallest), abs=1e-9)
        assert 1 - weights.spectrum(each)[0] == pytest.approx(1 - largest, rel=1e-6)


@pytest.mark.parametrize(
    "graph",
    [graphs.linear(400), graphs.ring(400), graphs.grid(20, 20)],
    ids=["line", "ring", "grid"],
)
def test_spectrum_by_factorising_equals_the_dense_one(
    graph: nx.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    C = weights.metropolis(graph)
    dense = weights.spectrum(C)
    monkeypatch.setattr(weights, "DENSE_UP_TO", 1)
    monkeypatch.setattr(weights, "RESTARTS", 1)
    assert weights.spectrum(C) == pytest.approx(dense, abs=1e-11)


def test_spectrum_says_when_it_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise ArpackError(-9999)

    monkeypatch.setattr(weights, "DENSE_UP_TO", 1)
    monkeypatch.setattr(weights, "eigsh", fail)
    with pytest.raises(WeightsError, match="how fast these 9 agents mix could not be computed"):
        weights.spectrum(weights.metropolis(graphs.ring(9)))


def test_ten_thousand_agents() -> None:
    line = weights.metropolis(graphs.linear(10_000))
    assert 1 - weights.contraction(line) == pytest.approx(
        2 / 3 * (1 - np.cos(np.pi / 10_000)), rel=1e-6
    )
    random = weights.laplacian(graphs.erdos_renyi(10_000, 0.0015))
    largest, smallest = weights.spectrum(random)
    assert largest == pytest.approx(-smallest, abs=1e-7)
    assert 0.5 < largest < 0.99


@pytest.mark.parametrize("accuracy", [0.9, 0.1, 1e-3, 1e-8])
@pytest.mark.parametrize("name", ["line", "ring", "star", "random"])
def test_plain_rounds_are_enough_and_not_one_too_many(name: str, accuracy: float) -> None:
    C = weights.metropolis(GRAPHS[name])
    values, vectors = np.linalg.eigh(C.toarray() - 1 / C.shape[0])
    worst = vectors[:, np.abs(values).argmax()]
    rounds = weights.rounds_to(C, accuracy)
    left = [
        np.linalg.norm(np.linalg.matrix_power(C.toarray(), n) @ worst) for n in (rounds - 1, rounds)
    ]
    assert left[1] <= accuracy * (1 + 1e-9) < left[0] * (1 + 1e-7)


@pytest.mark.parametrize("accuracy", [0.5, 1e-3, 1e-8])
@pytest.mark.parametrize("name", ["line", "ring", "star", "random"])
def test_chebyshev_rounds_are_enough_and_not_one_too_many(name: str, accuracy: float) -> None:
    """T_n of the interval, over T_n(xi): at the ends of the interval it equals the bound."""
    C = weights.metropolis(GRAPHS[name])
    b, a = weights.spectrum(C)
    rounds = weights.rounds_to(C, accuracy, "chebyshev")
    values = np.linalg.eigvalsh(C.toarray())[:-1]

    def left(n: int) -> float:
        T = np.polynomial.Chebyshev.basis(n)
        return float(np.abs(T((2 * values - a - b) / (b - a)) / T((2 - a - b) / (b - a))).max())

    assert left(rounds) <= accuracy * (1 + 1e-6)
    assert left(rounds - 1) > accuracy
    assert rounds <= weights.rounds_to(C, accuracy)


@pytest.mark.parametrize(
    ("graph", "most", "plain"),
    [
        (graphs.linear(50), 240, 10_600),
        (graphs.ring(50), 120, 2_700),
        (graphs.erdos_renyi(50, 0.2), 16, 60),
        (graphs.small_world(50, 6, 0.15), 20, 90),
    ],
    ids=["line", "ring", "random", "small world"],
)
def test_rounds_to_a_millionth_on_fifty_agents(graph: nx.Graph, most: int, plain: int) -> None:
    assert 0.7 * most < weights.rounds_to(weights.metropolis(graph), 1e-6, "chebyshev") <= most
    assert 0.7 * plain < weights.rounds_to(weights.max_degree(graph), 1e-6) <= plain


@pytest.mark.parametrize("method", ["plain", "chebyshev"])
def test_rounds_where_nothing_is_left_to_do(method: str) -> None:
    C = weights.metropolis(graphs.complete(7))
    assert weights.contraction(C) == 0.0
    assert weights.rounds_to(C, 1e-300, method) == 1
    assert weights.rounds_to(weights.metropolis(graphs.ring(5)), 1.0, method) == 0
    assert weights.rounds_to(weights.metropolis(graphs.ring(5)), 1e-300, method) > 1


def test_equal_eigenvalues_need_one_chebyshev_round() -> None:
    C = weights.max_degree(graphs.complete(6)).toarray() * 0.5 + 0.5 * np.eye(6)
    assert weights.rounds_to(C, 0.25) == 2
    assert weights.rounds_to(C, 1e-9, "chebyshev") == 1
    assert weights.rounds_to(C, 1e-3) == 10


@pytest.mark.parametrize("accuracy", [0.0, -1.0, np.nan])
def test_an_accuracy_has_to_be_positive(accuracy: float) -> None:
    for method in ("plain", "chebyshev"):
        with pytest.raises(InputError, match=r"accuracy is .*: give a positive number"):
            weights.rounds_to(weights.metropolis(graphs.ring(5)), accuracy, method)


def test_rounds_that_never_come() -> None:
    for method in ("plain", "chebyshev"):
        with pytest.raises(WeightsError, match="contraction 1 never reach the average"):
            weights.rounds_to(np.eye(4), 1e-3, method)
    with pytest.raises(
        InputError,
        match=r"no method 'chebychev': there are plain, chebyshev; did you mean 'chebyshev'\?",
    ):
        weights.rounds_to(np.eye(4), 1e-3, "chebychev")
