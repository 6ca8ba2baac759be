"""Ridge with differential privacy: the root learns noisy Gram matrices, all agents coefficients.

    a = [g v] of each row: g = h / C as whole numbers, |h| <= C; v = 1/2 for an intercept     alone
    y of each row, as whole numbers, |y| <= T                                                 alone
    G = sum a a' + noise, P = sum a y' + noise                        secret sum, at the root
    e = (2 sqrt(B) + 3.5) s            at least |noise of G|, with probability .95
    l = max(alpha, e - max(0, least eigenvalue of G - e))             at the root
    b = (G + l I)^-1 P                                                at the root, to all agents

C: `feature_norm`, T: length of the targets. s: deviation of the noise in G. The ridge l is that of
AdaSSP (Wang, Revisiting differentially private linear regression, 2018), with two changes: the
least eigenvalue is that of the noisy G, which costs nothing, and e is the bound of a Gaussian
matrix, 2 sqrt(B) s and what a sum of squares is above its mean, where AdaSSP has
sqrt(B log(2 B^2 / .05)) s. An intercept has the same penalty, because its noise is as large. The
column v is 1/2, not 1, because each row is longer by it, and the noise is in proportion.

What one row changes, with r^2 = |a|^2, which is at most 1, or 1.25 with an intercept:

    add or remove   |upper triangle of a a'| <= r^2             |a y'| <= r T
    replace         |upper triangle of the difference| <= sqrt(2) r^2         2 r T

because aa' and cc' of two rows have an inner product of 0 or more. Nothing is released but b: no
bound, no number of rows, no scales. The units are public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from peerlearn.algorithms.differential_privacy import (
    GRID,
    DifferentialPrivacy,
    NoisePlan,
    check_row_count,
    plan_noise,
    round_rows,
)
from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.readout.solver import Solution
from peerlearn.algorithms.secret_sums import session_of
from peerlearn.arrays import Array, sendable
from peerlearn.local.features import FeatureMap
from peerlearn.network.base import Network
from peerlearn.secret.discrete_gaussian import Whole
from peerlearn.secret.keys import Words

CONSTANT = 0.5
NO_BOUND = "differential privacy: the answer differs from that of the rows on purpose"


def solve_privately(
    network: Network,
    features: FeatureMap,
    inputs: Sequence[Any],
    outputs: Sequence[Array],
    alpha: float,
    privacy: DifferentialPrivacy,
    noise_keys: Sequence[bytes],
    *,
    intercept: bool,
) -> tuple[Solution, Array, Array]:
    """Return the private ridge solution, and intercepts and penalties of the hosted agents.

    outputs: targets of length 1 at most. noise_keys: of the hosted agents.
    """
    loop = Iterations(network, "Gram", tolerance=1.0, max_iterations=1)
    next(loop)
    B = features.width
    M = outputs[0].shape[1]
    C = privacy.feature_norm
    plan = plan_gram_noise(privacy, network, intercept=intercept)
    words = []
    for key, X, Y in zip(noise_keys, inputs, outputs, strict=True):
        check_row_count(X.shape[0], network.size)
        words.append(plan.add_noise(key, sum_products(features, X, Y, C, intercept=intercept)))
    session = session_of(network)
    total = session.sum_to_root("H'H and H'Y with noise", np.stack(words), plan.scales)

    def solve(found: Words) -> Array:
        G, P = split_total(found[:, 0].view(np.int64), B + intercept, M)
        deviation = plan.total_deviation(0) / GRID**2
        penalty, b = solve_noisy(G, P, alpha / C**2, deviation)
        return sendable(np.append(penalty * C**2, b.ravel()))

    answers = session.answer(total, 1 + (B + intercept) * M, solve)
    b = answers[:, 1:].reshape(len(answers), B + intercept, M)
    constants = CONSTANT * b[:, B] if intercept else np.zeros((len(b), M))
    report = replace(loop.report(), bound_reason=NO_BOUND, privacy=plan.statement)
    solution = Solution(np.ascontiguousarray(b[:, :B]) / C, report, apart=0.0)
    return solution, constants, answers[:, 0]


def plan_gram_noise(
    privacy: DifferentialPrivacy, network: Network, *, intercept: bool
) -> NoisePlan:
    """Return the noise of G and P."""
    r = math.sqrt(1 + (CONSTANT**2 if intercept else 0.0))
    factors = (1.0, 1.0) if privacy.neighbors == "add-remove" else (math.sqrt(2), 2.0)
    sensitivities = [factors[0] * r**2 * GRID**2, factors[1] * r * GRID**2]
    bounds = privacy.target_bounds
    targets = f", targets to [{bounds[0]:g}, {bounds[1]:g}]" if bounds else ""
    clipping = f"features to length {privacy.feature_norm:g}{targets}"
    return plan_noise(privacy, sensitivities, network, clipping)


def sum_products(
    features: FeatureMap, X: Any, Y: Array, C: float, *, intercept: bool
) -> tuple[Whole, Whole]:
    """Return the upper triangle of sum aa', and sum ay', of one agent's rows, exactly.

    Blocks of features have few rows, so that their sums are exact in float64.
    """
    width = features.width + intercept
    G = np.zeros((width, width), dtype=np.int64)
    P = np.zeros((width, Y.shape[1]), dtype=np.int64)
    for block, H in features.blocks(X):
        A = round_rows(H, C)
        if intercept:
            A = np.hstack([A, np.full((len(A), 1), CONSTANT * GRID)])
        G += (A.T @ A).astype(np.int64)
        P += (A.T @ round_rows(Y[block], 1.0)).astype(np.int64)
    return G[np.triu_indices(width)], P


def split_total(total: Whole, width: int, M: int) -> tuple[Array, Array]:
    """Return G and P from the total of all agents' words."""
    rows, columns = np.triu_indices(width)
    numbers = total / GRID**2
    G = np.zeros((width, width))
    G[rows, columns] = numbers[: len(rows)]
    G[columns, rows] = numbers[: len(rows)]
    return G, numbers[len(rows) :].reshape(width, M)


def solve_noisy(G: Array, P: Array, alpha: float, deviation: float) -> tuple[float, Array]:
    """Return the penalty and the coefficients. deviation: of the noise in G."""
    values, vectors = np.linalg.eigh(G)
    most = (2 * math.sqrt(len(G)) + 3.5) * deviation
    penalty = max(alpha, most - max(0.0, values[0] - most))
    # Once in a while the noise is larger than `most`.
    penalty = max(penalty, most / 20 - values[0])
    b: Array = vectors @ ((vectors.T @ P) / (values + penalty)[:, None])
    return penalty, b
