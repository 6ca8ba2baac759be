"""Certificates: bounds on the distance of coefficients to the pooled ridge answer.

    A = sum_k H_k'H_k + alpha I,   c = sum_k H_k'Y_k,   A b* = c

All solvers that promise b* call one of these at the end. Every bound holds whatever the solver did:
it is computed from b, and covers rounding of the sums, inexact sums and disagreement.

certify_equations. The root of a tree has sums A^ and c^ with errors dA and dc. For r = c^ - A^ b

    b* - b = A^^-1 (r + dc - dA b) - A^^-1 dA (b* - b)

normal_equations.py has the sizes of the entries of dA and dc: c u d d' with d the lengths of the
columns. The scale of columns therefore does not matter, as it would in a bound by norms. Entries of
dA and dc are independent in the model behind c, so their contributions to an entry of b are added
as squares. The last term is bounded entry by entry, in absolute values.

certify_factor. The root has R, the factor of rows [H + dH, Y + dY]. To first order

    b* - b = A^-1 dH'(Y - H b) - A^-1 H' (dH b - dY),      A = T'T,  |row i of A^-1 H'| = |w_i|

w_i the rows of T^-1. Wedin, Perturbation theory for pseudo-inverses, 1973, column by column. A
factor 1 / (1 - q)^2 covers higher orders, with q the relative change that dH can make.

certify_gradient. No agent has A. One more sum gives the gradient at one common b, and

    |b* - b| <= |g(b)| / alpha.

The error of that sum is bounded by the sum of |g_k| (inexact sums: tolerance times spread) and by
rounding at each agent; both numbers travel in the same messages. Where messages get lost, a sum is
within its tolerance except with a small probability (averaging.py), and so is the bound.

relative_bound. Convex smooth losses have the gradient g and the least curvature mu at w:

    |w - w*| <= -log(1 - q) / R,   q = R |g| / mu < 1

R bounds how fast Hessians change: smooth/distance.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from peerlearn.algorithms.averaging import FAILURE, Averaging
from peerlearn.algorithms.iteration import Certificate
from peerlearn.algorithms.sums import (
    broadcast_from_center,
    maximum,
    sum_alike,
    sum_everywhere,
)
from peerlearn.arrays import HUGE, Array, Indices, all_finite, norms
from peerlearn.errors import DataError
from peerlearn.local.least_squares import CENTRING_UNITS, LeastSquares, Lengths
from peerlearn.local.normal_equations import (
    QR_UNITS,
    UNIT,
    Factor,
    NormalEquations,
    augment,
    inverse,
    product_units,
    sum_units,
    undetermined_error,
)
from peerlearn.network.base import Network

U = UNIT
Total = Callable[[Network, Array, Averaging], Array]
LARGEST_CHANGE = 0.1  # relative, of a matrix by its errors; with more there is no bound
SUMS_BEHIND_BOUND = 10  # at most, of which each may fail where messages get lost
GRADIENT_TOLERANCE = 1e-15  # of a sum of gradients by gossip
ROUGH_GRADIENT = 1e-9  # the same, of gradients that do not vanish
TRACE_SCALE = 1e-3
TOO_CLOSE_TO_SINGULAR = "rounding errors may make the equations singular"
CUT_OFF = "sums were cut off before their tolerance"
NOT_STRONGLY_CONVEX = "a lasso problem may have many answers"


def loss_reason(failure: float) -> str:
    """Return what must be known about a bound that fails with this probability."""
    return f"fails with a probability of at most {failure:.0e}, as messages get lost"


UNDER_LOSS = loss_reason(SUMS_BEHIND_BOUND * FAILURE)


def certificate_of(distance: float, size: float, reason: str = "") -> Certificate:
    """Return the certificate of coefficients of this size, at most this far from the answer."""
    if distance == 0:
        return Certificate(0.0, reason)
    if not distance < size < math.inf:
        return Certificate(math.inf, reason or "the error may be as large as the answer")
    return Certificate(distance / (size - distance), reason)


def with_intercept(
    certificate: Certificate, b: Array, lengths: Lengths | None, by_means: float | None = None
) -> Certificate:
    """Return the worse of two certificates: of b, and of b and the intercept q - m'b together.

    lengths: has the means m and q; None if there is no intercept. by_means: a bound on
    |m'(b - b*)|, if there is a better one than |m| |b - b*|.
    """
    if lengths is None or certificate.bound == math.inf:
        return certificate
    m, c, size, error = _intercept(lengths, b)
    distance = certificate.bound * size / (1 + certificate.bound)
    if by_means is None:
        by_means = float(np.linalg.norm(m)) * distance
    joint = math.hypot(distance, by_means) + error
    return _worst([certificate, certificate_of(joint, math.hypot(size, c), certificate.reason)])


def each_with_intercept(
    certificates: Sequence[Certificate], b: Array, lengths: Lengths | None
) -> list[Certificate]:
    """Return `with_intercept` of each hosted agent's b."""
    pairs = zip(certificates, b, strict=True)
    return [with_intercept(certificate, own, lengths) for certificate, own in pairs]


