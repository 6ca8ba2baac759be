"""
Features of a trained network
=============================

What was trained elsewhere, here on public digits 0 to 6, is the feature map of all agents. Only the
readout is trained over the network, exactly. The digits 7 to 9 arrive one class at a time.
"""

import numpy as np
from sklearn.kernel_approximation import Nystroem

from peerlearn import RVFLClassifier, SimulatedNetwork, data, graphs

digits = data.load("digits")
X, y = digits.X[:1400], digits.y[:1400]
public = np.flatnonzero(y < 7)[:500]

try:
    import torch

    body = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU())
    net = torch.nn.Sequential(body, torch.nn.Linear(128, 7))
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(200):
        outputs = net(torch.tensor(X[public]).float())
        torch.nn.functional.cross_entropy(outputs, torch.tensor(y[public])).backward()
        optimiser.step()
        optimiser.zero_grad()

    def features(rows):
        return body(torch.tensor(rows).float()).detach()
except ImportError:  # peerlearn does not need torch: a fitted transformer will do
    features = Nystroem(gamma=0.02, n_components=128, random_state=0).fit(X[public])

network = SimulatedNetwork(graphs.ring(8))
model = RVFLClassifier(features=features, alpha=0.1, stream="exact", network=network)
for new in (y < 7, y == 7, y == 8, y == 9):
    model.partial_fit(X[new], y[new])
    known = digits.y <= model.classes_.max()
    print(model.classes_, "right:", model.score(digits.X[known][-300:], digits.y[known][-300:]))
