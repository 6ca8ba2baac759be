"""Mixing matrices of a graph, and how fast they mix.

One round is x <- C x, with C_kj the weight that agent k gives to agent j. Every C here is a sparse
matrix with

    C = C',   C 1 = 1,   C_kj = 0 where k and j are not linked,   contraction  rho(C - 11'/L) < 1,

so every round keeps the average, and repeated rounds reach it. (C 1 = 1 and the contraction alone,
as often printed, lead to a weighted mean if C is not symmetric.) Weights may be negative; the
fastest ones usually are.

All rules below compute weights of links only. `_averaging` adds the diagonal that makes rows sum to
one. `spectrum` computes the two eigenvalues that decide how fast C mixes: from all eigenvalues up
to DENSE_UP_TO agents, and by Lanczos above.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu

from peerlearn.arrays import Array
from peerlearn.errors import GraphError, InputError, MissingExtra, WeightsError
from peerlearn.rounds import chebyshev_rounds, plain_rounds

DENSE_UP_TO = 1500  # agents; above, only the extreme eigenvalues are computed
TOLERANCE = 1e-9  # largest error of symmetry and row sums that a given matrix may have
ROUNDING = 1e-13  # eigenvalues closer than this to 0, 1 or -1 are set to it
# Restarts of Lanczos. Well-connected graphs need a few; for the others factorising is quicker.
RESTARTS = 60


def max_degree(graph: nx.Graph) -> sparse.csr_array:
    """Return the weights C_kj = 1/(d + 1) of neighbors, with d the largest degree of the graph.

    Olfati-Saber, Fax and Murray, Consensus and cooperation in networked multi-agent systems, 2007.

    Parameters
    ----------
    graph : networkx.Graph
        An undirected graph of agents 0..n-1.

    Returns
    -------
    scipy.sparse.csr_array
        C, one row and one column per agent.

    Examples
    --------
    >>> from peerlearn import graphs, weights
    >>> weights.max_degree(graphs.linear(3)).toarray().round(3)
    array([[0.667, 0.333, 0.   ],
           [0.333, 0.333, 0.333],
           [0.   , 0.333, 0.667]])
    """
    links = _links(graph)
    return _averaging(links / (_sums(links).max() + 1))


def metropolis(graph: nx.Graph) -> sparse.csr_array:
    """Return the weights C_kj = 1/(1 + max(d_k, d_j)) of neighbors with degrees d_k and d_j.

    An agent has to know only the degrees of its neighbors. Xiao, Boyd and Lall, A scheme for robust
    distributed sensor fusion, 2005.

    Parameters
    ----------
    graph : networkx.Graph
        An undirected graph of agents 0..n-1.

    Returns
    -------
    scipy.sparse.csr_array
        C, one row and one column per agent.

    Examples
    --------
    >>> from peerlearn import graphs, weights
    >>> C = weights.metropolis(graphs.star(4))
    >>> C.toarray()
    array([[0.25, 0.25, 0.25, 0.25],
           [0.25, 0.75, 0.  , 0.  ],
           [0.25, 0.  , 0.75, 0.  ],
           [0.25, 0.  , 0.  , 0.75]])
    """
    links = _links(graph)
    degrees = _sums(links)
    k, j = links.nonzero()
    shared = 1 / (1 + np.maximum(degrees[k], degrees[j]))
    return _averaging(sparse.coo_array((shared, (k, j)), shape=links.shape))


def laplacian(graph: nx.Graph) -> sparse.csr_array:
    """Return C = I - alpha Lap, the fastest weights that are the same for all links.

    alpha = 2/(mu_2 + mu_L), where 0 = mu_1 < mu_2 <= .. <= mu_L are the eigenvalues of the graph's
    Laplacian Lap = D - A (Xiao and Boyd, Fast linear iterations for distributed averaging, 2004,
    section 4.1). They follow from the spectrum of `max_degree`: I - Lap/(d + 1) has the eigenvalues
    1 - mu/(d + 1).

    Parameters
    ----------
    graph : networkx.Graph
        An undirected graph of agents 0..n-1.

    Returns
    -------
    scipy.sparse.csr_array
        C, one row and one column per agent.

    Examples
    --------
    >>> from peerlearn import graphs, weights
    >>> graph = graphs.ring(10)
    >>> C = weights.laplacian(graph)
    >>> weights.contraction(C) < weights.contraction(weights.metropolis(graph))
    True
    """
    links = _links(graph)
    largest, smallest = spectrum(max_degree(graph))
    d = _sums(links).max()
    alpha = 2 / ((d + 1) * (2 - largest - smallest))
    return _averaging(links * alpha)


def fastest(graph: nx.Graph) -> sparse.csr_array:
    """Return the symmetric weights of least contraction, one weight w_e per link e.

        minimise s   such that   -s I <= I - sum_e w_e (U'b_e)(U'b_e)' <= s I

    b_e has 1 and -1 at the ends of e. The columns of U span the vectors orthogonal to 1, so 11'/L
    need not appear (Xiao and Boyd, 2004, section 4.2). The weights need not be unique, but their
    contraction is. This takes seconds for 50 agents and minutes for 100, and needs the package
    cvxpy.

    Parameters
    ----------
    graph : networkx.Graph
        An undirected graph of agents 0..n-1.

    Returns
    -------
    scipy.sparse.csr_array
        C, one row and one column per agent.

    Raises
    ------
    MissingExtra
        If cvxpy is not installed.
    WeightsError
        If no installed solver reaches full accuracy.

    Examples
    --------
    >>> from peerlearn import graphs, weights
    >>> graph = graphs.star(5)
    >>> C = weights.fastest(graph)
    >>> weights.contraction(C) < weights.contraction(weights.metropolis(graph))
    True
    """
    cvxpy = _cvxpy()
    links = _links(graph)
    size = len(graph)
    if size == 1:
        return _averaging(links)
    ends = np.column_stack(sparse.triu(links).nonzero())
    basis = np.linalg.svd(np.ones((1, size)))[2][1:]  # U', by rows
    steps = basis[:, ends[:, 0]] - basis[:, ends[:, 1]]
    moves = np.einsum("ie,je->ije", steps, steps).reshape(-1, len(ends))
    w = cvxpy.Variable(len(ends))
    s = cvxpy.Variable()
    identity = np.eye(size - 1)
    mixed = identity - cvxpy.reshape(moves @ w, identity.shape, order="C")
    bounds = [s * identity - mixed >> 0, s * identity + mixed >> 0]
    _solve(cvxpy, cvxpy.Problem(cvxpy.Minimize(s), bounds), size)
    half = sparse.coo_array((w.value, (ends[:, 0], ends[:, 1])), shape=links.shape)
    return _averaging(half + half.T)


def _cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError:
        raise MissingExtra("weights='fastest'", "cvxpy", "sdp") from None
    return cvxpy


def _solve(
    cvxpy: Any,
    problem: Any,
    size: int,
) -> None:
    """Solve by the first installed solver that reaches full accuracy, the best one first."""
    failures = []
    for solver, options in (
        ("CLARABEL", {}),
        ("SCS", {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 50_000}),
    ):
        if solver not in cvxpy.installed_solvers():
            continue
        try:
            # cvxpy warns of inexact solutions; the status shows them as well.
            with warnings.catch_warnings(action="ignore"):
                problem.solve(solver=solver, **options)
        except cvxpy.SolverError as error:
            failures.append(f"{solver}: {error}")
            continue
        if problem.status == cvxpy.OPTIMAL:
            return
        failures.append(f"{solver}: {problem.status}")
    reasons = "; ".join(failures) or "no solver installed"
    raise WeightsError(
        f"the fastest weights of {size} agents were not found ({reasons}): "
        "use 'metropolis' or 'laplacian'"
    )


NAMES: dict[str, Callable[[nx.Graph], sparse.csr_array]] = {
    "max-degree": max_degree,
    "metropolis": metropolis,
    "laplacian": laplacian,
    "fastest": fastest,
}


def named(weights: str | ArrayLike | sparse.sparray, graph: nx.Graph) -> sparse.csr_array:
    """Return the mixing matrix of a name, or check a matrix that is given in its place.

    Parameters
    ----------
    weights : str, array_like or sparse matrix
        "max-degree", "metropolis", "laplacian", "fastest", or a matrix for `checked`.
    graph : networkx.Graph
        An undirected graph of agents 0..n-1.

    Returns
    -------
    scipy.sparse.csr_array
        C, one row and one column per agent.

    Examples
    --------
    >>> from peerlearn import graphs, weights
    >>> weights.named("metropolis", graphs.linear(2)).toarray()
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    if not isinstance(weights, str):
        return checked(weights, graph)
    name = weights.lower().replace("_", "-")
    if name not in NAMES:
        raise WeightsError(f"there are no weights called {weights!r}: {_suggest(name, NAMES)}")
    return NAMES[name](graph)


