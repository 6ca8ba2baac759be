"""Signals: adaptive filters with or without a nonlinearity that is learned, by LMS, NLMS or joint recursive least
squares; every sample or every few hundred, or on news.

Agents learn one system together, each from signals of its own (thesis, chapter 10).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.local.splines import Spline
from peerlearn.models.adaptive_filter import AdaptiveFilter
from peerlearn.models.filter_run import decibels
from peerlearn.models.signals import numbers_or_none, true_coefficients
from peerlearn.network import Network

__all__ = ["LMSFilter", "SplineFilter", "decibels"]


class SplineFilter(AdaptiveFilter):
    """A Wiener filter: y[n] = phi(w'x[n]), the last inputs weighed and summed, then a spline that is learned as well.

    It starts as y[n] = x[n]. Scale signals so that inputs and outputs fit between the knots: beyond
    them the spline goes on along its tangent.

    Parameters
    ----------
    order: inputs that the filter remembers, the present one included.
    knots, spacing: the spline has a control point every `spacing` from -knots to knots.
    basis: "catmull-rom" goes through its control points; "bspline" is smoother.
    update: "rls" (recursive Gauss-Newton on both parts at once: learns fastest), "nlms" or "lms"
        (the thesis's).
    step_size, spline_step_size: of w and of the control points; a number, or one per hosted agent.
        None: 0.005 for both with "lms"; 0.1 for both, as shares of what would make the error
        vanish, with "nlms". "rls" has none.
    cooperation: "adapt-then-combine", "combine-then-adapt" (the same filter, combined before a
        sample instead of after it), or "none": every agent alone, and nothing is sent. All agents
        must say the same: one that says "none" is not heard by the others, who wait for it.
    exchange: what agents combine: "full", all they have learned; or "span", of the spline only what
        they visit, on request (the thesis's): fewer bytes, many more rounds, and nobody learns what
        it does not visit. As good as "full" with combine-then-adapt, which asks for the span of the
        sample to come, and some 8 dB worse with the other. Not for "rls".
    every: samples from one combination to the next.
    threshold: None, or the relative change of its coefficients from which on an agent has something
        to say.
    forgetting: of "rls" alone, the weight of the past per sample; below 1 for systems that change.
    network: who talks to whom; None: one agent alone.

    Attributes
    ----------
    coefficients_: w of each hosted agent, agents x order.
    control_points_: q of each hosted agent, agents x Q.
    report_: samples so far, and what was sent; prints as a small table.

    >>> from peerlearn import SimulatedNetwork, graphs
    >>> from peerlearn.data import wiener
    >>> system = wiener(agents=10, samples=3000)
    >>> model = SplineFilter(network=SimulatedNetwork(graphs.erdos_renyi(10, 0.6, seed=0)))
    >>> run = model.run(system.x, system.d, truth=(system.coefficients, system.f0))
    >>> bool(decibels(run.excess(system.clean), window=500)[-1] < -40)
    True
    """

    _steps: ClassVar = {"lms": (0.005, 0.005), "nlms": (0.1, 0.1)}
    _priors: ClassVar = (0.3, 0.1)

    def __init__(
        self,
        order: int = 5,
        knots: float = 2.2,
        spacing: float = 0.2,
        *,
        basis: str = "catmull-rom",
        update: str = "rls",
        step_size: Any = None,
        spline_step_size: Any = None,
        cooperation: str = "adapt-then-combine",
        exchange: str = "full",
        every: int = 1,
        threshold: float | None = None,
        forgetting: float = 1.0,
        network: Network | None = None,
    ) -> None:
        self.order = order
        self.knots = knots
        self.spacing = spacing
        self.basis = basis
        self.update = update
        self.step_size = step_size
        self.spline_step_size = spline_step_size
        self.cooperation = cooperation
        self.exchange = exchange
        self.every = every
        self.threshold = threshold
        self.forgetting = forgetting
        self.network = network

    @property
    def control_points_(self) -> Array:
        return self._learned(slice(self._heard().shape.design.order, None))

    def spline(self) -> Spline:
        return Spline(self.knots, self.spacing, self.basis)

    def truth_of(self, w0: Any, f0: Any) -> Any:
        return w0, f0

    def check_truth(self, truth: Any) -> tuple[Array, Array]:
        try:
            w0, f0 = truth
        except (TypeError, ValueError):
            raise DataError(
                "the truth of a spline filter is (w0, f0), f0 a function or the control points"
            ) from None
        spline, w0 = self.spline(), true_coefficients(self.order, w0)
        if callable(f0):
            values = numbers_or_none(f0(spline.usable))
        else:
            q0 = numbers_or_none(f0)
            if q0 is None or q0.shape != (spline.size,):
                raise DataError(
                    f"there must be {spline.size} true control points, as the filter has, not {f0!r:.60}"
                )
            values = spline.value(spline.usable, q0)
        if values is None or values.shape != spline.usable.shape:
            raise DataError(
                f"the true nonlinearity gives no number at each of the {len(spline.usable)} usable knots"
            )
        return w0, values


class LMSFilter(AdaptiveFilter):
    """A linear filter: y[n] = w'x[n], the last inputs weighed and summed. It starts as y[n] = x[n].

    Parameters
    ----------
    order: inputs that the filter remembers, the present one included.
    update: "lms" (least mean squares), "nlms" (normalised) or "rls" (recursive least squares: for
        inputs of a size of 0.01 or more, because it starts with a ridge of 0.01; scale smaller
        ones).
    step_size: a number, or one per hosted agent. None: 0.005 with "lms", 0.1 with "nlms". "rls" has
        none.
    cooperation: "adapt-then-combine", "combine-then-adapt" (the same filter, combined before a
        sample instead of after it), or "none": every agent alone, and nothing is sent. All agents
        must say the same: one that says "none" is not heard by the others, who wait for it.
    every: samples from one combination to the next.
    threshold: None, or the relative change of its coefficients from which on an agent has something
        to say.
    forgetting: of "rls" alone, the weight of the past per sample; below 1 for systems that change.
    network: who talks to whom; None: one agent alone.

    Attributes
    ----------
    coefficients_: w of each hosted agent, agents x order.
    report_: samples so far, and what was sent; prints as a small table.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(500)
    >>> d = np.convolve(x, [0.5, -0.3])[:500]
    >>> model = LMSFilter(order=2, update="rls")
    >>> run = model.run(x, d)
    >>> model.coefficients_.round(3)
    array([[ 0.5, -0.3]])
    """

    _steps: ClassVar = {"lms": (0.005, 0.0), "nlms": (0.1, 0.0)}
    _priors: ClassVar = (100.0, 0.0)

    def __init__(
        self,
        order: int = 5,
        *,
        update: str = "lms",
        step_size: Any = None,
        cooperation: str = "adapt-then-combine",
        every: int = 1,
        threshold: float | None = None,
        forgetting: float = 1.0,
        network: Network | None = None,
    ) -> None:
        self.order = order
        self.update = update
        self.step_size = step_size
        self.cooperation = cooperation
        self.every = every
        self.threshold = threshold
        self.forgetting = forgetting
        self.network = network

    def truth_of(self, w0: Any, f0: Any) -> Any:
        return w0

    def check_truth(self, truth: Any) -> tuple[Array, Array]:
        return true_coefficients(self.order, truth), np.zeros(0)
