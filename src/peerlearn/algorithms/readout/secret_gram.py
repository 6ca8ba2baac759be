"""Gram under secrecy: the root learns totals of Gram matrices, and all agents learn coefficients.

    A_k = [1 H_k Y_k], times roots of weights                        alone
    D >= diagonal of sum_k A_k'A_k                                   secret sum, at the root
    scales, which follow from D                                      from the root to all agents
    n, s = sum_k H_k'1, q = sum_k Y_k'1, G = sum_k H_k'H_k,
    P = sum_k H_k'Y_k, |Y|^2                                         secret sum, at the root
    b = (G - s s'/n + alpha I)^-1 (P - s q'/n),  c = (q - s'b) / n   at the root, to all agents

Without an intercept s, q and c are left out. The column of ones gives the means, so nobody needs
them before the sum, and they are known to the root only. What a mean subtracts from G is lost to
rounding where columns are far from zero, and the certificate accounts for that, by the lengths of
columns before (`Lengths`). If it is not within the tolerance, agents go on:

    means                                                            secret sum, at all agents
    the same sums of rows about the means                            secret sums, at the root
    g = sum_k H_k'(H_k b - Y_k) + alpha b, b <- b - (G + alpha I)^-1 g
                                                                     secret sum, at the root

The last step is repeated a few times (iterative refinement; Higham, Accuracy and stability of
numerical algorithms, 2002, chapter 12). It stands in for R factors, which are not sums: residuals
are computed from the rows, so that their errors are not multiplied by the condition twice.

peerlearn.secret.fixed_point has the scales and the errors of the totals, algorithms/secret_sums.py
the protocol.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from peerlearn.algorithms.agreement import no_rows
from peerlearn.algorithms.certificate import (
    centre_error,
    problem_units,
    receive_bound,
    refine,
    solve_certified,
)
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.readout.solver import Solution
from peerlearn.algorithms.secret_sums import SecretSession, session_of
from peerlearn.arrays import Array, Indices, norms, sendable
from peerlearn.errors import DataError, WireError
from peerlearn.local.centred import UncentredProblems
from peerlearn.local.least_squares import CENTRING_UNITS, LeastSquares, Lengths
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
    decode_wide,
    encode_diagonal,
    entry_exponents,
    exponents_of,
)
from peerlearn.secret.keys import Words

# Marks of what the root sends.
ANSWERED = 0.0
NO_ANSWER = 1.0
NO_ROWS = 2.0
GO_ON = 3.0  # the answer is not exact enough
MOST_STEPS = 5  # of refinement
FLOOR = 2.0**-30  # least square of a column about its mean, beside what rounding is relative to
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

    def grams(self, problems: LeastSquares, sums: Array) -> list[Array]:
        """Return the upper triangle of A'A of each hosted agent, without products of targets.

        sums: of the columns of A, agents x width. The squares of all targets stand for those of
        each.
        """
        B = self.B
        found = []
        for k, G in enumerate(problems.grams()):
            S = np.zeros((self.width, self.width))
            S[0] = sums[k]
            S[1 : 1 + B, 1 : 1 + B] = np.triu(G)
            S[1 : 1 + B, 1 + B :] = problems.moment[k]
            np.fill_diagonal(S[1 + B :, 1 + B :], problems.squares[k])
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
    ridge = SecretRidge(network, problems, alpha, tolerance, intercept)
    b, c, bound = ridge.solve()
    report = loop.report(CHANGE, certificate=receive_bound(bound))
    return Solution(b, report, apart=0.0), c


class SecretRidge:
    """Steps of one solution. What only the root knows is set at the root only."""

    session: SecretSession

    def __init__(
        self,
        network: Network,
        problems: UncentredProblems,
        alpha: float,
        tolerance: float,
        intercept: bool,
    ) -> None:
        self.network = network
        self.problems = problems
        self.alpha = alpha
        self.tolerance = tolerance
        self.columns = Columns(*problems.shape, intercept)
        self.N: float | None = None  # number of rows, where it is known to all
        # At the root:
        self.equations: NormalEquations | None = None
        self.lengths: Lengths | None = None
        self.best = (math.inf, np.zeros(0))  # bound and coefficients

    def solve(self) -> tuple[Array, Array, float]:
        """Return coefficients and intercepts of the hosted agents, and the bound."""
        problems = self.problems
        columns = self.columns
        about_zero = problems.about(problems.zero_means())
        sums = problems.sums()
        # Squares about a pivot are among them, because rounding is relative to those too.
        squares = sums[:, columns.width : -1]
        targets = np.repeat(squares[:, -1:], columns.M, axis=1)
        squares = np.hstack([sums[:, :1], squares[:, :-1], targets])
        grams = columns.grams(about_zero, sums[:, : columns.width])
        for own in squares:  # what is refused is refused before keys are exchanged
            encode_diagonal(own, self.network.size)
        self.session = session_of(self.network)
        if problems.weighted:  # else the sum of the ones
            counts = problems.rows[:, None]
            self.N = float(self.session.count("number of rows", counts)[0, 0])
        answers = self._sum_grams(columns, squares, grams, self._solve_raw)
        rows = about_zero
        if answers[0, 0] == GO_ON and columns.intercept:
            rows = self._centre()
            answers = self._solve_centred(rows)
        for step in range(MOST_STEPS):
            if answers[0, 0] != GO_ON:
                break
            answers = self._refine(rows, answers, step)
        return self._read(answers)

    def _read(self, answers: Array) -> tuple[Array, Array, float]:
        mark, bound = answers[0, :2].tolist()
        if mark == NO_ROWS:
            raise no_rows()
        if mark == NO_ANSWER:
            raise undetermined_error(self.alpha)
        B, M = self.problems.shape
        b = answers[:, 2 : 2 + B * M].reshape(-1, B, M)
        return b, answers[:, 2 + B * M :], bound

    def _sum_grams(
        self,
        columns: Columns,
        squares: Array,
        grams: list[Array],
        solve: Callable[[Array, Array], Array],
    ) -> Array:
        """Return what the root sends after it solved the sum of Gram matrices.

        squares: bounds of their diagonals, agents x width. solve: takes the total, a symmetric
        matrix, and the total of the squares.
        """
        total, e, D = sum_gram(self.session, columns, squares, grams, self.network.size)

        def solve_total(words: Words) -> Array:
            return solve(columns.matrix(decode_entries(words[:, 0], e)), D[0])

        return self.session.answer(total, self._size, solve_total)

    @property
    def _size(self) -> int:
        B, M = self.problems.shape
        return 2 + (B + 1) * M

    def _solve_raw(self, S: Array, D: Array) -> Array:
        """Solve the sum of raw columns, after their means were subtracted from it."""
        B, M = self.problems.shape
        n = S[0, 0]  # rows, or their weight
        N = n if self.N is None else self.N
        if n == 0:
            return self._row(NO_ROWS, math.inf, np.zeros((B, M)))
        if self.alpha == 0 and B + self.columns.intercept > N:
            return self._row(NO_ANSWER, math.inf, np.zeros((B, M)))
        means = np.zeros(B + M)
        if self.columns.intercept:
            means = S[0, 1:] / n
        m = means[:B]
        q = means[B:]
        # Two more roundings by what is subtracted, relative to the lengths before.
        units = total_units(N, self.network.size) + 4
        self.equations = NormalEquations(
            (B, M),
            G=S[1 : 1 + B, 1 : 1 + B] - n * np.outer(m, m),
            P=S[1 : 1 + B, 1 + B :] - n * np.outer(m, q),
            squares=max(float(S[-1, -1] - n * q @ q), 0.0),
            units=units,
        )
        lengths = np.sqrt(D[1 : 2 + B])
        errors = np.zeros(B + 1)
        if self.columns.intercept:
            errors = UNIT * units * lengths / math.sqrt(n)
        own = np.zeros(0)  # of single agents, which nobody knows
        self.lengths = Lengths(lengths[:B], float(lengths[B]), own, means, errors, float(n))
        return self._solve()

    def _solve(self) -> Array:
        """Solve the equations at the root, and return what it sends."""
        assert self.equations is not None
        try:
            b, found = solve_certified(self.equations, self.alpha, self.tolerance, self.lengths)
        except DataError:
            if self.alpha == 0:
                return self._row(NO_ANSWER, math.inf, np.zeros(self.problems.shape))
            # Rounding made the equations indefinite. Refinement begins at zero.
            return self._row(GO_ON, math.inf, np.zeros(self.problems.shape))
        self.best = (found.bound, b)
        mark = ANSWERED if found.bound <= self.tolerance else GO_ON
        return self._row(mark, found.bound, b)

    def _row(self, mark: float, bound: float, b: Array) -> Array:
        B, M = self.problems.shape
        c = np.zeros(M)
        if self.lengths is not None:
            c = self.lengths.means[B:] - self.lengths.means[:B] @ b
        return sendable(np.array([mark, bound, *b.ravel(), *c]))

    def _centre(self) -> LeastSquares:
        """Return the problems about the means of all agents' rows, by one more sum."""
        quantity = "sums and squares of features and targets"
        sums = self.session.total(quantity, self.problems.sums())
        means = self.problems.means(sums, 2 * UNIT)
        self.N = means.rows
        return self.problems.about(means)

    def _solve_centred(self, centred: LeastSquares) -> Array:
        """Solve the sum of columns about their means."""
        assert centred.lengths is not None
        B, M = self.problems.shape
        columns = Columns(B, M, intercept=False)
        sums = np.zeros((centred.agents, columns.width))
        sums[:, 0] = self.problems.sums()[:, 0]
        grams = columns.grams(centred, sums)
        # The diagonal of a difference may be rounded to nothing, while entries beside it are not.
        columns_and_targets = np.append(centred.lengths.columns, [centred.lengths.targets] * M)
        squares = np.stack([np.maximum(np.diagonal(own), 0.0) for own in grams])
        squares[:, 1:] += FLOOR * columns_and_targets**2 / self.network.size

        def solve(S: Array, D: Array) -> Array:
            assert self.N is not None
            self.lengths = centred.lengths
            self.equations = NormalEquations(
                (B, M),
                G=S[1 : 1 + B, 1 : 1 + B],
                P=S[1 : 1 + B, 1 + B :],
                squares=float(S[-1, -1]),
                units=total_units(self.N, self.network.size),
            )
            return self._solve()

        return self._sum_grams(columns, squares, grams, solve)

    def _refine(self, rows: LeastSquares, answers: Array, step: int) -> Array:
        """Do one step of refinement, and return what the root sends. step: its number, from 0."""
        b, _, _ = self._read(answers)
        gradients, residual_sizes, sizes = rows.gradients_of_rows(b)
        of_residuals = (product_units(len(b[0])) + CENTRING_UNITS) * residual_sizes
        # Numbers of a secret sum have chance in their last places.
        of_products = problem_units(rows) * sizes + norms(gradients)
        own_errors = UNIT * np.column_stack([of_residuals, of_products])
        numbers = np.column_stack([gradients.reshape(len(b), -1), own_errors])

        def certify(total: Array) -> Array:
            assert self.equations is not None
            assert self.lengths is not None
            sums = total[:-2].reshape(b[0].shape)
            by_residuals, by_products = total[-2:].tolist()
            penalty = self.alpha * b[0]
            rounded = float(np.linalg.norm(sums)) + 2 * float(np.linalg.norm(penalty))
            by_products += 2 * UNIT * rounded + centre_error(self.lengths, b[0])
            errors = (by_residuals, by_products)
            closer, found = refine(
                self.equations, self.alpha, b[0], sums + penalty, errors, self.lengths
            )
            # The first b is the one that was certified by the equations.
            stalled = step > 0 and not found.bound < self.best[0] / 2
            if found.bound < self.best[0] or step == 0:
                self.best = (min(found.bound, self.best[0]), b[0])
            if stalled or step == MOST_STEPS - 1 or self.best[0] <= self.tolerance:
                return self._row(ANSWERED, *self.best)
            return self._row(GO_ON, found.bound, closer)

        return self.session.compute("gradient of the objective", numbers, self._size, certify)


