"""Blockwise recursive least squares: each agent's ridge solution, brought up to date with the rows of a new chunk.

    A <- A + H'H,   A[0] = alpha I                        information: what has been seen
    b <- b + A^-1 H'(Y - H b)                             many rows: solved anew
    (S'S)^-1 = I + H P H',   G = S H P                    few rows: P = A^-1 is brought up to date instead
    P <- P - G'G,   b <- b + G'S (Y - H b)

(thesis, section 5.1; Uncini, Fundamentals of adaptive signal processing, 2015, chapter 6; G'G is
the printed P H'M^-1 H P.) Of A and P only the lower triangles are kept and used, so that they are
symmetric whatever happens. Differences lose digits, sums do not: A is the truth, and P is computed
from it again after some multiples of B rows, so that after any number of chunks both are positive
definite, or it is said that they are not. With a forgetting factor f below 1,

    A <- f A + (1 - f) alpha I + H'H                      per chunk, also where an agent has no rows

which never falls below alpha I, where the usual P/f grows without bound in directions that are not
seen any more; then every chunk is solved anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg.blas import dsymm, dsyrk
from scipy.linalg.lapack import dposv, dpotrf, dpotri

from peerlearn.arrays import Array, Indices
from peerlearn.local.chunks import Chunk

State = dict[
    str, Array
]  # named arrays, each with a leading axis of hosted agents: all that a stream has to remember

FEW = 0.25  # of B: with fewer rows P is brought up to date, with more the equations are solved
RENEWED_AFTER = 16  # times B rows P is computed from A again: by then that costs little beside what was done to P
STALE = 1e300  # the age of a P that was not brought up to date


class Indefinite(Exception):
    """The equations of one agent are not positive definite any more; tells its place among the hosted ones."""


def start(agents: int, shape: tuple[int, int], alpha: float, forgetting: float) -> State:
    """Before the first chunk: b = 0, A = alpha I."""
    B, M = shape
    state = {"b": np.zeros((agents, B, M)), "A": np.tile(alpha * np.eye(B), (agents, 1, 1))}
    if forgetting == 1.0:
        state |= {"P": np.tile(np.eye(B) / alpha, (agents, 1, 1)), "age": np.zeros(agents)}
    return state


def absorb(
    state: State, chunks: Sequence[Chunk], alpha: float, forgetting: float
) -> tuple[Array, Callable[[], None]]:
    """Every agent's b after its chunk, and how to bring A and P up to date in place, when nothing can fail any more."""
    b, prepared = state["b"].copy(), []
    for chunk in chunks:
        few = forgetting == 1.0 and chunk.H.shape[1] <= FEW * b.shape[1]
        e = chunk.Y - chunk.H @ b[chunk.agents]
        gain, keep = (
            _by_covariance(state, chunk, e) if few else _anew(state, chunk, e, alpha, forgetting)
        )
        b[chunk.agents] += gain
        prepared.append(keep)

    def keep_all() -> None:
        if forgetting < 1.0:
            idle = np.setdiff1d(
                np.arange(len(b)), [k for chunk in chunks for k in chunk.agents.tolist()]
            )
            state["A"][idle] = _faded(state["A"][idle], alpha, forgetting)
        for keep in prepared:
            keep()

    return b, keep_all


def symmetric(triangles: Array) -> Array:
    """A or P of every agent, with the upper triangle as well."""
    lower = np.tril(triangles)
    return lower + _transposed(np.tril(triangles, -1))


def _by_covariance(state: State, chunk: Chunk, e: Array) -> tuple[Array, Callable[[], None]]:
    """G'S e, and how to bring P and A up to date."""
    A, P, age, own, H = state["A"], state["P"], state["age"], chunk.agents, chunk.H
    _renew(state, own[age[own] > RENEWED_AFTER * A.shape[1]])
    HP = _products(P, own, H)
    squares = HP @ _transposed(H) + np.eye(H.shape[1])
    try:
        S = np.linalg.inv(np.linalg.cholesky(squares))
    except (
        np.linalg.LinAlgError
    ):  # too many differences: once more with a P of which all digits are right
        if not age[own].any():
            smallest = np.linalg.eigvalsh(squares)[:, 0]
            raise Indefinite(int(own[smallest.argmin()])) from None
        _renew(state, own)
        return _by_covariance(state, chunk, e)
    G = S @ HP

    def keep() -> None:
        _add_squares(A, own, H, 1.0)
        _add_squares(P, own, G, -1.0)
        age[own] += chunk.rows

    return _transposed(G) @ (S @ e), keep


def _anew(
    state: State, chunk: Chunk, e: Array, alpha: float, forgetting: float
) -> tuple[Array, Callable[[], None]]:
    """A^-1 H'e, and how to bring A up to date."""
    own, H = chunk.agents, chunk.H
    A = state["A"][own] if forgetting == 1.0 else _faded(state["A"][own], alpha, forgetting)
    _add_squares(A, np.arange(len(own)), H, 1.0)
    gain = _solved(A, own, _transposed(H) @ e)

    def keep() -> None:
        state["A"][own] = A
        if "age" in state:
            state["age"][own] = STALE

    return gain, keep


def _faded(A: Array, alpha: float, forgetting: float) -> Array:
    """f A + (1 - f) alpha I"""
    faded: Array = forgetting * A
    diagonal = np.arange(A.shape[1])
    faded[:, diagonal, diagonal] += (1 - forgetting) * alpha
    return faded


def _renew(state: State, agents: Indices) -> None:
    """P = A^-1, computed from the sums."""
    for k in agents.tolist():
        state["P"][k], state["age"][k] = _inverse(state["A"][k], k), 0.0


# BLAS knows no stacks of symmetric matrices. One call per agent reads or writes a triangle in
# place; a stacked numpy product would write a whole matrix beside it and add that: twice the time.


def _products(P: Array, own: Indices, H: Array) -> Array:
    """H P for each agent."""
    HP = np.empty_like(H)
    for i, k in enumerate(own.tolist()):
        HP[i] = dsymm(1.0, P[k].T, H[i].T).T
    return HP


def _add_squares(total: Array, own: Indices, H: Array, sign: float) -> None:
    """total <- total + sign H'H for each agent."""
    for i, k in enumerate(own.tolist()):
        dsyrk(sign, H[i].T, beta=1.0, c=total[k].T, overwrite_c=1)


def _solved(A: Array, own: Indices, rhs: Array) -> Array:
    """A^-1 rhs for each agent."""
    solution = np.empty_like(rhs)
    for i, k in enumerate(own.tolist()):
        _, solution[i], failed = dposv(A[i].T, rhs[i])
        if failed:
            raise Indefinite(k)
    return solution


def _inverse(A: Array, agent: int) -> Array:
    """A^-1 by Cholesky."""
    factor, failed = dpotrf(A.T)
    if failed:
        raise Indefinite(agent)
    inverted: Array = dpotri(factor)[0].T
    return inverted


def _transposed(stack: Array) -> Array:
    return stack.transpose(0, 2, 1)
