"""Tracking the gradient of the whole network: the iteration of NEXT and of gradient tracking.

    v_k = (grad h_k(w_k), h_k(w_k))                         at first, alone
    z_k = w_k + a p_k,   p_k from w_k and G_k               alone: where methods differ
    w, v <- C z, C v                                        over the network, in the same messages
    v_k <- v_k + the change of (grad h_k(w_k), h_k(w_k))    alone

The mean of all v stays that of all (grad h_k(w_k), h_k(w_k)). So N v_k becomes their sum at every
agent. With alpha w_k and alpha/2 |w_k|^2 added it is the gradient G_k and the value F_k of the
whole problem (Di Lorenzo and Scutari, NEXT: in-network nonconvex optimization, 2016, section III;
the value is ours, to supervise steps).

Windows. Every message also carries the largest |G_k|, F_k and curvature (steps.py) at the start of
the window that its sender knows. A window lasts until all agents have heard from all; then all make
the same decision about the next step. In the first window nobody steps: bounds on the curvature are
flooded and v mixes. When |G_k| may be small enough, all agents meet at one point and add up their
gradients there (minimum.py). That decides. If it is not small enough, they go on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from peerlearn.algorithms.iteration import Iterations
from peerlearn.algorithms.smooth.distance import Goal
from peerlearn.algorithms.smooth.minimum import (
    WAY_OUT,
    Minimum,
    OnePoint,
    check_start,
    meet,
    slopes_and_values,
    step_off,
)
from peerlearn.algorithms.smooth.mixing import Kind, Mixing
from peerlearn.algorithms.smooth.steps import AutomaticSteps, StepRule
from peerlearn.arrays import HUGE, Array, norms, sendable
from peerlearn.errors import NetworkError
from peerlearn.local.losses import Losses
from peerlearn.local.surrogates import largest_curvatures
from peerlearn.network.base import Network

Direction = Callable[[Array, Array], Array]  # p_k of every hosted agent from its w_k and G_k
STRICTER = 0.3  # factor for the goal of |G_k| after a meeting that found it too optimistic


@dataclass(frozen=True)
class State:
    """The state of every hosted agent between two iterations. own: (grad h_k, h_k) at w_k."""

    w: Array
    v: Array
    own: Array
    G: Array
    p: Array


@dataclass(frozen=True)
class TrackingRun:
    """One run of gradient tracking on one problem.

    direction: computes p above, with |p| <= |G| / metric. largest_step: limit of a. step: None for
    automatic steps.
    """

    network: Network
    losses: Losses
    alpha: float
    solver: str
    direction: Direction
    metric: float
    largest_step: float
    step: StepRule | None
    mixing: Kind
    tolerance: float
    max_iterations: int

    def minimise(self, start: Array | None) -> Minimum:
        """Return a minimum of the losses of all agents and the penalty."""
        if not self.network.reliable:
            raise NetworkError(
                f"{self.solver} needs every message to arrive, and this network loses some: "
                "use solver='diffusion'"
            )
        loop = Iterations(
            self.network, self.solver, self.tolerance, self.max_iterations, measure="gradient"
        )
        w = check_start(self.network, self.losses, self.alpha, start)
        # Divergence is noticed by the size of the gradient.
        ends = Goal.of(loop, self.losses, self.alpha)
        with np.errstate(over="ignore", invalid="ignore"):
            w, point = self._descend(w, loop, ends)
        change = WAY_OUT if self.step is None else "choose another step"
        reached = ends.is_reached(point.size, point.bound)
        # If the agents converged, they met: all took one agent's w.
        report = ends.report(change, point.bound, met=reached)
        return Minimum(w, report, apart=0.0 if reached else None)

    def _descend(
        self, w: Array, loop: Iterations, ends: Goal, left_start: bool = False
    ) -> tuple[Array, OnePoint]:
        """Return where each agent is in the end, and the point of the last meeting.

        The last residual is that of the meeting. left_start: whether agents stepped off a start
        where the gradient vanished.
        """
        network = self.network
        mix = Mixing.of(network, self.mixing)
        steps = AutomaticSteps(mix.sigma, self.largest_step, self.metric)
        window = mix.window(network)
        own = slopes_and_values(self.network, self.losses, w)
        state = self._at(w, own, own)
        if self.step is None:
            state = self._listen(state, steps, mix, window)
        goal = self.tolerance
        outlook = "better"
        before: State | None = None  # the start of the previous window
        first = best = state
        heard = self._collect_news(state, before)
        for n in loop:
            a = steps.now if self.step is None else self.step(n - 1)
            state, heard = self._iterate(state, a, mix, heard)
            if n % window:
                continue  # not all have heard from all
            # Of the window's start, and the same at every agent.
            size, value, curvature = heard[0].tolist()
            # What the gradient may be by now, if it went on to fall as it did.
            ahead = size
            if before is not None:
                ahead = size * min(1.0, size / loop.residuals[-1])
            loop.record(size)
            before = first
            if len(loop.residuals) == 1:
                goal = ends.size  # in the unit of the first gradient
            if ahead <= goal:
                point = meet(network, self.losses, self.alpha, state.w)
                loop.record(point.size)
                if ends.is_reached(point.size, point.bound):
                    if ends.starts_stationary and not left_start and not loop.exhausted:
                        w = step_off(point.w)
                        return self._descend(w, loop, ends, left_start=True)
                    return point.w, point
                goal *= STRICTER
                state = best = self._at(point.w, point.total / network.size, point.own)
                before = None
                outlook = "better"
            elif self.step is None:
                outlook = steps.judge(size, value, curvature)
                if outlook == "better":
                    best = first
                elif outlook == "lost":
                    state = best
                    before = None
            elif size >= HUGE:
                break
            first = state
            heard = self._collect_news(state, before)
        state = state if outlook == "better" else best
        point = meet(network, self.losses, self.alpha, state.w)
        loop.record(point.size)
        reached = ends.is_reached(point.size, point.bound)
        return point.w if reached else state.w, point

    def _at(self, w: Array, v: Array, own: Array) -> State:
        """Return the state at w, with G and p computed."""
        G = self.network.size * v[:, :-1] + self.alpha * w
        return State(w, v, own, G, self.direction(w, G))

    def _iterate(self, state: State, a: float, mix: Mixing, heard: Array) -> tuple[State, Array]:
        """Return the state after one iteration with step a, and the largest numbers heard."""
        z = sendable(np.hstack([state.w + a * state.p, state.v]))
        mixed, heard = mix(self.network, z, heard)
        w, v = np.hsplit(mixed, [state.w.shape[1]])
        own = slopes_and_values(self.network, self.losses, w)
        return self._at(w, v + own - state.own, own), heard

    def _listen(self, state: State, steps: AutomaticSteps, mix: Mixing, window: int) -> State:
        """Return the state after a window without steps, in which all learn the curvature."""
        bound = self.alpha + self.network.size * largest_curvatures(self.losses.gradient, state.w)
        heard = sendable(bound / self.metric)
        for _ in range(window):
            state, heard = self._iterate(state, 0.0, mix, heard)
        steps.begin(float(heard[0]))
        return state

    def _collect_news(self, state: State, before: State | None) -> Array:
        """Return |G_k|, F_k and the change of p_k per step, which agents send during a window."""
        value = self.network.size * state.v[:, -1] + self.alpha / 2 * norms(state.w) ** 2
        curvature = np.zeros(len(state.w))
        if before is not None:
            moved = norms(state.w - before.w)
            np.divide(norms(state.p - before.p), moved, out=curvature, where=moved > 0)
        return sendable(np.column_stack([norms(state.G), value, curvature]))
