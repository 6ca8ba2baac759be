"""
Forecast a chaotic signal
=========================

Five stations have recorded 250 samples of a chaotic signal each. Together they forecast much
further than any of them alone. They are tested on ten signals that no station has seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from peerlearn import ESNRegressor, SimulatedNetwork, data, graphs

X, y = data.mackey_glass(sequences=15, length=900, tau=17.0, ahead=1)  # y is the next x
shares = [(X[k][:250], y[k][:250]) for k in range(5)]
settings = {"washout": 100, "alpha": 1e-7, "random_state": 0}
together = ESNRegressor(**settings, network=SimulatedNetwork(graphs.ring(5))).fit(shares)
stations = [ESNRegressor(**settings).fit([x], [d]) for x, d in shares]
print(together.report_)


def errors(model):
    """Return the NRMSE of forecasts 1 to 400 samples ahead, after 500 samples of each signal."""
    tests = list(zip(X[5:], y[5:], strict=True))
    missed = [model.forecast(400, x[:500], d[:500]) - d[500:] for x, d in tests]
    return np.sqrt(np.mean(np.square(missed), axis=0) / np.var(y))


curves = np.array([errors(model) for model in (*stations, together)])
*alone, all_five = np.argmax(np.hstack([curves > 0.2, np.full((6, 1), True)]), axis=1).tolist()
print(f"samples until the error is above 20 %: alone {alone}, together {all_five}")

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.semilogy(100 * curves[:5].T, color="#D55E00", lw=1)
axes.semilogy(100 * curves[5], color="#0072B2", lw=2.5)
axes.axhline(20, color="0.4", ls=":")
axes.text(6, 110, "each station alone", color="#D55E00")
axes.text(150, 0.5, "all five together", color="#0072B2")
axes.set(xlabel="samples ahead", ylabel="error, % of the signal's deviation", ylim=(0.01, 250))
plt.show()
