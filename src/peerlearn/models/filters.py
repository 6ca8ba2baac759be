"""Signals: adaptive filters, linear or with a learned spline, by LMS, NLMS or joint RLS.

    LMSFilter       y[n] = w'x[n]
    SplineFilter    y[n] = phi(w'x[n]),   phi: a spline with control points q

x[n] are the last inputs. Agents learn one system together, each from its own signals (thesis,
chapter 10). They combine their coefficients after every sample, after every few samples, or only
when the coefficients have changed enough. This file has the constructors; running, stepping and
predicting are in `peerlearn.models.adaptive_filter`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from peerlearn.arrays import Array
from peerlearn.errors import DataError
from peerlearn.local.splines import Spline
from peerlearn.models.adaptive_filter import AdaptiveFilter
from peerlearn.models.filter_run import decibels
from peerlearn.models.filter_signals import numbers_or_none, true_coefficients
from peerlearn.network import Network

__all__ = ["LMSFilter", "SplineFilter", "decibels"]


class SplineFilter(AdaptiveFilter):
    """Adaptive Wiener filter, y[n] = phi(w'x[n]), whose spline phi is learned as well.

    The last inputs x[n] are weighted and summed, and the sum goes through the spline. The filter
    starts as y[n] = x[n]. Beyond its knots the spline continues along its tangent. With
    scale=True the size of the signals need not fit the knots.

    Parameters
    ----------
    order : int, default 5
        Number of inputs that the filter remembers, including the present one.
    knots : float, default 2.2
        The control points of the spline lie from -knots to knots.
    spacing : float, default 0.2
        Distance between neighboring control points.
    basis : {"catmull-rom", "bspline"}, default "catmull-rom"
        A Catmull-Rom spline goes through its control points; a B-spline is smoother.
    update : {"rls", "nlms", "lms"}, default "rls"
        Update rule. "rls" is a recursive Gauss-Newton method on w and the spline together, and
        learns fastest. The thesis uses "lms".
    step_size : float, array-like with one number per hosted agent, or None, default None
        Step size of w. None means 0.005 with "lms" and 0.1 with "nlms", where a step of 1 would
        make the error vanish. "rls" has none.
    spline_step_size : float, array-like with one number per hosted agent, or None, default None
        Step size of the control points, with the same defaults as step_size.
    cooperation : {"adapt-then-combine", "combine-then-adapt", "none"}, default "adapt-then-combine"
        When agents combine their coefficients: after each sample, or before it (the same filter).
        With "none" every agent learns alone and nothing is sent. All agents must have the same
        value: if only one has "none", the others wait for it.
    exchange : {"full", "span"}, default "full"
        What agents combine. "full": all coefficients. "span" (the thesis's): of the spline only the
        control points that they use, on request. "span" sends fewer bytes in many more rounds, and
        an agent learns nothing about control points that it does not use. It is as good as "full"
        with "combine-then-adapt", which asks for the span of the coming sample, and about 8 dB
        worse with "adapt-then-combine". Not for "rls".
    every : int, default 1
        Number of samples from one combination to the next.
    threshold : float or None, default None
        If given, an agent sends its coefficients only when they changed by this much, relative to
        their size. Where nothing is new it decays, so that agents agree. None sends them always.
    forgetting : float, default 1.0
        Weight of the past per sample, for "rls" only. Choose it below 1 for systems that change
        slowly; sudden changes are detected (see robust).
    bias : bool or None, default None
        Whether there is a bias weight: y[n] = phi(w'x[n] + bias). None means only with "rls". With
        "lms" and "nlms" it slows w down if inputs are much smaller than 1, so it must be asked for.
    scale : bool, default True
        Fit the start of the filter to the size and the offset of the first 128 samples. Until then
        the filter learns nothing and its output is x[n]; it then learns from these 128 samples at
        once. The size is estimated again after 512, 1024 and 2048 samples. Agents agree on it by
        one flood and four sums. Step sizes are those for signals of size one.
    robust : bool, default True
        For "rls" only. Errors far above their usual size count less, so that an outlier does
        little harm. If errors stay large, the system has changed, and the agent starts to learn
        anew. "lms" and "nlms" forget outliers and changes by themselves.
    network : Network or None, default None
        The graph of agents. None is a network of one agent.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_hosted_agents, order)
        w of each hosted agent.
    control_points_ : ndarray of shape (n_hosted_agents, Q)
        Control points of the spline of each hosted agent.
    bias_ : ndarray of shape (n_hosted_agents,)
        Bias weight of each hosted agent; 0 if the filter has none.
    report_ : Report
        Number of samples so far, and what was sent. It prints as a small table.

    Examples
    --------
    >>> from peerlearn import SimulatedNetwork, SplineFilter, decibels, graphs
    >>> from peerlearn.data import wiener
    >>> system = wiener(agents=10, samples=3000)
    >>> network = SimulatedNetwork(graphs.erdos_renyi(10, 0.6, seed=0))
    >>> model = SplineFilter(network=network)
    >>> run = model.run(system.x, system.d, truth=(system.coefficients, system.f0))
    >>> bool(decibels(run.excess(system.clean), window=500)[-1] < -40)
    True
    """

    _steps: ClassVar = {"lms": (0.005, 0.005), "nlms": (0.1, 0.1)}
    _priors: ClassVar = (0.3, 0.1, 0.1)

    def __init__(
        self,
        order: int = 5,
        knots: float = 2.2,
        spacing: float = 0.2,
        *,
        basis: str = "catmull-rom",
        update: str = "rls",
        step_size: ArrayLike | None = None,
        spline_step_size: ArrayLike | None = None,
        cooperation: str = "adapt-then-combine",
        exchange: str = "full",
        every: int = 1,
        threshold: float | None = None,
        forgetting: float = 1.0,
        bias: bool | None = None,
        scale: bool = True,
        robust: bool = True,
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
        self.bias = bias
        self.scale = scale
        self.robust = robust
        self.network = network

    @property
    def control_points_(self) -> Array:
        """Control points of the spline of each hosted agent, agents x Q."""
        design = self._current_state().shape.design
        return self._coefficient_block(slice(design.order + design.bias, None))

    def spline(self) -> Spline:
        return Spline(self.knots, self.spacing, self.basis)

    def truth_of(self, w0: Any, f0: Any) -> Any:
        return w0, f0

    def check_truth(self, truth: Any) -> tuple[Array, Array]:
        try:
            w0, f0 = truth
        except (TypeError, ValueError):
            raise DataError(
                "the truth of a spline filter must be (w0, f0), with f0 a function or the control "
                "points"
            ) from None
        spline = self.spline()
        w0 = true_coefficients(self.order, w0)
        if callable(f0):
            values = numbers_or_none(f0(spline.usable))
        else:
            q0 = numbers_or_none(f0)
            if q0 is None or q0.shape != (spline.size,):
                raise DataError(
                    f"there must be {spline.size} true control points, as the filter has, "
                    f"not {f0!r:.60}"
                )
            values = spline.value(spline.usable, q0)
        if values is None or values.shape != spline.usable.shape:
            raise DataError(
                "the true nonlinearity must give one finite number at each of the "
                f"{len(spline.usable)} usable knots"
            )
        return w0, values


class LMSFilter(AdaptiveFilter):
    """Adaptive linear filter, y[n] = w'x[n], by LMS, NLMS or RLS.

    The last inputs x[n] are weighted and summed. The filter starts as y[n] = x[n].

    Parameters
    ----------
    order : int, default 5
        Number of inputs that the filter remembers, including the present one.
    update : {"lms", "nlms", "rls"}, default "lms"
        Update rule: least mean squares, its normalised form, or recursive least squares. "rls"
        starts with a ridge of 0.01, so scale inputs that are smaller than 0.01.
    step_size : float, array-like with one number per hosted agent, or None, default None
        None means 0.005 with "lms" and 0.1 with "nlms". "rls" has none.
    cooperation : {"adapt-then-combine", "combine-then-adapt", "none"}, default "adapt-then-combine"
        When agents combine their coefficients: after each sample, or before it (the same filter).
        With "none" every agent learns alone and nothing is sent. All agents must have the same
        value: if only one has "none", the others wait for it.
    every : int, default 1
        Number of samples from one combination to the next.
    threshold : float or None, default None
        If given, an agent sends its coefficients only when they changed by this much, relative to
        their size. Where nothing is new it decays, so that agents agree. None sends them always.
    forgetting : float, default 1.0
        Weight of the past per sample, for "rls" only. Choose it below 1 for systems that change
        slowly; sudden changes are detected (see robust).
    bias : bool or None, default None
        Whether there is a bias weight: y[n] = w'x[n] + bias. None means only with "rls". With "lms"
        and "nlms" it slows w down if inputs are much smaller than 1, so it must be asked for.
    robust : bool, default True
        For "rls" only. Errors far above their usual size count less, so that an outlier does
        little harm. If errors stay large, the system has changed, and the agent starts to learn
        anew. "lms" and "nlms" forget outliers and changes by themselves.
    network : Network or None, default None
        The graph of agents. None is a network of one agent.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_hosted_agents, order)
        w of each hosted agent.
    bias_ : ndarray of shape (n_hosted_agents,)
        Bias weight of each hosted agent; 0 if the filter has none.
    report_ : Report
        Number of samples so far, and what was sent. It prints as a small table.

    Examples
    --------
    >>> import numpy as np
    >>> from peerlearn import LMSFilter
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(500)
    >>> d = np.convolve(x, [0.5, -0.3])[:500]
    >>> model = LMSFilter(order=2, update="rls")
    >>> run = model.run(x, d)
    >>> model.coefficients_.round(3)
    array([[ 0.5, -0.3]])
    """

    _steps: ClassVar = {"lms": (0.005, 0.0), "nlms": (0.1, 0.0)}
    _priors: ClassVar = (100.0, 100.0, 0.0)

    def __init__(
        self,
        order: int = 5,
        *,
        update: str = "lms",
        step_size: ArrayLike | None = None,
        cooperation: str = "adapt-then-combine",
        every: int = 1,
        threshold: float | None = None,
        forgetting: float = 1.0,
        bias: bool | None = None,
        robust: bool = True,
        network: Network | None = None,
    ) -> None:
        self.order = order
        self.update = update
        self.step_size = step_size
        self.cooperation = cooperation
        self.every = every
        self.threshold = threshold
        self.forgetting = forgetting
        self.bias = bias
        self.robust = robust
        self.network = network

    def truth_of(self, w0: Any, f0: Any) -> Any:
        return w0

    def check_truth(self, truth: Any) -> tuple[Array, Array]:
        return true_coefficients(self.order, truth), np.zeros(0)
