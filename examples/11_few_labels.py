"""
Few labels
==========

Seven agents have 50 labels and 1297 unlabelled rows between them. The unlabelled rows of all
agents improve the model of every agent.
"""

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
    split = train_test_split(digits.X, digits.y, stratify=digits.y, random_state=draw)
    X, X_test, y, y_test = split
    few = np.concatenate([np.flatnonzero(y == digit)[:5] for digit in range(10)])
    some = np.full(len(y), -1)  # -1: a row without a label
    some[few] = y[few]
    shares = partition.stratified(X, some, 7)
    alone = LapKRRClassifier(network=network, random_state=0, distances="local").fit(shares)
    together = LapKRRClassifier(network=network, random_state=0).fit(shares)
    rivals = [SVC().fit(X[few], y[few]), LabelSpreading().fit(X, some)]
    scores = [model.score(X_test, y_test) for model in (*rivals, together)]
    right.append(np.multiply(100, [alone.agent_scores(X_test, y_test).mean(), *scores]))
names = ["agents alone", "SVC in one place", "LabelSpreading in one place", "agents together"]
print("% right:", ", ".join(names), np.round(right, 1), together.report_, sep="\n")

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
bars = axes.barh(names, np.mean(right, axis=0), color=["#D55E00", "0.6", "0.6", "#0072B2"])
axes.bar_label(bars, fmt="%.0f %%", label_type="center", color="white", weight="bold")
axes.scatter(np.ravel(right), names * 5, color="k", s=12, zorder=3)
axes.set(xlabel="test digits right, %: five draws (dots) and their mean", xlim=(0, 100))
plt.show()
