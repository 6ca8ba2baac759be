"""Preconditioned conjugate gradients on the normal equations of the whole network. Exact.

    A b = c,   A = sum_k H_k'H_k + alpha I,   c = sum_k H_k'Y_k        M columns, each on its own

    q = A d                                          over the network: one B x M sum per iteration

Every agent computes the rest of an iteration on its own copies: see krylov.py. preconditioners.py
has the ways to need fewer iterations. The answer is at most |r| / alpha away from b, r = c - A b.

The r of the iteration drifts from c - A b by rounding, and by errors of inexact sums. On a tree the
drift is bounded by the sizes of all data, three numbers that travel with c. By gossip, and where
that bound is too large, r is summed again in the end. Where H'H has lost too many digits, agents
compute H'(Y - H b) from their rows. Errors are part of the certificate: see certificate.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.certificate import (
    PooledSizes,
    U,
    centre_error,
    certificate_of,
    certify_each,
    each_with_intercept,
    has_own_errors,
    intercept_effect,
    pooled_gradient,
    recurrence_error,
    sum_error,
    sum_positive,
    with_intercept,
)
from peerlearn.algorithms.iteration import Certificate, Iterations, check_tolerance
from peerlearn.algorithms.krylov import (
    MARGIN,
    MOST_EXACT,
    ROUGH,
    Check,
    End,
    Krylov,
    Path,
    relative,
    sum_with_extra,
)
from peerlearn.algorithms.readout.preconditioners import PRECONDITIONERS, Preconditioner
from peerlearn.algorithms.readout.solver import Solution, above_zero, only_ridge
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array, dots, norms
from peerlearn.errors import InputError
from peerlearn.local.least_squares import LeastSquares, PerAgent
from peerlearn.local.normal_equations import product_units
from peerlearn.local.penalties import Penalty
from peerlearn.network.base import Network

__all__ = ["ConjugateGradient"]

ENOUGH_DIGITS = 0.1  # part of the tolerance that rounding of sums may take
ENERGY_MARGIN = 0.01  # relative, of a bound by energy, if sums are inexact


@dataclass(frozen=True)
class ConjugateGradient:
    """Ridge readout solved exactly by conjugate gradients.

    Only vectors of B x M numbers travel, one sum per iteration. Best for many columns and few
    outputs.

    Parameters
    ----------
    tolerance : float, default 1e-6
        Relative distance to the centralised coefficients.
    max_iterations : int, default 1000
        Limit of iterations; a solution that needs more warns.
    preconditioner : {"auto", "synthetic", "local", "none"}, default "auto"
        "synthetic" costs one average of the inputs' mean and covariance, and needs a feature map
        that all agents know. "local" costs one more average per iteration and suits any features.
        "none" is plain conjugate gradients. "auto" is "synthetic" where the feature map is known,
        else "local".
    averaging : Averaging or str, default "auto"
        How agents add up: an `Averaging`, or the name of its method.

    Examples
    --------
    >>> from peerlearn import ConjugateGradient, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> fixed = {"alpha": 1.0, "activation": "sigmoid", "network": network, "random_state": 0}
    >>> model = RVFLClassifier(50, solver=ConjugateGradient(), **fixed)
    >>> model.fit(iris.X, iris.y).report_.note
    'preconditioner synthetic, sums by tree'
    """

    name: ClassVar = "cg"
    exact: ClassVar = True

    tolerance: float = 1e-6
    max_iterations: int = 1000
    preconditioner: Literal["auto", "synthetic", "local", "none"] = "auto"
    averaging: Averaging | Method = "auto"

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance, "ConjugateGradient")
        Averaging.of(self.averaging)
        if self.max_iterations < 1:
            raise InputError(f"max_iterations must be 1 or more, not {self.max_iterations}")
        if self.preconditioner not in ("auto", *PRECONDITIONERS):
            raise InputError(
                f"preconditioner {self.preconditioner!r} is not known: "
                f"choose one of auto, {', '.join(PRECONDITIONERS)}"
            )

    def must_take(self, penalty: Penalty) -> None:
        """Refuse a penalty that is not ridge, or that has an alpha of 0."""
        only_ridge(penalty, "ConjugateGradient")
        above_zero(penalty, "ConjugateGradient")

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Return the centralised coefficients, to the tolerance, at every hosted agent."""
        krylov, b, note, certificate = self._solve(network, problems, penalty)
        if krylov.loop.exhausted:
            change = (
                "raise max_iterations, alpha or the averaging's max_rounds, "
                "or choose preconditioner='local'"
            )
        else:
            change = (
                "use solver='gram', which can send R factors, scale the inputs, or raise alpha "
                "or the averaging's max_rounds"
            )
        # All agents iterate on copies of the same b, whether it has converged or not.
        return Solution(b, krylov.report(note, change, certificate), self.tolerance)

    def attempt(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Solve for a caller that can try another solver.

        Warn only if sums were cut off, which another solver cannot mend.
        """
        krylov, b, note, certificate = self._solve(network, problems, penalty)
        change = "give the averaging more max_rounds"
        cut_off = not krylov.averaging.suffices_on(network)
        report = krylov.report(note, change, certificate, warn=cut_off)
        return Solution(b, report, self.tolerance)

    def _solve(
        self, network: Network, problems: LeastSquares, penalty: Penalty
    ) -> tuple[Krylov, Array, str, Certificate]:
        self.must_take(penalty)
        alpha = penalty.alpha
        loop = Iterations(
            network, "ConjugateGradient", self.tolerance, self.max_iterations, recovers=True
        )
        averaging = Averaging.of(self.averaging, max(self.tolerance / MARGIN, MOST_EXACT))
        rough = replace(averaging, tolerance=max(averaging.tolerance, ROUGH))
        name = self.preconditioner
        if name == "auto":
            name = "synthetic" if problems.features else "local"
        kind = PRECONDITIONERS[name]
        c, sizes, extra_sums = _right_side(
            network, problems, kind.extra_numbers(network, problems, alpha), averaging
        )
        precondition = kind.prepare(
            problems, alpha, lambda x: sum_alike(network, x, rough), extra_sums
        )
        system = _NormalEquations(network, problems, alpha, kind, c, sizes, self.tolerance)
        # P >= A^-1 up to the error of the agents' shares in it.
        certain = has_own_errors(network, averaging)
        certain = certain and sum_error(network, averaging) < ENERGY_MARGIN / 2
        if kind.above_inverse and certain and not averaging.exact_on(network):
            own_parts = kind.prepare(problems, alpha, lambda x: x, extra_sums)
            system = replace(system, own_parts=own_parts)
        krylov = Krylov(system, precondition, averaging, loop)
        b, certificate = krylov.solve(kind.first(problems, extra_sums))
        return krylov, b, f"preconditioner {name}, ", certificate


def _right_side(
    network: Network, problems: LeastSquares, extra: Array, averaging: Averaging
) -> tuple[Array, PooledSizes, Array]:
    """Return c, the sizes of all data, and the sums of the extra numbers of the preconditioner.

    All travel in the same messages.
    """
    own = problems.moment.reshape(problems.agents, -1)
    numbers = PooledSizes.numbers(problems)
    sums = sum_alike(network, np.hstack([own, numbers, extra]), averaging)
    ends = np.cumsum([own.shape[1], numbers.shape[1]])
    c, size_sums, extra_sums = np.split(sums, ends, axis=1)
    sizes = PooledSizes.of_sums(size_sums[0], network.size)
    return c.reshape(problems.moment.shape), sizes, extra_sums


@dataclass(frozen=True)
class _NormalEquations:
    """The system of krylov.py on the copies of all hosted agents: arrays are agents x B x M."""

    network: Network
    problems: LeastSquares
    alpha: float
    preconditioner: Preconditioner
    c: Array
    sizes: PooledSizes
    tolerance: float
    own_parts: PerAgent | None = None  # of P r, if P >= A^-1 and sums are inexact

    def right_side(self, averaging: Averaging) -> Array:
        return self.c

    def product(self, d: Array, extra: Array, averaging: Averaging) -> tuple[Array, float]:
        q, (e,) = sum_with_extra(self.network, self.problems.normal(d), extra, averaging)
        return q + self.alpha * d, e

    def distance(self, b: Array, r: Array, z: Array) -> Array:
        distances = relative(self.preconditioner.distance(r, z, self.alpha), norms(b))
        return self._intercept_effect(b)[0] * distances

    def check(self, b: Array, averaging: Averaging) -> Check:
        """Return c - A b, newly summed, and certificates.

        Rows are read again if sums of squares are not exact enough. The preconditioner's P r is a
        rough sum. Each agent has a part of r'P r: these are summed.
        """
        problems = self.problems
        by_rows = problems.has_factors and self._sums_are_rough()
        found = pooled_gradient(
            self.network, problems, self.alpha, b, averaging, sum_alike, by_rows=by_rows
        )
        r = -found.gradient
        gradients = norms(r)
        if self.own_parts is not None:
            parts = np.maximum(dots(r, self.own_parts(r)), 0.0)
            energy = sum_positive(self.network, parts, averaging)
            gradients = np.minimum(gradients, math.sqrt(self.alpha * energy) * (1 + ENERGY_MARGIN))
        certificates = certify_each(gradients + found.errors, self.alpha, b, found.reason)
        certificates = each_with_intercept(certificates, b, problems.lengths)
        factor, addition = self._intercept_effect(b)
        floor = relative(found.errors / self.alpha, norms(b))
        return Check(r, certificates, factor * float(floor[0]) + addition)

    def _sums_are_rough(self) -> bool:
        """Return whether rounding of H'H may be too much; the same at all agents."""
        sizes = self.sizes
        units = sizes.units + product_units(self.problems.shape[0])
        error = U * (units * sizes.trace + sizes.by_traces)
        return error > ENOUGH_DIGITS * self.tolerance * self.alpha

    def certify(self, end: End) -> Certificate:
        """Return the certificate; all agents have the same copies.

        A step makes the energy r'A^-1 r smaller, so a bound by energy holds after it too.
        """
        distance = norms(end.r_after) / self.alpha
        if end.z is not None:
            energy = self.preconditioner.distance(end.r, end.z, self.alpha)
            distance = np.minimum(distance, energy)
        drift = float(self._own_drift(end.path, end.b)[0])
        size = float(norms(end.b)[0])
        certificate = certificate_of(float(distance[0]) + drift * size, size)
        return with_intercept(certificate, end.b[0], self.problems.lengths)

    def drift(self, path: Path, b: Array) -> Array:
        factor, addition = self._intercept_effect(b)
        return factor * self._own_drift(path, b) + addition

    def _own_drift(self, path: Path, b: Array) -> Array:
        B = self.problems.shape[0]
        error = recurrence_error(self.sizes, path.travelled, path.rounded, self.alpha, B)
        error = error + centre_error(self.problems.lengths, b[0])
        return relative(error / self.alpha, norms(b)) + 2 * U * path.steps

    def _intercept_effect(self, b: Array) -> tuple[float, float]:
        """Return what an intercept does to a relative distance; all agents have the same b."""
        return intercept_effect(self.problems.lengths, b[0])
