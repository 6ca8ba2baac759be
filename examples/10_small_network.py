"""Agents train a small neural network together: a loss of one's own is a class with two methods."""

import numpy as np
from scipy.special import log_softmax, softmax

from peerlearn import SimulatedNetwork, data, graphs, partition
from peerlearn.algorithms.smooth import GradientTracking


class CrossEntropy:
    """One hidden layer of 16 tanh. w holds all weights of each agent, agents x d: every method works on all of them."""

    def __init__(self, shares, rows):
        self.X = np.stack(
            [np.hstack([X, np.ones((len(X), 1))]) for X, _ in shares]
        )  # agents x rows x columns
        self.Y = np.stack([np.eye(10)[y] for _, y in shares]) / rows
        self.agents, self.dimension = len(shares), (self.X.shape[2] + 10) * 16

    def layers(self, w):
        A, B = np.split(w, [self.X.shape[2] * 16], axis=1)
        H, B = np.tanh(self.X @ A.reshape(len(w), -1, 16)), B.reshape(-1, 16, 10)
        return H, B, H @ B

    def value(self, w):
        return -(self.Y * log_softmax(self.layers(w)[2], axis=2)).sum(axis=(1, 2))

    def gradient(self, w):
        H, B, Z = self.layers(w)
        E = softmax(Z, axis=2) * self.Y.sum(axis=2, keepdims=True) - self.Y
        back = self.X.swapaxes(1, 2) @ ((1 - H**2) * (E @ B.swapaxes(1, 2)))
        return np.hstack([back.reshape(len(w), -1), (H.swapaxes(1, 2) @ E).reshape(len(w), -1)])


digits = data.load("digits")
losses = CrossEntropy(partition.even(digits.X[:1500], digits.y[:1500], 5, seed=0), rows=1500)
start = np.tile(
    0.1 * np.random.default_rng(0).standard_normal(losses.dimension), (5, 1)
)  # the same at all agents
solver = GradientTracking(tolerance=1e-2)
found = solver.minimise(SimulatedNetwork(graphs.ring(5)), losses, 1e-3, start)
outputs = CrossEntropy([(digits.X[1500:], digits.y[1500:])], rows=297).layers(
    found.coefficients[:1]
)[2]
print(
    f"{100 * np.mean(outputs[0].argmax(axis=1) == digits.y[1500:]):.1f} % of new digits are right\n{found.report}"
)
