"""Preconditioned conjugate gradients on the normal equations of the whole network. Exact.

    A b = c,   A = sum_k H_k'H_k + alpha I,   c = sum_k H_k'Y_k        M columns, each on its own

    q = A d                                          over the network: one B x M sum per iteration

Every agent computes the rest of an iteration on its own copies: see krylov.py. preconditioners.py
has the ways to need fewer iterations. The answer is at most |r| / alpha away from b, r = c - A b.

The r of the iteration drifts from c - A b by rounding, and by errors of inexact sums. On a tree the
drift is bounded by the sizes of all data, three numbers that travel with c. By gossip, and where
that bound is too large, r is summed again in the end. Where H'H has lost too many digits, agents
compute H'(Y - H b) from their rows. Errors are part of the certificate: see certificate.py.

Under secrecy all sums are secret totals, and all agents learn them: N, trace(H'H), |Y|^2, c, and
H'H d for each direction d. The directions follow from these, and so all that a coalition sees
follows from H'H, c, |Y|^2 and N. After B / M iterations it may know all of H'H, as the root of
`Gram` does. The preconditioner "synthetic" adds the total of the inputs' moments. With "local",
totals would be sums of inverses, from which single agents' H'H can be computed: it is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.agreement import no_rows
from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.certificate import (
    PooledGradient,
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
from peerlearn.algorithms.secret_sums import session_of
from peerlearn.algorithms.sums import sum_alike
from peerlearn.arrays import Array, dots, norms
from peerlearn.errors import InputError
from peerlearn.local.least_squares import LeastSquares, PerAgent
from peerlearn.local.normal_equations import product_units
from peerlearn.local.penalties import Penalty
from peerlearn.network.base import Network
from peerlearn.secret.refusals import secret_error
from peerlearn.secret.statement import ONLY_TOTALS

__all__ = ["ConjugateGradient"]

ENOUGH_DIGITS = 0.1  # part of the tolerance that rounding of sums may take
LARGEST_DISTANCE = 1e30  # that is sent as a secret sum
RIGHT_SIDE = "H'Y, number of rows, trace of H'H and squares of targets"
PRODUCT = "product of H'H with a direction"
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
    claim: ClassVar = ONLY_TOTALS

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

    def check_secrecy(self) -> None:
        """Refuse settings with which totals would tell more than H'H and H'Y."""
        if self.preconditioner == "local":
            raise secret_error(
                "ConjugateGradient with the preconditioner 'local'",
                "would sum inverses, from which single agents' H'H can be computed",
                "use preconditioner='synthetic' or 'none'",
            )

    def _name_preconditioner(self, network: Network, problems: LeastSquares) -> str:
        if self.preconditioner != "auto":
            return self.preconditioner
        if problems.features:
            return "synthetic"
        return "local" if network.secrecy is None else "none"

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Return the centralised coefficients, to the tolerance, at every hosted agent."""
        krylov, b, note, certificate = self._solve(network, problems, penalty)
        if network.secrecy is not None:
            change = "raise max_iterations, tolerance or alpha, or scale the inputs"
        elif krylov.loop.exhausted:
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
        name = self._name_preconditioner(network, problems)
        kind = PRECONDITIONERS[name]
        c, sizes, extra_sums = _right_side(
            network, problems, kind.extra_numbers(network, problems, alpha), averaging
        )

        def total(x: Array) -> Array:
            if network.secrecy is None:
                return sum_alike(network, x, rough)
            return session_of(network).total("moments of the inputs", x)

        precondition = kind.prepare(problems, alpha, total, extra_sums)
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
    if network.secrecy is not None:
        numbers = np.column_stack([own, problems.rows, problems.sizes(), problems.squares])
        totals = session_of(network).total(RIGHT_SIDE, numbers)
        if totals[0, -3] == 0:
            raise no_rows()
        sizes = PooledSizes.of_totals(totals[0, -3:], problems, network.size)
        return totals[:, :-3].reshape(problems.moment.shape), sizes, extra
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
        own = self.problems.normal(d)
        if self.network.secrecy is None:
            q, (e,) = sum_with_extra(self.network, own, extra, averaging)
        else:
            q, e = self._product_in_secret(d, own, extra)
        return q + self.alpha * d, e

    def _product_in_secret(self, d: Array, own: Array, extra: Array) -> tuple[Array, float]:
        # All agents have the same d. Fixed-point numbers suit a d whose columns have a size of 1.
        _, exponents = np.frexp(np.abs(d).max(axis=1, keepdims=True))
        scaled = np.ldexp(own, -exponents).reshape(len(own), -1)
        rows = np.column_stack([scaled, np.minimum(extra, LARGEST_DISTANCE)])
        session = session_of(self.network)
        sums = session.total(PRODUCT, rows, exponents[0].tobytes())
        q: Array = np.ldexp(sums[:, :-1].reshape(own.shape), exponents)
        return q, float(sums[0, -1]) / self.network.size

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
        if self.network.secrecy is None:
            found = pooled_gradient(
                self.network, problems, self.alpha, b, averaging, sum_alike, by_rows=by_rows
            )
        else:
            found = self._gradient_in_secret(b)
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

    def _gradient_in_secret(self, b: Array) -> PooledGradient:
        """Return the gradient at b, from totals that follow from H'H and H'Y."""
        problems = self.problems
        own = problems.normal(b) - problems.moment
        sums = session_of(self.network).total("gradient at the answer", own)
        B = problems.shape[0]
        errors = recurrence_error(self.sizes, norms(b), np.zeros(len(b)), self.alpha, B)
        errors = errors + centre_error(problems.lengths, b[0])
        return PooledGradient(sums + self.alpha * b, errors)

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
