"""Gram under secrecy: the root learns totals of Gram matrices, and all agents learn coefficients.

    A_k = [1 H_k Y_k], times roots of weights                        alone
    D >= diagonal of sum_k A_k'A_k                                   secret sum, at the root
    scales, which follow from D                                      from the root to all agents
    n, s = sum_k H_k'1, q = sum_k Y_k'1, G = sum_k H_k'H_k,
    P = sum_k H_k'Y_k, |Y|^2                                         secret sum, at the root
    b = (G - s s'/n + alpha I)^-1 (P - s q'/n),  c = (q - s'b) / n   at the root, to all agents

Without an intercept s, q and c are left out. The column of ones gives the means, so nobody needs
them before the sum, and they are known to the root only. What a mean subtracts from G is lost to
rounding where columns are far from zero; the certificate accounts for that, by the lengths of
columns before (`Lengths`). R factors, which would help, are not sums.

peerlearn.secret.fixed_point has the scales and the errors of the totals, algorithms/secret_sums.py
the protocol.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peerlearn.algorithms.agreement import no_rows
from peerlearn.algorithms.certificate import receive_bound, solve_certified
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.readout.solver import Solution
from peerlearn.algorithms.secret_sums import session_of
from peerlearn.arrays import Array, Indices, sendable
from peerlearn.errors import DataError, WireError
from peerlearn.local.centred import UncentredProblems
from peerlearn.local.least_squares import CENTRING_UNITS, Lengths
from peerlearn.local.normal_equations import (
    UNIT,
    NormalEquations,
    product_units,
    undetermined_error,
)
from peerlearn.network.base import Network
from peerlearn.secret.fixed_point import (
    DIAGONAL_BITS,
    NOTHING,
    Exponents,
    decode_entries,
    encode_diagonal,
    entry_exponents,
    exponents_of,
)
from peerlearn.secret.keys import Words

# Marks of an answer without coefficients.
ANSWERED = 0.0
NO_ANSWER = 1.0
NO_ROWS = 2.0
CHANGE = "scale the inputs, raise alpha, or use fewer units; secret sums send no R factors"


@dataclass(frozen=True)
class Columns:
    """Columns of [1 H Y], and the entries of its Gram matrix that are summed.

    B, M: numbers of features and outputs. intercept: whether sums of columns are needed.
    """

    B: int
    M: int
    intercept: bool

    @property
    def width(self) -> int:
        """Number of columns."""
        return 1 + self.B + self.M

    @property
    def entries(self) -> tuple[Indices, Indices]:
        """Rows and columns of the entries that are summed.

        Products of two targets are not needed, and sums of columns only for an intercept.
        """
        rows, columns = np.triu_indices(self.width)
        of_targets = (rows > self.B) & (rows != columns)
        of_ones = (rows == 0) & (columns > 0)
        needed = ~of_targets & (~of_ones | self.intercept)
        return rows[needed], columns[needed]

    @property
    def quantity(self) -> str:
        """What the root learns, in words."""
        sums = ", sums of features and targets" if self.intercept else ""
        return f"number or weight of rows{sums}, H'H, H'Y and squares of targets"

    def of_parts(self, G: Array, P: Array, squares: Array, rows: Array) -> Array:
        """Return A'A of one agent, without an intercept, from H'H, H'Y, squares of Y and rows."""
        whole = np.zeros((self.width, self.width))
        whole[0, 0] = rows[0]
        whole[1 : 1 + self.B, 1 : 1 + self.B] = G
        whole[1 : 1 + self.B, 1 + self.B :] = P
        whole.flat[(1 + self.B) * (self.width + 1) :: self.width + 1] = squares
        return whole

    def matrix(self, entries: Array) -> Array:
        """Return A'A from its entries; those that are not summed are zero."""
        S = np.zeros((self.width, self.width))
        S[self.entries] = entries
        return S + np.triu(S, 1).T

    def grams(self, problems: UncentredProblems) -> list[Array]:
        """Return A'A of each hosted agent, or A' diag(w) A; products of targets are left out."""
        B = self.B
        sums = problems.sums()[:, : self.width]
        about_zero = problems.about(problems.zero_means())
        G = about_zero.grams()
        P = about_zero.moment
        found = []
        for k in range(len(sums)):
            S = np.zeros((self.width, self.width))
            S[0] = sums[k]
            S[1 : 1 + B, 1 : 1 + B] = np.triu(G[k])
            S[1 : 1 + B, 1 + B :] = P[k]
            # The squares of all targets bound those of each.
            np.fill_diagonal(S[1 + B :, 1 + B :], about_zero.squares[k])
            found.append(S)
        return found