def sum_gram(
    session: SecretSession, columns: Columns, squares: Array, grams: Sequence[Array], agents: int
) -> tuple[Words | None, Exponents, list[Array]]:
    """Return the secret total of Gram matrices, exponents of its entries, and total squares.

    The total is as `SecretSession.sum_to_root` returns it. The total squares are in a list, which
    is empty at other agents than the root. squares: bounds of the diagonals, agents x width. grams:
    A'A of each hosted agent.
    """
    D: list[Array] = []

    def scales_of(total: Words) -> Array:
        D.append(decode_wide(total))
        return exponents_of(total).astype(np.float64)

    diagonals = np.stack([encode_diagonal(own, agents) for own in squares])
    total = session.sum_to_root("squares of features and targets", diagonals)
    scales = session.answer(total, columns.width, scales_of)
    p = _check_scales(scales[0])
    rows, places = columns.entries
    e = entry_exponents(p[rows], p[places])
    words = session.encode(np.stack([own[rows, places] for own in grams]), e)
    return session.sum_to_root(columns.quantity, words[:, :, None], e.tobytes()), e, D


def total_units(N: float, agents: int) -> float:
    """Return the units of rounding of products of N rows, fixed-point numbers, and totals."""
    return product_units(N) + CENTRING_UNITS + agents / 64 + 4


def _check_scales(scales: Array) -> Exponents:
    """Return the exponents that the root sent."""
    exponents = scales.astype(np.int64)
    known = (np.abs(exponents) <= DIAGONAL_BITS) | (exponents == NOTHING)
    if not known.all() or np.count_nonzero(exponents != scales):
        raise WireError(
            "the root sent scales that no sum can have: it probably runs another version"
        )
    return exponents
