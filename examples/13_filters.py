"""
Adaptive filters
================

Ten sensors identify one nonlinear system, each from its own noisy signals: d = f(w'x) + noise.
They learn sample by sample. The error is measured without the noise, in dB.
"""

import matplotlib.pyplot as plt
import numpy as np

from peerlearn import LMSFilter, SimulatedNetwork, SplineFilter, decibels, graphs
from peerlearn.data import wiener

system = wiener(agents=10, samples=5000)
network = SimulatedNetwork(graphs.erdos_renyi(10, 0.6, seed=0))
steps = np.random.default_rng(0).uniform(0.001, 0.01, 10)
thesis = {"update": "lms", "step_size": steps, "spline_step_size": steps, "exchange": "span"}
thesis |= {"cooperation": "combine-then-adapt", "scale": False}
filters = {
    "linear": LMSFilter(update="rls", network=network),
    "spline, thesis": SplineFilter(network=network, **thesis),
    "spline, normalised": SplineFilter(update="nlms", network=network),
    "spline, every agent alone": SplineFilter(cooperation="none", network=network),
    "spline": SplineFilter(network=network),
    "spline, a round in 256 samples": SplineFilter(every=256, network=network),
}

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for name, model in filters.items():
    run = model.run(system.x, system.d)
    excess = decibels(run.excess(system.clean), window=500)  # averaged over agents
    print(f"{name:32}{excess[-1]:6.1f} dB in the end, {run.sent}")
    axes.plot(excess, label=f"{name}, {run.sent.megabytes:.1f} MB")
axes.set(xlabel="sample", ylabel="error beyond the noise, dB")
axes.legend(loc="upper right", fontsize="small")
plt.show()
