"""Signals: agents hear one system through signals of their own, and filters learn it.

A run is one recording (thesis, chapter 10): the system, its agents and their steps are the same in
all of them. Powers are averaged over agents and samples before they are told in decibels; their
logarithms never are. Curves are kept as powers, so that a figure in dB is the logarithm of the mean
over runs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from peerlearn.arrays import Array, is_whole
from peerlearn.data import WienerSignals, wiener
from peerlearn.errors import InputError
from peerlearn.lab.description.comparison import Data, Model
from peerlearn.lab.description.data_facts import SIGNALS, options_of, source_of
from peerlearn.lab.description.trial import Curve, Outcome, Trial
from peerlearn.lab.training.estimators import estimator_of, kind_of, parameters_of, what_it_takes
from peerlearn.lab.training.networks import network_of
from peerlearn.local.splines import Spline
from peerlearn.models.adaptive_filter import STEPS, AdaptiveFilter
from peerlearn.network import SimulatedNetwork

GRID: Array = np.linspace(-2.0, 2.0, 101)  # outputs of the linear part at which splines are shown
EARLY_WINDOW = 500  # samples over which an early error is averaged
DEVIATIONS = ("msd", "msd_spline")


@dataclass(frozen=True)
class Signals:
    """Filters that learn a system sample by sample.

    steps: LMS steps are drawn for each agent between these two, for models that set none; None: the
    models' own.

    window: samples per point of a curve. tail: samples at the end over which the final errors are
    averaged. early: the
    number of samples after which errors are also told.
    """

    steps: tuple[float, ...] | None = None
    window: int = 100
    tail: int = 2000
    early: int = 5000

    name: ClassVar = "signals"
    measures: ClassVar[Mapping[str, str]] = {
        "mse_db": "mean squared error over the last samples, in dB",
        "excess_db": "error against the signal without noise over the last samples, in dB",
        "early_excess_db": "error against the signal without noise early on, in dB",
        "worst_excess_db": (
            "error of the worst agent against the signal without noise over the last samples, in dB"
        ),
        "msd_db": (
            "squared deviation of the coefficients from the true ones over the last samples, in dB"
        ),
        "msd_spline_db": (
            "squared deviation of the nonlinearity at the usable knots over the last samples, in dB"
        ),
    }
    curves: ClassVar[Mapping[str, str]] = {  # powers, but for the two splines
        "mse": "mean squared error of all agents",
        "excess": "error of all agents against the signal without noise",
        "msd": "squared deviation of the coefficients, scale taken out",
        "msd_spline": "squared deviation of the nonlinearity at the usable knots",
        "fastest_msd": (
            "squared deviation of the coefficients of the agent with the smallest early error"
        ),
        "fastest_msd_spline": (
            "squared deviation of the nonlinearity of the agent with the smallest early error"
        ),
        "best_spline": "nonlinearity of the best agent at the end",
        "worst_spline": "nonlinearity of the worst agent at the end",
        "spline_deviation": "squared deviation of the nonlinearity of all agents at the end",
    }

    def __post_init__(self) -> None:
        if self.steps is not None and not (
            len(self.steps) == 2 and 0 <= self.steps[0] <= self.steps[1]
        ):
            raise InputError(
                f"steps are {self.steps!r}: give the smallest and the largest step, as [0.001, "
                f"0.01]"
            )
        for what in ("window", "tail", "early"):
            if not is_whole(getattr(self, what)) or getattr(self, what) < 1:
                raise InputError(
                    f"{what} is {getattr(self, what)!r}: give a number of samples, 1 or more"
                )

    def refuses(self, data: Data, model: Model) -> str:
        if source_of(data) not in SIGNALS or data.given is not None:
            return "filters signals, and these are none: give source = 'wiener'"
        if data.prepare or data.scale not in ("as loaded", "none"):
            return "filters signals as they are: leave out scale and prepare"
        if "agents" in data.options:
            return "listens as the agents of its network: leave out the option agents"
        if what_it_takes(kind_of(model, "regression")) != "signals":
            return "is no filter, and these are signals"
        if model.where == "centralised":
            return "would hear what only agents hear: give where = 'network' or 'alone'"
        samples = options_of(data)["samples"]
        most = max(self.window, self.tail, self.early)
        if samples < most:
            return (
                f"has {samples} samples to hear, and the protocol looks at {most}: "
                "record more, or look at fewer"
            )
        return ""

    def run(self, trial: Trial) -> Outcome:
        network = network_of(trial)
        assert network is not None
        heard = record(trial, network.size)
        model = self._filter(trial, network)
        started = time.perf_counter()
        run = model.run(heard.x, heard.d, truth=model.truth_of(heard.coefficients, heard.f0))
        seconds = time.perf_counter() - started
        powers = {
            "mse": run.mse,
            "excess": run.excess(heard.clean),
            "msd": run.msd,
            "msd_spline": run.msd_spline,
        }
        found = {name: power for name, power in powers.items() if power is not None}
        last = {
            name: power[:, -self.tail :].mean(axis=1) for name, power in found.items()
        }  # per agent
        early = found["excess"][:, max(self.early - EARLY_WINDOW, 0) : self.early].mean(axis=1)
        values = {f"{name}_db": _decibels(power.mean()) for name, power in last.items()}
        curves = {name: self._curve(power) for name, power in found.items()}
        fastest = [np.where(np.isnan(early), np.inf, early).argmin()]
        curves |= {
            f"fastest_{name}": self._curve(found[name][fastest])
            for name in DEVIATIONS
            if name in found
        }
        spline = model.spline()
        if spline is not None:
            curves |= _nonlinearities(model, spline, heard, last["excess"])
        return Outcome(
            seconds,
            values
            | {
                "early_excess_db": _decibels(early.mean()),
                "worst_excess_db": _decibels(last["excess"].max()),
            },
            {f"{name}_db": [_decibels(each) for each in power] for name, power in last.items()},
            curves,
            run.sent,
        )

    def _filter(self, trial: Trial, network: SimulatedNetwork) -> AdaptiveFilter:
        """Return the filter of the file, with drawn steps where it leaves them open."""
        model: AdaptiveFilter = estimator_of(trial, network)
        if trial.model.where == "alone":
            model.set_params(**model.alone)
        if self.steps is not None and model.update == "lms" and model.step_size is None:
            steps = np.random.default_rng(trial.seed("data")).uniform(
                self.steps[0], self.steps[1], network.size
            )
            model.set_params(
                **{name: steps for name in STEPS if name in parameters_of(type(model))}
            )
        return model

    def _curve(self, powers: Array) -> Curve:
        """Return one point per window, at the number of samples heard when it ends.

        An incomplete last window is left out.
        """
        points = powers.shape[1] // self.window
        mean = (
            powers[:, : points * self.window].mean(axis=0).reshape(points, self.window).mean(axis=1)
        )
        return (self.window * np.arange(1.0, points + 1)).tolist(), mean.tolist()


def record(trial: Trial, agents: int) -> WienerSignals:
    """Return what agents hear: the same system in all runs, another recording in each."""
    options = {**options_of(trial.data), "agents": agents}
    options["signals"] += trial.repetition * trial.comparison.folds + trial.fold
    return wiener(**options, seed=trial.seed("data"))


def _nonlinearities(
    model: Any, spline: Spline, heard: WienerSignals, errors: Array
) -> dict[str, Curve]:
    """Return phi(s / a) against s, where a w is nearest w0, and how far it is from f0(s).

    Shown are the agents with the smallest and the largest of these errors.
    """
    w = model.coefficients_
    scale = (w**2).sum(axis=1) / (w @ heard.coefficients)  # 1 / a
    phi = np.array(
        [spline.value(s * GRID, q) for s, q in zip(scale, model.control_points_, strict=True)]
    )
    found = {
        "best_spline": phi[errors.argmin()],
        "worst_spline": phi[errors.argmax()],
        "spline_deviation": np.mean((phi - heard.f0(GRID)) ** 2, axis=0),
    }
    return {name: (GRID.tolist(), values.tolist()) for name, values in found.items()}


def _decibels(power: float) -> float:
    return float(10 * np.log10(power))