def checked(C: ArrayLike | sparse.sparray, graph: nx.Graph) -> sparse.csr_array:
    """Return a given matrix as sparse weights of the graph, or raise an error.

    Differences between C and C' that come from rounding are averaged out.

    Parameters
    ----------
    C : array_like or sparse matrix
        Symmetric weights, one row and one column per agent, with rows that sum to one.
    graph : networkx.Graph
        An undirected graph of agents 0..n-1.

    Returns
    -------
    scipy.sparse.csr_array
        The weights, exactly symmetric.

    Raises
    ------
    WeightsError
        If C is not symmetric, if its rows do not sum to one, if it links agents that the graph
        does not, or if its rounds would not reach the average.

    Examples
    --------
    >>> from peerlearn import graphs, weights
    >>> weights.checked([[0.6, 0.4], [0.4, 0.6]], graphs.linear(2)).toarray()
    array([[0.6, 0.4],
           [0.4, 0.6]])
    """
    links = _links(graph)
    C = _matrix(C)
    if C.shape != links.shape:
        raise WeightsError(
            f"weights of shape {C.shape} cannot mix {len(graph)} agents: give one row and column "
            "each"
        )
    k, j, stray = _worst(C - C * (links + sparse.eye_array(len(graph))))
    if stray:
        raise WeightsError(
            f"C[{k}, {j}] = {C[k, j]:.6g}, but agents {k} and {j} are not linked: link them or set "
            "it 0"
        )
    largest, smallest = spectrum(C)
    if largest >= 1:
        effect = (
            "agents would drift apart"
            if largest > 1
            else "some agents would never hear of the others"
        )
        raise WeightsError(
            f"weights have a second eigenvalue of {largest:.6g}, so {effect}: "
            "give positive weight to links that connect everybody"
        )
    if smallest <= -1:
        raise WeightsError(
            f"weights have the eigenvalue {smallest:.6g}, so values would swing for ever: use "
            "(I + C)/2 instead"
        )
    return _averaging((C + C.T) / 2)


