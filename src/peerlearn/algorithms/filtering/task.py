"""The arrays and settings that the compiled loop of kernels.py works on."""

from __future__ import annotations

from typing import NamedTuple

from peerlearn.arrays import Array, Indices


class Design(NamedTuple):
    """The design of the filters of all agents.

    Numbers only: compiled code counts references when it opens a tuple of arrays.

    order: number of remembered inputs. Q: number of control points; 0 for no spline. density:
    1 / spacing. update: LMS, NLMS or RLS. forgetting: weight of the past per sample. bias: 1 if
    the filter has a bias weight, else 0. robust: whether RLS limits errors and detects changes.
    """

    order: int
    Q: int
    density: float
    update: int
    forgetting: float
    bias: int = 0
    robust: bool = False


class Rounds(NamedTuple):
    """The schedule of rounds in which agents combine.

    every: samples between two rounds. clock: samples before these. before: whether agents combine
    before they adapt. spans: whether agents combine only the part of q that each visits.
    """

    every: int
    clock: int
    before: bool
    spans: bool


class Task(NamedTuple):
    """The arguments of `advance`; the leading axis of prior, .., d and steps is agents."""

    design: Design
    B: Array
    start: Array  # theta of a fresh filter
    prior: Array  # the diagonal of P[0]
    units: Array  # factors of the steps of w and of the bias, from the scale of the signals
    theta: Array
    P: Array  # agents x 0 x 0 except for RLS
    fade: Array  # RLS only
    watch: Array  # robust RLS only: p, c, a and D of kernels.py
    strain: Array  # LMS only (divergence.py)
    loudness: Array  # NLMS only: r
    x: Array  # with the order - 1 samples from before
    d: Array
    steps: Array  # mu, mu_q, the bound of coefficients, the bound of errors under strain
    w0: Array  # coefficients of the filter that made the signals, or empty
    f0: Array  # its phi at the usable knots
    record: Array  # output: 1 x agents x samples; with w0 3 x .., and the distances of both parts
    visited: Indices  # output: the span of each agent's last sample
    stopped: Indices  # output: first agent that diverged or SOUND; its sample; 1 if by strain
    work: Array  # scratch memory of 4 rows
    rounds: Rounds
    C: Array  # the weights if `advance` does the rounds, else 0 x 0
    done: Indices  # output: how often agents have combined
