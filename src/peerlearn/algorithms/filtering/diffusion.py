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

A filter that is scaled waits for its first samples, the opening. Until then it learns nothing.
Agents then agree on the scale of the signals, and learn from the opening as if it came only now.
The scale is estimated again a few times while they learn (opening.py). Agents that learn alone keep
more samples, and start once more when they have them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peerlearn.algorithms.filtering.divergence import bounds_of
from peerlearn.algorithms.filtering.kernels import LMS, SOUND, advance, visit
from peerlearn.algorithms.filtering.opening import adapt_to_opening, refine, until_refinement
from peerlearn.algorithms.filtering.shape import BEFORE, OPENING, Cooperation, Shape
from peerlearn.algorithms.filtering.spans import count_mixed_spans, mix_spans
from peerlearn.algorithms.filtering.task import Rounds, Task
from peerlearn.algorithms.streaming import combining
from peerlearn.arrays import Array
from peerlearn.local.recursive import State
from peerlearn.local.splines import SPAN
from peerlearn.network.base import Network

# Agents in the compiled loop: for more, a sparse C is quicker. A dense C of 1000 takes 8 MB.
FUSED_UP_TO = {"full": 200, "span": 1000}
NO_WEIGHTS = np.zeros((0, 0))
# Returns the error of hosted agent k, which diverged at sample n, from its largest input, the scale
# of its inputs (A of opening.py), and whether it was stopped by strain.
Stop = Callable[[int, int, float, float, bool], Exception]


def proceed(
    network: Network,
    shape: Shape,
    how: Cooperation,
    state: State,
    signals: tuple[Array, Array, Array],
    truth: tuple[Array, Array],
    stop: Stop,
) -> tuple[State, Array]:
    """Return the state after these samples, and their record (see Task).

    The old state is not changed. signals: x, d and steps of the hosted agents. truth: w0 and f0, or
    empty. stop: returns the error if an agent diverges.
    """
    x, d, steps = signals
    state = {name: array.copy() for name, array in state.items()}
    largest = np.abs(np.stack([x, d])).max(axis=2, initial=0.0).T
    state["largest"] = np.maximum(state["largest"], largest)
    opening = state["opening"]
    begun = int(state["clock"][0])
    first = min(OPENING, opening.shape[2])
    now = min(max(first - begun, 0), d.shape[1])  # samples before anything is learned
    sends = how.sends_on(network)

    def learn_again(kept: Array) -> None:
        adapt_to_opening(network, shape, sends, state, kept)
        state["clock"][:] = 0.0
        _learn(network, shape, how, state, (kept[:, 0], kept[:, 1], steps), truth, stop)

    records = []
    if now > 0:
        _keep_samples(opening, begun, x[:, :now], d[:, :now])
        heard = opening[:, 0, : begun + now]
        records.append(_run_still(shape, state["theta"], heard, truth)[:, :, begun:])
        state["clock"] += now
        if begun + now == first:
            learn_again(opening[:, :, :first])
    while now < d.shape[1]:
        wait = until_refinement(shape, state)
        last = min(d.shape[1], now + wait) if wait > 0 else d.shape[1]
        part = (x[:, now:last], d[:, now:last], steps)
        clock = int(state["clock"][0])
        _keep_samples(opening, clock, part[0], part[1])
        records.append(_learn(network, shape, how, state, part, truth, stop))
        if clock < opening.shape[2] == clock + last - now:
            state |= _forgotten(shape.start(network, how))
            learn_again(opening)
        elif wait > 0:
            refine(network, shape, sends, state, part[0])
        now = last
    return state, np.concatenate(records, axis=2) if records else _new_record(d, truth)


def _keep_samples(opening: Array, clock: int, x: Array, d: Array) -> None:
    """Keep samples that come after the first `clock` ones, in place, as far as there is room."""
    room = opening[:, :, clock : clock + x.shape[1]]
    room[:] = np.stack([x, d], axis=1)[:, :, : room.shape[2]]


def _forgotten(start: State) -> State:
    """Return the part of a first state that replaces what a filter has learned."""
    return {name: array for name, array in start.items() if name not in ("opening", "largest")}