def spectrum(C: ArrayLike | sparse.sparray) -> tuple[float, float]:
    """Return the largest and the smallest eigenvalue of C, without the 1 of the constant vector.

    The eigenvalue of the constant vector is moved to the mean c of the other eigenvalues, which
    lies between them. So the extremes of C - (1 - c) 11'/L are the ones wanted, even if all of them
    have the same sign.

    Parameters
    ----------
    C : array_like or sparse matrix
        Symmetric weights, one row and one column per agent, with rows that sum to one.

    Returns
    -------
    largest, smallest : float
        The two eigenvalues; 0 and 0 for one agent.

    Examples
    --------
    >>> from peerlearn import graphs, weights
    >>> largest, smallest = weights.spectrum(weights.metropolis(graphs.ring(6)))
    >>> round(largest, 3), round(smallest, 3)
    (0.667, -0.333)
    """
    C = _matrix(C)
    _check_average_kept(C)
    size = C.shape[0]
    if size == 1:
        return 0.0, 0.0
    excess = 1 - (C.trace() - 1) / (size - 1)
    if size <= DENSE_UP_TO:
        values = np.linalg.eigvalsh(C.toarray() - excess / size)
        ends = values[-1], values[0]
    else:
        deflated = LinearOperator(C.shape, lambda x: C @ x - excess * x.mean(), dtype=np.float64)
        ends = _extreme(C, deflated, "LA"), _extreme(C, deflated, "SA")
    return _snap(ends[0]), _snap(ends[1])