def intercept_effect(lengths: Lengths | None, b: Array) -> tuple[float, float]:
    """Return f and e: if b is relatively t from the answer, the intercept makes it f t + e."""
    if lengths is None or np.count_nonzero(b) == 0:
        return 1.0, 0.0
    m, c, size, error = _intercept(lengths, b)
    together = math.hypot(size, c)
    return max(1.0, math.hypot(1.0, float(np.linalg.norm(m))) * size / together), error / together


def _intercept(lengths: Lengths, b: Array) -> tuple[Array, float, float, float]:
    """Return m, |q - m'b|, |b|, and how far errors of m and q and rounding move the intercept."""
    B = len(b)
    m = lengths.means[:B]
    q = lengths.means[B:]
    sizes = np.abs(b)
    by_means = lengths.mean_errors[:B] @ sizes + lengths.mean_errors[B]
    by_rounding = U * product_units(B) * (np.abs(m) @ sizes + np.abs(q))
    error = float(np.linalg.norm(by_means + by_rounding))
    return m, float(np.linalg.norm(q - m @ b)), float(np.linalg.norm(b)), error


def _with_means(X: Array, lengths: Lengths | None) -> Array:
    """Return X with a row for m'(b - b*) below, where X has one for each entry of b - b*."""
    return X if lengths is None else np.vstack([X, lengths.means[: len(X)] @ X])


def centre_error(lengths: Lengths | None, b: Array) -> float:
    """Return how far inexact means move the gradient at b: W d d'b - W d e', d and e their errors.

    See centred.py.
    """
    if lengths is None:
        return 0.0
    B = len(b)
    d = float(np.linalg.norm(lengths.mean_errors[:B]))
    e = float(lengths.mean_errors[B])
    return lengths.weight * d * (d * float(np.linalg.norm(b)) + e)


def receive_bound(number: float, reason: str = TOO_CLOSE_TO_SINGULAR) -> Certificate:
    """Return the certificate whose bound was sent as a number; HUGE stands for infinite."""
    if number >= HUGE:
        return Certificate(math.inf, reason or TOO_CLOSE_TO_SINGULAR)
    about_any = reason not in (CUT_OFF, TOO_CLOSE_TO_SINGULAR, NOT_STRONGLY_CONVEX)
    return Certificate(number, reason if about_any else "")


