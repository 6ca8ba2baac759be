"""Sums by which agents learn what a fit by maximum likelihood says about its coefficients.

    moments       rows, and means and spreads of columns and targets      one sum
    infer         information, scores by site, deviance                   one sum
                  log-likelihood, if it depends on the dispersion         one more
    separates     how many rows gain and lose along some directions       one sum

All agents get the same bits, so that all come to the same conclusions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.sparse import issparse

from peerlearn.algorithms.averaging import Averaging
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array, map_agents, sendable
from peerlearn.local.families import OutputFamily
from peerlearn.local.glm_losses import GLMLosses, GLMRows
from peerlearn.local.inference import Inference, covariance_by_sites
from peerlearn.network.base import Network

SUMS = Averaging(tolerance=1e-9)  # exact, except where messages get lost
CONSTANT = 1e-13  # variance relative to the squared mean
BLOCK = 1024  # rows whose squares lie in memory at a time
ON_THE_LINE = 1e-6  # margin relative to |v| |z| that counts as 0


@dataclass(frozen=True)
class Moments:
    """What all agents know about the rows of the whole network.

    Parameters
    ----------
    rows : int
        How many rows have a weight above 0.
    weight : float
        Sum of all weights.
    targets : ndarray
        Weighted means of the columns of y.
    exposure : float
        Weighted mean of exp(offset).
    means, deviations, sizes : ndarray of shape (n_columns,)
        Weighted means, standard deviations and root mean squares of the columns of X. The deviation
        of a constant column is 0.
    """

    rows: int
    weight: float
    targets: Array
    exposure: float
    means: Array
    deviations: Array
    sizes: Array


def moments(network: Network, rows: Sequence[GLMRows]) -> Moments:
    """Sum the moments of all agents' columns."""
    numbers = sum(each.X.shape[0] * each.X.shape[1] for each in rows)
    own = map_agents(lambda k: _own_moments(rows[k]), len(rows), numbers)
    what = "numbers and weights of rows, moments of columns and targets"
    sums = sum_alike(network, sendable(np.stack(own)), SUMS, what)[0]  # the same at all agents
    count, weight, exposure = sums[:3].tolist()
    T = rows[0].y.shape[1]
    d = rows[0].X.shape[1]
    scaled = sums[3:] / weight if weight > 0 else np.zeros(len(sums) - 3)
    targets, means, squares = np.split(scaled, [T, T + d])
    variances = squares - means**2
    is_constant = variances <= CONSTANT * squares
    return Moments(
        rows=round(count),
        weight=weight,
        targets=targets,
        exposure=exposure / weight if weight > 0 else 1.0,
        means=means,
        deviations=np.sqrt(np.where(is_constant, 0.0, variances)),
        sizes=np.sqrt(squares),
    )


def _own_moments(rows: GLMRows) -> Array:
    a = rows.weights
    count = float(np.count_nonzero(a))
    weight = float(a @ np.ones(len(a)))
    exposure = float(a @ np.exp(np.minimum(rows.offsets[:, 0], 100.0)))
    sums = np.zeros((2, rows.X.shape[1]))
    if issparse(rows.X):
        sums += a @ rows.X, a @ rows.X.power(2)
    else:
        for first in range(0, len(a), BLOCK):
            part = slice(first, first + BLOCK)
            sums += a[part] @ rows.X[part], a[part] @ rows.X[part] ** 2
    return np.concatenate([[count, weight, exposure], a @ rows.y, *sums])


@dataclass(frozen=True)
class Likelihood:
    """Sums at the coefficients of a fit: all agents' gradient, Hessian and inference.

    The inference is about w, the coefficients of z.
    """

    gradient: Array
    hessian: Array
    inference: Inference


