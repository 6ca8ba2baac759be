"""Claim: spline filters with default settings survive what signals do, and lose less than 1 dB.

Setting: experiments 1 and 3 of chapter 10 as in filters_experiments.py, 5000 samples per system.
Excess: the error against the signal without noise over the last 500 samples, powers averaged over
agents and runs, relative to the scale of d. Before: bias, scale and robust are False. After: the
defaults. A changed system: 5000 samples of one system, then 5000 of another. An outlier: one sample
of 1e4 at one agent, in d or in x, after 3000 samples. Limits: stationary, 1 dB above before;
scaled, 1 dB above stationary after; with something going on, 3 dB above stationary before.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import console, holds, show
from rich.progress import track

from peerlearn import SimulatedNetwork, SplineFilter, graphs
from peerlearn.arrays import Array
from peerlearn.data import wiener

SAMPLES, LATE, AT = 5000, 500, 3000
BEFORE = {"bias": False, "scale": False, "robust": False}
AFTER: dict[str, bool] = {}
EXPERIMENTS = {"mild": 10, "strong": 15}
STATIONARY = "stationary"
SCALED = "signals times"
FACTORS = (0.01, 0.3, 3.0, 100.0)
ALONE = "stationary, each agent alone"
SELDOM = "stationary, every 256 samples"
SETTINGS = {ALONE: {"cooperation": "none"}, SELDOM: {"every": 256}}
COST, HARM = 1.0, 3.0  # dB
Signals = tuple[Array, Array, Array]


def cases(agents: int, nonlinearity: str, seed: int) -> dict[str, tuple[Signals, float]]:
    """Signals x, d and clean of every case, and the scale of d."""
    first = wiener(agents, SAMPLES, nonlinearity=nonlinearity, seed=seed)
    second = wiener(agents, SAMPLES, nonlinearity=nonlinearity, seed=seed + 1000)
    own = (first.x, first.d, first.clean)
    other = (second.x, second.d, second.clean)
    in_d = first.d.copy()
    in_d[3, AT] = 1e4
    in_x = first.x.copy()
    in_x[3, AT] = 1e4
    changed = [np.hstack(pair) for pair in zip(own, other, strict=True)]
    return {
        STATIONARY: (own, 1.0),
        ALONE: (own, 1.0),
        SELDOM: (own, 1.0),
        "changed system": ((changed[0], changed[1], changed[2]), 1.0),
        **{f"{SCALED} {c:g}": ((c * own[0], c * own[1], c * own[2]), c) for c in FACTORS},
        "outlier of 1e4 in d": ((first.x, in_d, first.clean), 1.0),
        "outlier of 1e4 in x": ((in_x, first.d, first.clean), 1.0),
        "d + 5": ((first.x, first.d + 5, first.clean + 5), 1.0),
    }


def measure(agents: int, nonlinearity: str, runs: int) -> dict[str, tuple[float, float]]:
    """Excess in dB of every case, before and after."""
    network = SimulatedNetwork(graphs.erdos_renyi(agents, 0.6, seed=0))
    powers: dict[str, list[list[float]]] = {}
    for seed in track(range(runs), nonlinearity, console=console):
        for name, ((x, d, clean), scale) in cases(agents, nonlinearity, seed).items():
            both = []
            for settings in (BEFORE, AFTER):
                model = SplineFilter(network=network, **settings, **SETTINGS.get(name, {}))
                excess = model.run(x, d).excess(clean)[:, -LATE:]
                both.append(float(excess.mean()) / scale**2)
            powers.setdefault(name, []).append(both)
    means = {name: 10 * np.log10(np.mean(own, axis=0)) for name, own in powers.items()}
    return {name: (float(before), float(after)) for name, (before, after) in means.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=15, help="systems, each with its own signals")
    runs = parser.parse_args().runs
    for nonlinearity, agents in EXPERIMENTS.items():
        found = measure(agents, nonlinearity, runs)
        rows = []
        for name, (before, after) in found.items():
            limit = found[STATIONARY][0] + HARM
            if name.startswith(STATIONARY):
                limit = before + COST
            elif name.startswith(SCALED):
                limit = found[STATIONARY][1] + COST
            figures = [f"{each:.1f}" for each in (before, after, limit)]
            rows.append([name, *figures, holds(after, limit)])
        title = f"Excess in dB, {nonlinearity}, {agents} agents, {runs} systems"
        show(title, ["case", "before", "after", "limit", ""], rows)


if __name__ == "__main__":
    main()