def certify_equations(
    equations: NormalEquations,
    alpha: float | Array,
    b: Array,
    change: float = 0.0,
    lengths: Lengths | None = None,
) -> Certificate:
    """Return the certificate of b, from the equations of all rows.

    alpha: one number, or one per feature. change: bound on errors of H'H and of H'Y besides
    rounding. lengths: before means were subtracted, if any were.
    """
    if equations.R is not None and not isinstance(alpha, np.ndarray) and alpha > 0:
        return _certify_few_rows(equations.R, equations.units, alpha, b, lengths)
    G, P = equations.gram()
    A = G.copy()
    A.flat[:: len(A) + 1] += alpha
    d = np.sqrt(np.diagonal(A))
    y = math.sqrt(equations.squares_of_targets)
    if lengths is not None:
        d = np.maximum(d, lengths.columns)
        y = max(y, lengths.targets)
    error = U * (equations.gram_units + product_units(len(A)))
    X = inverse(G, alpha)
    amplified = change * float(np.linalg.norm(X))
    q = error * float(d @ np.abs(X) @ d) + amplified
    if not q < LARGEST_CHANGE:
        return Certificate(math.inf, TOO_CLOSE_TO_SINGULAR)
    X = _with_means(X, lengths)
    by_rounding = error * np.outer(np.sqrt(X**2 @ d**2), _root_of_squares(d, b, y))
    first = np.abs(X @ (P - A @ b)) + by_rounding
    by_errors = np.outer(np.abs(X) @ d, d @ first[: len(b)])
    entries = (first + error * by_errors / (1 - q)) / (1 - q) ** 2
    distance = entries[: len(b)]
    size = float(np.linalg.norm(b))
    by_change = amplified * (1 + size) / (1 - q) ** 2
    certificate = certificate_of(float(np.linalg.norm(distance)) + by_change, size)
    if isinstance(alpha, np.ndarray):
        # A constant without a penalty may be much larger than the coefficients beside it.
        part = alpha > 0
        by_part = float(np.linalg.norm(distance[part])) + by_change
        own = certificate_of(by_part, float(np.linalg.norm(b[part])))
        return _worst([certificate, own])
    return with_intercept(certificate, b, lengths, float(np.linalg.norm(entries[len(b) :])))


