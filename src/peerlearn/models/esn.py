"""Sequences: echo state networks with ridge or lasso readouts, feedback, forecasts, streams.

Thesis, chapter 9:

    h[n] = (1 - a) h[n-1] + a tanh(W_in [1; x[n]] + W h[n-1] + W_fb s y[n-1] + v[n])       all agents draw W alike
    s y[n] = b'[1; x[n]; h[n]]                        b: ridge or lasso over everybody's time steps

a is the leak, s the scaling of the teacher, v noise that is there in training alone. Where outputs
are fed back, the known ones are while the states are gathered (teacher forcing); the scaled output
is what is fed back (Jaeger, Adaptive nonlinear system identification with echo state networks,
2003). Training b over sequences that never leave their agents is the work of a solver, see
`peerlearn.algorithms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.algorithms.agreement import Drawn, probe
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.readout.auto import READOUT
from peerlearn.algorithms.readout.solver import Solver, must_take
from peerlearn.algorithms.streaming.learner import STREAMING, Learner
from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError, warn_caller
from peerlearn.local.harvest import harvest_problems
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Ridge
from peerlearn.local.readouts import run_forced
from peerlearn.local.reservoir import Reservoir
from peerlearn.models.base import DEALING, Setup
from peerlearn.models.fitted_model import Answer
from peerlearn.models.reservoir_archive import ReservoirArchive
from peerlearn.models.sequences import Sequences
from peerlearn.models.settings import number_between, whole_from
from peerlearn.models.targets import LARGEST
from peerlearn.network import Network

__all__ = ["ESNRegressor"]

PENALTIES: dict[str, type[Ridge] | type[Lasso]] = {"ridge": Ridge, "lasso": Lasso}
RESERVOIR = "the reservoir"


class ESNRegressor(ReservoirArchive):
    """A model of sequences that agents train together without sending each other theirs.

    Parameters
    ----------
    n_reservoir: units of the reservoir.
    spectral_radius: of their connections; the nearer to 1, the longer they remember. 0 and above 1
        are warned of.
    density: the share of connections that there are, above 0 and at most 1.
    input_scaling: inputs, and the constant 1 beside them, enter with weights up to this.
    feedback_scaling: the same for outputs that are fed back; 0 for none.
    teacher_scaling: outputs times this are what is learned and fed back.
    leak: a above, the share of a state that is new, above 0 and at most 1.
    noise: v above is uniform between minus this and this; it makes closed loops stable.
    washout: so many samples at the beginning of a sequence set the state; they are not learned
        from, nor scored.
    alpha: weight of the penalty.
    penalty: "ridge", or "lasso" for coefficients many of which are 0.
    solver: "auto", "local", "consensus", "admm", "gram", "cg", or an object with settings such as
        ADMM(tolerance=1e-6); for lasso "auto", "gram", "admm" or "local".
    stream: how partial_fit learns: "consensus", "exact", "lms", "rls", or an object such as
        StreamConsensus(every=5).
    network: who talks to whom; None trains on all sequences in one place, the centralised baseline.
    random_state: seeds reservoir, noise and the dealing of sequences; the same number at every
        agent.

    Attributes
    ----------
    reservoir_: W_in, W and W_fb, the same at every agent.
    coefficients_: hosted agents x (1 + inputs + n_reservoir) x outputs, of the constant, the inputs
        and the states.
    sparsity_: the share of coefficients that are 0, of the first hosted agent.
    report_: how the solver got there and what was sent; prints as a small table.

    >>> import numpy as np
    >>> from peerlearn import SimulatedNetwork, graphs
    >>> x = np.sin(0.2 * np.arange(1001))[:, None]
    >>> model = ESNRegressor(50, washout=20, network=SimulatedNetwork(graphs.ring(5)), random_state=0)
    >>> bool(model.fit(x[:-1], x[1:, 0]).nrmse(x[:-1], x[1:, 0]) < 0.01)
    True
    """

    parts: ClassVar = {"solver": READOUT, "stream": STREAMING}
    seeds: ClassVar = (RESERVOIR, DEALING)
    alone: ClassVar = {"solver": "local"}

    def __init__(
        self,
        n_reservoir: int = 300,
        spectral_radius: float = 0.9,
        density: float = 0.25,
        input_scaling: float = 0.5,
        feedback_scaling: float = 0.0,
        teacher_scaling: float = 1.0,
        leak: float = 1.0,
        noise: float = 0.0,
        washout: int = 0,
        alpha: float = 1e-3,
        *,
        penalty: Literal["ridge", "lasso"] = "ridge",
        solver: Solver | str = "auto",
        stream: Learner | str = "consensus",
        network: Network | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_reservoir = n_reservoir
        self.spectral_radius = spectral_radius
        self.density = density
        self.input_scaling = input_scaling
        self.feedback_scaling = feedback_scaling
        self.teacher_scaling = teacher_scaling
        self.leak = leak
        self.noise = noise
        self.washout = washout
        self.alpha = alpha
        self.penalty = penalty
        self.solver = solver
        self.stream = stream
        self.network = network
        self.random_state = random_state

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from the next samples of each hosted agent's one sequence, which goes on from call to call.

        partial_fit(shares) takes a list of (X_k, y_k), one per hosted agent, with one sample or
        many, or none at some agents (tables of 0 rows); a process that hosts one agent may call
        partial_fit(X, y). Penalties of streams are ridge.
        """
        return self.learn_chunk(X, y)

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        must_take(setup.parts["solver"], self._penalty())
        if self.spectral_radius == 0 or self.spectral_radius > 1:
            deaf, stuck = (
                "units do not hear each other and forget at once",
                "states may never forget where they began",
            )
            effect = deaf if self.spectral_radius == 0 else stuck
            warn_caller(
                f"with a spectral radius of {self.spectral_radius:g} {effect}: 0.1 to 0.99 is usual"
            )
        return setup

    def check_parameters(self) -> None:
        whole_from(self.n_reservoir, "n_reservoir", 1)
        whole_from(self.washout, "washout", 0)
        for name in ("spectral_radius", "input_scaling", "feedback_scaling", "noise"):
            number_between(getattr(self, name), name, 0.0, LARGEST)
        for name, most in (("density", 1.0), ("leak", 1.0), ("teacher_scaling", LARGEST**0.5)):
            number_between(getattr(self, name), name, 1 / LARGEST, most)
        if self.penalty not in PENALTIES:
            raise InputError(f"penalty is {self.penalty!r}: choose one of {', '.join(PENALTIES)}")
        PENALTIES[self.penalty](self.alpha)

    def check_use_in_files(self) -> None:
        if self.feedback_scaling:
            raise InputError(
                f"feedback_scaling is {self.feedback_scaling}, and a model whose outputs are fed back has no place in "
                "a file, because nobody can predict with it from rows alone: set it to 0, or train and predict by a "
                "script over PeerNetwork that all sites run"
            )

    def _penalty(self) -> Ridge | Lasso:
        return PENALTIES[self.penalty](float(self.alpha))

    def draw(self, setup: Setup, columns: int, outputs: int) -> tuple[Drawn, ...]:
        self._seed, self._scaling, self._standardised = (
            setup.seeds[RESERVOIR],
            float(self.teacher_scaling),
            False,
        )
        self.reservoir_ = Reservoir.draw(
            columns,
            outputs,
            units=self.n_reservoir,
            spectral_radius=float(self.spectral_radius),
            density=float(self.density),
            input_scaling=float(self.input_scaling),
            feedback_scaling=float(self.feedback_scaling),
            leak=float(self.leak),
            seed=self._seed,
        )
        return (self._compared(),)

    def _compared(self) -> Drawn:
        """Return what agents compare of the reservoir: which weights are positive, and where a few samples lead it.

        Not the bits of the weights: the spectral radius that they are scaled by is computed.
        """
        reservoir = self.reservoir_
        positive = tuple(weights > 0 for weights in (reservoir.W_in, reservoir.W, reservoir.W_fb))
        (rows,) = reservoir.harvest([probe(4, reservoir.inputs)], [probe(4, self._n_outputs)])
        return Drawn("the reservoir", positive, rows)

    def train(self, setup: Setup, sequences: Sequences) -> Answer:
        problems = self._harvest(setup.network, sequences)
        if self.alpha == 0:
            self._check_determined(setup.network, problems)
        solver: Solver = setup.parts["solver"]
        return solver.solve(setup.network, problems, self._penalty())

    def _harvest(self, network: Network, sequences: Sequences) -> LeastSquares:
        """What each hosted agent's states and scaled targets say; where the last sequence ends is remembered."""
        teachers = [self._scaling * d for d in sequences.targets]
        places, noise = zip(sequences.owners, sequences.numbers, strict=True), None
        if self.noise:
            noise = [np.random.default_rng((self._seed, network.hosted[k], j)) for k, j in places]
        owners, width = sequences.owners, self.reservoir_.width
        blocks = self.reservoir_.blocks(
            sequences.inputs, teachers, noise=noise, amplitude=self.noise, owners=owners
        )
        problems, ends = harvest_problems(
            blocks, teachers, owners, washout=self.washout, width=width
        )
        self._end = self._end_of(sequences, teachers, ends)
        self._largest_fitted = max(float(np.abs(d).max(initial=0.0)) for d in sequences.targets)
        return problems

    def _end_of(
        self, sequences: Sequences, teachers: Sequence[Array], ends: Sequence[Array]
    ) -> tuple[Array, Array] | None:
        """State and outputs at the end of what was given; None where the agent whose end it is has no samples."""
        last = sequences.last
        if len(sequences.targets[last]) == 0:
            return None
        h = ends[last][-self.reservoir_.units :]
        if self.noise:  # which was there to learn from: a forecast goes on from what was
            nothing = np.zeros((0, self.reservoir_.width, self._n_outputs))
            h = run_forced(self.reservoir_, nothing, [sequences.inputs[last]], [teachers[last]])[1][
                0
            ]
        return h, sequences.targets[last][-1].copy()

    def _check_determined(self, network: Network, problems: LeastSquares) -> None:
        N, B = round(float(total(network, problems.rows)[0])), problems.shape[0]
        if N < B:
            raise DataError(
                f"the {N} samples of the whole network after the washout do not determine {B} coefficients when alpha "
                "is 0: set alpha above 0, or n_reservoir to less"
            )