def _learn(
    network: Network,
    shape: Shape,
    how: Cooperation,
    state: State,
    signals: tuple[Array, Array, Array],
    truth: tuple[Array, Array],
    stop: Stop,
) -> Array:
    """Learn from samples, change the state in place, and return their record."""
    x, d, steps = signals
    agents, samples = d.shape
    clock = int(state["clock"][0])
    small = network.size <= FUSED_UP_TO[how.exchange]
    fused = how.sends_on(network) and small and how.threshold is None
    C = network.mixing_here if fused else None
    task = Task(
        design=shape.design,
        B=shape.B,
        start=state["start"],
        prior=state["prior"],
        units=state["units"],
        theta=state["theta"],
        P=state["P"],
        fade=state["fade"],
        watch=state["watch"],
        strain=state["strain"],
        loudness=state["loudness"],
        x=np.hstack([state["tail"], x]),
        d=d,
        steps=np.column_stack([steps, bounds_of(state["largest"])]),
        w0=truth[0],
        f0=truth[1],
        record=_new_record(d, truth),
        visited=np.zeros(agents, dtype=np.intp),
        stopped=np.array([SOUND, 0, 0]),
        work=np.zeros((4, max(len(shape.theta), SPAN))),
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
        scale = float(np.sqrt(state["units"][k, 1] / state["units"][k, 0]))
        raise stop(k, clock + n, float(state["largest"][k, 0]), scale, bool(strained))
    state["tail"] = task.x[:, samples:].copy()
    state["clock"] += samples
    return task.record


def _new_record(d: Array, truth: tuple[Array, Array]) -> Array:
    return np.empty((3 if len(truth[0]) else 1, *d.shape))


def outputs(shape: Shape, theta: Array, x: Array) -> Array:
    """Return the outputs of filters for signals of their own, without learning."""
    none = np.zeros(0)
    y: Array = _run_still(shape, theta, x, (none, none))[0]
    return y


def _run_still(shape: Shape, theta: Array, x: Array, truth: tuple[Array, Array]) -> Array:
    """Return the record of filters that do not learn."""
    none = np.zeros(0)
    agents = len(x)
    task = Task(
        design=shape.design._replace(update=LMS),  # with steps of 0
        B=shape.B,
        start=theta,
        prior=theta,
        units=np.ones((agents, 2)),
        theta=theta.copy(),
        P=np.zeros((agents, 0, 0)),
        fade=none,
        watch=np.zeros((agents, 0)),
        strain=np.zeros(agents),
        loudness=none,
        x=np.hstack([np.zeros((agents, shape.design.order - 1)), x]),
        d=x,
        steps=np.repeat([[0.0, 0.0, np.inf, np.inf]], agents, axis=0),
        w0=truth[0],
        f0=truth[1],
        record=_new_record(x, truth),
        visited=np.zeros(agents, dtype=np.intp),
        stopped=np.array([SOUND, 0, 0]),
        work=np.zeros((4, max(len(shape.theta), SPAN))),
        rounds=Rounds(1, 0, False, False),
        C=NO_WEIGHTS,
        done=np.zeros(1, dtype=np.intp),
    )
    advance(*task, 0, x.shape[1])
    return task.record


def _count(network: Network, task: Task) -> None:
    """Enter what the compiled loop would have sent."""
    rounds = int(task.done[0])
    spans = task.rounds.spans
    taps = task.design.order + task.design.bias
    network.count_mixed(rounds, taps if spans else task.theta.shape[1])
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
    taps = task.design.order + task.design.bias
    if how.exchange == "full":
        mixed = combining.combine(network, state, theta[:, :, None], how.threshold)
        theta[:] = mixed[:, :, 0]
        return
    theta[:, :taps] = network.mix(np.ascontiguousarray(theta[:, :taps]))
    if ahead is not None:
        visit(task.design, theta, task.x, task.visited, ahead)
    mixed = mix_spans(network, theta[:, taps:], task.visited)
    for k, i in enumerate(task.visited):
        theta[k, taps + i : taps + i + SPAN] = mixed[k]
