"""Claim: agents whose joint RLS filters talk every 256 samples hear better than the thesis's D-SAF,
which talks at every sample, and send 50 times fewer bytes.

Setting: experiments 1 and 3 of chapter 10 as in filters_experiments.py, 5000 samples. Excess: the
error against the
signal without noise over the last 500 samples, powers averaged over agents and runs. Bytes: the
payload that the ledger counted, all agents together. Censoring: an agent speaks only when what it
has learned since it last spoke is more than a threshold; the others go on with what it said last,
in the difference form. Rival: D-SAF as printed, which sends w, a request and the four control
points asked for, at every sample. Limits: its excess, and a fiftieth of its bytes.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import console, holds, show
from filters_experiments import CTA, EARLY, EXPERIMENTS, LONE, PLAIN, Experiment, Filter
from rich.progress import track

from peerlearn import SplineFilter
from peerlearn.network.base import Counts

FEWER = 50
AS_PRINTED, SELDOM = "D-SAF as printed, spans", "joint RLS, every 256"
EVERY = (1, 16, 64, 256, 1024)
THRESHOLDS = (0.003, 0.01, 0.03, 0.1)


def filters(experiment: Experiment) -> dict[str, Filter]:
    network = experiment.network
    return {
        AS_PRINTED: experiment.saf(exchange="span", **CTA),
        "D-SAF, full exchange": experiment.saf(**CTA),
        "D-SAF, every 256": experiment.saf(every=256, **CTA),
        **{
            f"joint RLS, every {every}": SplineFilter(every=every, network=network, **PLAIN)
            for every in EVERY
        },
        **{
            f"joint RLS, news above {news}": SplineFilter(threshold=news, network=network, **PLAIN)
            for news in THRESHOLDS
        },
        "joint RLS, alone": SplineFilter(network=network, **LONE, **PLAIN),
    }


def measure(experiment: Experiment, runs: int) -> dict[str, tuple[float, Counts]]:
    """The excess in dB, and what one run sent."""
    powers: dict[str, list[float]] = {}
    sent: dict[str, Counts] = {}
    for run in track(range(runs), experiment.title, console=console):
        signals = experiment.signals(run, EARLY)
        for name, model in filters(experiment).items():
            learned = model.run(signals.x, signals.d)
            powers.setdefault(name, []).append(
                float(learned.excess(signals.clean)[:, -500:].mean())
            )
            sent[name] = sent.get(name, Counts()) + learned.sent
    return {name: (10 * np.log10(np.mean(own)), sent[name]) for name, own in powers.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=15, help="recordings of the same system")
    runs = parser.parse_args().runs
    for experiment in EXPERIMENTS:
        if experiment.expected is None:
            continue
        found = measure(experiment, runs)
        excess, bytes = found[AS_PRINTED][0], found[AS_PRINTED][1].bytes
        rows = []
        for name, (own, sent) in found.items():
            fewer = f"{bytes / sent.bytes:,.3g}" if sent.bytes else ""
            rows.append(
                [
                    name,
                    f"{own:.1f}",
                    f"{sent.messages / runs:,.0f}",
                    f"{sent.megabytes / runs:,.3g}",
                    fewer,
                ]
            )
        show(
            f"{experiment.title}, {EARLY} samples, {runs} runs",
            ["filter", "excess, dB", "messages", "MB", "times fewer bytes"],
            rows,
        )
        own, sent = found[SELDOM]
        checks = [
            [
                f"{SELDOM}: excess below D-SAF's, dB",
                f"{own:.1f}",
                f"{excess:.1f}",
                holds(own, excess),
            ],
            [
                f"{SELDOM}: bytes against D-SAF's",
                f"1/{bytes / sent.bytes:.0f}",
                f"1/{FEWER}",
                holds(FEWER * sent.bytes, bytes),
            ],
        ]
        show(experiment.title, ["claim", "measured", "limit", ""], checks)


if __name__ == "__main__":
    main()