def infer(
    network: Network, rows: Sequence[GLMRows], family: OutputFamily, losses: GLMLosses, w: Array
) -> Likelihood:
    """Sum information, scores and deviance of all agents at w. Losses have no penalty."""
    d = losses.dimension
    upper = np.triu_indices(d)
    hessians = losses.hessian(w)  # first: gradients are computed on the way
    gradients = losses.gradient(w)
    scores = np.einsum("ki,kj->kij", gradients, gradients)
    if network.secrecy is not None:
        scores[:] = 0.0  # their sum has a rank of L at most, and would tell single gradients
    matrices = [scores, hessians]
    expects = family.expects_another_hessian
    if expects:
        matrices.append(losses.information(w))
    numbers = np.stack([_own_numbers(k, rows[k], family, losses, w) for k in range(len(rows))])
    parts = [numbers, gradients, *(each[:, upper[0], upper[1]] for each in matrices)]
    what = "gradient, information, deviance and numbers of rows and sites"
    sums = sum_alike(network, sendable(np.hstack(parts)), SUMS, what)[0]  # the same at all agents
    count, sites, deviance, squares, likelihood = sums[:5].tolist()
    if network.secrecy is not None:
        sites = 0.0
    triangles = sums[5 + d :].reshape(len(matrices), -1)
    summed = [_symmetric(one, d) for one in triangles]
    N = round(count)
    dispersion = 1.0
    if family.has_dispersion:
        dispersion = squares / (N - d) if d < N else np.nan
        plugged = squares / N if family.profiles_dispersion else dispersion
        likelihood = _log_likelihood(network, rows, family, losses, w, plugged)
    inverse = _inverse(summed[2] if expects else summed[1])
    found = Inference(
        coefficients=w[0].copy(),
        by_model=dispersion * inverse,
        by_sites=covariance_by_sites(_inverse(summed[1]), summed[0], N, round(sites)),
        rows=N,
        sites=round(sites),
        dispersion=dispersion,
        deviance=deviance,
        log_likelihood=likelihood,
    )
    return Likelihood(sums[5 : 5 + d], summed[1], found)


def _own_numbers(
    agent: int, rows: GLMRows, family: OutputFamily, losses: GLMLosses, w: Array
) -> Array:
    """Return counts, deviance, squares and log-likelihood of one agent's rows."""
    f = losses.outputs(agent, losses.shaped(w)[agent])
    a = rows.weights
    count = float(np.count_nonzero(a))
    likelihood = 0.0
    if not family.has_dispersion:
        likelihood = float(family.log_likelihood(f, rows.y, a, 1.0) @ np.ones(len(f)))
    deviance = float(a @ family.deviances(f, rows.y))
    squares = float(a @ family.squares(f, rows.y))
    return np.array([count, min(count, 1.0), deviance, squares, likelihood])


def _log_likelihood(
    network: Network,
    rows: Sequence[GLMRows],
    family: OutputFamily,
    losses: GLMLosses,
    w: Array,
    dispersion: float,
) -> float:
    """Return the log-likelihood of all rows with this dispersion, the same at all agents."""
    own = np.zeros((len(rows), 1))
    if not dispersion > 0:  # all agents see this alike
        return float("nan")
    for k, each in enumerate(rows):
        used = each.weights > 0
        f = losses.outputs(k, losses.shaped(w)[k])[used]
        likelihoods = family.log_likelihood(f, each.y[used], each.weights[used], dispersion)
        own[k] = likelihoods @ np.ones(len(f))
    return float(sum_alike(network, sendable(own), SUMS, "log-likelihood")[0, 0])


def separates(network: Network, losses: GLMLosses, directions: Sequence[Array]) -> Array | None:
    """Return the first direction along which no row loses and some gain, or None.

    directions: of w, the same at all agents.
    """
    own = np.zeros((losses.agents, len(directions), 2))
    for j, v in enumerate(directions):
        V = losses.shaped(v[None])[0]
        for k in range(losses.agents):
            margins, lengths = losses.margins(k, V)
            least = ON_THE_LINE * float(np.linalg.norm(v)) * lengths
            own[k, j] = np.count_nonzero(margins < -least), np.count_nonzero(margins > least)
    flat = own.reshape(len(own), -1)
    counts = sum_alike(network, flat, SUMS, "rows on each side")[0].reshape(-1, 2)
    for v, (lose, gain) in zip(directions, counts, strict=True):
        if lose < 0.5 < gain:
            return v
    return None


def _symmetric(triangle: Array, d: int) -> Array:
    A = np.empty((d, d))
    upper = np.triu_indices(d)
    A[upper] = triangle
    A.T[upper] = triangle
    return A


def _inverse(A: Array) -> Array:
    """Return the inverse, or NaN where there is none."""
    try:
        return cast(Array, np.linalg.inv(A))
    except np.linalg.LinAlgError:
        return np.full_like(A, np.nan)
