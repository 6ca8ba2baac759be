"""What the adaptive filters have in common: they run over recorded signals, or listen sample by sample.

They are scikit-learn estimators by their parameters, without `fit`: rows of X that may be shuffled
are no signals.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from peerlearn.algorithms.agreement import check_same_settings
from peerlearn.algorithms.filtering.diffusion import (
    BEFORE,
    Cooperation,
    Shape,
    one_of,
    outputs,
    proceed,
)
from peerlearn.algorithms.filtering.divergence import explain_divergence
from peerlearn.algorithms.filtering.kernels import LMS, NLMS, RLS
from peerlearn.algorithms.filtering.task import Design
from peerlearn.algorithms.report import Report
from peerlearn.algorithms.streaming.learner import check_forgetting
from peerlearn.arrays import Array, is_whole
from peerlearn.errors import InputError
from peerlearn.local.recursive import State
from peerlearn.local.splines import Spline
from peerlearn.models.base import NetworkModel, Setup, Takes
from peerlearn.models.filter_run import FilterRun
from peerlearn.models.signals import signals_of, steps_of
from peerlearn.network import Network
from peerlearn.network.base import Counts

UPDATES = {"lms": LMS, "nlms": NLMS, "rls": RLS}
STEPS = (
    "step_size",
    "spline_step_size",
)  # what agents need not have in common, and may change as they listen
NOTHING = np.zeros(0)
MOST_RECURSIVE = 2000  # coefficients: a matrix of 32 MB per agent


@dataclass(frozen=True)
class FilterState:
    """Where a filter is: over which network, how it began, and what its agents remember."""

    network: Network
    shape: Shape
    how: Cooperation
    settings: dict[str, Any]
    state: State = field(repr=False)
    sent: Counts = field(default_factory=Counts)


class AdaptiveFilter(NetworkModel):
    """Base class of adaptive filters, which listen with `run` or `step`."""

    takes: ClassVar[Takes] = "signals"
    alone: ClassVar = {"cooperation": "none"}
    own: ClassVar = ("network", *STEPS)

    order: int
    update: str
    cooperation: str
    every: int
    threshold: float | None
    forgetting: float
    step_size: Any

    _steps: ClassVar[dict[str, tuple[float, float]]]  # of w and q, by update
    _priors: ClassVar[tuple[float, float]]  # of w and q, for RLS
    _listening: FilterState

    @abstractmethod
    def truth_of(self, w0: Any, f0: Any) -> Any:
        """Return the system d = f0(w0'x) as `run` takes it."""

    @abstractmethod
    def check_truth(self, truth: Any) -> tuple[Array, Array]:
        """Return w0, and f0 at the usable knots, from the system as `run` takes it."""

    def spline(self) -> Spline | None:
        """Return the spline of the filter, if it has one."""
        return None

    def run(self, x: ArrayLike, d: ArrayLike, truth: Any = None) -> FilterRun:
        """Learn from recorded signals, hosted agents x samples (of one agent also one row), beginning anew.

        All agents call it at the same time, with equally many samples. truth: the system that made
        the signals, where it is known and deviations from it are wanted: w0, and for a spline
        filter (w0, f0) with f0 a function or the control points.
        """
        begun = self._begin()
        x, d = signals_of(begun.network, x=x, d=d)
        known = (NOTHING, NOTHING) if truth is None else self.check_truth(truth)
        mark = begun.network.ledger.mark()
        self._must_agree(begun, {"the number of samples": d.shape[1]})
        state, record = self._proceed(begun, x, d, known)
        sent = begun.network.ledger.since(mark)
        self._listening = replace(begun, state=state, sent=sent)
        of_w, of_q = len(known[0]) > 0, len(known[1]) > 0
        return FilterRun(
            record[0], d - record[0], record[1] if of_w else None, record[2] if of_q else None, sent
        )

    def step(self, x: ArrayLike, d: ArrayLike) -> Array:
        """Go on with the next sample of each hosted agent, or with a block of them: agents x samples.

        Outputs, in the shape of x, are those of the filter before it learned from each sample. All
        agents call it at the same time with equally many samples. After `run` it goes on from
        there. Step sizes may be changed meanwhile.
        """
        first = not hasattr(self, "_listening")
        now = self._begin() if first else self._listening
        if not first:
            self._must_be_unchanged(now)
        samples, d = signals_of(now.network, live=True, x=x, d=d)
        mark = now.network.ledger.mark()
        if first:
            self._must_agree(now, {})
        state, record = self._proceed(now, samples, d, (NOTHING, NOTHING))
        self._listening = replace(now, state=state, sent=now.sent + now.network.ledger.since(mark))
        stepped: Array = record[0].reshape(np.shape(x))
        return stepped

    def predict(self, x: ArrayLike) -> Array:
        """What the filter of each hosted agent makes of a signal of its own, x as in `run`. Nothing is learned or sent.

        Before the first sample there was silence, whatever the filter has heard.
        """
        now = self._heard()
        (signal,) = signals_of(now.network, x=x)
        predicted: Array = outputs(now.shape, now.state["theta"], signal).reshape(np.shape(x))
        return predicted

    @property
    def coefficients_(self) -> Array:
        return self._learned(slice(None, self._heard().shape.design.order))

    @property
    def report_(self) -> Report:
        now = self._heard()
        samples, agents = int(now.state["clock"][0]), len(now.network.hosted)
        note = f"{agents} filters of order {now.shape.design.order}"
        if "silences" in now.state:
            due = samples - 1 if now.how.when == BEFORE else samples
            kept, chances = now.state["silences"].sum(), due // now.how.every * agents
            note += f"; agents kept silent {kept:,.0f} of {chances:,} times"
        return Report(
            f"{type(self).__name__} ({now.settings['update']})", True, samples, (), now.sent, note
        )

    # -----------------------------------------------------------------------------------------------------------------

    def _heard(self) -> FilterState:
        if not hasattr(self, "_listening"):
            raise NotFittedError(
                f"this {type(self).__name__} has heard nothing yet: call run or step first"
            )
        return self._listening

    def _learned(self, part: slice) -> Array:
        return self._heard().state["theta"][:, part].copy()

    def check_settings(self) -> Setup:
        setup = super().check_settings()
        self._shape()
        self._step_sizes(setup.network)
        return setup

    def check_parameters(self) -> None:
        one_of(self.update, "update", tuple(UPDATES))
        check_forgetting(self.forgetting)
        if self.forgetting != 1 and self.update != "rls":
            raise InputError(
                f"update={self.update!r} has no forgetting: leave it 1, or give update='rls'"
            )
        if self._cooperation().exchange == "span" and self.update == "rls":
            raise InputError(
                "exchange='span' is for update='lms' or 'nlms': recursive least squares changes all control points "
                "with every sample, so that agents must combine all of them; give exchange='full'"
            )

    def _cooperation(self) -> Cooperation:
        return Cooperation(
            self.cooperation, getattr(self, "exchange", "full"), self.every, self.threshold
        )

    def _begin(self) -> FilterState:
        """Everything checked, before the first sample."""
        network = self.check_settings().network
        shape, how = self._shape(), self._cooperation()
        return FilterState(
            network, shape, how, self.get_params(deep=False), shape.start(network, how)
        )

    def _shape(self) -> Shape:
        """y[n] = x[n], and the prior of recursive least squares."""
        if not is_whole(self.order) or self.order < 1:
            raise InputError(
                f"order is {self.order!r}: give the number of inputs that the filter remembers, 1 or more"
            )
        order, spline = int(self.order), self.spline()
        q = NOTHING if spline is None else spline.knots
        if self.update == "rls" and order + len(q) > MOST_RECURSIVE:
            raise InputError(
                f"order {order} and {len(q)} control points are more than the {MOST_RECURSIVE:,} coefficients that "
                "update='rls' takes, whose matrix has the square of them: give fewer, or update='nlms'"
            )
        w, prior = np.eye(1, order)[0], np.repeat(self._priors, (order, len(q)))
        density, B = (1.0, np.zeros((4, 4))) if spline is None else (1 / spline.spacing, spline.B)
        design = Design(order, len(q), float(density), UPDATES[self.update], float(self.forgetting))
        return Shape(design, B, np.concatenate([w, q]), prior)

    def _step_sizes(self, network: Network) -> Array:
        """mu and mu_q of each hosted agent."""
        given = [getattr(self, name, None) for name in STEPS]
        for name, size in zip(STEPS, given, strict=True):
            if self.update == "rls" and size is not None:
                raise InputError(
                    f"update='rls' has no {name}: leave it None, or give update='lms' or 'nlms'"
                )
        defaults, spline = self._steps.get(self.update, (0.0, 0.0)), self.spline()
        limits = (
            (2.0, 2.0)
            if self.update == "nlms"
            else (np.inf, np.inf if spline is None else 2 / spline.least)
        )
        return np.column_stack(
            [steps_of(network, *each) for each in zip(STEPS, given, defaults, limits, strict=True)]
        )

    def _must_agree(self, begun: FilterState, more: dict[str, Any]) -> None:
        """Agents that send anything must all have the same filter."""
        if begun.how.sends_on(begun.network):
            shared = {name: value for name, value in begun.settings.items() if name not in self.own}
            check_same_settings(begun.network, shared | more)

    def _must_be_unchanged(self, now: FilterState) -> None:
        for name, before in now.settings.items():
            value = getattr(self, name)
            if name not in STEPS and value is not before and value != before:
                raise InputError(
                    f"{name} was changed from {before!r:.60} to {value!r:.60} while the filter listens: set it back, "
                    "or begin anew with run or with sklearn.base.clone(model)"
                )

    def _proceed(
        self, now: FilterState, x: Array, d: Array, truth: tuple[Array, Array]
    ) -> tuple[State, Array]:
        steps, design = self._step_sizes(now.network), now.shape.design

        def stop(k: int, n: int, X: float, strained: bool) -> InputError:
            agent, own = now.network.hosted[k], strained and design.Q == 0
            by_neighbor = now.how.sends_on(now.network) and not own
            return explain_divergence(
                agent, n, design, self.spline(), X, steps[k], by_neighbor=by_neighbor
            )

        return proceed(now.network, now.shape, now.how, now.state, (x, d, steps), truth, stop)
