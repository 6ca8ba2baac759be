"""What the compiled loop of kernels.py works on."""

from __future__ import annotations

from typing import NamedTuple

from peerlearn.arrays import Array, Indices


class Design(NamedTuple):
    """Of the filters of all agents. Numbers alone: compiled code counts references when it opens a tuple of arrays."""

    order: int
    Q: int  # control points; 0: no spline
    density: float  # 1 / spacing
    update: int
    forgetting: float


class Rounds(NamedTuple):
    """When agents combine what."""

    every: int
    clock: int  # samples before these
    before: bool  # combine, then adapt
    spans: bool  # of q only what each agent visits


class Task(NamedTuple):
    """What `advance` works on; the leading axis of theta, .., d and steps is agents."""

    design: Design
    B: Array
    prior: Array  # the diagonal of P[0]
    theta: Array
    P: Array  # agents x 0 x 0 but for RLS
    fade: Array  # of RLS
    strain: Array  # of LMS (divergence.py)
    loudness: Array  # of NLMS: r
    x: Array  # with the order - 1 samples from before
    d: Array
    steps: Array  # mu, mu_q, and of divergence.py the bounds of coefficients and of errors under strain
    w0: Array  # the filter that made the signals: its coefficients, or none
    f0: Array  # and its phi at the usable knots
    record: (
        Array  # 1 x agents x samples: outputs; with a w0 3 x ..: and the distances of both parts
    )
    visited: Indices  # out: the span of each agent's last sample
    stopped: (
        Indices  # out: the agent that diverged first, or SOUND; at which sample; and 1 if by strain
    )
    work: Array  # 3 rows
    rounds: Rounds
    C: Array  # the weights where `advance` does the rounds, else 0 x 0
    done: Indices  # out: how often it has combined