def solve_in_secret(
    network: Network,
    problems: UncentredProblems,
    alpha: float,
    *,
    tolerance: float,
    intercept: bool,
) -> tuple[Solution, Array]:
    """Return the ridge solution of all agents' rows, and the intercepts of the hosted agents."""
    loop = Iterations(network, "Gram", tolerance, max_iterations=1)
    next(loop)
    B, M = problems.shape
    columns = Columns(B, M, intercept)
    grams = columns.grams(problems)
    N = None
    if problems.weighted:  # else the sum of the ones
        counts = problems.rows[:, None]
        N = int(session_of(network).count("number of rows", counts)[0, 0])
    total, e = sum_gram(network, columns, grams)
    answers = session_of(network).answer(
        total,
        (B + 1) * M + 2,
        lambda found: _solve(columns, decode_entries(found[:, 0], e), N, alpha, tolerance, network),
    )

    mark, bound = answers[0, :2].tolist()
    if mark == NO_ROWS:
        raise no_rows()
    if mark == NO_ANSWER:
        raise undetermined_error(alpha)
    b = answers[:, 2 : 2 + B * M].reshape(-1, B, M)
    report = loop.report(CHANGE, certificate=receive_bound(bound))
    return Solution(b, report, apart=0.0), answers[:, 2 + B * M :]


def sum_gram(
    network: Network, columns: Columns, grams: Sequence[Array]
) -> tuple[Words | None, Exponents]:
    """Return the secret total of Gram matrices at the root, and the exponents of its entries.

    The total is as `SecretSession.sum_to_root` returns it. grams: A'A of each hosted agent.
    """
    diagonals = np.stack([encode_diagonal(np.diagonal(own), network.size) for own in grams])
    session = session_of(network)
    total = session.sum_to_root("squares of features and targets", diagonals)
    scales = session.answer(total, columns.width, lambda D: exponents_of(D).astype(np.float64))
    p = _check_scales(scales[0])
    rows, places = columns.entries
    e = entry_exponents(p[rows], p[places])
    words = session.encode(np.stack([own[rows, places] for own in grams]), e)
    return session.sum_to_root(columns.quantity, words[:, :, None], e.tobytes()), e


def _check_scales(scales: Array) -> Exponents:
    """Return the exponents that the root sent."""
    exponents = scales.astype(np.int64)
    known = (np.abs(exponents) <= DIAGONAL_BITS) | (exponents == NOTHING)
    if not known.all() or np.count_nonzero(exponents != scales):
        raise WireError(
            "the root sent scales that no sum can have: it probably runs another version"
        )
    return exponents


def _solve(
    columns: Columns,
    entries: Array,
    N: int | None,
    alpha: float,
    tolerance: float,
    network: Network,
) -> Array:
    """Return what the root sends: a mark, the bound, b and the intercept.

    N: number of rows; None if it is in the entries.
    """
    nothing = np.zeros((columns.B, columns.M))
    none = np.zeros(columns.M)
    S = columns.matrix(entries)
    n = S[0, 0]
    if n == 0:
        return _row(NO_ROWS, math.inf, nothing, none)
    N = n if N is None else N
    if alpha == 0 and columns.B + columns.intercept > N:
        return _row(NO_ANSWER, math.inf, nothing, none)
    equations, lengths = centre(columns, S, N, network.size)
    try:
        b, certificate = solve_certified(equations, alpha, tolerance, lengths)
    except DataError:
        return _row(NO_ANSWER, math.inf, nothing, none)
    c = none
    if lengths is not None:
        m = lengths.means
        c = m[columns.B :] - m[: columns.B] @ b
    return _row(ANSWERED, certificate.bound, b, c)


def _row(mark: float, bound: float, b: Array, c: Array) -> Array:
    return sendable(np.array([mark, bound, *b.ravel(), *c]))


def centre(
    columns: Columns, S: Array, N: float, agents: int
) -> tuple[NormalEquations, Lengths | None]:
    """Return the normal equations about the means, and what rounding is relative to.

    N: number of rows.
    """
    B = columns.B
    n = S[0, 0]  # rows, or their weight
    features = slice(1, 1 + B)
    targets = slice(1 + B, None)
    G = S[features, features]
    P = S[features, targets]
    square = S[-1, -1]  # of all targets, or more
    # Rounding of each agent's products, of fixed-point numbers (to whole units, and in the last
    # place), and of the total as a float64. Roots of weights have two roundings more.
    units = product_units(N) + CENTRING_UNITS + agents / 64 + 4
    if not columns.intercept:
        found = NormalEquations((B, columns.M), G=G, P=P, squares=square, units=units)
        return found, None
    means = S[0, 1:] / n
    m = means[:B]
    q = means[B:]
    # Two more roundings by what is subtracted, relative to the lengths before.
    units += 4
    left = max(square - n * float(q @ q), 0.0)
    found = NormalEquations(
        (B, columns.M),
        G=G - n * np.outer(m, m),
        P=P - n * np.outer(m, q),
        squares=left,
        units=units,
    )
    lengths = np.sqrt(np.maximum(np.diagonal(G), 0.0))
    length = math.sqrt(square)
    errors = UNIT * units * np.append(lengths, length) / math.sqrt(n)
    own = np.zeros(0)  # of single agents, which nobody knows
    return found, Lengths(lengths, length, own, means, errors, float(n))
