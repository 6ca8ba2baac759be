"""When a filter diverges, and what its steps should have been.

    share  = mu phi'^2 x'x + mu_q b'b                                 of its error that LMS takes away; b = dphi/dq
    strain <- max(0, strain + min(share - 2, 1))
    strain > order  and  |e| > X + D                                  diverges; X, D: the largest |x|, |d|
    |coefficient| > 10^6 max(1, D) / min(1, X)                        has diverged

With a share of more than two the error grows. One outlier stays for `order` samples; an agent that
goes on like that after them, and whose error is larger than any that it could begin with, would
diverge alone, and is stopped before its neighbors do so instead of it. Who is stopped by size, or
with a phi' that was mixed, may have got it from a neighbor, and is told so. A step is small enough
where no share is above one or, for splines, none of its two parts above a half: no x'x is larger
than order X^2, a spline starts with phi' = 1, and b is largest where s is furthest out, which the w
that all begin with sees at X.
"""

from __future__ import annotations

import numpy as np

from peerlearn.algorithms.filtering.kernels import NLMS, RLS
from peerlearn.algorithms.filtering.task import Design
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.splines import Spline

GROWN = 1e6


def bounds_of(largest: Array) -> Array:
    """Of coefficients, which no sound filter has, and of errors under strain; from the largest |x| and |d| of each."""
    X, D = largest.T
    with np.errstate(divide="ignore", over="ignore"):
        return np.column_stack([GROWN * np.maximum(D, 1.0) / np.minimum(X, 1.0), X + D])


def explain_divergence(
    agent: int,
    sample: int,
    design: Design,
    spline: Spline | None,
    X: float,
    steps: Array,
    *,
    by_neighbor: bool,
) -> InputError:
    """The sentence; X: the agent's largest input so far; steps: its mu and mu_q; by_neighbor: whether that may be."""
    if design.update == RLS:
        way_out = "scale its signals" + ("" if spline is None else " to the size of the knots")
        way_out += ", or bring forgetting nearer to 1" if design.forgetting < 1 else ""
    elif design.update == NLMS:
        both = "" if spline is None else " and a spline_step_size"
        way_out = f"give a step_size{both} well below 1, leave out a quiet beginning, or give update='rls'"
    else:
        way_out = _smaller_steps(design.order, spline, X, steps)
    return InputError(
        f"the filter of agent {agent} diverged at sample {sample}, and nothing of it was sent since: {way_out}"
        + ("; it may be that a neighbor's signals or steps are too large" if by_neighbor else "")
    )


def _smaller_steps(order: int, spline: Spline | None, X: float, steps: Array) -> str:
    with np.errstate(divide="ignore", over="ignore"):
        bounds = {"step_size": float(1 / np.float64(order * X**2))}
    if spline is not None:
        b = spline.rows([X])[1]
        curve = max(1.0, float(np.add.reduce(b * b, axis=None)))
        bounds = {"step_size": bounds["step_size"] / 2, "spline_step_size": 0.5 / curve}
    each = [
        (name, step, bound)
        for step, (name, bound) in zip(steps, bounds.items(), strict=False)
        if bound < np.inf
    ]
    if all(step <= bound for _, step, bound in each):
        steep = "" if spline is None else ", but its spline got too steep"
        return f"its steps are small enough for inputs up to {X:.3g}{steep}; give smaller ones, or update='nlms' or 'rls'"
    given = " and ".join(
        f"a {name} of {bound:.2g} or less, not {step:g}" for name, step, bound in each
    )
    return f"for inputs up to {X:.3g} give {given}, or update='nlms' or 'rls'"
