"""The cases of the adaptive filters that every engine must agree on, bit by bit.

What an agent hears depends on its number alone; each has step sizes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from peerlearn.models.filters import LMSFilter, SplineFilter
from peerlearn.network.base import Network

Case = Callable[[Network, Sequence[int]], dict[str, np.ndarray]]

SAMPLES, MORE = 14, 5
TRUTH = (np.array([0.6, -0.5, 0.4]), np.tanh)


def heard(agent: int) -> tuple[np.ndarray, np.ndarray]:
    """Some of it beyond the knots."""
    rng = np.random.default_rng((agent, 10))
    x = 1.5 * rng.standard_normal(SAMPLES + MORE)
    return x, np.tanh(np.convolve(x, TRUTH[0])[: len(x)]) + 0.1 * rng.standard_normal(len(x))


def cases() -> dict[str, Case]:
    def case(network: Network, hosted: Sequence[int], kind: Any, settings: dict[str, Any]) -> dict[str, np.ndarray]:
        steps = {"step_size": [0.01 * (1 + agent) for agent in hosted]} if settings["update"] != "rls" else {}
        model = kind(order=3, network=network, **settings, **steps)
        x, d = (np.stack(signals) for signals in zip(*map(heard, hosted), strict=True))
        run = model.run(x[:, :SAMPLES], d[:, :SAMPLES], TRUTH if kind is SplineFilter else TRUTH[0])
        return {
            "outputs": run.outputs,
            "deviations": run.msd,
            "after": model.step(x[:, SAMPLES:], d[:, SAMPLES:]),
            "coefficients": model.coefficients_,
            "predictions": model.predict(x),
        }

    before, span = {"cooperation": "combine-then-adapt"}, {"update": "lms", "exchange": "span"}
    kinds = {
        "SplineFilter rls": (SplineFilter, {"update": "rls"}),
        "SplineFilter bspline every 4": (SplineFilter, {"update": "nlms", "basis": "bspline", "every": 4, **before}),
        "SplineFilter censored": (SplineFilter, {"update": "rls", "threshold": 0.02, "forgetting": 0.98}),
        "SplineFilter span": (SplineFilter, {**span, **before}),
        "SplineFilter span after": (SplineFilter, {**span, "every": 3}),
        "SplineFilter alone": (SplineFilter, {"update": "lms", "cooperation": "none"}),
        "LMSFilter": (LMSFilter, {"update": "lms", **before}),
        "LMSFilter nlms": (LMSFilter, {"update": "nlms"}),
        "LMSFilter rls": (LMSFilter, {"update": "rls", "every": 2}),
    }
    return {name: partial(case, kind=kind, settings=settings) for name, (kind, settings) in kinds.items()}
