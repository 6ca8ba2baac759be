"""When a filter diverges, and what its steps should have been.

    share  = mu phi'^2 x'x + mu_q b'b                 part of its error that LMS takes away
    strain <- max(0, strain + min(share - 2, 1))
    strain > order  and  |e| > X + D                  diverges
    |coefficient| > 10^6 max(1, D) / min(1, X)        has diverged

with b = dphi/dq, and X, D the largest |x|, |d|.

With a share of more than two the error grows. One outlier stays in the filter for `order` samples.
An agent whose share stays too large after them, and whose error is larger than any that it could
begin with, would diverge alone. It is stopped before it makes its neighbors diverge. An agent that
is stopped by the size of its coefficients, or with a phi' that was mixed, may have got them from a
neighbor, and the error says so.

A step is small enough if no share is above one or, for splines, neither of its two parts is above a
half. No x'x is larger than order X^2, a spline starts with phi' = 1, and b is largest where s is
furthest out: at X, for the w that all agents begin with.
"""

from __future__ import annotations

import numpy as np

from peerlearn.algorithms.filtering.kernels import NLMS, RLS
from peerlearn.algorithms.filtering.task import Design
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.splines import Spline

GROWN = 1e6  # a coefficient of this size has diverged


def bounds_of(largest: Array) -> Array:
    """Return the bounds of coefficients and of errors under strain of each agent.

    largest: the largest |x| and |d| of each.
    """
    X, D = largest.T
    with np.errstate(divide="ignore", over="ignore"):
        coefficients = GROWN * np.maximum(D, 1.0) / np.minimum(X, 1.0)
        return np.column_stack([coefficients, X + D])


def explain_divergence(
    agent: int,
    sample: int,
    design: Design,
    spline: Spline | None,
    X: float,
    steps: Array,
    *,
    by_neighbor: bool,
    scale: float = 1.0,
) -> InputError:
    """Return the error for a filter that diverged, with steps that would be small enough.

    X: the agent's largest input so far. steps: its mu and mu_q. by_neighbor: whether a neighbor may
    be the cause. scale: of its inputs (A of opening.py).
    """
    if design.update == RLS:
        way_out = "scale its signals"
        if spline is not None:
            way_out += " to the size of the knots"
        if design.forgetting < 1:
            way_out += ", or bring forgetting nearer to 1"
    elif design.update == NLMS:
        both = "" if spline is None else " and a spline_step_size"
        way_out = (
            f"give a step_size{both} well below 1, leave out a quiet beginning, "
            "or give update='rls'"
        )
    else:
        way_out = _suggest_steps(design, spline, X, scale, steps)
    if by_neighbor:
        way_out += "; it may be that a neighbor's signals or steps are too large"
    return InputError(
        f"the filter of agent {agent} diverged at sample {sample}, "
        f"and nothing of it was sent since: {way_out}"
    )


def _suggest_steps(
    design: Design, spline: Spline | None, X: float, scale: float, steps: Array
) -> str:
    with np.errstate(divide="ignore", over="ignore"):
        square = np.float64(design.order * (X / scale) ** 2 + design.bias)
        bounds = {"step_size": float(1 / square)}
    if spline is not None:
        b = spline.rows([X / scale])[1]
        curve = max(1.0, float(np.add.reduce(b * b, axis=None)))
        bounds = {"step_size": bounds["step_size"] / 2, "spline_step_size": 0.5 / curve}
    each = [
        (name, step, bound)
        for step, (name, bound) in zip(steps, bounds.items(), strict=False)
        if bound < np.inf
    ]
    if all(step <= bound for _, step, bound in each):
        steep = "" if spline is None else ", but its spline got too steep"
        return (
            f"its steps are small enough for inputs up to {X:.3g}{steep}; "
            "give smaller ones, or update='nlms' or 'rls'"
        )
    given = " and ".join(
        f"a {name} of {bound:.2g} or less, not {step:g}" for name, step, bound in each
    )
    return f"for inputs up to {X:.3g} give {given}, or update='nlms' or 'rls'"
