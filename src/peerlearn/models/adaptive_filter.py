"""Common part of the adaptive filters: runs over recorded signals, and steps sample by sample.

The filters have parameters as scikit-learn estimators have them, but no `fit`: scikit-learn may
shuffle the rows of X, and the samples of a signal have an order.

    run, step       check the input, compare settings, call `_advance`
    _advance        the compiled loop of `peerlearn.algorithms.filtering`, over the network
    FilterState     all that the next step needs: network, shape, settings, coefficients

`run` begins with a fresh state. `step` continues with the state of the last `run` or `step`. A
state is replaced only after `_advance` has returned, so a failed call leaves the filter as it was.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from peerlearn.algorithms.agreement import check_same_settings
from peerlearn.algorithms.filtering.diffusion import outputs, proceed
from peerlearn.algorithms.filtering.divergence import explain_divergence
from peerlearn.algorithms.filtering.kernels import LMS, NLMS, RLS
from peerlearn.algorithms.filtering.shape import BEFORE, Cooperation, Shape, one_of
from peerlearn.algorithms.filtering.task import Design
from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.streaming.learner import check_forgetting
from peerlearn.arrays import Array, is_whole
from peerlearn.data.dataset import AnyArray
from peerlearn.errors import InputError
from peerlearn.local.recursive import State
from peerlearn.local.splines import Spline
from peerlearn.models.archive_reader import ArchiveReader
from peerlearn.models.base import NetworkModel, Setup, Takes
from peerlearn.models.filter_run import FilterRun
from peerlearn.models.filter_signals import signals_of, steps_of
from peerlearn.network import Network
from peerlearn.network.base import Counts

UPDATES = {"lms": LMS, "nlms": NLMS, "rls": RLS}
# Parameters that may differ between agents, and may change while a filter runs.
STEPS = ("step_size", "spline_step_size")
NOTHING = np.zeros(0)
MOST_RECURSIVE = 2000  # most coefficients of RLS: its matrix then takes 32 MB per agent


@dataclass(frozen=True)
class FilterState:
    """State of a filter between two samples.

    shape, how: size and update rule of the filter, and how agents cooperate.
    settings: the parameters with which the filter began.
    state: the arrays that agents remember, such as the coefficients theta.
    sent: what was sent so far.
    for_predictions: whether only coefficients are known, so that no sample can follow.
    """

    network: Network
    shape: Shape
    how: Cooperation
    settings: dict[str, Any]
    state: State = field(repr=False)
    sent: Counts = field(default_factory=Counts)
    for_predictions: bool = False


class AdaptiveFilter(NetworkModel):
    """Base class of adaptive filters, which learn with `run` or `step`."""

    leaks: ClassVar = "would send coefficients of single agents to their neighbors"
    instead: ClassVar = "use RVFLRegressor with stream='exact'"
    takes: ClassVar[Takes] = "signals"
    alone: ClassVar = {"cooperation": "none"}
    own: ClassVar = ("network", *STEPS)

    order: int
    update: str
    cooperation: str
    every: int
    threshold: float | None
    forgetting: float
    bias: bool | None
    robust: bool
    step_size: Any
    n_features_in_ = 1  # the samples of a signal are one column

    _steps: ClassVar[dict[str, tuple[float, float]]]  # default step sizes of w and q, by update
    _priors: ClassVar[tuple[float, float, float]]  # variances of w, bias and q in P[0] of RLS
    _filter_state: FilterState

    @abstractmethod
    def truth_of(self, w0: Any, f0: Any) -> Any:
        """Return the system d = f0(w0'x) in the form that `run` takes as truth."""

    @abstractmethod
    def check_truth(self, truth: Any) -> tuple[Array, Array]:
        """Return w0, and f0 at the usable knots, from the truth that `run` was given."""

    def spline(self) -> Spline | None:
        """Return the spline of the filter, if it has one."""
        return None

    def run(self, x: ArrayLike, d: ArrayLike, truth: Any = None) -> FilterRun:
        """Learn from recorded signals, starting with a fresh filter.

        All agents call it at the same time, with the same number of samples.

        Parameters
        ----------
        x, d : array-like of shape (n_hosted_agents, n_samples)
            Inputs and desired outputs. For one agent also of shape (n_samples,).
        truth : default None
            The system that made the signals, if deviations from it are wanted: w0, or for a spline
            filter (w0, f0), with f0 a function or the control points.

        Returns
        -------
        FilterRun
            Outputs, errors and deviations.
        """
        start = self._begin()
        x, d = signals_of(start.network, x=x, d=d)
        known = (NOTHING, NOTHING) if truth is None else self.check_truth(truth)
        mark = start.network.ledger.mark()
        self._check_agreement(start, {"the number of samples": d.shape[1]})
        state, record = self._advance(start, x, d, known)
        sent = start.network.ledger.since(mark)
        self._filter_state = replace(start, state=state, sent=sent)
        y = record[0]
        msd = record[1] if len(known[0]) else None
        msd_spline = record[2] if len(known[1]) else None
        return FilterRun(y, d - y, msd, msd_spline, sent)

    def step(self, x: ArrayLike, d: ArrayLike) -> Array:
        """Learn from the next sample of each hosted agent, or from the next block of samples.

        All agents call it at the same time, with the same number of samples. After `run` it
        continues from the end of that run. Step sizes may be changed between calls. An empty block
        means that there is no sample now: nothing is learned. A filter from a file that
        `archive.save` wrote begins anew; `resume_stream` continues.

        Parameters
        ----------
        x, d : array-like of shape (n_hosted_agents,) or (n_hosted_agents, n_samples)
            Inputs and desired outputs.

        Returns
        -------
        ndarray of the shape of x
            Outputs of the filter before it learned from each sample.
        """
        first = not hasattr(self, "_filter_state") or self._filter_state.for_predictions
        now = self._begin() if first else self._filter_state
        if not first:
            self._check_unchanged(now)
        samples, d = signals_of(now.network, live=True, x=x, d=d)
        mark = now.network.ledger.mark()
        if first:
            self._check_agreement(now, {})
        state, record = self._advance(now, samples, d, (NOTHING, NOTHING))
        sent = now.sent + now.network.ledger.since(mark)
        self._filter_state = replace(now, state=state, sent=sent)
        y: Array = record[0].reshape(np.shape(x))
        return y

    def predict(self, x: ArrayLike) -> Array:
        """Return the output of each hosted agent's filter for its signal, x as in `run`.

        Nothing is learned or sent. Inputs before the first sample count as 0, also if the filter
        has already learned from other samples.
        """
        now = self._current_state()
        (signal,) = signals_of(now.network, x=x)
        y: Array = outputs(now.shape, now.state["theta"], signal).reshape(np.shape(x))
        return y

    @property
    def coefficients_(self) -> Array:
        """Weights w of each hosted agent, agents x order."""
        return self._coefficient_block(slice(None, self._current_state().shape.design.order))

    @property
    def bias_(self) -> Array:
        """Bias weight of each hosted agent; 0 if the filter has none."""
        design = self._current_state().shape.design
        block = self._coefficient_block(slice(design.order, design.order + design.bias))
        return np.asarray(block[:, 0] if design.bias else np.zeros(len(block)))

    @property
    def report_(self) -> Report:
        """Number of samples so far, and what was sent."""
        now = self._learning_state()
        samples = int(now.state["clock"][0])
        agents = len(now.network.hosted)
        note = f"{agents} filters of order {now.shape.design.order}"
        if "silences" in now.state:
            due = samples - 1 if now.how.when == BEFORE else samples
            silences = now.state["silences"].sum()
            chances = due // now.how.every * agents
            note += f"; agents kept silent {silences:,.0f} of {chances:,} times"
        solver = f"{type(self).__name__} ({now.settings['update']})"
        return Report(solver, True, samples, (), now.sent, note)

    @property
    def network_in_use(self) -> Network:
        """The network that the filter learns over; one agent if none was given."""
        return self._current_state().network

    def state_under_way(self) -> tuple[State, Counts]:
        """Return all that the filter remembers, and what was sent so far, to save them."""
        now = self._learning_state()
        self._check_unchanged(now)
        return now.state, now.sent

    def fresh_state(self, reader: ArchiveReader, width: int) -> State:
        """Return what the filter of a file remembers before the first sample. Send nothing.

        width: number of its coefficients. A file may claim any order and any number of knots; no
        more memory is taken than it has coefficients.
        """
        try:
            spline = self.spline()
            claimed = self.order + (0 if spline is None else spline.size)
            if claimed <= width <= claimed + 1:
                state = self._begin().state
                if state["theta"].shape[1] == width:
                    return state
        except (InputError, TypeError) as error:
            raise reader.wrong(f"its filter cannot be created ({error})") from error
        raise reader.wrong(f"it has {width} coefficients, but an order of {self.order!r:.60}")

    def continue_from(self, state: State, sent: Counts) -> Self:
        """Set what the filter remembers. The next `step` goes on from there."""
        self._filter_state = replace(self._begin(), state=state, sent=sent)
        return self

    def to_archive(self) -> tuple[dict[str, AnyArray], dict[str, Any]]:
        return {"coefficients": self._coefficient_block(slice(None))[0]}, {}

    def from_archive(self, reader: ArchiveReader) -> None:
        theta = reader.numbers("coefficients", None)
        if self.n_features_in_ != 1:
            raise reader.wrong(f"it has {self.n_features_in_} columns, and a signal is one")
        state = self.fresh_state(reader, len(theta))
        state["theta"][:] = theta
        self._filter_state = replace(self._begin(), state=state, for_predictions=True)

    def _learning_state(self) -> FilterState:
        now = self._current_state()
        if now.for_predictions:
            raise NotFittedError(
                f"this {type(self).__name__} was loaded for predictions: call run or step first, "
                "or continue a filter with peerlearn.models.stream_archive"
            )
        return now

    def _current_state(self) -> FilterState:
        if not hasattr(self, "_filter_state"):
            raise NotFittedError(
                f"this {type(self).__name__} has learned from no samples yet: call run or step "
                "first"
            )
        return self._filter_state

    def _coefficient_block(self, part: slice) -> Array:
        return self._current_state().state["theta"][:, part].copy()

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        self._initial_shape()
        self._step_sizes(setup.network)
        return setup

    def check_parameters(self) -> None:
        one_of(self.update, "update", tuple(UPDATES))
        check_forgetting(self.forgetting)
        for name, others in (("bias", (None,)), ("scale", ()), ("robust", ())):
            value = getattr(self, name, False)
            if not isinstance(value, bool) and value not in others:
                raise InputError(f"{name} is {value!r:.60}: give True or False")
        if self.forgetting != 1 and self.update != "rls":
            raise InputError(
                f"update={self.update!r} has no forgetting: leave it 1, or give update='rls'"
            )
        if self._cooperation().exchange == "span" and self.update == "rls":
            raise InputError(
                "exchange='span' is for update='lms' or 'nlms': recursive least squares changes "
                "all control points with every sample, so that agents must combine all of them; "
                "give exchange='full'"
            )

    def _cooperation(self) -> Cooperation:
        return Cooperation(
            self.cooperation, getattr(self, "exchange", "full"), self.every, self.threshold
        )

    def _begin(self) -> FilterState:
        """Check all parameters, and return the state before the first sample."""
        network = self.check_settings().network
        shape = self._initial_shape()
        how = self._cooperation()
        settings = self.get_params(deep=False)
        return FilterState(network, shape, how, settings, shape.start(network, how))

    def _initial_shape(self) -> Shape:
        """Return the filter y[n] = x[n], with which learning starts, and the prior of RLS.

        A filter that is scaled starts as another one after its first samples.
        """
        if not is_whole(self.order) or self.order < 1:
            raise InputError(
                f"order is {self.order!r}: give the number of inputs that the filter remembers, "
                "1 or more"
            )
        order = int(self.order)
        spline = self.spline()
        q = NOTHING if spline is None else spline.knots
        bias = int(self._has_bias())
        if self.update == "rls" and order + len(q) > MOST_RECURSIVE:
            raise InputError(
                f"order {order} and {len(q)} control points are more than the {MOST_RECURSIVE:,} "
                "coefficients that update='rls' takes, whose matrix has the square of them: give "
                "fewer, or update='nlms'"
            )
        w = np.eye(1, order + bias)[0]
        prior = np.repeat(self._priors, (order, bias, len(q)))
        density = 1.0 if spline is None else float(1 / spline.spacing)
        B = np.zeros((4, 4)) if spline is None else spline.B
        update = UPDATES[self.update]
        robust = self.robust and update == RLS
        design = Design(order, len(q), density, update, float(self.forgetting), bias, robust)
        scaled = spline if getattr(self, "scale", False) else None
        return Shape(design, B, np.concatenate([w, q]), prior, scaled)

    def _has_bias(self) -> bool:
        return self.update == "rls" if self.bias is None else self.bias

    def _step_sizes(self, network: Network) -> Array:
        """Return mu and mu_q of each hosted agent, agents x 2."""
        given = [getattr(self, name, None) for name in STEPS]
        for name, size in zip(STEPS, given, strict=True):
            if self.update == "rls" and size is not None:
                raise InputError(
                    f"update='rls' has no {name}: leave it None, or give update='lms' or 'nlms'"
                )
        defaults = self._steps.get(self.update, (0.0, 0.0))
        spline = self.spline()
        limits = (np.inf, np.inf)
        if self.update == "nlms":
            limits = (2.0, 2.0)
        elif spline is not None:
            limits = (np.inf, 2 / spline.least)
        arguments = zip(STEPS, given, defaults, limits, strict=True)
        return np.column_stack([steps_of(network, *each) for each in arguments])

    def _check_agreement(self, start: FilterState, more: dict[str, Any]) -> None:
        """Check that all agents have the same filter, if they send anything."""
        if start.how.sends_on(start.network):
            shared = {name: value for name, value in start.settings.items() if name not in self.own}
            check_same_settings(start.network, shared | more)

    def _check_unchanged(self, now: FilterState) -> None:
        for name, before in now.settings.items():
            value = getattr(self, name)
            if name not in STEPS and value is not before and value != before:
                raise InputError(
                    f"{name} was changed from {before!r:.60} to {value!r:.60} while the filter "
                    "learns: set it back, or begin anew with run or with sklearn.base.clone(model)"
                )

    def _advance(
        self, now: FilterState, x: Array, d: Array, truth: tuple[Array, Array]
    ) -> tuple[State, Array]:
        """Learn from the samples x, d. Return the new state, and outputs and deviations."""
        steps = self._step_sizes(now.network)
        design = now.shape.design

        def stop(k: int, n: int, X: float, scale: float, strained: bool) -> InputError:
            """Return the error of hosted agent k, which diverged at sample n."""
            agent = now.network.hosted[k]
            by_itself = strained and design.Q == 0
            by_neighbor = now.how.sends_on(now.network) and not by_itself
            return explain_divergence(
                agent,
                n,
                design,
                self.spline(),
                X,
                steps[k],
                by_neighbor=by_neighbor,
                scale=scale,
            )

        return proceed(now.network, now.shape, now.how, now.state, (x, d, steps), truth, stop)