def _snap(eigenvalue: float) -> float:
    """Remove the rounding of an eigenvalue that is a whole number."""
    nearest = np.rint(eigenvalue)
    return float(nearest if abs(eigenvalue - nearest) < ROUNDING else eigenvalue)


def contraction(C: ArrayLike | sparse.sparray) -> float:
    """Return rho(C - 11'/L), the factor by which a round shrinks the distance to the average.

    It is the factor of the worst case: other values come nearer to their average in one round.

    Parameters
    ----------
    C : array_like or sparse matrix
        Symmetric weights, one row and one column per agent, with rows that sum to one.

    Returns
    -------
    float
        The factor; below 1 if repeated rounds reach the average.

    Examples
    --------
    >>> from peerlearn import graphs, weights
    >>> round(weights.contraction(weights.metropolis(graphs.ring(6))), 3)
    0.667
    """
    return max(map(abs, spectrum(C)))


def rounds_to(
    C: ArrayLike | sparse.sparray,
    accuracy: float,
    method: str = "plain",
) -> int:
    """Return how many rounds shrink the distance to the average to `accuracy` times what it was.

    The distance is the Frobenius norm over all agents, and the number is that of the worst case.
    The formulas are in `peerlearn.rounds`.

    Parameters
    ----------
    C : array_like or sparse matrix
        Symmetric weights, one row and one column per agent, with rows that sum to one.
    accuracy : float
        Final distance divided by the first one.
    method : {"plain", "chebyshev"}, default "plain"
        Rounds x <- C x, or rounds of the Chebyshev polynomial of C.

    Returns
    -------
    int
        Number of rounds.

    Examples
    --------
    >>> from peerlearn import graphs, weights
    >>> C = weights.metropolis(graphs.ring(20))
    >>> weights.rounds_to(C, 1e-6), weights.rounds_to(C, 1e-6, "chebyshev")
    (417, 46)
    """
    methods = ("plain", "chebyshev")
    if method not in methods:
        raise InputError(f"there is no method {method!r}: {_suggest(method, methods)}")
    C = _matrix(C)
    largest, smallest = spectrum(C)
    if method == "plain":
        needed = plain_rounds(max(abs(largest), abs(smallest)), accuracy)
    else:
        needed = chebyshev_rounds(largest, smallest, accuracy)
    return needed if C.shape[0] > 1 else 0


def _extreme(
    C: sparse.csr_array,
    deflated: LinearOperator,
    end: str,
) -> float:
    """Return one end of the spectrum, by Lanczos.

    Lanczos is slow for long thin graphs. For them it is applied to (C - sigma I)^-1, where sigma
    lies just beyond the end (Gershgorin): the eigenvalue next to sigma is the inverse's largest.
    The constant vector is projected out. Long thin graphs factorise without fill-in, and other
    graphs do not get that far.
    """
    # A fixed start: the same weights always have the same contraction.
    start = np.random.default_rng(0).standard_normal(C.shape[0])
    try:
        found = eigsh(deflated, 1, which=end, v0=start, ncv=40, maxiter=RESTARTS, tol=1e-10)
        return float(found[0][0])
    except ArpackError:
        pass
    middle = C.diagonal()
    spread = _sums(abs(C)) - abs(C.diagonal())
    sigma = (middle + spread).max() + 1e-6 if end == "LA" else (middle - spread).min() - 1e-6
    solve = splu(sparse.csc_array(C - sigma * sparse.eye_array(C.shape[0]))).solve

    def apply(x: Array) -> Array:
        return _subtract_mean(solve(_subtract_mean(x)))

    inverse = LinearOperator(C.shape, apply, dtype=np.float64)
    try:
        found = eigsh(inverse, 1, which="LM", v0=start, ncv=60, tol=1e-10)
    except ArpackError as error:
        raise WeightsError(
            f"how fast these {C.shape[0]} agents mix could not be computed ({error}): "
            "link them better"
        ) from error
    return float(sigma + 1 / found[0][0])


