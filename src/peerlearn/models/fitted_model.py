"""Models that are trained by `fit`. The steps of `fit` are the same for all of them.

    check        parameters, algorithms, network, seeds                  alone, before any work
    learn        deal or check the input, compare settings, train        `RowModel`, `SequenceModel`
    agree        on the coefficients, where the solver promises that     over the network
    report       what the solver did, and what was sent in all steps

The steps run with one BLAS thread. If one of them raises an error, the model is restored to what it
was before `fit`.
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
    """Result of training. `Solution` and `Minimum` of the solvers are answers."""

    @property
    def coefficients(self) -> Any:
        """Coefficients of each hosted agent."""
        ...

    @property
    def report(self) -> Report:
        """What the solver did."""
        ...

    @property
    def apart(self) -> float | None:
        """Largest allowed distance of agents from their common answer; None if not checked."""
        ...


@dataclass(frozen=True)
class OwnAnswer:
    """Answer in which every agent has coefficients of its own, so that none are compared."""

    coefficients: list[Any]
    report: Report
    apart: ClassVar[None] = None


class FittedModel(NetworkModel):
    """Base class of models with `fit`."""

    coefficients_: Any  # of each hosted agent
    report_: Report

    def fit_over_network(self, *given: Any) -> Self:
        """Train on the arguments of `fit`."""
        with restored_on_error(self), one_blas_thread():
            setup = self.check_settings()
            mark = setup.network.ledger.mark()
            answer = self.learn(setup, *given)
            check_coefficients(setup.network, answer.coefficients, answer.apart)
            self.coefficients_ = answer.coefficients
            self.report_ = replace(answer.report, sent=setup.network.ledger.since(mark))
        return self

    def learn(self, setup: Setup, *given: Any) -> Answer:
        """Train all agents together on the arguments of `fit`, and return the answer.

        An implementation calls `draw_and_compare` before it trains. It sets all attributes except
        coefficients_ and report_.
        """
        raise NotImplementedError

    def draw(self, setup: Setup, columns: int, outputs: int) -> tuple[Drawn, ...]:
        """Draw the random parts that all agents share, keep them, and return what to compare."""
        return ()

    def draw_and_compare(
        self,
        setup: Setup,
        columns: int,
        outputs: int,
        rows: Sequence[int] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Draw the random parts, and check that all agents have the same ones and equal settings.

        Simulated agents cannot differ, but they compare as well, so that every engine sends the
        same messages.

        rows: number of rows of each hosted agent; given if some agent of the network must have one.
        more: further settings that must be the same, by name.
        """
        drawn = self.draw(setup, columns, outputs)
        settings = self.common_settings(setup, columns, outputs) | dict(more or {})
        check_same_settings(setup.network, settings, *drawn, rows=rows)

    def common_settings(self, setup: Setup, columns: int, outputs: int | None) -> dict[str, Any]:
        """Return the settings that all agents must share, by the name used in error messages.

        outputs: the number of outputs; None if it need not be compared.
        """
        settings: dict[str, Any] = {"the number of columns of X": columns}
        if outputs is not None:
            settings["the number of outputs"] = outputs
        for name in inspect.signature(type(self)).parameters:
            if name not in (*self.own, *self.parts):
                settings[name] = getattr(self, name)
        for name, seed in setup.seeds.items():
            if name != DEALING:
                settings[f"the seed of {name}"] = seed
        return {**settings, **setup.parts}
