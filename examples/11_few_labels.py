"""Seven agents have 50 labels and 1297 unlabelled rows between them: what each learns alone, and all together."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from peerlearn import LapKRRClassifier, SimulatedNetwork, data, graphs, partition

digits = data.load("digits")
network = SimulatedNetwork(graphs.erdos_renyi(7, 0.5, seed=0))
right = []
for draw in range(5):
    X, X_test, y, y_test = train_test_split(
        digits.X, digits.y, stratify=digits.y, random_state=draw
    )
    few = np.concatenate([np.flatnonzero(y == digit)[:5] for digit in range(10)])
    some = np.full(len(y), -1)  # -1: a row without a label
    some[few] = y[few]
    shares = partition.stratified(X, some, 7)
    alone = LapKRRClassifier(network=network, random_state=0, distances="local").fit(shares)
    svc, spreading = SVC().fit(X[few], y[few]), LabelSpreading().fit(X, some)
    together = LapKRRClassifier(network=network, random_state=0).fit(shares)
    scores = [model.score(X_test, y_test) for model in (svc, spreading, together)]
    right.append([100 * alone.agent_scores(X_test, y_test).mean(), *np.multiply(100, scores)])
print(
    "% right: agents alone, SVC, LabelSpreading, agents together:",
    np.round(right, 1),
    together.report_,
    sep="\n",
)

names = ["each agent alone:\n7 labels", "SVC (scikit-learn):\n50 labels in one place"]
names += [
    "LabelSpreading (scikit-learn):\nall rows in one place",
    "all agents together:\nLapKRRClassifier",
]
mean, blue, orange = np.mean(right, axis=0), "#0072B2", "#D55E00"
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
bars = axes.barh(names, mean, color=[orange, "0.6", "0.6", blue])
axes.bar_label(bars, fmt="%.0f %%", label_type="center", color="white", weight="bold")
axes.scatter(np.ravel(right), names * 5, color="k", s=12, zorder=3)
axes.set(xlabel="test digits right, %: five draws (dots) and their mean", xlim=(0, 100))
title = (
    f"50 labels among seven agents: {mean[3]:.0f} % of digits right together, {mean[0]:.0f} % alone"
)
figure.suptitle(title, weight="bold")
figure.savefig("few-labels.png", dpi=120)