def _certify_few_rows(
    R: Array, units: float, alpha: float, b: Array, lengths: Lengths | None
) -> Certificate:
    """Return the certificate of b = H'a, K a = Y, K = H H' + alpha I, with H and Y the parts of R.

    b* - b = H'K^-1 (Y - H b - alpha a), and |H'K^-1| <= |L^-1| for K = L L'.
    """
    B = len(b)
    H = R[:, :B]
    Y = R[:, B:]
    K = H @ H.T
    K.flat[:: len(K) + 1] += alpha
    try:
        L: Array = scipy.linalg.cholesky(K, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return Certificate(math.inf, TOO_CLOSE_TO_SINGULAR)
    amplified = float(np.linalg.norm(_invert_triangle(L, lower=True)))
    a = scipy.linalg.cho_solve((L, True), Y, check_finite=False)
    h = float(np.linalg.norm(H))
    y = float(np.linalg.norm(Y))
    if lengths is not None:
        h = max(h, float(np.linalg.norm(lengths.columns)))
        y = max(y, lengths.targets)
    error = U * (units + product_units(B))
    q = error * h * amplified
    if not q < LARGEST_CHANGE:
        return Certificate(math.inf, TOO_CLOSE_TO_SINGULAR)
    size_a = float(np.linalg.norm(a))
    size_b = float(np.linalg.norm(b))
    left = float(np.linalg.norm(Y - H @ b - alpha * a))
    sizes = h * size_b + (h**2 + alpha) * size_a + y
    distance = error * h * size_a + amplified * (left + error * sizes)
    # The a of the solver and this one differ in the last bits; b is compared as well.
    distance += float(np.linalg.norm(b - H.T @ a))
    certificate = certificate_of(distance / (1 - q) ** 2, size_b)
    return with_intercept(certificate, b, lengths)


def solve_factor(
    factor: Factor, alpha: float, lengths: Lengths | None = None
) -> tuple[Array, Certificate]:
    """Return the ridge solution of all rows by their factor, and its certificate.

    lengths: before means were subtracted, if any were. Raise DataError if the rows do not determine
    the coefficients.
    """
    B = factor.shape[0]
    T, t = augment(factor.R, B, alpha)
    H = factor.R[:, :B]
    d = np.sqrt(np.add.reduce(H * H, axis=0) + alpha)
    y = np.linalg.norm(factor.R[:, B:], axis=0)
    if lengths is not None:
        d = np.maximum(d, lengths.columns)
        y = np.maximum(y, lengths.targets)
    error = U * (factor.units + QR_UNITS + product_units(B))
    diagonal = np.abs(np.diagonal(T))
    least = error * d if alpha == 0 else 0.0 * d
    if np.count_nonzero(diagonal <= least):
        raise undetermined_error(alpha)
    W = _invert_triangle(T, lower=False)
    b = scipy.linalg.solve_triangular(T, t[:B], check_finite=False)
    if not all_finite(b):
        raise undetermined_error(alpha)
    q = error * float(d @ np.linalg.norm(W, axis=1))
    if not q < LARGEST_CHANGE:
        return b, Certificate(math.inf, TOO_CLOSE_TO_SINGULAR)
    left = np.linalg.norm(t[B:], axis=0)
    rows = _with_means(W, lengths)
    by_residual = np.outer(np.sqrt((rows @ W.T) ** 2 @ d**2), left)
    by_size = np.outer(np.linalg.norm(rows, axis=1), _root_of_squares(d, b, y))
    entries = error * (by_residual + by_size) / (1 - q) ** 2
    certificate = certificate_of(float(np.linalg.norm(entries[:B])), float(np.linalg.norm(b)))
    return b, with_intercept(certificate, b, lengths, float(np.linalg.norm(entries[B:])))


def solve_certified(
    equations: NormalEquations, alpha: float, tolerance: float, lengths: Lengths | None
) -> tuple[Array, Certificate]:
    """Return the ridge solution of all rows, and its certificate.

    If the equations are a factor, and their solution is not within the tolerance, the factor is
    solved without squaring its condition. Raise DataError if there is no solution.
    """
    try:
        b = equations.ridge(alpha)
        certificate = certify_equations(equations, alpha, b, lengths=lengths)
    except DataError:
        if equations.R is None:
            raise
        certificate = Certificate(math.inf)
    if equations.R is None or certificate.bound <= tolerance:
        return b, certificate
    return solve_factor(Factor(equations.shape, equations.R, equations.units), alpha, lengths)


def refine(
    equations: NormalEquations,
    alpha: float,
    b: Array,
    gradient: Array,
    errors: tuple[float, float],
    lengths: Lengths,
) -> tuple[Array, Certificate]:
    """Return a closer solution than b, and the certificate of b by its gradient.

    gradient: H'(H b - Y) + alpha b, computed from the rows. errors: of the residuals H b - Y, and
    of the gradient besides. An error e of the residuals moves b_j by  (A^-1 H'e)_j, whose size is
    at most  |e| sqrt((A^-1)_jj),  and all of b by  |e| / (2 sqrt(alpha)).
    """
    G, _ = equations.gram()
    of_residuals, of_products = errors
    distance = math.inf
    by_means = None
    if alpha > 0:
        size = float(np.linalg.norm(gradient)) + of_products
        distance = size / alpha + of_residuals / (2 * math.sqrt(alpha))
    try:
        X = inverse(G, alpha)
    except DataError:
        # Rounding made the least eigenvalues negative. They are 0 or more.
        values, vectors = scipy.linalg.eigh(G)
        scaled = vectors / (np.maximum(values, 0.0) + max(alpha, float(np.finfo(float).tiny)))
        X = scaled @ vectors.T
    else:
        d = np.maximum(np.sqrt(np.diagonal(G) + alpha), lengths.columns)
        error = U * (equations.gram_units + product_units(len(G)))
        q = error * float(d @ np.abs(X) @ d)
        if q < LARGEST_CHANGE:
            rows = _with_means(X, lengths)
            # For a row x' = (0 .. 1 .. 0, or m) of A^-1:  |x'H'e|^2 <= x'A^-1 x |e|^2.
            own = np.append(np.diagonal(X), lengths.means[: len(X)] @ rows[-1])
            by_errors = np.sqrt(np.maximum(own, 0.0)) * of_residuals
            by_errors += np.linalg.norm(rows, axis=1) * of_products
            first = np.abs(rows @ gradient) + by_errors[:, None]
            more = np.outer(np.abs(rows) @ d, d @ first[: len(X)])
            entries = (first + error * more / (1 - q)) / (1 - q) ** 2
            closer = float(np.linalg.norm(entries[: len(X)]))
            if closer < distance:
                distance = closer
                by_means = float(np.linalg.norm(entries[len(X) :]))
    reason = "" if distance < math.inf else TOO_CLOSE_TO_SINGULAR
    certificate = certificate_of(distance, float(np.linalg.norm(b)), reason)
    return b - X @ gradient, with_intercept(certificate, b, lengths, by_means)


def solve_in_one_place(
    solve: Callable[[], Array],
    equations: NormalEquations,
    factor: Callable[[], Factor] | None,
    alpha: float,
    tolerance: float,
    lengths: Lengths | None,
) -> tuple[Array, Certificate]:
    """Return the ridge solution of an agent that has all rows, and its certificate.

    solve: returns the solution from H'H, or raises DataError. If that is not within the tolerance,
    the factor is solved, where there is one.
    """
    try:
        b = solve()
        certificate = certify_equations(equations, alpha, b, lengths=lengths)
        failure = None
    except DataError as error:
        certificate = Certificate(math.inf, TOO_CLOSE_TO_SINGULAR)
        failure = error
    if factor is None or certificate.bound <= tolerance:
        if failure is not None:
            raise failure
        return b, certificate
    try:
        closer, better = solve_factor(factor(), alpha, lengths)
    except DataError:
        if failure is not None:
            raise failure from None
        return b, certificate
    if failure is None and certificate.bound <= better.bound:
        return b, certificate
    return closer, better


@dataclass(frozen=True)
class PooledGradient:
    """The gradient g(b) = A b - c at each hosted agent's copy of b, and what it may be off."""

    gradient: Array
    errors: Array
    reason: str = ""

    def certify(self, alpha: float, b: Array) -> Certificate:
        """Return the certificate of b by |g| / alpha, the worst of the hosted agents."""
        if self.reason == CUT_OFF:
            return Certificate(math.inf, CUT_OFF)
        gradients = norms(self.gradient) + self.errors
        return _worst(certify_each(gradients, alpha, b, self.reason))

    def certify_by_sums(
        self,
        alpha: float,
        b: Array,
        sums: Sequence[NormalEquations],
        changes: Array,
        lengths: Lengths | None,
    ) -> Certificate:
        """Return the certificate of b by A^-1 g, with the sum G of each hosted agent.

        changes: bounds on the errors of these sums. lengths: before means were subtracted.
        """
        if self.reason == CUT_OFF or not all_finite(changes):
            return Certificate(math.inf, CUT_OFF)
        distances = norms(self.gradient) + self.errors
        distances = distances / alpha if alpha > 0 else np.full(len(b), math.inf)
        for k, equations in enumerate(sums):
            G, _ = equations.gram()
            X = inverse(G, alpha)
            size = float(np.linalg.norm(X))
            rounding = U * product_units(len(G))
            trace = float(np.trace(G))
            if lengths is not None:
                trace = max(trace, float(lengths.columns @ lengths.columns))
            q = size * (float(changes[k]) + rounding * (trace + alpha))
            if q < LARGEST_CHANGE:
                step = float(np.linalg.norm(X @ self.gradient[k]))
                closer = (step + size * float(self.errors[k])) / (1 - q) ** 2
                distances[k] = min(distances[k], closer)
        certificates = _certify_all(distances, norms(b), self.reason)
        return _worst(each_with_intercept(certificates, b, lengths))


def pooled_gradient(
    network: Network,
    problems: LeastSquares,
    alpha: float,
    b: Array,
    averaging: Averaging,
    total: Total,
    *,
    by_rows: bool = False,
) -> PooledGradient:
    """Sum the gradient at b, which must be the same at all agents.

    total: `sum_everywhere`, or `sum_alike` for the same bits at all agents. by_rows: read the rows
    again, for smaller rounding errors.
    """
    if by_rows:
        own, rounding = _own_gradients_of_rows(problems, alpha, b)
    else:
        own, rounding = _own_gradients(problems, b)
    sums, errors, reason = sum_with_errors(network, own, rounding, averaging, total)
    errors = errors + 4 * U * alpha * norms(b) + centre_error(problems.lengths, b[0])
    return PooledGradient(sums + alpha * b, errors, reason)


def _own_gradients(problems: LeastSquares, b: Array) -> tuple[Array, Array]:
    """Return H_k'(H_k b - Y_k) of each hosted agent, and bounds on the rounding errors."""
    trace = problems.sizes()
    units = product_units(problems.shape[0]) + problem_units(problems)
    rounding = U * units * (trace * norms(b) + np.sqrt(trace * problems.squares))
    return problems.normal(b) - problems.moment, rounding


def _own_gradients_of_rows(problems: LeastSquares, alpha: float, b: Array) -> tuple[Array, Array]:
    """Return what `_own_gradients` does, from the rows themselves.

    An error e of H_k b - Y_k moves the answer by |A^-1 H_k'e| <= |e| / (2 sqrt(alpha)), and not by
    |H_k| |e| / alpha. It is therefore counted as an error of the gradient of sqrt(alpha) / 2 |e|.
    """
    own, residual_sizes, sizes = problems.gradients_of_rows(b)
    by_centring = 0.0 if problems.lengths is None else CENTRING_UNITS
    of_residuals = product_units(problems.shape[0]) + by_centring
    rounding = problem_units(problems) * sizes
    rounding = rounding + math.sqrt(alpha) / 2 * of_residuals * residual_sizes
    return own, U * rounding


def problem_units(problems: LeastSquares) -> Array:
    """Return the units of rounding of each agent's H'H and H'Y."""
    by_centring = 0.0 if problems.lengths is None else CENTRING_UNITS
    return each_units(problems.rows) + by_centring


def each_units(terms: Indices) -> Array:
    """Return the units of rounding of each agent's sum of so many products."""
    return np.array([product_units(float(n)) for n in terms])


def sum_with_errors(
    network: Network, own: Array, own_errors: Array, averaging: Averaging, total: Total
) -> tuple[Array, Array, str]:
    """Return the sum of all agents' rows, a bound on its error at each hosted agent, and a reason.

    own_errors: bounds on the errors of the hosted agents' rows. The reason is as in Certificate.
    """
    rows = np.column_stack([own.reshape(len(own), -1), norms(own), own_errors])
    found = total(network, rows, averaging)
    sums = found[:, :-2].reshape(own.shape)
    share = sum_error(network, averaging)
    if not share < LARGEST_CHANGE:
        return sums, np.full(len(own), math.inf), CUT_OFF
    # The numbers that bound the error are summed with such an error themselves.
    sizes = found[:, -2] / (1 - 2 * share)
    errors = found[:, -1] / (1 - 2 * share)
    return sums, share * (sizes + errors) + errors, "" if network.reliable else UNDER_LOSS


def sum_positive(network: Network, x: Array, averaging: Averaging) -> float:
    """Return an upper bound of the sum of the agents' numbers, which are 0 or more."""
    rough = LARGEST_CHANGE / 4 / network.size
    averaging = replace(averaging, tolerance=max(averaging.tolerance, rough))
    share = sum_error(network, averaging)
    found = float(sum_alike(network, x, averaging)[0])
    return found / (1 - share) if share < LARGEST_CHANGE else math.inf


def recurrence_error(
    sizes: PooledSizes, travelled: Array, rounded: Array, alpha: float, B: int
) -> Array:
    """Return how far the residual of a recurrence may be from c - A b, by rounding.

    r = c - sum s q, where q = A d is a sum with rounding errors. travelled: the sum of all |s d|.
    rounded: the sum of the sizes of all r and s q.
    """
    units = sizes.units + product_units(B)
    by_sums = (units * sizes.trace + sizes.by_traces) * travelled
    by_moments = units * math.sqrt(sizes.trace * sizes.squares) + sizes.by_moments
    return U * (by_sums + by_moments + 4 * alpha * travelled + 2 * rounded)


@dataclass(frozen=True)
class PooledSizes:
    """Sizes of all agents' data together, which travel with the first sum.

    trace: that of sum_k H_k'H_k. squares: the sum of |Y_k|^2. units: of rounding in all sums, see
    normal_equations.py. by_traces, by_moments: sums of units at each agent times the sizes of
    H_k'H_k and of H_k'Y_k.
    """

    trace: float
    squares: float
    units: float
    by_traces: float = 0.0
    by_moments: float = 0.0

    @classmethod
    def numbers(cls, problems: LeastSquares) -> Array:
        """Return what each hosted agent adds: four numbers."""
        traces = problems.sizes()
        units = problem_units(problems)
        moments = np.sqrt(traces * problems.squares)
        return np.column_stack([traces, problems.squares, units * traces, units * moments])

    @classmethod
    def of_sums(cls, sums: Array, agents: int) -> PooledSizes:
        """Return the sizes from the sums of those numbers over all agents."""
        trace, squares, by_traces, by_moments = np.maximum(sums, 0.0).tolist()
        return cls(trace, squares, sum_units(agents), by_traces, by_moments)

    @classmethod
    def of_totals(cls, totals: Array, problems: LeastSquares, agents: int) -> PooledSizes:
        """Return the sizes from totals that follow from H'H, H'Y, |Y|^2 and the number of rows.

        `of_sums` needs sums of products of single agents' sizes, which tell more. By Cauchy and
        Schwarz those are at most the products of the sums. Sums in fixed point are off by
        2^-129 per agent and number at most, in products with directions of length 1 to 2 as well.

        totals: of the numbers of rows, `sizes` and |Y_k|^2.
        """
        rows, trace, squares = np.maximum(totals, 0.0).tolist()
        by_centring = 0.0 if problems.lengths is None else CENTRING_UNITS
        units = product_units(rows) + by_centring
        B, M = problems.shape
        off = agents * 2.0**-129 / U
        by_moments = units * math.sqrt(trace * squares) + math.sqrt(B * M) * off
        by_traces = units * trace + 2 * math.sqrt(B) * off
        return cls(trace, squares, sum_units(agents), by_traces, by_moments)


NO_SIZES = PooledSizes(0.0, 0.0, 0.0)


def sum_error(network: Network, averaging: Averaging) -> float:
    """Return the error of a sum relative to the sum of the agents' norms; infinite if cut off."""
    L = network.size
    if averaging.exact_on(network):
        return U * sum_units(L)
    if not averaging.suffices_on(network):
        return math.inf
    # sqrt(3): some stopping rules measure g and the two numbers beside it together.
    by_averaging = math.sqrt(3) * L * averaging.tolerance
    return by_averaging + U * L * sum_units(averaging.rounds_on(network))


def has_own_errors(network: Network, averaging: Averaging) -> bool:
    """Return whether each number of a row has an error relative to that number at all agents.

    Other stopping rules look at whole rows. A small number beside large ones is then uncertain.
    """
    return averaging.exact_on(network) or averaging.stopping == "bound"


def most_exact(network: Network, averaging: Averaging, tolerance: float) -> Averaging:
    """Return the averaging for a gradient: as exact as `tolerance`, if its rounds allow that."""
    if averaging.exact_on(network) or averaging.tolerance <= tolerance:
        return averaging
    # An oracle waits for digits that rounding never reaches.
    stopping = "bound" if averaging.stopping == "oracle" else averaging.stopping
    method = averaging.method_on(network)
    tighter = Averaging(method, tolerance, averaging.max_rounds, stopping)
    return tighter if tighter.suffices_on(network) else averaging


def gradient_of_each(
    network: Network, problems: LeastSquares, alpha: float, b: Array, averaging: Averaging
) -> tuple[float | None, str]:
    """Return a bound on the gradients of the pooled objective at the hosted agents' own b.

    Agents whose b differ sum the gradient at the b of one of them, b_0:

        |g(b_k)| <= |g(b_0)| + (trace(H'H) + alpha) |b_k - b_0|

    The trace travels in the same messages. The bound is None if that sum was cut off; the reason
    is as in Certificate.
    """
    exact = most_exact(network, averaging, ROUGH_GRADIENT)
    if exact.exact_on(network):
        found = pooled_gradient(network, problems, alpha, b, exact, sum_everywhere)
        return float((norms(found.gradient) + found.errors)[0]), found.reason
    common = broadcast_from_center(network, b)
    own, rounding = _own_gradients(problems, common)
    # Small beside the gradients: a stopping rule that looks at whole rows must see those.
    scale = TRACE_SCALE * (float(norms(common)[0]) or 1.0)
    traces = scale * problems.sizes()
    numbers = np.column_stack([own.reshape(len(own), -1), traces])
    sums, errors, reason = sum_with_errors(network, numbers, rounding, exact, sum_everywhere)
    if reason == CUT_OFF:
        return None, CUT_OFF
    gradients = norms(sums[:, :-1].reshape(own.shape) + alpha * common)
    gradients = gradients + errors + 4 * U * alpha * norms(common)
    share = 2 * sum_error(network, exact)
    own_error = sums[:, -1] * share / (1 - share)
    trace = sums[:, -1] + (own_error if has_own_errors(network, exact) else errors)
    gradients = gradients + (trace / scale + alpha) * norms(b - common)
    return float(maximum(network, gradients)[0]), reason


def certify_gradient(
    network: Network,
    problems: LeastSquares,
    alpha: float,
    b: Array,
    averaging: Averaging,
    total: Total,
) -> Certificate:
    """Return the certificate of b, the same at all agents, by one sum of gradients."""
    if alpha == 0:
        return Certificate(math.inf, "alpha is 0, and no agent has the Gram matrix")
    found = pooled_gradient(network, problems, alpha, b, averaging, total).certify(alpha, b)
    return with_intercept(found, b[0], problems.lengths)


def relative_bound(
    size: float, length: float, alpha: float, mu: float = 0.0, R: float = math.inf
) -> float:
    """Return an upper bound of |w - w*| / |w*| of a convex problem, or inf if there is none.

    Parameters
    ----------
    size : float
        |grad F(w)|, rounding included.
    length : float
        |w|.
    alpha : float
        Weight of the penalty.
    mu : float, default 0.0
        Lower bound of the eigenvalues of the Hessian of F at w, penalty included.
    R : float, default inf
        How fast Hessians change (see above).

    Examples
    --------
    >>> relative_bound(1e-6, 2.0, alpha=0.5)
    1.000001000001e-06
    """
    if size == 0 and max(alpha, mu) > 0:
        return 0.0
    distance = size / alpha if alpha > 0 else math.inf
    q = R * size / mu if mu > 0 and size > 0 else math.inf
    if q < 1:
        growth = -math.log1p(-q) / q if q > 0 else 1.0
        distance = min(distance, size / mu * growth)
    return certificate_of(distance, length).bound


def certify_each(gradients: Array, alpha: float, b: Array, reason: str) -> list[Certificate]:
    """Return the certificate of each hosted agent's b, from sizes of gradients with errors."""
    if reason == CUT_OFF:
        return [Certificate(math.inf, CUT_OFF)] * len(b)
    return _certify_all(gradients / alpha, norms(b), reason)


def _certify_all(distances: Array, sizes: Array, reason: str) -> list[Certificate]:
    pairs = zip(distances.tolist(), sizes.tolist(), strict=True)
    return [certificate_of(distance, size, reason) for distance, size in pairs]


def _worst(certificates: Sequence[Certificate]) -> Certificate:
    """Return the certificate with the largest bound."""
    return max(certificates, key=lambda certificate: certificate.bound)


def _root_of_squares(d: Array, b: Array, y: Array | float) -> Array:
    """Return the root of  sum_j d_j^2 b_jm^2 + y_m^2  for each column m."""
    roots: Array = np.sqrt(d**2 @ b**2 + np.square(y))
    return roots


def _invert_triangle(T: Array, *, lower: bool) -> Array:
    identity = np.eye(len(T))
    result: Array = scipy.linalg.solve_triangular(T, identity, lower=lower, check_finite=False)
    return result
