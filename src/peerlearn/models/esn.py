"""Sequences: echo state networks with ridge or lasso readouts, feedback, forecasts, streams.

Thesis, chapter 9:

    h[n] = (1 - a) h[n-1] + a tanh(W_in [1; x[n]] + W h[n-1] + W_fb s y[n-1] + v[n])
    s y[n] = b'[1; x[n]; h[n]]

a is the leak, s the scaling of the teacher, v noise that is added in training only. All agents draw
the same W_in, W and W_fb. b is the ridge or lasso solution over the time steps of all agents; with
fit_intercept the constant has no penalty. A solver of `peerlearn.algorithms` finds b while the
sequences stay at their agents.

If outputs are fed back, training feeds back the known outputs (teacher forcing), times s (Jaeger,
Adaptive nonlinear system identification with echo state networks, 2003).

The model is built in layers, one file each: `sequence_model` (training), `reservoir_predictor`
(predictions and forecasts), `reservoir_stream` (partial_fit), `reservoir_archive` (saved files).
This file has the parameters, and how states become a least-squares problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.algorithms.agreement import Drawn, probe
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.readout.auto import READOUT, Auto
from peerlearn.algorithms.readout.chosen_alpha import solve_with_chosen_alpha
from peerlearn.algorithms.readout.conjugate_gradient import ConjugateGradient
from peerlearn.algorithms.readout.gram import Gram
from peerlearn.algorithms.readout.means import common_means
from peerlearn.algorithms.readout.secret_gram import solve_in_secret
from peerlearn.algorithms.readout.solver import Solution, Solver, must_take
from peerlearn.algorithms.streaming.learner import STREAMING, Learner
from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError, warn_caller
from peerlearn.local.centred import intercepts
from peerlearn.local.harvest import Blocks, harvest_problems, harvest_uncentred
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Ridge
from peerlearn.local.readouts import run_forced
from peerlearn.local.reservoir import Reservoir
from peerlearn.models.base import (
    DEALING,
    Answer,
    Intercept,
    RandomState,
    Setup,
    check_intercept,
    check_need,
    check_whole_number,
    network_of,
    number_between,
)
from peerlearn.models.reservoir_archive import ReservoirArchive
from peerlearn.models.secret_parts import check_secret_part
from peerlearn.models.sequence_shares import Sequences
from peerlearn.models.streams import PART
from peerlearn.models.targets import LARGEST
from peerlearn.network import Network

__all__ = ["ESNRegressor"]

Problems = TypeVar("Problems", covariant=True)


class Harvest(Protocol[Problems]):
    """How states become problems: `harvest_problems`, or `harvest_uncentred`."""

    def __call__(
        self,
        blocks: Callable[[], Blocks],
        targets: Sequence[Array],
        owners: Sequence[int],
        *,
        washout: int,
        width: int,
    ) -> tuple[Problems, list[Array]]: ...


PENALTIES: dict[str, type[Ridge] | type[Lasso]] = {"ridge": Ridge, "lasso": Lasso}
RESERVOIR = "the reservoir"


class ESNRegressor(ReservoirArchive):
    """Echo state network that agents train together; sequences stay at their agents.

    Parameters
    ----------
    n_reservoir : int, default 300
        Number of units of the reservoir.
    spectral_radius : float, default 0.9
        Spectral radius of the connections between units. The nearer to 1, the longer they remember.
        0, and values above 1, cause a warning.
    density : float, default 0.25
        Share of connections that exist, above 0 and at most 1.
    input_scaling : float, default 0.5
        Largest weight of the inputs, and of the constant 1 that is added to them.
    feedback_scaling : float, default 0.0
        Largest weight of the outputs that are fed back; 0 for no feedback.
    teacher_scaling : float, default 1.0
        Factor of the outputs when they are learned and fed back, s in the formulas.
    leak : float, default 1.0
        Share of a state that is new at each step, above 0 and at most 1; a in the formulas.
    noise : float, default 0.0
        The noise v of the formulas is uniform between -noise and noise. It makes closed loops
        stable.
    washout : int, default 0
        Number of samples at the beginning of each sequence that only set the state. They are
        neither learned from nor scored.
    alpha : float or "auto", default 1e-3
        Weight of the penalty. "auto" chooses it by generalised cross-validation from the sums over
        all agents, for ridge and not for streams. The report says what was chosen. It costs as
        much as the solver "gram" sends towards its root, and pays for closed loops: they follow a
        chaotic series for longer.
    penalty : {"ridge", "lasso"}, default "ridge"
        Penalty on the coefficients. With "lasso" many of them are 0.
    fit_intercept : bool or "auto", default "auto"
        Whether the coefficient of the constant is free of the penalty. The means of states and
        outputs over the network then cost one more sum, of a row of the readout's problem. "auto"
        is True, except for streams whose learner cannot have a free constant: all but "exact".
    solver : str or Solver, default "auto"
        How agents compute the coefficients together: "auto", "local", "consensus", "admm", "gram",
        "cg", or an object with settings such as ADMM(tolerance=1e-6). For lasso "auto", "gram",
        "admm" or "local".
    stream : str or Learner, default "consensus"
        How partial_fit learns: "consensus", "exact", "lms", "rls", or an object with settings such
        as StreamConsensus(every=5).
    network : Network or None, default None
        The graph of agents. None trains on all sequences in one place, the centralised baseline.
    random_state : int, RandomState or None, default None
        Seed of the reservoir, of the noise and of the dealing of sequences. Agents in several
        processes must all give the same whole number.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_hosted_agents,)
        The weight of the penalty of each hosted agent; one number per agent, all the same except
        for the solver "local" with alpha="auto".
    reservoir_ : Reservoir
        The weights W_in, W and W_fb, the same at every agent.
    coefficients_ : ndarray of shape (n_hosted_agents, 1 + n_inputs + n_reservoir, n_outputs)
        Coefficients of the constant, the inputs and the states, of each hosted agent.
    sparsity_ : float
        Share of the first hosted agent's coefficients that are 0.
    report_ : Report
        What the solver did and what was sent. It prints as a small table.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import ESNRegressor, SimulatedNetwork, graphs
    >>> x = np.sin(0.2 * np.arange(1001))[:, None]
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = ESNRegressor(50, washout=20, network=network, random_state=0)
    >>> model = model.fit(x[:-1], x[1:])  # to predict the next sample
    >>> bool(model.nrmse(x[:-1], x[1:]) < 0.01)
    True
    >>> model.forecast(3).shape
    (3, 1)
    """

    parts: ClassVar = {"solver": READOUT, "stream": STREAMING}
    seeds: ClassVar = (RESERVOIR, DEALING)
    alone: ClassVar = {"solver": "local"}
    adds_constant: ClassVar = False
    sum_solvers: ClassVar = (Auto, Gram, ConjugateGradient)

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
        alpha: float | Literal["auto"] = 1e-3,
        *,
        penalty: Literal["ridge", "lasso"] = "ridge",
        fit_intercept: Intercept = "auto",
        solver: Solver | str = "auto",
        stream: Learner | str = "consensus",
        network: Network | None = None,
        random_state: RandomState = None,
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
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.stream = stream
        self.network = network
        self.random_state = random_state

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from the next samples of each hosted agent's sequence.

        Each agent has one sequence, which continues from call to call. Streams need
        penalty="ridge".

        Parameters
        ----------
        X : list of (X_k, y_k), or array-like of shape (n_times, n_inputs)
            A list of shares has one (X_k, y_k) per hosted agent, with one sample, many, or none (a
            table of 0 rows). A process that hosts one agent may give its samples directly.
        y : array-like of shape (n_times,) or (n_times, n_outputs), default None
            The outputs of the samples; None if X is a list of shares.

        Returns
        -------
        self : ESNRegressor
        """
        if self.alpha == "auto":
            raise InputError(
                "alpha is 'auto', which fit chooses from all samples, and a stream has them one by "
                "one: set alpha to a number, such as the alpha_ of a model that was fitted"
            )
        return self.learn_chunk(X, y)

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        must_take(setup.parts["solver"], self._penalty())
        if self.spectral_radius == 0 or self.spectral_radius > 1:
            if self.spectral_radius == 0:
                effect = "units do not influence each other and forget at once"
            else:
                effect = "states may never forget where they began"
            warn_caller(
                f"with a spectral radius of {self.spectral_radius:g} {effect}: 0.1 to 0.99 is usual"
            )
        return setup

    def check_secrecy(self, parts: Mapping[str, Any]) -> None:
        if self.begins_stream:
            network = network_of(self.network)
            check_secret_part(self.part(PART), network, "use stream='exact'")
            return
        for need, is_met in {
            "solver='gram'": isinstance(parts["solver"], Gram),
            "penalty='ridge'": self.penalty == "ridge",
            "a number as alpha": self.alpha != "auto",
        }.items():
            check_need(type(self).__name__, need, is_met=is_met)

    def check_parameters(self) -> None:
        check_whole_number(self.n_reservoir, "n_reservoir", 1)
        check_whole_number(self.washout, "washout", 0)
        for name in ("spectral_radius", "input_scaling", "feedback_scaling", "noise"):
            number_between(getattr(self, name), name, 0.0, LARGEST)
        for name, most in (("density", 1.0), ("leak", 1.0), ("teacher_scaling", LARGEST**0.5)):
            number_between(getattr(self, name), name, 1 / LARGEST, most)
        if self.penalty not in PENALTIES:
            raise InputError(f"penalty is {self.penalty!r}: choose one of {', '.join(PENALTIES)}")
        if self.alpha == "auto" and self.penalty != "ridge":
            raise InputError("alpha is 'auto', which is for penalty='ridge' only: set a number")
        self._penalty()
        check_intercept(self.fit_intercept)

    def check_use_in_files(self) -> None:
        if self.feedback_scaling:
            raise InputError(
                f"feedback_scaling is {self.feedback_scaling}, and a model whose outputs are fed "
                "back cannot be used from a file, because nobody can predict with it from rows "
                "alone: set it to 0, or train and predict by a script over PeerNetwork that all "
                "sites run"
            )

    def _penalty(self) -> Ridge | Lasso:
        """Return the penalty; if alpha is "auto", any one of its kind."""
        return PENALTIES[self.penalty](1.0 if self.alpha == "auto" else self.alpha)

    def draw(self, setup: Setup, columns: int, outputs: int) -> tuple[Drawn, ...]:
        self._seed = setup.seeds[RESERVOIR]
        self._scaling = float(self.teacher_scaling)
        self._standardised = False
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
        return (self._comparable_part(),)

    def _comparable_part(self) -> Drawn:
        """Return what agents compare: the signs of the weights, and the states after a few samples.

        The bits of the weights are not compared. The weights are scaled by a computed spectral
        radius, which may differ by rounding.
        """
        reservoir = self.reservoir_
        positive = tuple(weights > 0 for weights in (reservoir.W_in, reservoir.W, reservoir.W_fb))
        inputs = probe(4, reservoir.inputs)
        outputs = probe(4, self._n_outputs)
        (rows,) = reservoir.harvest([inputs], [outputs])
        return Drawn("the reservoir", positive, rows)

    def train(self, setup: Setup, sequences: Sequences) -> Answer:
        network = setup.network
        solver: Solver = setup.parts["solver"]
        if network.secrecy is not None:
            return self._train_in_secret(network, setup.parts["solver"], sequences)
        # Without a penalty the constant among the features is the intercept already.
        if not self.fit_intercept or self.alpha == 0:
            problems = self._harvest(network, sequences, harvest_problems)
            if self.alpha == 0:
                self._check_determined(network, problems)
            return self._solve(setup, problems, sequences, None)
        uncentred = self._harvest(network, sequences, harvest_uncentred)
        found = common_means(network, solver, uncentred)
        means = found.centre
        means[:, 0] = 1.0  # of the constant, which sums by gossip may miss by rounding
        answer = self._solve(setup, uncentred.about(found), sequences, means)
        coefficients = answer.coefficients.copy()
        # The constant is 0 about its mean, so that its own coefficient is 0 too.
        coefficients[:, 0] = intercepts(means[:, 1:], answer.coefficients[:, 1:])
        return replace(answer, coefficients=coefficients)

    def _train_in_secret(self, network: Network, solver: Gram, sequences: Sequences) -> Answer:
        self.alpha_ = np.full(len(network.hosted), float(self.alpha))
        answer, constants = solve_in_secret(
            network,
            self._harvest(network, sequences, harvest_uncentred),
            float(self.alpha),
            tolerance=solver.tolerance,
            intercept=bool(self.fit_intercept) and self.alpha != 0,
        )
        coefficients = answer.coefficients.copy()
        coefficients[:, 0] += constants
        return replace(answer, coefficients=coefficients)

    def _solve(
        self, setup: Setup, problems: LeastSquares, sequences: Sequences, means: Array | None
    ) -> Solution:
        """Solve the problems, with alpha as it was given or chosen. means: None if not centred."""
        network = setup.network
        solver: Solver = setup.parts["solver"]
        if self.alpha != "auto":
            self.alpha_ = np.full(problems.agents, float(self.alpha))
            return solver.solve(network, problems, self._penalty())
        squares = np.zeros(problems.agents)
        for k, d in zip(sequences.owners, sequences.targets, strict=True):
            mean = 0.0 if means is None else means[k, problems.shape[0] :]
            squares[k] += np.sum((self._scaling * d[self.washout :] - mean) ** 2)
        free = 0 if means is None else 1
        answer, self.alpha_ = solve_with_chosen_alpha(network, problems, solver, squares, free=free)
        return answer

    def _harvest(
        self, network: Network, sequences: Sequences, harvest: Harvest[Problems]
    ) -> Problems:
        """Return what `harvest` makes of the states and scaled targets of the hosted agents.

        The end of the last sequence is remembered: forecasts continue from there.
        """
        teachers = [self._scaling * d for d in sequences.targets]
        owners = sequences.owners
        places = list(zip(owners, sequences.numbers, strict=True))
        seeds = [(self._seed, network.hosted[k], j) for k, j in places]
        width = self.reservoir_.width

        def blocks() -> Blocks:
            noise = [np.random.default_rng(seed) for seed in seeds] if self.noise else None
            return self.reservoir_.blocks(
                sequences.inputs, teachers, noise=noise, amplitude=self.noise, owners=owners
            )

        problems, ends = harvest(blocks, teachers, owners, washout=self.washout, width=width)
        self._end = self._end_of(sequences, teachers, ends)
        sizes = [float(np.abs(d).max(initial=0.0)) for d in sequences.targets]
        self._largest_fitted = max(sizes)
        return problems

    def _end_of(
        self, sequences: Sequences, teachers: Sequence[Array], ends: Sequence[Array]
    ) -> tuple[Array, Array] | None:
        """Return state and outputs at the end of the last sequence; None if it has no samples."""
        last = sequences.last
        if len(sequences.targets[last]) == 0:
            return None
        h = ends[last][-self.reservoir_.units :]
        if self.noise:  # a forecast continues from the state without noise
            nothing = np.zeros((0, self.reservoir_.width, self._n_outputs))
            inputs = [sequences.inputs[last]]
            _, states = run_forced(self.reservoir_, nothing, inputs, [teachers[last]])
            h = states[0]
        return h, sequences.targets[last][-1].copy()

    def _check_determined(self, network: Network, problems: LeastSquares) -> None:
        N = round(float(total(network, problems.rows)[0]))
        B = problems.shape[0]
        if N < B:
            raise DataError(
                f"the {N} samples of the whole network after the washout do not determine {B} "
                "coefficients when alpha is 0: set alpha above 0, or n_reservoir to less"
            )
