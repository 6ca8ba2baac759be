"""Cases of smooth problems that every engine must agree on, in the manner of conformance_cases.py.

Every solver with every choice that its settings name, on an S3VM whose agents are as unlike as can
be: some inputs
sparse, some agents without labelled or without unlabelled rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp

from peerlearn.algorithms.smooth import StepRule, smooth_solvers
from peerlearn.local.margin_losses import LogisticLosses, S3VMLosses
from peerlearn.network.base import Network

Arrays = dict[str, np.ndarray]
Case = Callable[[Network, Sequence[int]], Arrays]

ROWS = (1, 40, 3, 25, 7, 13, 18)  # of each agent, for 5 columns
ITERATIONS = 7  # far from converged: nothing hides in an answer that all would reach
RULE = StepRule(0.3, 0.6)


def inputs(agent: int) -> Any:
    rows = np.random.default_rng(agent).standard_normal((ROWS[agent], 5)) + 0.1 * agent
    return sp.csr_array(np.where(np.abs(rows) > 0.5, rows, 0.0)) if agent % 2 else rows


def targets(agent: int) -> np.ndarray:
    """-1 and +1, and 0 for rows without a label: all of agent 2's, none of agent 3's, about half of the others'."""
    y = np.sign(np.random.default_rng((agent, 1)).standard_normal(ROWS[agent]))
    kept = {2: 0.0, 3: 1.0}.get(agent, 0.5)
    return np.where(np.random.default_rng((agent, 2)).random(ROWS[agent]) < kept, y, 0.0)


def s3vm(network: Network, hosted: Sequence[int]) -> S3VMLosses:
    everywhere = np.concatenate([targets(agent) for agent in range(network.size)])
    labelled = int(np.count_nonzero(everywhere))
    return S3VMLosses(
        [*map(inputs, hosted)],
        [*map(targets, hosted)],
        m=np.linspace(-0.1, 0.3, 5),
        b=0.1,
        labelled=labelled,
        unlabelled=len(everywhere) - labelled,
    )


def logistic(network: Network, hosted: Sequence[int]) -> LogisticLosses:
    return LogisticLosses(
        [*map(inputs, hosted)], [np.where(targets(agent) > 0, 1, -1) for agent in hosted]
    )


def cases() -> dict[str, Case]:
    def case(network: Network, hosted: Sequence[int], solver: Any, losses: Any = s3vm) -> Arrays:
        start = np.stack(
            [0.1 * np.random.default_rng((agent, 3)).standard_normal(5) for agent in hosted]
        )
        found = solver.minimise(network, losses(network, hosted), 1.0, start)
        residuals = np.tile(
            found.report.residuals, (len(hosted), 1)
        )  # agreed: the same bits at every agent
        return {"coefficients": found.coefficients, "residuals": residuals}

    found: dict[str, Case] = {}
    for kind in smooth_solvers().values():
        for chosen in product(*choices(kind).values()):
            settings = dict(zip(choices(kind), chosen, strict=True))
            solver: Any = kind(max_iterations=ITERATIONS, **settings)
            found[f"{kind.__name__}({', '.join(chosen)})"] = partial(case, solver=solver)
        if "step" in get_type_hints(kind):
            ruled: Any = kind(max_iterations=ITERATIONS, step=RULE)
            found[f"{kind.__name__}(StepRule)"] = partial(case, solver=ruled)
        to_the_end: Any = kind(max_iterations=100, tolerance=1e-2)
        found[f"{kind.__name__} logistic"] = partial(case, solver=to_the_end, losses=logistic)
    return found


def choices(kind: type) -> dict[str, tuple[str, ...]]:
    """Every setting that names its choices, with them."""
    return {
        name: get_args(hint)
        for name, hint in get_type_hints(kind).items()
        if get_origin(hint) is Literal
    }
