"""Adaptive filters of a network: each agent adapts alone, and every so many samples they combine.

    theta_k <- the next sample of agent k              alone (kernels.py)
    theta_k <- sum_j C_kj theta_j                      over the network (streaming/combining.py)

adapt-then-combine in this order; combine-then-adapt begins with the second line, which is the same
recursion read at another point. (Lopes and Sayed, Diffusion least-mean squares over adaptive
networks, 2008; thesis, section 10.3.) All agents begin alike, so there is nothing to combine before
the first sample. An agent that diverges stops the run before it sends anything: divergence.py.

Theory of operation. If all agents are hosted here, are not too many, and all send in every round,
the compiled loop `advance` does the rounds as well, and `_count` enters what it would have sent.
Otherwise `_in_rounds` calls `advance` from one round to the next, and the network does the rounds.
Both give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from peerlearn.algorithms.filtering.divergence import bounds_of
from peerlearn.algorithms.filtering.kernels import LMS, RLS, SOUND, advance, visit
from peerlearn.algorithms.filtering.spans import count_mixed_spans, mix_spans
from peerlearn.algorithms.filtering.task import Design, Rounds, Task
from peerlearn.algorithms.streaming import combining
from peerlearn.arrays import Array
from peerlearn.errors import InputError
from peerlearn.local.recursive import State
from peerlearn.local.splines import SPAN
from peerlearn.network.base import Network

BEFORE, AFTER, NONE = "combine-then-adapt", "adapt-then-combine", "none"
# Agents in the compiled loop: for more, a sparse C is quicker. A dense C of 1000 takes 8 MB.
FUSED_UP_TO = {"full": 200, "span": 1000}
FADE = 0.02  # first fade of the memory of a spline filter
NO_WEIGHTS = np.zeros((0, 0))


@dataclass(frozen=True)
class Cooperation:
    """Settings of how agents combine.

    when: before or after they adapt, or not at all. exchange: "full" or "span". every: samples
    between two rounds. threshold: relative change that is worth a message; None: all agents send.
    """

    when: str
    exchange: str
    every: int
    threshold: float | None

    def __post_init__(self) -> None:
        one_of(self.when, "cooperation", (AFTER, BEFORE, NONE))
        one_of(self.exchange, "exchange", ("full", "span"))
        combining.check_combining(self.every, self.threshold, "samples")
        if self.exchange == "span" and self.threshold is not None:
            raise InputError(
                "a threshold compares all coefficients of an agent with what it last sent: "
                "give exchange='full'"
            )

    def sends_on(self, network: Network) -> bool:
        """Return whether anything is sent at all."""
        return self.when != NONE and network.size > 1


@dataclass(frozen=True)
class Shape:
    """A filter as it begins: its design, its coefficients, and how certain they are."""

    design: Design
    B: Array
    theta: Array
    prior: Array

    def start(self, network: Network, how: Cooperation) -> State:
        """Return the state before the first sample: all that agents remember between samples."""
        agents = len(network.hosted)
        recursive = self.design.update == RLS
        P = np.diag(self.prior) if recursive else np.zeros((0, 0))
        state = {
            "theta": np.tile(self.theta, (agents, 1)),
            "P": np.tile(P, (agents, 1, 1)),
            "fade": np.full(agents, FADE if recursive and self.design.Q else 0.0),
            "strain": np.zeros(agents),
            "loudness": np.zeros(agents),
            "tail": np.zeros((agents, self.design.order - 1)),
            "largest": np.zeros((agents, 2)),
            "clock": np.zeros(agents),
        }
        if how.sends_on(network):
            if how.exchange == "span":
                network.must_hear_everybody("give exchange='full'")
            memory = combining.memory(network, (len(self.theta), 1), how.threshold)
            for name in {"sent", "heard"} & set(memory):  # all know what all begin with
                memory[name] += self.theta[:, None]
            state |= memory
        return state


def proceed(
    network: Network,
    shape: Shape,
    how: Cooperation,
    state: State,
    signals: tuple[Array, Array, Array],
    truth: tuple[Array, Array],
    stop: Callable[[int, int, float, bool], Exception],
) -> tuple[State, Array]:
    """Return the state after these samples, and their record (see Task).

    The old state is not changed. signals: x, d and steps of the hosted agents. truth: w0 and f0, or
    empty. stop(k, n, X, strained): returns the error for the k-th hosted agent, whose largest input
    was X, if it diverges at sample n, by strain or by size.
    """
    x, d, steps = signals
    agents, samples = d.shape
    clock = int(state["clock"][0])
    state = {name: array.copy() for name, array in state.items()}
    largest = np.abs(np.stack([x, d])).max(axis=2).T
    state["largest"] = np.maximum(state["largest"], largest)
    small = network.size <= FUSED_UP_TO[how.exchange]
    fused = how.sends_on(network) and small and how.threshold is None
    C = network.mixing_here if fused else None
    task = Task(
        design=shape.design,
        B=shape.B,
        prior=shape.prior,
        theta=state["theta"],
        P=state["P"],
        fade=state["fade"],
        strain=state["strain"],
        loudness=state["loudness"],
        x=np.hstack([state["tail"], x]),
        d=d,
        steps=np.column_stack([steps, bounds_of(state["largest"])]),
        w0=truth[0],
        f0=truth[1],
        record=np.empty((3 if len(truth[0]) else 1, agents, samples)),
        visited=np.zeros(agents, dtype=np.intp),
        stopped=np.array([SOUND, 0, 0]),
        work=np.zeros((3, max(len(shape.theta), SPAN))),
        rounds=Rounds(int(how.every), clock, how.when == BEFORE, how.exchange == "span"),
        C=NO_WEIGHTS if C is None else C.toarray(),
        done=np.zeros(1, dtype=np.intp),
    )
    if how.sends_on(network) and C is None:
        _in_rounds(network, how, task, state)
    else:
        advance(*task, 0, samples)
        _count(network, task)
    if task.stopped[0] != SOUND:
        k, n, strained = task.stopped.tolist()
        raise stop(k, clock + n, float(state["largest"][k, 0]), bool(strained))
    state["tail"] = task.x[:, samples:].copy()
    state["clock"] += samples
    return state, task.record


def outputs(shape: Shape, theta: Array, x: Array) -> Array:
    """Return the outputs of filters for signals of their own, without learning."""
    none = np.zeros(0)
    agents = len(x)
    task = Task(
        design=shape.design._replace(update=LMS),  # with steps of 0
        B=shape.B,
        prior=shape.prior,
        theta=theta.copy(),
        P=np.zeros((agents, 0, 0)),
        fade=none,
        strain=np.zeros(agents),
        loudness=none,
        x=np.hstack([np.zeros((agents, shape.design.order - 1)), x]),
        d=x,
        steps=np.repeat([[0.0, 0.0, np.inf, np.inf]], agents, axis=0),
        w0=none,
        f0=none,
        record=np.empty((1, *x.shape)),
        visited=np.zeros(agents, dtype=np.intp),
        stopped=np.array([SOUND, 0, 0]),
        work=np.zeros((3, SPAN)),
        rounds=Rounds(1, 0, False, False),
        C=NO_WEIGHTS,
        done=np.zeros(1, dtype=np.intp),
    )
    advance(*task, 0, x.shape[1])
    y: Array = task.record[0]
    return y


def _count(network: Network, task: Task) -> None:
    """Enter what the compiled loop would have sent."""
    rounds = int(task.done[0])
    spans = task.rounds.spans
    network.count_mixed(rounds, task.design.order if spans else task.theta.shape[1])
    if spans:
        count_mixed_spans(network, rounds)


def _in_rounds(network: Network, how: Cooperation, task: Task, state: State) -> None:
    """Adapt and combine on any network, with the same numbers as `advance` alone."""
    samples = task.d.shape[1]
    every, clock, before, _ = task.rounds
    n = 0
    while n < samples and task.stopped[0] == SOUND:
        last = min(samples, n + every - (clock + n) % every)
        if before and clock + n > 0 and (clock + n) % every == 0:
            _combine(network, how, task, state, n)
        advance(*task, n, last)
        if not before and task.stopped[0] == SOUND and (clock + last) % every == 0:
            _combine(network, how, task, state, None)
        n = last


def _combine(
    network: Network, how: Cooperation, task: Task, state: State, ahead: int | None
) -> None:
    """Combine theta in place.

    ahead: the sample whose span agents ask for, if they have not visited it yet.
    """
    theta = task.theta
    order = task.design.order
    if how.exchange == "full":
        mixed = combining.combine(network, state, theta[:, :, None], how.threshold)
        theta[:] = mixed[:, :, 0]
        return
    theta[:, :order] = network.mix(np.ascontiguousarray(theta[:, :order]))
    if ahead is not None:
        visit(task.design, theta, task.x, task.visited, ahead)
    mixed = mix_spans(network, theta[:, order:], task.visited)
    for k, i in enumerate(task.visited):
        theta[k, order + i : order + i + SPAN] = mixed[k]


def one_of(value: Any, name: str, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the allowed texts."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} is {value!r}: give one of {', '.join(map(repr, allowed))}")
