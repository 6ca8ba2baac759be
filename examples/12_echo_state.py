"""Five stations have recorded a little of a chaotic signal each: what one makes of its own, and all of everybody's."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from peerlearn import ESNRegressor, SimulatedNetwork, data, graphs

X, y = data.mackey_glass(sequences=6, length=900, tau=17.0, ahead=1)  # y is the next x
shares = [(X[k][:250], y[k][:250]) for k in range(5)]  # nobody has seen the sixth
network = SimulatedNetwork(graphs.ring(5))
settings = {"washout": 100, "alpha": 1e-7, "network": network, "random_state": 0}
together = ESNRegressor(**settings).fit(shares)
alone = ESNRegressor(**settings, solver="local").fit(shares)
print("one step ahead, NRMSE of each station alone:   ", alone.agent_nrmse(X[5], y[5]).round(5))
print("one step ahead, NRMSE of all stations together:", together.agent_nrmse(X[5], y[5]).round(5))
print(together.report_)

truth, ahead = y[5][500:], np.arange(1, 401)
figure, axes = plt.subplots(figsize=(10, 3.4), layout="constrained")
axes.plot(np.arange(-100, 1), y[5][399:500], color="0.3")
axes.plot(ahead, truth, color="0.3", label="what came")
for model, color, who in ((alone, "#e08214", "station 0 alone"), (together, "#542788", "all stations together")):
    forecast = model.forecast(400, X[5][:500], y[5][:500])  # after 500 samples it hears nothing but itself
    good = np.argmax(np.append(np.abs(forecast - truth) > 0.1, True))
    print(f"{who}: within 0.1 of the signal for {good} samples")
    axes.plot(ahead, forecast, "--", color=color, label=f"{who}, good for {good} samples")
axes.axvline(0.5, color="0.7", lw=1)
axes.set(xlabel="samples after the last that is known", xlim=(-100, 400), yticks=[-1, 0, 1])
axes.legend(loc="lower right", ncols=3, frameon=False)
axes.margins(y=0.25)
figure.savefig("echo-state.png", dpi=120)
