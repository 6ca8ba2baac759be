"""What the benchmarks of echo state networks share: the thesis's tasks with the settings of its
table 9.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from peerlearn import data
from peerlearn.arrays import Array, one_blas_thread
from peerlearn.data.series import Series
from peerlearn.local.harvest import harvest_problems
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.reservoir import Reservoir

DENSITY, WASHOUT = 0.25, 100
NOISE = 5e-4  # the thesis's interval [0, 1e-3] around zero: what has a mean shifts all states


@dataclass(frozen=True)
class Task:
    draw: Callable[..., Series]
    spectral_radius: float
    input_scaling: float
    teacher_scaling: float
    feedback_scaling: float
    thesis: float | None  # its centralised NRMSE
    options: tuple[tuple[str, Any], ...] = ()

    def series(self, sequences: int, length: int, seed: int) -> Series:
        return self.draw(sequences, length, seed=seed, **dict(self.options))

    @property
    def settings(self) -> dict[str, Any]:
        """As ESNRegressor takes them."""
        names = ("spectral_radius", "input_scaling", "teacher_scaling", "feedback_scaling")
        return {name: getattr(self, name) for name in names} | {
            "density": DENSITY,
            "noise": NOISE,
            "washout": WASHOUT,
        }


TASKS = {
    "N10, sum": Task(data.narma10, 0.9, 0.5, 0.1, 0.3, None),
    "N10, product": Task(data.narma10, 0.9, 0.5, 0.1, 0.3, 0.08, (("variant", "product"),)),
    "EXTPOLY": Task(data.extended_polynomial, 0.7, 0.5, 0.1, 0.0, 0.39),
    "MKG, tau 30": Task(data.mackey_glass, 0.9, 0.3, 0.5, 0.0, 0.09),
    "MKG, tau 17": Task(data.mackey_glass, 0.9, 0.3, 0.5, 0.0, None, (("tau", 17.0),)),
    "LORENZ": Task(data.lorenz, 0.1, 0.9, 0.1, 0.0, 0.67),
}


@dataclass(frozen=True)
class Readouts:
    """The readout problems of agents with sequences of their own, without feedback, and states to
    test readouts on.
    """

    problems: LeastSquares
    states: Array  # of the test sequences: samples x B
    targets: Array  # samples x 1

    @classmethod
    def of(
        cls, task: Task, owners: list[int], *, length: int, tests: int, units: int, seed: int
    ) -> Readouts:
        """owners: the agent of each training sequence."""
        x, y = task.series(len(owners) + tests, length, seed)
        reservoir = Reservoir.draw(
            x[0].shape[1],
            1,
            units=units,
            spectral_radius=task.spectral_radius,
            density=DENSITY,
            input_scaling=task.input_scaling,
            feedback_scaling=0.0,
            leak=1.0,
            seed=seed,
        )
        d, n = [task.teacher_scaling * one[:, None] for one in y], len(owners)
        noise = [np.random.default_rng((seed, j)) for j in range(n)]
        with one_blas_thread():
            blocks = reservoir.blocks(x[:n], noise=noise, amplitude=NOISE, owners=owners)
            problems, _ = harvest_problems(
                blocks, d[:n], owners, washout=WASHOUT, width=reservoir.width
            )
            tested = np.concatenate([states[WASHOUT:] for states in reservoir.harvest(x[n:])])
        return cls(problems, tested, np.concatenate([one[WASHOUT:] for one in d[n:]]))

    def centralised(self, alpha: float) -> Array:
        """All agents' sequences in one place: 1 x B x 1."""
        equations = self.problems.normal_equations()
        return equations[0].plus(equations[1:]).ridge(alpha)[None]

    def nrmse(self, coefficients: Array) -> float:
        """Of the agent that is worst."""
        errors = np.array([np.mean((self.states @ b - self.targets) ** 2) for b in coefficients])
        return float(np.sqrt(errors.max() / np.var(self.targets)))
