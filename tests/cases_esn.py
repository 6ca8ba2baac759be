"""The cases of ESNRegressor that every engine must agree on, bit by bit.

What an agent has depends on its number alone: one to four sequences of unlike lengths, at some agents fewer samples
than the readout has columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from peerlearn import ADMM, ConjugateGradient, Consensus, ESNRegressor
from peerlearn.network.base import Network

Case = Callable[[Network, Sequence[int]], dict[str, np.ndarray]]

LENGTHS = ((8,), (60, 13, 300), (7, 9), (40, 40, 40, 41), (6,), (270,), (20, 80))  # after a washout of 5, some wide
CHUNKS = (0, 3, 1, 20, 2)
SETTINGS = {"n_reservoir": 12, "washout": 5, "alpha": 0.5, "random_state": 3}


def inputs(agent: int, length: int, number: int = 0) -> np.ndarray:
    return np.random.default_rng((agent, length, number, 9)).uniform(-1, 1, (length, 2)) + 0.1 * agent


def targets(x: np.ndarray) -> np.ndarray:
    """Two outputs that depend on what was."""
    before = np.vstack([np.zeros((1, 2)), x[:-1]])
    return np.tanh(x[:, ::-1] * before + 0.3 * before)


def share(agent: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    x = [inputs(agent, length, j) for j, length in enumerate(LENGTHS[agent])]
    return x, [targets(one) for one in x]


def cases() -> dict[str, Case]:
    def case(network: Network, hosted: Sequence[int], **settings: Any) -> dict[str, np.ndarray]:
        model = ESNRegressor(**SETTINGS | settings, network=network).fit([share(agent) for agent in hosted])
        new = [inputs(0, length) for length in (30, 9)]
        return {"coefficients": model.coefficients_, "errors": model.agent_nrmse(new, [*map(targets, new)])}

    def stream(network: Network, hosted: Sequence[int], **settings: Any) -> dict[str, np.ndarray]:
        model = ESNRegressor(**SETTINGS | settings, network=network)
        for n in range(len(CHUNKS)):
            x = [inputs(agent, CHUNKS[(agent + n) % len(CHUNKS)], n) for agent in hosted]
            model.partial_fit([(one, targets(one)) for one in x])
        return {"coefficients": model.coefficients_, **{f"state {k}": v for k, v in model._stream.state.items()}}

    feedback = {"feedback_scaling": 0.4, "teacher_scaling": 0.3, "noise": 1e-3, "leak": 0.7}
    return {
        "ESNRegressor": case,
        "ESNRegressor feedback": partial(case, **feedback),
        "ESNRegressor sparse": partial(case, n_reservoir=120, density=0.03, noise=1e-2),
        "ESNRegressor cg": partial(case, solver=ConjugateGradient(max_iterations=12), **feedback),
        "ESNRegressor admm": partial(case, solver=ADMM(max_iterations=12)),
        "ESNRegressor consensus": partial(case, solver=Consensus()),
        "ESNRegressor lasso": partial(case, penalty="lasso", solver="gram", alpha=0.05),
        "ESNRegressor lasso admm": partial(case, penalty="lasso", solver=ADMM(max_iterations=12)),
        "ESNRegressor stream": stream,
        "ESNRegressor stream exact": partial(stream, stream="exact", **feedback),
        "ESNRegressor stream rls": partial(stream, stream="rls", **feedback),
        "ESNRegressor stream lms": partial(stream, stream="lms", washout=0),
    }
