"""Blockwise recursive least squares: each agent's ridge solution, updated with each new chunk.

    A <- A + H'H,   A[0] = alpha I                information of all rows so far
    b <- b + A^-1 H'(Y - H b)                     many rows: solved anew
    (S'S)^-1 = I + H P H',   G = S H P            few rows: P = A^-1 is updated instead
    P <- P - G'G,   b <- b + G'S (Y - H b)

(thesis, section 5.1; Uncini, Fundamentals of adaptive signal processing, 2015, chapter 6; G'G is
the printed P H'M^-1 H P.) Of A and P only the lower triangles are stored and used, so they are
symmetric by construction. Differences lose digits and sums do not. So A is exact up to rounding,
and P is computed from it again after some multiples of B rows. After any number of chunks both are
positive definite, or `Indefinite` is raised. With a forgetting factor f below 1,

    A <- f A + (1 - f) alpha I + H'H              per chunk, also where an agent has no rows

A never falls below alpha I, whereas the usual P/f grows without bound in directions that no longer
occur. Then every chunk is solved anew.

A chunk is learned in two steps, because it may fail half way. `absorb` computes the new b and
changes nothing. The function that it returns updates A and P in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg.blas import dsymm, dsyrk
from scipy.linalg.lapack import dposv, dpotrf, dpotri

from peerlearn.arrays import Array, Indices
from peerlearn.local.chunks import Chunk

# Named arrays, each with a leading axis of hosted agents: all that a stream has to remember.
State = dict[str, Array]

FEW = 0.25  # of B: with fewer rows P is updated, with more the equations are solved
# P is computed from A again after this many times B rows. By then that costs little beside the
# updates.
RENEWED_AFTER = 16
STALE = 1e300  # the age of a P that was not updated


class Indefinite(Exception):
    """Equations that are no longer positive definite. The argument is the hosted agent's index."""


def start(
    agents: int,
    shape: tuple[int, int],
    alpha: float,
    forgetting: float,
) -> State:
    """Return the state before the first chunk: b = 0, A = alpha I."""
    B, M = shape
    state = {
        "b": np.zeros((agents, B, M)),
        "A": np.tile(alpha * np.eye(B), (agents, 1, 1)),
    }
    if forgetting == 1.0:
        P = np.eye(B) / alpha
        state["P"] = np.tile(P, (agents, 1, 1))
        state["age"] = np.zeros(agents)
    return state


def absorb(
    state: State,
    chunks: Sequence[Chunk],
    alpha: float,
    forgetting: float,
) -> tuple[Array, Callable[[], None]]:
    """Return every agent's b after its chunk, and a function that updates A and P in place.

    Call that function when nothing else can fail.
    """
    b = state["b"].copy()
    updates = []
    for chunk in chunks:
        few = forgetting == 1.0 and chunk.H.shape[1] <= FEW * b.shape[1]
        e = chunk.Y - chunk.H @ b[chunk.agents]
        if few:
            gain, update = _use_covariance(state, chunk, e)
        else:
            gain, update = _solve_anew(
                state,
                chunk,
                e,
                alpha,
                forgetting,
            )
        b[chunk.agents] += gain
        updates.append(update)

    def update_all() -> None:
        if forgetting < 1.0:
            busy = [k for chunk in chunks for k in chunk.agents.tolist()]
            idle = np.setdiff1d(np.arange(len(b)), busy)
            state["A"][idle] = _forget(state["A"][idle], alpha, forgetting)
        for update in updates:
            update()

    return b, update_all


def symmetrise(triangles: Array) -> Array:
    """Return A or P of every agent, with the upper triangle as well."""
    lower = np.tril(triangles)
    return lower + _transpose(np.tril(triangles, -1))


def _use_covariance(
    state: State,
    chunk: Chunk,
    e: Array,
) -> tuple[Array, Callable[[], None]]:
    """Return G'S e, and a function that updates P and A."""
    A = state["A"]
    P = state["P"]
    age = state["age"]
    own = chunk.agents
    H = chunk.H
    _renew(state, own[age[own] > RENEWED_AFTER * A.shape[1]])
    HP = _products(P, own, H)
    squares = HP @ _transpose(H) + np.eye(H.shape[1])
    try:
        S = np.linalg.inv(np.linalg.cholesky(squares))
    except np.linalg.LinAlgError:
        # P has lost too many digits by differences: try once more with one computed from A.
        if not age[own].any():
            smallest = np.linalg.eigvalsh(squares)[:, 0]
            raise Indefinite(int(own[smallest.argmin()])) from None
        _renew(state, own)
        return _use_covariance(state, chunk, e)
    G = S @ HP

    def update() -> None:
        _add_squares(A, own, H, 1.0)
        _add_squares(P, own, G, -1.0)
        age[own] += chunk.rows

    return _transpose(G) @ (S @ e), update


def _solve_anew(
    state: State,
    chunk: Chunk,
    e: Array,
    alpha: float,
    forgetting: float,
) -> tuple[Array, Callable[[], None]]:
    """Return A^-1 H'e, and a function that updates A."""
    own = chunk.agents
    H = chunk.H
    A = state["A"][own]  # a copy
    if forgetting != 1.0:
        A = _forget(A, alpha, forgetting)
    _add_squares(A, np.arange(len(own)), H, 1.0)
    gain = _solve(A, own, _transpose(H) @ e)

    def update() -> None:
        state["A"][own] = A
        if "age" in state:
            state["age"][own] = STALE

    return gain, update


def _forget(
    A: Array,
    alpha: float,
    forgetting: float,
) -> Array:
    """Return f A + (1 - f) alpha I."""
    faded: Array = forgetting * A
    diagonal = np.arange(A.shape[1])
    faded[:, diagonal, diagonal] += (1 - forgetting) * alpha
    return faded


def _renew(state: State, agents: Indices) -> None:
    """Set P = A^-1, computed from the sums."""
    for k in agents.tolist():
        state["P"][k] = _inverse(state["A"][k], k)
        state["age"][k] = 0.0


# BLAS has no stacks of symmetric matrices. One call per agent reads or writes a triangle in place.
# A stacked numpy product would write a whole matrix and then add it, which takes twice the time.


def _products(
    P: Array,
    own: Indices,
    H: Array,
) -> Array:
    """Return H P for each agent."""
    HP = np.empty_like(H)
    for i, k in enumerate(own.tolist()):
        HP[i] = dsymm(1.0, P[k].T, H[i].T).T
    return HP


def _add_squares(
    total: Array,
    own: Indices,
    H: Array,
    sign: float,
) -> None:
    """Add sign H'H to the total of each agent, in place."""
    for i, k in enumerate(own.tolist()):
        dsyrk(
            sign,
            H[i].T,
            beta=1.0,
            c=total[k].T,
            overwrite_c=1,
        )


def _solve(
    A: Array,
    own: Indices,
    rhs: Array,
) -> Array:
    """Return A^-1 rhs for each agent."""
    solution = np.empty_like(rhs)
    for i, k in enumerate(own.tolist()):
        _, solution[i], failed = dposv(A[i].T, rhs[i])
        if failed:
            raise Indefinite(k)
    return solution


def _inverse(A: Array, agent: int) -> Array:
    """Return A^-1, by Cholesky."""
    factor, failed = dpotrf(A.T)
    if failed:
        raise Indefinite(agent)
    inverted: Array = dpotri(factor)[0].T
    return inverted


def _transpose(stack: Array) -> Array:
    return stack.transpose(0, 2, 1)
