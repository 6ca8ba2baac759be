"""Models that are trained by `fit`, which runs in the same order for all of them.

    check        parameters, algorithms, network, seeds                  alone, before any work
    learn        deal or check the input, compare settings, train        `RowModel`, `SequenceModel`
    agree        on the coefficients, where the solver promises that     over the network
    report       what the solver did, and what all of it sent

One BLAS thread does it, and if an error leaves it, the model is as it was before.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from peerlearn.algorithms.agreement import Drawn, check_coefficients, check_same_settings
from peerlearn.algorithms.report import Report
from peerlearn.local.threads import one_blas_thread
from peerlearn.models.base import DEALING, NetworkModel, Setup
from peerlearn.models.restored_on_error import restored_on_error


class Answer(Protocol):
    """What training ends with; `Solution` and `Minimum` of the solvers are answers."""

    @property
    def coefficients(self) -> Any:
        """Of each hosted agent."""
        ...

    @property
    def report(self) -> Report: ...

    @property
    def apart(self) -> float | None:
        """How far agents may be from their common answer, as in `Solution`; None: not checked."""
        ...


@dataclass(frozen=True)
class OwnAnswer:
    """An answer whose coefficients each agent has for itself."""

    coefficients: list[Any]
    report: Report
    apart: ClassVar[None] = None


class FittedModel(NetworkModel):
    """Base class of models with `fit`."""

    coefficients_: Any  # of each hosted agent
    report_: Report

    def fit_over_network(self, *given: Any) -> Self:
        """Train on what `fit` was given."""
        with restored_on_error(self), one_blas_thread():
            setup = self.check_settings()
            mark = setup.network.ledger.mark()
            answer = self.learn(setup, *given)
            check_coefficients(setup.network, answer.coefficients, answer.apart)
            self.coefficients_ = answer.coefficients
            self.report_ = replace(answer.report, sent=setup.network.ledger.since(mark))
        return self

    def learn(self, setup: Setup, *given: Any) -> Answer:
        """Return what all agents learn together from what `fit` was given.

        It compares settings (`draw_and_compare`) before any work, and sets all attributes but
        coefficients_ and report_.
        """
        raise NotImplementedError

    def draw(self, setup: Setup, columns: int, outputs: int) -> tuple[Drawn, ...]:
        """Draw what all agents must have alike, keep it, and return what they compare of it."""
        return ()

    def draw_and_compare(
        self,
        setup: Setup,
        columns: int,
        outputs: int,
        rows: Sequence[int] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Draw what is random, and check that all agents drew the same and have the same settings.

        In simulation, where they cannot differ, agents ask all the same: what is sent does not
        depend on
        the engine. rows: how many each hosted agent has, where somebody in the network must have
        some. more: what else must be the same.
        """
        drawn = self.draw(setup, columns, outputs)
        settings = self.common_settings(setup, columns, outputs) | dict(more or {})
        check_same_settings(setup.network, settings, *drawn, rows=rows)

    def common_settings(self, setup: Setup, columns: int, outputs: int | None) -> dict[str, Any]:
        """Return what all agents must have alike, by the words that an error message has for it.

        outputs: None where it need not be compared.
        """
        shape = {"the number of columns of X": columns, "the number of outputs": outputs}
        if outputs is None:
            del shape["the number of outputs"]
        names = inspect.signature(type(self)).parameters
        plain = {
            name: getattr(self, name) for name in names if name not in (*self.own, *self.parts)
        }
        seeds = {
            f"the seed of {what}": seed for what, seed in setup.seeds.items() if what != DEALING
        }
        return {**shape, **plain, **seeds, **setup.parts}
