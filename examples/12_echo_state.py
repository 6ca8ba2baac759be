"""Five stations have recorded a little of a chaotic signal each: how far they forecast alone, and together."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from peerlearn import ESNRegressor, SimulatedNetwork, data, graphs

X, y = data.mackey_glass(sequences=15, length=900, tau=17.0, ahead=1)  # y is the next x
shares = [(X[k][:250], y[k][:250]) for k in range(5)]  # nobody has seen the other ten signals
settings = {"washout": 100, "alpha": 1e-7, "random_state": 0}
together = ESNRegressor(**settings, network=SimulatedNetwork(graphs.ring(5))).fit(shares)
stations = [ESNRegressor(**settings).fit([x], [d]) for x, d in shares]
print(together.report_)


def errors(model):
    """NRMSE of forecasts 1, 2, .. 400 samples ahead, over the ten signals; after 500 samples they hear nothing more."""
    missed = [
        model.forecast(400, x[:500], d[:500]) - d[500:] for x, d in zip(X[5:], y[5:], strict=True)
    ]
    return np.sqrt(np.mean(np.square(missed), axis=0) / np.var(y))


curves = [errors(model) for model in (*stations, together)]
*alone, all_five = (int(np.argmax(np.append(curve > 0.2, True))) for curve in curves)
print(f"within 20 % for so many samples: alone {alone}, together {all_five}")

ahead, blue, orange = np.arange(1, 401), "#0072B2", "#D55E00"
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.semilogy(ahead, 100 * np.transpose(curves[:5]), color=orange, lw=1)
axes.semilogy(ahead, 100 * curves[5], color=blue, lw=2.5)
axes.axhline(20, color="0.4", ls=":")
axes.text(6, 110, "each station alone", color=orange)
axes.text(150, 0.5, "all five together", color=blue)
axes.set(
    xlabel="samples ahead",
    ylabel="error, % of the signal's deviation",
    xlim=(0, 400),
    ylim=(0.01, 250),
)
axes.set_yticks([0.01, 0.1, 1, 10, 20, 100], ["0.01", "0.1", "1", "", "20", "100"])
title = f"Five stations forecast {all_five} samples together, {min(alone)} to {max(alone)} alone"
figure.suptitle(title, weight="bold")
figure.savefig("forecast.png", dpi=120)
