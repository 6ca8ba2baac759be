"""Sensors identify one nonlinear system, each from signals of its own: what cooperation brings, and what it costs."""

import numpy as np

from peerlearn import LMSFilter, SimulatedNetwork, SplineFilter, decibels, graphs
from peerlearn.data import wiener

system = wiener(
    agents=10, samples=5000
)  # d = f0(w0'x) + noise; how much of it differs from agent to agent
network = SimulatedNetwork(graphs.erdos_renyi(10, 0.6, seed=0))
steps = np.random.default_rng(0).uniform(0.001, 0.01, 10)
thesis = {"update": "lms", "step_size": steps, "spline_step_size": steps, "exchange": "span"}
filters = {
    "linear, recursive": LMSFilter(update="rls", network=network),
    "spline, the thesis's": SplineFilter(
        cooperation="combine-then-adapt", network=network, **thesis
    ),
    "spline, normalised": SplineFilter(update="nlms", network=network),
    "spline, recursive, every agent alone": SplineFilter(cooperation="none", network=network),
    "spline, recursive": SplineFilter(network=network),
    "the same, a round in 256 samples": SplineFilter(every=256, network=network),
}

for name, model in filters.items():
    run = model.run(system.x, system.d)
    excess = decibels(run.excess(system.clean), window=500)[
        -1
    ]  # error beyond the noise, averaged over agents
    print(f"{name:38}{excess:6.1f} dB in the end, {run.sent}")

live = SplineFilter(network=network)
for n in range(200):  # as samples arrive
    live.step(system.x[:, n], system.d[:, n])
print(live.report_)
