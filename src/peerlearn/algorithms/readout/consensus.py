"""Consensus: solve alone, then average the coefficients once.

    b_k = argmin 1/2 |H_k b - Y_k|^2 + alpha N_k/N 1/2 |b|^2       alone
    b   = sum_k N_k/N b_k                                          over the network: one average

CONS-RVFL, thesis, section 4.2.1. Its error rate is about that of the centralised model, at the
price of one average; its coefficients are not the centralised ones. One more sum, and one flood by
gossip, gives the size of the gradient of the pooled objective at every agent's b, for the report.
The thesis gives every agent the same alpha and the same weight (`variant="thesis"`). That acts like
L times the penalty: with 50 agents the error is 20 % instead of 7.6 % (G50C scaled to [0, 1]). By
gossip that variant sends nothing more than the thesis does, because its rounds are compared with
those of the thesis.

Under secrecy N and sum_k N_k b_k are secret totals, and all agents learn them. Nothing else is
summed, so the report has no gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from peerlearn.algorithms.agreement import no_rows
from peerlearn.algorithms.averaging import Averaging, Method
from peerlearn.algorithms.certificate import gradient_of_each
from peerlearn.algorithms.iteration import Report
from peerlearn.algorithms.readout.solver import Solution, only_ridge
from peerlearn.algorithms.secret_sums import session_of
from peerlearn.algorithms.sums import everyone
from peerlearn.errors import DataError, InputError
from peerlearn.local.least_squares import LeastSquares
from peerlearn.local.penalties import Penalty
from peerlearn.network.base import Network
from peerlearn.secret.statement import ONLY_TOTALS

__all__ = ["Consensus"]

NOT_PROMISED = "it is an average of the agents' own answers, not the pooled one"
IN_SECRET = "secret sums make no total for a gradient"
NOTHING_MORE = "variant='thesis' by gossip sends nothing for a gradient"


@dataclass(frozen=True)
class Consensus:
    """Ridge readout averaged once from the agents' own readouts.

    Cheap and not exact: the error rate is about the centralised one, the coefficients are not.

    Parameters
    ----------
    averaging : Averaging or str, default "auto"
        How agents average: an `Averaging`, or the name of its method.
    variant : {"weighted", "thesis"}, default "weighted"
        "weighted" weighs agents by their rows. "thesis" gives every agent the same weight and the
        whole alpha, as the thesis prints it; by gossip its report has no gradient.

    Examples
    --------
    >>> from peerlearn import Consensus, RVFLClassifier, SimulatedNetwork, data, graphs
    >>> iris = data.load("iris")
    >>> network = SimulatedNetwork(graphs.ring(5))
    >>> model = RVFLClassifier(50, solver=Consensus(), network=network, random_state=0)
    >>> model.fit(iris.X, iris.y).report_.iterations
    1
    """

    name: ClassVar = "consensus"
    exact: ClassVar = False
    claim: ClassVar = ONLY_TOTALS

    averaging: Averaging | Method = "auto"
    variant: Literal["weighted", "thesis"] = "weighted"

    def __post_init__(self) -> None:
        Averaging.of(self.averaging)
        if self.variant not in ("weighted", "thesis"):
            raise InputError(
                f"variant {self.variant!r} is not known: Consensus has 'weighted' and 'thesis'"
            )

    def must_take(self, penalty: Penalty) -> None:
        """Refuse a penalty that is not ridge."""
        only_ridge(penalty, "Consensus")

    def solve(self, network: Network, problems: LeastSquares, penalty: Penalty) -> Solution:
        """Return the weighted average of the agents' own ridge solutions."""
        alpha = only_ridge(penalty, "Consensus")
        averaging = Averaging.of(self.averaging)
        mark = network.ledger.mark()
        in_secret = network.secrecy is not None
        share = np.full(problems.agents, 1 / network.size)
        if self.variant == "weighted":
            if in_secret:
                N = session_of(network).count("number of rows", problems.rows).astype(np.float64)
                if N[0] == 0:
                    raise no_rows()
            else:
                N = averaging.total(network, problems.rows)
            share = problems.rows / np.maximum(N, 1)
            # An agent without rows has weight 0: any alpha will do.
            alpha_k = np.where(share > 0, alpha * share, 1.0)
        else:
            alpha_k = np.full(problems.agents, alpha)
        # A vote, so that either all agents stop or none does.
        if alpha == 0 and not everyone(network, problems.rows >= problems.shape[0]):
            raise DataError(
                f"some agents have fewer rows than the {problems.shape[0]} coefficients that they "
                "must determine alone when alpha is 0: set alpha above 0, or use solver='gram'"
            )
        b_k = problems.ridge(alpha_k)
        weighted = share[:, None, None] * b_k
        if in_secret:
            b = session_of(network).total("coefficients of the agents, weighted", weighted)
        else:
            # An average of parts as large as b, not a sum of small ones: a stopping rule that looks
            # at the size of updates then sees the updates of b.
            b = averaging.average(network, (network.size * share)[:, None, None] * b_k)
        exact = averaging.exact_on(network)
        gradient = None
        about = IN_SECRET if in_secret else NOTHING_MORE
        if not in_secret and (exact or self.variant == "weighted"):
            gradient, about = gradient_of_each(network, problems, alpha, b, averaging)
        report = Report(
            "Consensus",
            averaging.suffices_on(network),
            1,
            (),
            network.ledger.since(mark),
            bound_reason=f"{NOT_PROMISED}; of the gradient: {about}" if about else NOT_PROMISED,
            gradient=gradient,
        )
        return Solution(b, report, 0.0 if exact else None)