def _subtract_mean(x: Array) -> Array:
    centred: Array = x - x.mean()
    return centred


def _check_average_kept(C: sparse.csr_array) -> None:
    """Check that C is square and symmetric and has row sums one: then rounds keep the average."""
    if C.shape[0] != C.shape[1]:
        raise WeightsError(f"weights have shape {C.shape}: give one row and one column per agent")
    k, j, uneven = _worst(sparse.triu(C - C.T))
    if uneven > TOLERANCE:
        raise WeightsError(
            f"weights are not symmetric: C[{k}, {j}] = {C[k, j]:.6g} but "
            f"C[{j}, {k}] = {C[j, k]:.6g}; agents would agree on a weighted mean, not on the "
            "average: use 'metropolis' weights or make C equal to C'"
        )
    sums = _sums(C)
    k = int(abs(sums - 1).argmax())
    if abs(sums[k] - 1) > TOLERANCE:
        raise WeightsError(
            f"the weights of agent {k} sum to {sums[k]:.9g}, not to 1, so the average would drift: "
            f"set C[{k}, {k}] to 1 minus the weights of its neighbors"
        )


def _matrix(C: Any) -> sparse.csr_array:
    """Return anything that holds a matrix of finite real numbers as a sparse matrix."""
    try:
        given = C if sparse.issparse(C) else np.asarray(C)
    except ValueError:
        given = np.asarray(None)  # rows of unequal length
    if given.ndim != 2 or 0 in given.shape or given.dtype.kind not in "fiub":
        raise WeightsError(
            f"weights have to be one of {', '.join(NAMES)} or a matrix of real numbers, one row "
            f"and column per agent, not this {type(C).__name__} of shape {given.shape} and type "
            f"{given.dtype}"
        )
    entries = sparse.coo_array(given, dtype=np.float64)
    for k in np.flatnonzero(~np.isfinite(entries.data)):
        raise WeightsError(
            f"C[{entries.row[k]}, {entries.col[k]}] = {entries.data[k]}: give finite numbers as "
            "weights"
        )
    return entries.tocsr()


def _worst(matrix: Any) -> tuple[int, int, float]:
    """Return row, column and size of the largest entry."""
    entries = abs(sparse.coo_array(matrix))
    if not entries.nnz:
        return 0, 0, 0.0
    at = int(entries.data.argmax())
    return int(entries.row[at]), int(entries.col[at]), float(entries.data[at])


def _averaging(links: Any) -> sparse.csr_array:
    """Add the diagonal that makes rows sum to one; it is stored even where it is zero."""
    entries = sparse.coo_array(links)
    agents = np.arange(links.shape[0])
    used = (entries.row != entries.col) & (entries.data != 0)
    row = entries.row[used]
    col = entries.col[used]
    data = entries.data[used]
    own = 1 - np.bincount(row, data, minlength=len(agents))
    places = np.concatenate([row, agents]), np.concatenate([col, agents])
    C = sparse.csr_array((np.concatenate([data, own]), places), shape=links.shape)
    C.sort_indices()
    return C


def _links(graph: nx.Graph) -> sparse.csr_array:
    """Return a matrix with 1 where two agents are linked."""
    if (
        not graph
        or graph.is_directed()
        or set(graph) != set(range(len(graph)))
        or nx.number_of_selfloops(graph)
    ):
        raise GraphError(
            "weights are for undirected graphs of agents 0..n-1: pass the graph through "
            "graphs.checked"
        )
    links = sparse.csr_array(
        nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), weight=None)
    )
    return sparse.csr_array((np.ones(links.nnz), links.indices, links.indptr), shape=links.shape)


def _sums(matrix: sparse.csr_array) -> Array:
    """Return the sum of each row. For a matrix of links these are the degrees."""
    return np.asarray(matrix.sum(axis=1), dtype=np.float64)


def _suggest(name: str, names: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: all names, and the nearest one."""
    text = f"there are {', '.join(names)}"
    nearest = get_close_matches(name, names, 1, 0.5)
    if nearest:
        text += f"; did you mean {nearest[0]!r}?"
    return text
