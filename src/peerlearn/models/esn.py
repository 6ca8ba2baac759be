"""Echo state networks over a network of agents (thesis, chapter 9).

    h[n] = (1 - a) h[n-1] + a tanh(W_in [1; x[n]] + W h[n-1] + W_fb s y[n-1] + v[n])       all agents draw W alike
    s y[n] = b'[1; x[n]; h[n]]                        b: ridge or lasso over everybody's time steps

a is the leak, s the scaling of the teacher, v noise that is there in training alone. Where outputs are fed back, the
known ones are while the states are gathered (teacher forcing); the scaled output is what is fed back (Jaeger, Adaptive
nonlinear system identification with echo state networks, 2003). Training b over sequences that never leave their agents
is the work of a solver, see `peerlearn.algorithms`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from peerlearn.algorithms.agreement import Drawn, check_coefficients, check_same_settings, probe
from peerlearn.algorithms.averaging import total
from peerlearn.algorithms.readout.auto import solver_of
from peerlearn.algorithms.readout.local import Local
from peerlearn.algorithms.readout.solver import Solver, must_take
from peerlearn.algorithms.report import Report
from peerlearn.algorithms.streaming.learner import Learner, learner_of
from peerlearn.arrays import Array
from peerlearn.errors import DataError, InputError, warn_caller
from peerlearn.local.chunks import Chunk
from peerlearn.local.harvested import harvested
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Lasso, Ridge
from peerlearn.local.readouts import forced
from peerlearn.local.recursive import State
from peerlearn.local.reservoir import Reservoir
from peerlearn.local.threads import one_blas_thread
from peerlearn.models import sequences as given
from peerlearn.models.echoes import Echoes
from peerlearn.models.sequences import Sequences
from peerlearn.models.settings import network_of, number_between, seeds_of, whole_from
from peerlearn.models.streams import Rows, Stream, learn_chunk
from peerlearn.models.targets import LARGEST
from peerlearn.models.unharmed import unharmed
from peerlearn.network import Network

PENALTIES: dict[str, type[Ridge] | type[Lasso]] = {"ridge": Ridge, "lasso": Lasso}
SHARED = (  # settings that all agents must have alike
    *("n_reservoir", "spectral_radius", "density", "input_scaling", "feedback_scaling", "teacher_scaling", "leak"),
    *("noise", "washout", "alpha", "penalty"),
)


class ESNRegressor(Echoes):
    """A model of sequences that agents train together without sending each other theirs.

    Parameters
    ----------
    n_reservoir: units of the reservoir.
    spectral_radius: of their connections; the nearer to 1, the longer they remember. 0 and above 1 are warned of.
    density: the share of connections that there are, above 0 and at most 1.
    input_scaling: inputs, and the constant 1 beside them, enter with weights up to this.
    feedback_scaling: the same for outputs that are fed back; 0 for none.
    teacher_scaling: outputs times this are what is learned and fed back.
    leak: a above, the share of a state that is new, above 0 and at most 1.
    noise: v above is uniform between minus this and this; it makes closed loops stable.
    washout: so many samples at the beginning of a sequence set the state; they are not learned from, nor scored.
    alpha: weight of the penalty.
    penalty: "ridge", or "lasso" for coefficients many of which are 0.
    solver: "auto", "local", "consensus", "admm", "gram", "cg", or an object with settings such as ADMM(tolerance=1e-6);
        for lasso "auto", "gram", "admm" or "local".
    stream: how partial_fit learns: "consensus", "exact", "lms", "rls", or an object such as StreamConsensus(every=5).
    network: who talks to whom; None trains on all sequences in one place, the centralised baseline.
    random_state: seeds reservoir, noise and the dealing of sequences; the same number at every agent.

    Attributes
    ----------
    reservoir_: W_in, W and W_fb, the same at every agent.
    coefficients_: hosted agents x (1 + inputs + n_reservoir) x outputs, of the constant, the inputs and the states.
    sparsity_: the share of coefficients that are 0, of the first hosted agent.
    report_: how the solver got there and what was sent; prints as a small table.

    >>> import numpy as np
    >>> from peerlearn import SimulatedNetwork, graphs
    >>> x = np.sin(0.2 * np.arange(1001))[:, None]
    >>> model = ESNRegressor(50, washout=20, network=SimulatedNetwork(graphs.ring(5)), random_state=0)
    >>> bool(model.fit(x[:-1], x[1:, 0]).nrmse(x[:-1], x[1:, 0]) < 0.01)
    True
    """

    report_: Report
    _seed: int
    _end: tuple[Array, Array] | None  # state and outputs at the last sample that fit has seen
    _largest_fitted: float
    _stream: Stream

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on X, y: one sequence, an array of time x inputs, or a list of them (or a 3-D array), and y likewise.

        Where all agents of a network are hosted here, many sequences are dealt to them evenly, and one sequence is cut
        into one stretch of time per agent; a process that hosts one agent gives that agent's own. fit(shares) takes a
        list of (X_k, y_k), one per hosted agent; a table of 0 rows is for one that has no samples. The state is zero
        where a sequence begins, or a stretch.
        """
        with unharmed(self):
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> Self:
        network, solver, seed, deal_seed = self._settings()
        mark = network.ledger.mark()
        sequences = given.sequences_of(self, network, X, y, washout=self.washout, seed=deal_seed)
        self._single_output, self._n_outputs = sequences.single, sequences.targets[0].shape[1]
        self._draw_features(self.n_features_in_, seed)
        samples = np.bincount(sequences.owners, [len(x) for x in sequences.inputs]).astype(int).tolist()
        self._must_be_alike(network, sequences.inputs, sequences.targets, seed, {"solver": solver}, rows=samples)
        if hasattr(self, "_stream"):
            del self._stream  # a stream that was under way ends here
        with one_blas_thread():
            problems = self._harvested(network, sequences)
            if self.alpha == 0:
                self._must_be_determined(network, problems)
            solution = solver.solve(network, problems, self._penalty())
        check_coefficients(network, solution.coefficients, solution.apart)
        self.coefficients_ = solution.coefficients
        self.report_ = replace(solution.report, sent=network.ledger.since(mark))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the next samples of each hosted agent's one sequence, which goes on from call to call.

        partial_fit(shares) takes a list of (X_k, y_k), one per hosted agent, with one sample or many, or none at some
        agents (tables of 0 rows); a process that hosts one agent may call partial_fit(X, y). Penalties of streams are
        ridge.
        """
        with unharmed(self), one_blas_thread():
            learn_chunk(self, X, y)
        return self

    def _new_rows(
        self, network: Network, X: Any, y: Any, classes: Any, stream: Stream | None
    ) -> tuple[Rows, dict[str, Any]]:
        if stream is None and self.penalty != "ridge":
            raise InputError(f"a stream is learned with penalty='ridge', not {self.penalty!r}: set it, or use fit")
        chunk = given.chunk_of(self, network, X, y, None if stream is None else self._axes)
        self._single_output, self._n_outputs = chunk.single, chunk.targets[0].shape[1]
        return Rows(chunk.inputs, chunk.targets), {}

    def _latest(self) -> tuple[Array, Array] | None:
        if not hasattr(self, "_stream"):
            return self._end
        state = self._stream.state
        return (state["reservoir"][0], state["teacher"][0] / self._scaling) if state["samples"][0] else None

    def _largest(self) -> float:
        return float(self._stream.state["largest"].max()) if hasattr(self, "_stream") else self._largest_fitted

    def _memory(self, agents: int) -> State:
        """What a stream remembers beside what its learner does, before the first sample."""
        return {
            "reservoir": np.zeros((agents, self.reservoir_.units)),  # the last states
            "teacher": np.zeros((agents, self._n_outputs)),  # the last outputs, scaled
            "samples": np.zeros(agents),  # how many have passed
            "largest": np.zeros(agents),  # of the targets, in size
        }

    def _chunks(self, stream: Stream, rows: Rows) -> tuple[list[Chunk], State]:
        """What is learned from the new samples, and what is remembered after them."""
        memory = {name: stream.state[name].copy() for name in self._memory(0)}
        H = [np.empty((0, self.reservoir_.width)) for _ in rows.inputs]
        teachers = [self._scaling * d for d in rows.outputs]
        here = [k for k, x in enumerate(rows.inputs) if len(x)]
        passed = [(stream.network.hosted[k], int(memory["samples"][k])) for k in here]
        noise = [self._noise(agent, samples) for agent, samples in passed] if self.noise else None
        harvest = self.reservoir_.harvest(
            [rows.inputs[k] for k in here],
            [teachers[k] for k in here],
            noise=noise,
            amplitude=self.noise,
            h0=memory["reservoir"][here],
            y0=memory["teacher"][here],
        )
        for k, states in zip(here, harvest, strict=True):
            waiting = max(self.washout - int(memory["samples"][k]), 0)
            H[k], d = states[waiting:], teachers[k]
            memory["reservoir"][k], memory["teacher"][k] = states[-1, -self.reservoir_.units :], d[-1]
            memory["samples"][k] += len(d)
            memory["largest"][k] = max(memory["largest"][k], np.abs(rows.outputs[k]).max())
        return Chunk.of_rows(H, [d[len(d) - len(h) :] for h, d in zip(H, teachers, strict=True)]), memory

    def _noise(self, agent: int, samples: int) -> np.random.Generator:
        """Of an agent's one sequence after so many samples: the same however they were cut into chunks."""
        bits = np.random.PCG64((self._seed, agent, 0))
        return np.random.Generator(bits.advance(samples * self.reservoir_.units))

    def _settings(self) -> tuple[Network, Solver, int, int]:
        """The parameters, checked before any work is done; the centralised case is a network of one agent."""
        self._check_parameters()
        solver = solver_of(self.solver)
        learner_of(self.stream)
        network = network_of(self.network)
        seed, deal_seed = seeds_of(self.random_state, network, 2)
        if self.network is None:
            solver = Local()
        must_take(solver, self._penalty())
        if self.spectral_radius == 0 or self.spectral_radius > 1:
            deaf, stuck = "units do not hear each other and forget at once", "states may never forget where they began"
            effect = deaf if self.spectral_radius == 0 else stuck
            warn_caller(f"with a spectral radius of {self.spectral_radius:g} {effect}: 0.1 to 0.99 is usual")
        return network, solver, seed, deal_seed

    def _check_parameters(self) -> None:
        whole_from(self.n_reservoir, "n_reservoir", 1)
        whole_from(self.washout, "washout", 0)
        for name in ("spectral_radius", "input_scaling", "feedback_scaling", "noise"):
            number_between(getattr(self, name), name, 0.0, LARGEST)
        for name, most in (("density", 1.0), ("leak", 1.0), ("teacher_scaling", LARGEST**0.5)):
            number_between(getattr(self, name), name, 1 / LARGEST, most)
        if self.penalty not in PENALTIES:
            raise InputError(f"penalty is {self.penalty!r}: choose one of {', '.join(PENALTIES)}")
        PENALTIES[self.penalty](self.alpha)

    def _penalty(self) -> Ridge | Lasso:
        return PENALTIES[self.penalty](float(self.alpha))

    def _must_be_alike(
        self,
        network: Network,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        seed: int,
        checksums: Mapping[str, Any],
        rows: Sequence[int] | None = None,
    ) -> None:
        """Check that agents in other processes have the same settings, columns and reservoir, before any work."""
        check_same_settings(
            network,
            {
                "the number of columns of X": inputs[0].shape[1],
                "the number of outputs": outputs[0].shape[1],
                **{name: getattr(self, name) for name in SHARED},
                "the seed of the reservoir": seed,
                **checksums,
            },
            self._drawn(),
            rows=rows,
        )

    def _drawn(self) -> Drawn:
        """Return what agents compare of the reservoir: which weights are positive, and where a few samples lead it.

        Not the bits of the weights: the spectral radius that they are scaled by is computed.
        """
        reservoir = self.reservoir_
        positive = tuple(weights > 0 for weights in (reservoir.W_in, reservoir.W, reservoir.W_fb))
        (rows,) = reservoir.harvest([probe(4, reservoir.inputs)], [probe(4, self._n_outputs)])
        return Drawn("the reservoir", positive, rows)

    def _draw_features(self, inputs: int, seed: int) -> int:
        """The reservoir that every agent draws alike, and what goes with it from now on; how wide its rows are."""
        self._seed, self._scaling, self._standardised = seed, float(self.teacher_scaling), False
        self.reservoir_ = Reservoir.draw(
            inputs,
            self._n_outputs,
            units=self.n_reservoir,
            spectral_radius=float(self.spectral_radius),
            density=float(self.density),
            input_scaling=float(self.input_scaling),
            feedback_scaling=float(self.feedback_scaling),
            leak=float(self.leak),
            seed=seed,
        )
        return self.reservoir_.width

    def _harvested(self, network: Network, sequences: Sequences) -> LeastSquares:
        """What each hosted agent's states and scaled targets say; where the last sequence ends is remembered."""
        teachers = [self._scaling * d for d in sequences.targets]
        places, noise = zip(sequences.owners, sequences.numbers, strict=True), None
        if self.noise:
            noise = [np.random.default_rng((self._seed, network.hosted[k], j)) for k, j in places]
        owners, width = sequences.owners, self.reservoir_.width
        blocks = self.reservoir_.blocks(sequences.inputs, teachers, noise=noise, amplitude=self.noise, owners=owners)
        problems, ends = harvested(blocks, teachers, owners, washout=self.washout, width=width)
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
            h = forced(self.reservoir_, nothing, [sequences.inputs[last]], [teachers[last]])[1][0]
        return h, sequences.targets[last][-1].copy()

    def _must_be_determined(self, network: Network, problems: LeastSquares) -> None:
        N, B = round(float(total(network, problems.rows)[0])), problems.shape[0]
        if N < B:
            raise DataError(
                f"the {N} samples of the whole network after the washout do not determine {B} coefficients when alpha "
                "is 0: set alpha above 0, or n_reservoir to less"
            )
