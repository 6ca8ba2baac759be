"""Cases of smooth problems: every solver with every choice that its settings name.

The problem is an S3VM whose agents are as different as possible. Some inputs are sparse, and some
agents have no labelled or no unlabelled rows.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp

from peerlearn.algorithms.smooth import Newton, StepRule, smooth_solvers
from peerlearn.arrays import Array
from peerlearn.local.families import Logistic
from peerlearn.local.glm_losses import Design, GLMLosses, GLMRows
from peerlearn.local.margin_losses import LogisticLosses, S3VMLosses
from peerlearn.network.base import Network
from peerlearn.testing.cases.case import Arrays, Case

ROWS = (1, 40, 3, 25, 7, 13, 18)  # of each agent, for 5 columns
ITERATIONS = 7  # far from converged: differences do not vanish in an answer that all would reach
RULE = StepRule(0.3, 0.6)
LABELLED = {2: 0.0, 3: 1.0}  # the share of an agent's rows with a label; half of all others'


def cases() -> dict[str, Case]:
    """Return the cases of every solver of smooth problems, by name."""
    found: dict[str, Case] = {}
    for kind in smooth_solvers().values():
        name = kind.__name__
        for chosen in product(*choices(kind).values()):
            settings = dict(zip(choices(kind), chosen, strict=True))
            solver = _make(kind, max_iterations=ITERATIONS, **settings)
            found[f"{name}({', '.join(chosen)})"] = partial(_minimise, solver=solver)
        if "step" in get_type_hints(kind):
            solver = _make(kind, max_iterations=ITERATIONS, step=RULE)
            found[f"{name}(StepRule)"] = partial(_minimise, solver=solver)
        to_the_end = _make(kind, max_iterations=100, tolerance=1e-2)
        found[f"{name} logistic"] = partial(_minimise, solver=to_the_end, losses=logistic)
    found["Newton with a sample"] = partial(_minimise, solver=Newton(), losses=sampled)
    return found


def _make(kind: Any, **settings: Any) -> Any:
    return kind(**settings)


def choices(kind: type[Any]) -> dict[str, tuple[str, ...]]:
    """Return every setting that names its choices, with them."""
    return {
        name: get_args(hint)
        for name, hint in get_type_hints(kind).items()
        if get_origin(hint) is Literal
    }


def s3vm(network: Network) -> S3VMLosses:
    """Return the S3VM problems of the hosted agents."""
    everywhere = np.concatenate([_targets(agent) for agent in range(network.size)])
    labelled = int(np.count_nonzero(everywhere))
    return S3VMLosses(
        [_inputs(agent) for agent in network.hosted],
        [_targets(agent) for agent in network.hosted],
        m=np.linspace(-0.1, 0.3, 5),
        b=0.1,
        labelled=labelled,
        unlabelled=len(everywhere) - labelled,
    )


def logistic(network: Network) -> LogisticLosses:
    """Return problems of logistic regression for the hosted agents."""
    return LogisticLosses(
        [_inputs(agent) for agent in network.hosted],
        [np.where(_targets(agent) > 0, 1, -1) for agent in network.hosted],
    )


def sampled(network: Network) -> GLMLosses:
    """Return problems of logistic regression whose first Hessians are those of half of the rows."""
    rows = []
    for agent in network.hosted:
        y = np.where(_targets(agent) > 0, 1.0, -1.0)[:, None]
        rows.append(GLMRows(_inputs(agent), y, np.ones(len(y)), np.zeros(len(y))))
    design = Design(intercept=False, centre=np.zeros(5), scale=np.ones(5))
    return GLMLosses(rows, Logistic(), design, ridge=np.zeros(5), share=0.5)


def _inputs(agent: int) -> Any:
    rows = np.random.default_rng(agent).standard_normal((ROWS[agent], 5)) + 0.1 * agent
    if agent % 2 == 0:
        return rows
    return sp.csr_array(np.where(np.abs(rows) > 0.5, rows, 0.0))


def _targets(agent: int) -> Array:
    """Return -1 and +1, and 0 for rows without a label."""
    y = np.sign(np.random.default_rng((agent, 1)).standard_normal(ROWS[agent]))
    draws = np.random.default_rng((agent, 2)).random(ROWS[agent])
    return np.where(draws < LABELLED.get(agent, 0.5), y, 0.0)


def _minimise(network: Network, solver: Any, losses: Any = s3vm) -> Arrays:
    start = []
    for agent in network.hosted:
        rng = np.random.default_rng((agent, 3))
        start.append(0.1 * rng.standard_normal(5))
    found = solver.minimise(network, losses(network), 1.0, np.stack(start))
    # Agents agree on the residuals, so that all have the same bits.
    residuals = np.tile(found.report.residuals, (len(network.hosted), 1))
    return {"coefficients": found.coefficients, "residuals": residuals}
