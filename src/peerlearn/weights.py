"""Mixing matrices of a graph, and how fast they mix.

One round is x <- C x, with C_kj the weight that agent k gives to agent j. Every C here is a sparse
matrix with

    C = C',   C 1 = 1,   C_kj = 0 where k and j are not linked,   contraction  rho(C - 11'/L) < 1,

so that the average is kept in every round and reached in the end. (C 1 = 1 and the contraction
alone, as often printed, lead to a weighted mean when C is not symmetric.) Weights may be negative:
the fastest ones usually are.
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
TOLERANCE = 1e-9  # what a given matrix may miss symmetry and row sums by
ROUNDING = 1e-13  # eigenvalues closer than this to 0, 1 or -1 are these
RESTARTS = (
    60  # of Lanczos: well-connected graphs need a few, the others are better served by factorising
)


def max_degree(graph: nx.Graph) -> sparse.csr_array:
    """C_kj = 1/(d + 1) for neighbors, d the largest degree (Olfati-Saber, Fax and Murray, Consensus, 2007)."""
    links = _links(graph)
    return _averaging(links / (_sums(links).max() + 1))


def metropolis(graph: nx.Graph) -> sparse.csr_array:
    """C_kj = 1/(1 + max(d_k, d_j)) for neighbors (Xiao, Boyd and Lall, Robust distributed sensor fusion, 2005).

    Each agent need only know its neighbors' degrees.
    """
    links = _links(graph)
    degrees, (k, j) = _sums(links), links.nonzero()
    return _averaging(
        sparse.coo_array((1 / (1 + np.maximum(degrees[k], degrees[j])), (k, j)), shape=links.shape)
    )


def laplacian(graph: nx.Graph) -> sparse.csr_array:
    """C = I - alpha Lap, the fastest with one weight for all links: alpha = 2/(mu_2 + mu_L).

    0 = mu_1 < mu_2 <= .. <= mu_L are the eigenvalues of the graph's Laplacian Lap = D - A (Xiao and
    Boyd, Fast linear iterations for distributed averaging, 2004, section 4.1). Those of I - Lap/(d
    + 1), which are at hand, are 1 - mu/(d + 1).
    """
    links = _links(graph)
    largest, smallest = spectrum(max_degree(graph))
    return _averaging(links * (2 / ((_sums(links).max() + 1) * (2 - largest - smallest))))


def fastest(graph: nx.Graph) -> sparse.csr_array:
    """The symmetric C of least contraction (Xiao and Boyd, 2004, section 4.2), one weight w_e per link e:

        minimise s   such that   -s I <= I - sum_e w_e (U'b_e)(U'b_e)' <= s I

    b_e has 1 and -1 at the ends of e; the columns of U span the vectors orthogonal to 1, so 11'/L
    need not appear. The weights need not be unique, their contraction is. Takes seconds for 50
    agents, minutes for 100.
    """
    cvxpy, links, size = _cvxpy(), _links(graph), len(graph)
    if size == 1:
        return _averaging(links)
    ends = np.column_stack(sparse.triu(links).nonzero())
    basis = np.linalg.svd(np.ones((1, size)))[2][1:]  # U', by rows
    steps = basis[:, ends[:, 0]] - basis[:, ends[:, 1]]
    moves = np.einsum("ie,je->ije", steps, steps).reshape(-1, len(ends))
    w, s = cvxpy.Variable(len(ends)), cvxpy.Variable()
    identity = np.eye(size - 1)
    mixed = identity - cvxpy.reshape(moves @ w, identity.shape, order="C")
    _solve(
        cvxpy,
        cvxpy.Problem(cvxpy.Minimize(s), [s * identity - mixed >> 0, s * identity + mixed >> 0]),
        size,
    )
    half = sparse.coo_array((w.value, (ends[:, 0], ends[:, 1])), shape=links.shape)
    return _averaging(half + half.T)


def _cvxpy() -> Any:
    try:
        import cvxpy
    except ImportError:
        raise MissingExtra("weights='fastest'", "cvxpy", "sdp") from None
    return cvxpy


def _solve(cvxpy: Any, problem: Any, size: int) -> None:
    """By the first installed solver that reaches full accuracy, the most accurate one asked first."""
    tried = []
    for solver, options in (
        ("CLARABEL", {}),
        ("SCS", {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 50_000}),
    ):
        if solver in cvxpy.installed_solvers():
            try:
                with warnings.catch_warnings(
                    action="ignore"
                ):  # of inexact solutions, which the status tells as well
                    problem.solve(solver=solver, **options)
            except cvxpy.SolverError as error:
                tried.append(f"{solver}: {error}")
                continue
            if problem.status == cvxpy.OPTIMAL:
                return
            tried.append(f"{solver}: {problem.status}")
    raise WeightsError(
        f"the fastest weights of {size} agents were not found ({'; '.join(tried) or 'no solver installed'}): "
        "use 'metropolis' or 'laplacian'"
    )


NAMES: dict[str, Callable[[nx.Graph], sparse.csr_array]] = {
    "max-degree": max_degree,
    "metropolis": metropolis,
    "laplacian": laplacian,
    "fastest": fastest,
}


def named(weights: str | ArrayLike | sparse.sparray, graph: nx.Graph) -> sparse.csr_array:
    """The mixing matrix that `weights` stands for: one of NAMES, or a matrix, which is checked."""
    if not isinstance(weights, str):
        return checked(weights, graph)
    if (name := weights.lower().replace("_", "-")) in NAMES:
        return NAMES[name](graph)
    raise WeightsError(f"there are no weights called {weights!r}: {_known(name, NAMES)}")


def checked(C: ArrayLike | sparse.sparray, graph: nx.Graph) -> sparse.csr_array:
    """A given matrix as sparse weights of the graph, what rounding left unequal made equal, or the reason why not."""
    links, C = _links(graph), _matrix(C)
    if C.shape != links.shape:
        raise WeightsError(
            f"weights of shape {C.shape} cannot mix {len(graph)} agents: give one row and column each"
        )
    k, j, stray = _worst(C - C * (links + sparse.eye_array(len(graph))))
    if stray:
        raise WeightsError(
            f"C[{k}, {j}] = {C[k, j]:.6g}, but agents {k} and {j} are not linked: link them or set it 0"
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
            f"weights have the eigenvalue {smallest:.6g}, so values would swing for ever: use (I + C)/2 instead"
        )
    return _averaging((C + C.T) / 2)


def spectrum(C: ArrayLike | sparse.sparray) -> tuple[float, float]:
    """Largest and smallest eigenvalue of C, the eigenvalue 1 of the constant vector set apart; (0, 0) for one agent.

    The constant vector is moved to the mean c of the other eigenvalues, which lies between them:
    the extremes of
    C - (1 - c) 11'/L are those wanted, even if all of them have the same sign.
    """
    C = _matrix(C)
    _refuse_weighted_means(C)
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
    largest, smallest = (
        float(np.rint(end) if abs(end - np.rint(end)) < ROUNDING else end) for end in ends
    )
    return largest, smallest


def contraction(C: ArrayLike | sparse.sparray) -> float:
    """rho(C - 11'/L): the factor by which one round shrinks the distance to the average, at worst."""
    return max(map(abs, spectrum(C)))


def rounds_to(C: ArrayLike | sparse.sparray, accuracy: float, method: str = "plain") -> int:
    """Rounds until the distance to the average (Frobenius, over all agents) is at most `accuracy` times what it was.

    By "plain" rounds x <- C x, or by the "chebyshev" polynomial of C; the formulas are in
    `peerlearn.rounds`.
    """
    if method not in ("plain", "chebyshev"):
        raise InputError(f"there is no method {method!r}: {_known(method, ('plain', 'chebyshev'))}")
    C = _matrix(C)
    largest, smallest = spectrum(C)
    rho = max(abs(largest), abs(smallest))
    needed = (
        plain_rounds(rho, accuracy)
        if method == "plain"
        else chebyshev_rounds(largest, smallest, accuracy)
    )
    return needed if C.shape[0] > 1 else 0


def _extreme(C: sparse.csr_array, deflated: LinearOperator, end: str) -> float:
    """One end of the spectrum by Lanczos; where that is slow (long thin graphs) by Lanczos on (C - sigma I)^-1.

    sigma lies just beyond the end (Gershgorin), so the eigenvalue next to it is the inverse's
    largest; the constant vector is projected out. Long thin graphs factorise without fill-in, the
    others do not get here.
    """
    start = np.random.default_rng(0).standard_normal(
        C.shape[0]
    )  # fixed: the same weights have the same contraction
    try:
        return float(
            eigsh(deflated, 1, which=end, v0=start, ncv=40, maxiter=RESTARTS, tol=1e-10)[0][0]
        )
    except ArpackError:
        pass
    middle, spread = C.diagonal(), _sums(abs(C)) - abs(C.diagonal())
    sigma = (middle + spread).max() + 1e-6 if end == "LA" else (middle - spread).min() - 1e-6
    solve = splu(sparse.csc_array(C - sigma * sparse.eye_array(C.shape[0]))).solve
    try:
        inverse = LinearOperator(C.shape, lambda x: _centred(solve(_centred(x))), dtype=np.float64)
        return float(sigma + 1 / eigsh(inverse, 1, which="LM", v0=start, ncv=60, tol=1e-10)[0][0])
    except ArpackError as error:
        raise WeightsError(
            f"how fast these {C.shape[0]} agents mix could not be computed ({error}): link them better"
        ) from error


def _centred(x: Array) -> Array:
    centred: Array = x - x.mean()
    return centred


def _refuse_weighted_means(C: sparse.csr_array) -> None:
    """Square, symmetric and with row sums one: what keeps the average."""
    if C.shape[0] != C.shape[1]:
        raise WeightsError(f"weights have shape {C.shape}: give one row and one column per agent")
    k, j, uneven = _worst(sparse.triu(C - C.T))
    if uneven > TOLERANCE:
        raise WeightsError(
            f"weights are not symmetric: C[{k}, {j}] = {C[k, j]:.6g} but C[{j}, {k}] = {C[j, k]:.6g}; "
            "agents would agree on a weighted mean, not on the average: use 'metropolis' weights or make C equal to C'"
        )
    sums = _sums(C)
    k = int(abs(sums - 1).argmax())
    if abs(sums[k] - 1) > TOLERANCE:
        raise WeightsError(
            f"the weights of agent {k} sum to {sums[k]:.9g}, not to 1, so the average would drift: "
            f"set C[{k}, {k}] to 1 minus the weights of its neighbors"
        )


def _matrix(C: Any) -> sparse.csr_array:
    """Anything that holds a matrix of finite real numbers, as a sparse one."""
    try:
        given = C if sparse.issparse(C) else np.asarray(C)
    except ValueError:
        given = np.asarray(None)  # rows of unequal length
    if given.ndim != 2 or 0 in given.shape or given.dtype.kind not in "fiub":
        raise WeightsError(
            f"weights have to be one of {', '.join(NAMES)} or a matrix of real numbers, one row and column per agent, "
            f"not this {type(C).__name__} of shape {given.shape} and type {given.dtype}"
        )
    entries = sparse.coo_array(given, dtype=np.float64)
    for k in np.flatnonzero(~np.isfinite(entries.data)):
        raise WeightsError(
            f"C[{entries.row[k]}, {entries.col[k]}] = {entries.data[k]}: give finite numbers as weights"
        )
    return entries.tocsr()


def _worst(matrix: Any) -> tuple[int, int, float]:
    """Row, column and size of the largest entry."""
    entries = abs(sparse.coo_array(matrix))
    at = int(entries.data.argmax()) if entries.nnz else None
    return (
        (0, 0, 0.0)
        if at is None
        else (int(entries.row[at]), int(entries.col[at]), float(entries.data[at]))
    )


def _averaging(links: Any) -> sparse.csr_array:
    """The weights of the links completed by the diagonal that makes rows sum to one, stored even where it is zero."""
    entries, agents = sparse.coo_array(links), np.arange(links.shape[0])
    kept = (entries.row != entries.col) & (entries.data != 0)
    row, col, data = entries.row[kept], entries.col[kept], entries.data[kept]
    own = 1 - np.bincount(row, data, minlength=len(agents))
    places = np.concatenate([row, agents]), np.concatenate([col, agents])
    C = sparse.csr_array((np.concatenate([data, own]), places), shape=links.shape)
    C.sort_indices()
    return C


def _links(graph: nx.Graph) -> sparse.csr_array:
    """1 where two agents are linked."""
    if (
        not graph
        or graph.is_directed()
        or set(graph) != set(range(len(graph)))
        or nx.number_of_selfloops(graph)
    ):
        raise GraphError(
            "weights are for undirected graphs of agents 0..n-1: pass the graph through graphs.checked"
        )
    links = sparse.csr_array(
        nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), weight=None)
    )
    return sparse.csr_array((np.ones(links.nnz), links.indices, links.indptr), shape=links.shape)


def _sums(matrix: sparse.csr_array) -> Array:
    """Of each row: the degrees, if the matrix holds links."""
    return np.asarray(matrix.sum(axis=1), dtype=np.float64)


def _known(name: str, names: Iterable[str]) -> str:
    nearest = get_close_matches(name, names, 1, 0.5)
    return f"there are {', '.join(names)}" + (f"; did you mean {nearest[0]!r}?" if nearest else "")
